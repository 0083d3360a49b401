"""Training with torch, and what it leaves of torch's settings for the whole process."""

import subprocess
import sys

import pytest

pytest.importorskip("sb3_contrib")

CODE = """
import torch
torch.set_num_threads(3)

def is_untouched():
    try:
        torch.distributions.Categorical(probs=torch.tensor([-1.0, 2.0]))
    except ValueError:
        return torch.get_num_threads() == 3

from stable_baselines3.common.logger import Logger
from marrakech_agents.training.ppo_learner import PPOLearner, PPOSettings
from marrakech_agents.training.value_learner import ValueLearner, ValueSettings
assert is_untouched(), "after the imports"
settings = PPOSettings(teacher="greedy", opponents="random", num_envs=2, num_steps=4, batch_size=4)
learners = PPOLearner(2, "official", 0, settings), ValueLearner(2, "official", 0, ValueSettings())
assert is_untouched(), "after the constructors"

threads, step = [], torch.optim.Adam.step
def watched(self, *arguments):
    threads.append(torch.get_num_threads())
    return step(self, *arguments)
torch.optim.Adam.step = watched
for learner in learners:
    learner.prepare(Logger(None, []))
    threads.clear()
    learner.advance(0.0, ())
    assert set(threads) == {1}, "while it learns"
    assert is_untouched(), "after a round"
def failed(self, *arguments):
    raise KeyboardInterrupt
torch.optim.Adam.step = failed
for learner in learners:
    try:
        learner.advance(0.0, ())
    except KeyboardInterrupt:
        assert is_untouched(), "after a stop"
    else:
        raise AssertionError("the learner makes no step")
"""


def test_training_leaves_the_settings_of_torch_as_they_are():
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
