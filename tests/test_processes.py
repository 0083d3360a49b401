"""Environments on their way to other processes: pickled before, in and after their use.

Workers of Gymnasium and Stable-Baselines3, by every way of starting a process, are in
`test_vector` and `test_sb3`; copies in mid-game beside each environment's other tests.
"""

import pickle

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded

from marrakech_env.aec import env, raw_env
from marrakech_env.sb3 import MarrakechVecEnv
from marrakech_env.seats import SeatedBatch
from marrakech_env.vector import MarrakechEnv, MarrakechVectorEnv

MAKERS = {
    "raw_env": raw_env,
    "env": env,
    "Env": MarrakechEnv,
    "VectorEnv": lambda **keywords: MarrakechVectorEnv(3, **keywords),
    "VecEnv": lambda **keywords: MarrakechVecEnv(3, **keywords),
    "SeatedBatch": lambda **keywords: SeatedBatch(3, **keywords),
}


def sent(environment):
    """What another process would receive."""
    return pickle.loads(pickle.dumps(environment))


def first_action(environment):
    """A legal first action, in the form that the environment takes."""
    many = hasattr(environment, "num_envs") or hasattr(environment, "num_games")
    return np.ones(3, int) if many else 1


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("form", ["planes", "flat", "features"])
def test_an_environment_is_sent_before_its_first_reset(kind, form):
    environment = sent(MAKERS[kind](num_players=3, observation=form, reward="dense"))
    with pytest.raises((AssertionError, ResetNeeded), match="reset"):
        environment.step(first_action(environment))
    environment.reset()
    environment.step(first_action(environment))


@pytest.mark.parametrize("kind", MAKERS)
def test_a_closed_environment_stays_closed_and_says_so(kind):
    environment = MAKERS[kind]()
    environment.reset()
    environment.close()
    for each in (environment, sent(environment)):
        with pytest.raises(ClosedEnvironmentError, match="closed"):
            each.reset()
        with pytest.raises(ClosedEnvironmentError, match="closed"):
            each.step(first_action(each))
