"""The 15 actions: names, squares and words."""

from __future__ import annotations

import numpy as np
import pytest

from marrakech_env import rules
from marrakech_env.actions import (
    ACTION_NAMES,
    AHEAD,
    BEHIND,
    FIRST_PLACEMENT,
    LEFT,
    NUM_ACTIONS,
    RIGHT,
    STRAIGHT,
    TO_LEFT,
    TO_RIGHT,
    action_name,
    action_of_squares,
    describe,
    laying_action,
    square_name,
    squares_of,
)
from marrakech_env.notation import parse_position
from marrakech_env.state import States

EMPTY = "/".join(["." * 14] * 7)


def at(assam: str, phase: str = "l") -> States:
    """Assam on an empty board; player 0 is to move."""
    return parse_position(f"{EMPTY} {assam} 0{phase} 30:12+12:0,30:12+12:3 official")


def test_names_are_in_the_order_of_the_numbers() -> None:
    assert len(ACTION_NAMES) == len(set(ACTION_NAMES)) == NUM_ACTIONS == 15
    assert [action_name(action) for action in range(15)] == list(ACTION_NAMES)
    assert (action_name(LEFT), action_name(STRAIGHT), action_name(RIGHT)) == ACTION_NAMES[:3]
    assert action_name(4) == "ahead-straight"
    assert action_name(laying_action(TO_RIGHT, RIGHT)) == "right-right" == ACTION_NAMES[8]


def test_laying_actions_count_sides_and_turns() -> None:
    sides, turns = (AHEAD, TO_RIGHT, BEHIND, TO_LEFT), (LEFT, STRAIGHT, RIGHT)
    assert [laying_action(s, t) for s in sides for t in turns] == list(range(3, 15))
    for side, turn in ((4, 0), (0, 3), (-1, 0)):
        with pytest.raises(ValueError, match=r"side|turn"):
            laying_action(side, turn)


@pytest.mark.parametrize(
    ("assam", "squares"),
    [
        ("33N", "32-22 32-31 32-42 43-42 43-53 43-44 34-44 34-35 34-24 23-24 23-13 23-22"),
        ("33E", "43-42 43-53 43-44 34-44 34-35 34-24 23-24 23-13 23-22 32-22 32-31 32-42"),
        ("33S", "34-44 34-35 34-24 23-24 23-13 23-22 32-22 32-31 32-42 43-42 43-53 43-44"),
        ("33W", "23-24 23-13 23-22 32-22 32-31 32-42 43-42 43-53 43-44 34-44 34-35 34-24"),
    ],
)
def test_squares_of_all_placements(assam: str, squares: str) -> None:
    states = at(assam)
    for action, pair in enumerate(squares.split(), start=FIRST_PLACEMENT):
        cells = squares_of(action, states)
        assert cells is not None
        assert "-".join(map(square_name, cells)) == pair
        assert action_of_squares(*cells, states) == action
        assert action_of_squares(cells[1], cells[0], states) is None


def test_no_two_actions_cover_the_same_squares() -> None:
    for assam in (f"{x}{y}N" for x in range(7) for y in range(7)):
        pairs = [squares_of(action, at(assam)) for action in range(3, 15)]
        covered = [frozenset(pair) for pair in pairs if pair is not None]
        assert len(covered) == len(set(covered)) >= 4


def test_squares_off_the_board_are_none() -> None:
    states = at("00N")
    on_board = rules.action_mask(states)[0]  # an empty board forbids nothing else
    for action in range(3, 15):
        assert (squares_of(action, states) is not None) == on_board[action]
    with pytest.raises(ValueError, match="steers"):
        squares_of(1, states)


@pytest.mark.parametrize(
    ("assam", "phase", "action", "words"),
    [
        ("33S", "s", 0, "turn Assam left, to face east"),
        ("33S", "s", 1, "let Assam go straight on, facing south"),
        ("33S", "s", 2, "turn Assam right, to face west"),
        ("33N", "s", 0, "turn Assam left, to face west"),
        ("33S", "l", 4, "lay the rug on 34 and 35 (ahead, then straight on)"),
        ("33S", "l", 8, "lay the rug on 23 and 22 (to the right, then right)"),
        ("33N", "l", 9, "lay the rug on 34 and 44 (behind, then left)"),
        ("33N", "l", 13, "lay the rug on 23 and 13 (to the left, then straight on)"),
        ("00N", "l", 3, "lay the rug off the board (ahead, then left)"),
    ],
)
def test_descriptions_name_squares(assam: str, phase: str, action: int, words: str) -> None:
    assert describe(action, at(assam, phase)) == words
    assert describe(np.int64(action), at(assam, phase)[0]) == words


def test_all_actions_are_described_everywhere() -> None:
    for phase in "sl":
        assert len({describe(action, at("06W", phase)) for action in range(15)}) == 15


@pytest.mark.parametrize("action", [-1, 15, 1.0, "left", None, True, np.float64(3), [3]])
def test_what_is_no_action_is_refused(action: object) -> None:
    for call in (action_name, lambda a: describe(a, at("33S")), lambda a: squares_of(a, at("33S"))):
        with pytest.raises(ValueError, match=r"0\.\.14") as caught:
            call(action)
        assert repr(action) in str(caught.value)


@pytest.mark.parametrize("action", [np.int8(4), np.uint64(4), np.array(4)])
def test_numpy_integers_are_actions(action: int) -> None:
    assert action_name(action) == "ahead-straight"
