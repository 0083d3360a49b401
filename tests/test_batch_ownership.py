"""A batch owns its games: nobody else changes them, half changes them, or shares them."""

import copy
import pickle
import signal
import sys
import threading

import numpy as np
import pytest

from marrakech_env import rules
from marrakech_env.batch import Batch
from marrakech_env.notation import format_position, parse_position
from marrakech_env.observation import encode
from marrakech_env.state import OVER

EMPTY = "/".join(["." * 14] * 7)
ARRAYS = (
    *("states", "action_mask", "observation", "done", "outcomes"),
    *("final_scores", "final_shares", "final_states", "episode"),
)
NUMBERS = ("num_games", "num_players", "rule_set", "seed", "first_game")


def played(games=6, players=3, steps=40, observation="flat"):
    """A batch in mid-game."""
    batch, rng = Batch(games, players, seed=6, observation=observation), np.random.default_rng(6)
    for _ in range(steps):
        batch.step(random_actions(batch, rng))
    return batch


def random_actions(batch, rng):
    return (batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1)


def is_whole(batch):
    """Whether mask and observation are those of the states, and the states are valid."""
    return (batch.action_mask == rules.action_mask(batch.states)).all() and (
        batch.observation is None or (batch.observation == encode(batch.states, "flat")).all()
    )


# ---------------------------------------------------------------------------------- the arrays


@pytest.mark.parametrize("name", ARRAYS + NUMBERS)
def test_attributes_cannot_be_replaced(name):
    batch = played()
    with pytest.raises(AttributeError):
        setattr(batch, name, getattr(batch, name))


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_cannot_be_written_nor_made_writeable_nor_resized(name):
    array = getattr(played(), name)
    before = array.tobytes()
    attempts = (
        lambda: array.__setitem__(slice(None), array.copy()),
        lambda: array.setflags(write=True),
        lambda: array.view().setflags(write=True),
        lambda: array[:1].setflags(write=True),
        lambda: np.asarray(array).setflags(write=True),
        lambda: array.resize(1, refcheck=False),
        lambda: array.sort(),
    )
    for attempt in attempts:
        with pytest.raises(ValueError, match=r"read-only|WRITEABLE|not own|single-segment"):
            attempt()
    assert array.tobytes() == before


def test_a_record_of_the_states_cannot_be_written_either():
    batch = played()
    with pytest.raises(ValueError, match="read-only"):
        batch.states[0]["assam"] = 3
    with pytest.raises(ValueError, match="read-only"):
        batch.states["money"][0, 0] = 3


def test_arrays_are_rewritten_in_place():
    batch = played()
    held = {name: getattr(batch, name) for name in ARRAYS}
    batch.step(batch.action_mask.argmax(1))
    batch.reset()
    for name, array in held.items():
        np.testing.assert_array_equal(array, getattr(batch, name))


def test_outcomes_are_what_chance_did():
    rng = np.random.default_rng(1)
    for players, text in ((2, "boardgamearena;money=9"), (3, "official;steering=end;money=9")):
        batch = Batch(20, players, text, seed=1)
        assert (batch.outcomes == -1).all()
        for _ in range(200):
            after, actions = batch.states.copy(), random_actions(batch, rng)
            batch.step(actions)
            rules.step(after, actions, batch.outcomes)
            assert (after[~batch.done] == batch.states[~batch.done]).all()
            assert (after[batch.done] == batch.final_states[batch.done]).all()
        batch.step_games([3], random_actions(batch, rng)[[3]])
        assert (batch.outcomes[np.arange(20) != 3] == -1).all()
        batch.reset()
        assert (batch.outcomes == -1).all()


# --------------------------------------------------------------------------------- set_states


def test_set_states_brings_mask_and_observation_and_the_dice_from_turn_0():
    batch, twin = played(), played(steps=3)
    snapshot = batch.states.copy()
    rng = np.random.default_rng(0)
    for _ in range(10):
        batch.step(random_actions(batch, rng))
    seen = []
    for target in (batch, batch, twin):
        target.set_states(snapshot)
        assert (target.states == snapshot).all()
        assert is_whole(target)
        seen.append([])
        for _ in range(6):
            target.step(target.action_mask.argmax(1))
            seen[-1].append(target.states.tobytes())
    assert seen[0] == seen[1]  # the same states get the same dice again
    assert seen[0] == seen[2]  # and so they do in every batch of the seed in the same episode


