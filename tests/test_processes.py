"""Environments on their way to other processes: pickled before, in and after their use.

Workers of Gymnasium and Stable-Baselines3, by every way of starting a process, are in
`test_vector` and `test_sb3`; copies in mid-game beside each environment's other tests.
"""

import pickle

import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from whole_borders import contents, play

from marrakech_env.aec import RawEnv, env, raw_env
from marrakech_env.batch import Batch
from marrakech_env.opponents import Mixture
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


def arrays_of(value):
    """Every array in an environment but those of its spaces, which nobody writes to."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, dict):
        for entry in value.values():
            yield from arrays_of(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from arrays_of(entry)
    elif isinstance(value, Batch | Mixture | SeatedBatch | RawEnv):
        yield from arrays_of(vars(value))
    elif hasattr(value, "_seats"):
        yield from arrays_of(value._seats)


@pytest.mark.parametrize("form", ["planes", "flat", "features"])
@pytest.mark.parametrize("memory", [bytes, bytearray])
@pytest.mark.parametrize("kind", MAKERS)
def test_copies_from_one_shared_or_read_only_memory_own_their_arrays(kind, memory, form):
    original = MAKERS[kind](num_players=3, observation=form, reward="dense")
    original.reset()
    play(original, 5)
    buffers = []
    data = pickle.dumps(original, protocol=5, buffer_callback=buffers.append)
    shared = [memory(buffer.raw()) for buffer in buffers]
    kept = [bytes(buffer) for buffer in shared]
    assert len(kept) > 2
    first, second = (pickle.loads(data, buffers=shared) for _ in range(2))
    theirs = list(arrays_of(second))
    for array in arrays_of(first):
        assert not any(np.shares_memory(array, other) for other in theirs)
        assert not any(np.shares_memory(array, np.frombuffer(b, np.uint8)) for b in shared)
    played = play(first, 12)
    assert [bytes(buffer) for buffer in shared] == kept
    assert contents(second) == contents(original)
    if memory is bytearray:
        for buffer in shared:
            buffer[:] = b"\xff" * len(buffer)
    assert play(second, 12) == play(original, 12) == played
