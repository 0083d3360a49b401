"""The teacher of the PPO learner: which positions it is asked about, and what is learned."""

import numpy as np
import pytest

pytest.importorskip("sb3_contrib")

import torch
from stable_baselines3.common.logger import Logger

from marrakech_agents.training.ppo_learner import PPOLearner, PPOSettings
from marrakech_agents.training.teacher import TEMPERATURE, Teacher
from marrakech_agents.value import ONE_TURN, ValueAgent
from marrakech_env.agent import FunctionAgent, load_agent
from marrakech_env.batch import Batch
from marrakech_env.observation import encode
from marrakech_env.rules import action_mask


def test_the_teacher_is_asked_in_the_positions_that_the_learner_came_to_and_is_followed():
    settings = PPOSettings(
        opponents="greedy", teacher="greedy", num_envs=8, num_steps=40, epochs=3, batch_size=64
    )
    learner = PPOLearner(2, "official", 0, settings)
    learner.prepare(Logger(None, []))
    teacher, asked = learner.teacher.agent, []

    def act(states, rng):
        asked.append((states, teacher.act(states, rng)))
        return asked[-1][1]

    learner.teacher.agent = FunctionAgent(act)
    losses = []
    for _ in range(6):
        learner.advance(0.0, ())
        losses.append(learner.model.logger.name_to_value["train/teacher_loss"])
        buffer = learner.model.rollout_buffer
        states, choices = asked[-1]
        np.testing.assert_array_equal(encode(states, "features"), buffer.observations)
    assert losses[-1] < losses[0] < np.log(15)
    with torch.no_grad():
        distribution = learner.model.policy.get_distribution(
            torch.as_tensor(buffer.observations), buffer.action_masks
        )
    assert (distribution.mode().numpy() == choices).mean() > 0.5


def test_a_teacher_with_action_values_teaches_all_good_actions():
    teacher = Teacher("value", 2, 0)
    batch, rng = Batch(40, seed=3), np.random.default_rng(0)
    for _ in range(21):  # on the empty board the best steerings are worth the same
        batch.step((batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1))
    states = batch.states
    targets = teacher.targets(states, rng)
    np.testing.assert_allclose(targets.sum(1), 1, rtol=1e-5)
    assert not targets[~action_mask(states)].any()
    for row, state in zip(targets, states, strict=True):
        best, second = ValueAgent(effort=ONE_TURN).analyse(state)[:2]
        ratio = np.exp((best.q - second.q) / TEMPERATURE)
        assert row[best.action] == pytest.approx(ratio * row[second.action], rel=1e-4)
    choices = Teacher("greedy", 2, 0).targets(states, rng)
    assert (choices.argmax(1) == load_agent("greedy").act(states, rng)).all()
    assert (np.sort(choices, axis=1) == np.eye(1, 15, 14)).all()


def test_a_rollout_smaller_than_a_batch_is_learned_in_one_step():
    settings = PPOSettings(teacher="greedy", num_envs=2, num_steps=4, epochs=1, batch_size=64)
    learner = PPOLearner(2, "official", 0, settings)
    learner.prepare(Logger(None, []))
    learner.advance(0.0, ())
    assert learner.model.logger.name_to_value["train/teacher_loss"] > 0


def test_an_unknown_teacher_is_refused():
    with pytest.raises(ValueError, match="unknown agent 'nobody'"):
        PPOLearner(2, "official", 0, PPOSettings(teacher="nobody"))