def test_set_states_is_set_position_for_every_game():
    text = f"{EMPTY} 33S 1s 30:12,7:12,x1:0 official"
    one, other = played(), played()
    one.set_states(np.repeat(parse_position(text), 6))
    for game in range(6):
        other.set_position(game, text)
    for _ in range(20):
        assert (one.states == other.states).all()
        one.step(one.action_mask.argmax(1))
        other.step(other.action_mask.argmax(1))


def test_set_states_takes_read_only_and_strided_states():
    batch = played()
    wanted = batch.states[::-1].copy()
    batch.set_states(batch.states[::-1])
    assert (batch.states == wanted).all()
    batch.set_states(batch.states)
    assert (batch.states == wanted).all()


def broken(field, value):
    states = played().states.copy()
    states[field][4] = value
    return states


OVER_TEXT = f"{EMPTY} 33S - 30:0,30:0,30:0 official"


@pytest.mark.parametrize(
    ("states", "message"),
    [
        (played().states[:5], r"states must have shape \(6,\), not \(5,\)"),
        (np.repeat(played().states, 2), r"shape \(6,\), not \(12,\)"),
        (played(6, 2).states, "the states have 2 players, wanted: 3"),
        (broken("assam", 200), "game 4 breaks the invariant assam_on_board"),
        (broken("num_players", 2), "same num_players"),
        (np.repeat(parse_position(OVER_TEXT), 6), "game 0 of the states is over"),
        (np.zeros(6), "dtype STATE"),
        (None, "dtype STATE"),
    ],
)
def test_set_states_refuses_what_the_batch_cannot_play(states, message):
    batch = played()
    before = batch.states.tobytes(), batch.action_mask.tobytes(), batch.observation.tobytes()
    with pytest.raises(ValueError, match=message):
        batch.set_states(states)
    after = batch.states.tobytes(), batch.action_mask.tobytes(), batch.observation.tobytes()
    assert after == before


# ------------------------------------------------------------------------------------- copies


def unpickled_from_read_only_buffers(batch):
    buffers = []
    data = pickle.dumps(batch, protocol=5, buffer_callback=buffers.append)
    frozen = [bytes(buffer.raw()) for buffer in buffers]
    return [pickle.loads(data, buffers=frozen) for _ in range(2)]


def unpickled_from_shared_buffers(batch):
    buffers = []
    data = pickle.dumps(batch, protocol=5, buffer_callback=buffers.append)
    shared = [bytearray(buffer.raw()) for buffer in buffers]
    return [pickle.loads(data, buffers=shared) for _ in range(2)]


@pytest.mark.parametrize(
    "copies",
    [
        lambda batch: [copy.copy(batch), copy.copy(batch)],
        lambda batch: [copy.deepcopy(batch), copy.deepcopy(batch)],
        lambda batch: [pickle.loads(pickle.dumps(batch, protocol)) for protocol in (2, 5)],
        unpickled_from_read_only_buffers,
        unpickled_from_shared_buffers,
    ],
)
def test_copies_own_their_arrays_and_go_on_alike(copies):
    batch = played()
    one, other = copies(batch)
    for _ in range(60):
        before = other.states.tobytes(), batch.states.tobytes()
        actions = batch.action_mask.argmax(1)
        one.step(actions)
        assert (other.states.tobytes(), batch.states.tobytes()) == before
        other.step(actions)
        batch.step(actions)
        for name in ARRAYS:
            np.testing.assert_array_equal(getattr(one, name), getattr(batch, name))
            np.testing.assert_array_equal(getattr(other, name), getattr(batch, name))
    assert batch.episode.max() > 0
    with pytest.raises(ValueError, match="WRITEABLE"):
        one.action_mask.setflags(write=True)


# ---------------------------------------------------------------------- threads and interrupts


