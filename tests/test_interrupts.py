"""Ctrl-C, or an opponent's error, inside a call: a border is as before or refuses until reset."""

import copy
import sys

import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from seated import Lowest
from whole_borders import MAKERS, WITH_OPPONENTS, actions, contents, is_over, play, reset, views

# An interrupt while Python closes a generator or frees an object is lost, as a real one is.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")


class Failing(Lowest):
    """The lowest legal action, but an error at one of its calls."""

    name = "failing"

    def __init__(self, error=KeyboardInterrupt, call=0):
        self.error, self.call = error, call

    def act(self, states, rng):
        self.call -= 1
        if self.call == 0:
            raise self.error("now")
        return super().act(states, rng)


def assert_refuses_until_reset(border, twin):
    with pytest.raises(ResetNeeded, match=r"interrupted half way: call reset\(\)"):
        border.step(0)
    for view in views(border):
        with pytest.raises(ResetNeeded, match="interrupted half way"):
            view()
    reset(border, seed=7)
    reset(twin, seed=7)
    assert play(border, 8) == play(twin, 8)


# ------------------------------------------------------------------------------------- Ctrl-C


class Interrupt:
    """Raises KeyboardInterrupt at one of the places where a signal can arrive.

    Those are the start of a Python function and the return from a compiled one.
    """

    def __init__(self, place):
        self.place = place

    def __enter__(self):
        sys.setprofile(self.note)
        return self

    def note(self, frame, event, _):
        if event in ("call", "c_return") and frame.f_code.co_filename != __file__:
            self.place -= 1
            if self.place == 0:
                sys.setprofile(None)
                raise KeyboardInterrupt

    def __exit__(self, *_):
        sys.setprofile(None)


def interrupted_at_every_place(border, call):
    """A copy of a border for each place of a call, with the call interrupted there."""
    for place in range(1, 10_000):
        copied = copy.deepcopy(border)
        try:
            with Interrupt(place) as interrupt:
                call(copied)
        except KeyboardInterrupt:
            yield copied
        else:
            if interrupt.place > 0:  # so many places there are not
                assert place > 3
                return


def started(kind, moment, **keywords):
    """A border so many steps after its start, with a `Failing` agent inside that does not fail."""
    border = MAKERS[kind](Failing(), **keywords)
    reset(border, seed=3)
    play(border, moment)
    return border


@pytest.mark.parametrize("moment", [1, 4, 11])
@pytest.mark.parametrize("kind", MAKERS)
def test_after_ctrl_c_in_a_step_a_border_is_as_before_or_refuses_until_reset(kind, moment):
    border = started(kind, moment)
    if is_over(border):
        reset(border)
    before, given = contents(border), actions(border)
    as_before = refusing = 0
    for copied in interrupted_at_every_place(border, lambda copied: copied.step(given)):
        twin = copy.deepcopy(border)
        try:
            copied.step(given)
        except ResetNeeded:
            refusing += 1
            if refusing % 10 == 1:
                assert_refuses_until_reset(copied, twin)
        else:
            as_before += 1
            twin.step(given)
            assert contents(copied) == contents(twin)
            assert play(copied, 4) == play(twin, 4)
    assert as_before
    assert refusing
    assert contents(border) == before


@pytest.mark.parametrize("kind", ["raw_env", "env", "Env"])
def test_ctrl_c_while_the_board_is_printed(kind, capsys):
    border = started(kind, 1, render_mode="human")
    given, twin = actions(border), copy.deepcopy(border)
    *_, copied = interrupted_at_every_place(border, lambda copied: copied.step(given))
    with pytest.raises(ResetNeeded, match="interrupted half way"):  # at the last place
        copied.step(given)
    reset(copied, seed=1)
    reset(twin, seed=1)
    assert play(copied, 3) == play(twin, 3)


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("kind", MAKERS)
def test_after_ctrl_c_in_reset_a_border_is_as_before_or_refuses_until_reset(kind, seed):
    border = started(kind, 2)
    before = contents(border)
    refusing = 0
    for copied in interrupted_at_every_place(border, lambda copied: reset(copied, seed)):
        try:
            unchanged = contents(copied) == before
            given = actions(copied)
            copied.step(given)
        except ResetNeeded:
            refusing += 1
            reset(copied, 8)
            twin = copy.deepcopy(border)
            reset(twin, 8)
            assert contents(copied) == contents(twin)
        else:
            assert unchanged
    assert refusing


@pytest.mark.parametrize("kind", WITH_OPPONENTS)
def test_ctrl_c_in_set_opponents_leaves_old_or_new_ones(kind):
    border = started(kind, 2)

    def change(copied):
        copied.set_opponents({"random": 1})

    for copied in interrupted_at_every_place(border, change):
        play(copied, 12)


# ---------------------------------------------------------------------------------- opponents


def reset_and_play(border):
    reset(border, seed=3)
    play(border, 10)


@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError, SystemExit, GeneratorExit])
@pytest.mark.parametrize("call", [1, 3, 6])
@pytest.mark.parametrize("kind", WITH_OPPONENTS)
def test_after_an_opponent_failed_a_border_refuses_until_reset(kind, call, error):
    agent = Failing(error, call)
    border, twin = MAKERS[kind](agent), MAKERS[kind](Failing())
    with pytest.raises(RuntimeError if error is SystemExit else error) as failed:
        reset_and_play(border)
    if error is not KeyboardInterrupt and error is not GeneratorExit:
        told = [str(failed.value), *getattr(failed.value, "__notes__", [])]
        assert any("agent 'failing'" in text for text in told)
    assert agent.call == 0
    assert_refuses_until_reset(border, twin)


@pytest.mark.parametrize("kind", WITH_OPPONENTS)
def test_an_illegal_action_of_an_opponent_leaves_a_border_that_refuses(kind):
    class Illegal(Failing):
        def act(self, states, rng):
            self.call -= 1
            return super().act(states, rng) if self.call else np.full(len(states), 20)

    border, twin = MAKERS[kind](Illegal(call=3)), MAKERS[kind](Failing())
    with pytest.raises(ValueError, match=r"opponent 'failing': game \d: action 20 is not legal"):
        reset_and_play(border)
    assert_refuses_until_reset(border, twin)


@pytest.mark.parametrize("kind", WITH_OPPONENTS)
@pytest.mark.parametrize("call", ["reset", "step", "set_opponents", "views", "close", "pickle"])
def test_an_opponent_cannot_use_the_border_that_it_plays_in(kind, call):
    class Meddling(Lowest):
        name = "meddling"

        def act(self, states, rng):
            for each in calls[call]:
                with pytest.raises(RuntimeError, match="another call is inside"):
                    each()
            return super().act(states, rng)

    border, twin = MAKERS[kind](Meddling()), MAKERS[kind](Lowest())
    calls = {
        "reset": [lambda: reset(border, 1)],
        "step": [lambda: border.step(0)],
        "set_opponents": [lambda: border.set_opponents("random")],
        "views": views(border),
        "close": [border.close],
        "pickle": [lambda: copy.deepcopy(border)],
    }
    reset(border, seed=3)
    reset(twin, seed=3)
    for _ in range(12):
        if is_over(twin):
            reset(border)
            reset(twin)
        border.step(actions(border))
        twin.step(actions(twin))
        assert contents(border) == contents(twin)