def test_a_second_thread_inside_is_an_error_and_harms_nothing():
    batch, alone = (Batch(20_000, seed=1, observation="features") for _ in range(2))
    actions = batch.action_mask.argmax(1)
    refusals = []

    def intrude():
        for call in (
            lambda: batch.step(actions),
            lambda: batch.step_games([0], [1]),
            lambda: batch.set_states(alone.states),
            lambda: batch.set_position(0, format_position(alone.states[0])),
            lambda: batch.reset(),
            lambda: pickle.dumps(batch),
        ):
            with pytest.raises(RuntimeError, match="another thread is inside this batch"):
                call()
            refusals.append(call)

    fill = batch._form.fill

    class Slow:
        """The form of the observations, which lets another thread in before it writes them."""

        def fill(self, *given):
            thread = threading.Thread(target=intrude)
            thread.start()
            thread.join()
            fill(*given)

    form, batch._form = batch._form, Slow()
    batch.step(actions)
    batch._form = form
    alone.step(actions)
    assert len(refusals) == 6
    assert (batch.states == alone.states).all()
    assert (batch.observation == alone.observation).all()


def test_threads_that_share_a_batch_get_errors_and_leave_whole_games():
    batch = Batch(500, seed=1, observation="flat")
    stepped, refused, wrong = [], [], []

    def hammer():
        for _ in range(300):
            try:
                batch.step(batch.action_mask.argmax(1))
                stepped.append(1)
            except RuntimeError:
                refused.append(1)
            except ValueError:  # the mask was read before the other thread's step
                wrong.append(1)

    threads = [threading.Thread(target=hammer) for _ in range(3)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
    finally:
        sys.setswitchinterval(interval)
    assert len(stepped) + len(refused) + len(wrong) == 900
    assert stepped
    assert is_whole(batch)
    batch.step(batch.action_mask.argmax(1))


class Interrupting:
    """The form of the observations, interrupted while they are written."""

    def fill(self, *_):
        raise KeyboardInterrupt


@pytest.mark.parametrize("call", ["step", "step_games", "set_states", "set_position", "reset"])
def test_an_interrupted_batch_refuses_until_reset(call):
    batch = played()
    states, text = batch.states.copy(), format_position(batch.states[0])
    calls = {
        "step": lambda: batch.step(batch.action_mask.argmax(1)),
        "step_games": lambda: batch.step_games([0], batch.action_mask[:1].argmax(1)),
        "set_states": lambda: batch.set_states(states),
        "set_position": lambda: batch.set_position(0, text),
        "reset": lambda: batch.reset(seed=1),
    }
    form, batch._form = batch._form, Interrupting()
    with pytest.raises(KeyboardInterrupt):
        calls[call]()
    batch._form = form
    for other in ("step", "step_games", "set_states", "set_position"):
        with pytest.raises(RuntimeError, match=r"interrupted half way; reset\(\)"):
            calls[other]()
    with pytest.raises(RuntimeError, match="interrupted"):
        pickle.loads(pickle.dumps(batch)).step([1] * 6)
    calls["reset"]()
    fresh = Batch(6, 3, seed=1, observation="flat")
    assert (batch.states == fresh.states).all()
    assert is_whole(batch)
    calls["step"]()


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timer on this system")
def test_after_real_signals_at_any_time_a_batch_is_as_before_or_refuses_until_reset():
    batch, rng = played(200), np.random.default_rng(0)
    interrupted, kept, refused = 0, 0, 0

    def interrupt(_, frame):
        while frame is not None and not frame.f_code.co_filename.endswith("batch.py"):
            frame = frame.f_back
        if frame is not None:
            raise KeyboardInterrupt

    former = signal.signal(signal.SIGALRM, interrupt)
    try:
        for _ in range(600):
            actions, before = random_actions(batch, rng), batch.states.tobytes()
            try:
                signal.setitimer(signal.ITIMER_REAL, rng.uniform(1e-6, 6e-5))
                batch.step(actions)
                signal.setitimer(signal.ITIMER_REAL, 0)
                continue
            except KeyboardInterrupt:
                signal.setitimer(signal.ITIMER_REAL, 0)
            interrupted += 1
            if batch._status == 0:
                kept += 1
                assert batch.states.tobytes() == before
            else:
                refused += 1
                with pytest.raises(RuntimeError, match="interrupted"):
                    batch.step(actions)
                batch.reset()
            assert is_whole(batch)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, former)
    assert refused > 0
    assert interrupted == kept + refused
    assert (batch.states["phase"] != OVER).all()
