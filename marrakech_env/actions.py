"""The 15 actions: their numbers, their names, and the squares that they mean.

All actions are told as Assam sees them. Steering is 0 left, 1 straight, 2 right. Laying is
`3 + 3*side + turn`: the first half of the rug lies on the square ahead of (side 0), to the right
of (1), behind (2) or to the left of (3) Assam, the second half lies left (turn 0), straight (1) or
right (2) of that, seen when walking from Assam through the first half. With Assam (A) looking up,
each action stands where its second half lies:

                4
         3, 14  .  5, 6
      13    .   A   .    7
        11, 12  .  8, 9
               10

Steering and laying are two decisions of the same player; the state's `phase` says which of them is
asked for, and the legal actions of the two never overlap. This module knows geometry only;
`rules.action_mask` knows what is legal.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.spec import BOARD_SIZE, NUM_CELLS, checked_number, whole_number
from marrakech_env.state import State, one_state
from marrakech_env.tables import FIRST_CELL, SECOND_CELL

LEFT, STRAIGHT, RIGHT = range(3)
"""The steering actions, and the turns of a placement."""
AHEAD, TO_RIGHT, BEHIND, TO_LEFT = range(4)
"""The sides of a placement."""

FIRST_PLACEMENT: Final = 3
"""The lowest laying action: `action - FIRST_PLACEMENT` is the placement 0..11 of `tables`."""
NUM_ACTIONS: Final = 15

_TURN_NAMES: Final = ("left", "straight", "right")
_SIDE_NAMES: Final = ("ahead", "right", "behind", "left")
ACTION_NAMES: Final = _TURN_NAMES + tuple(
    f"{side}-{turn}" for side in _SIDE_NAMES for turn in _TURN_NAMES
)
"""Name of every action: `left`, `straight`, `right`, then `side-turn` such as `ahead-straight`."""

_COMPASS: Final = ("north", "east", "south", "west")
_SIDES_IN_WORDS: Final = ("ahead", "to the right", "behind", "to the left")
_TURNS_IN_WORDS: Final = ("left", "straight on", "right")


def laying_action(side: int, turn: int) -> int:
    """The action that lays the first half at a side (0..3) and the second at a turn (0..2).

    Raises:
        ValueError: No such side or turn.
    """
    side = checked_number("side", side, 0, len(_SIDE_NAMES) - 1)
    turn = checked_number("turn", turn, 0, len(_TURN_NAMES) - 1)
    return FIRST_PLACEMENT + len(_TURN_NAMES) * side + turn


def action_name(action: int) -> str:
    """The name of an action without a board, such as `left` or `ahead-straight`.

    Raises:
        ValueError: Not a whole number 0..14.
    """
    return ACTION_NAMES[_checked(action)]


def square_name(cell: int) -> str:
    """A cell 0..48 as the two digits x, y: `34` is x = 3, y = 4.

    Raises:
        ValueError: Not a whole number 0..48.
    """
    y, x = divmod(checked_number("cell", cell, 0, NUM_CELLS - 1), BOARD_SIZE)
    return f"{x}{y}"


def squares_of(action: int, state: State) -> tuple[int, int] | None:
    """The cells that a laying action covers, the half beside Assam first.

    Returns:
        Two cells 0..48, or None where the rug would leave the board.

    Raises:
        ValueError: Not a laying action 3..14, or not one state.
    """
    placement = _checked(action) - FIRST_PLACEMENT
    if placement < 0:
        raise ValueError(f"action {action} ({action_name(action)}) steers; 3..14 lay a rug")
    heading = _heading(state)
    first, second = int(FIRST_CELL[heading, placement]), int(SECOND_CELL[heading, placement])
    return None if first < 0 else (first, second)


def action_of_squares(first: int, second: int, state: State) -> int | None:
    """The laying action that covers two cells, the half beside Assam first; None if none does.

    No two actions cover the same two cells: one of them is beside Assam, the other never is.

    Raises:
        ValueError: Not one state.
    """
    heading = _heading(state)
    for placement in range(NUM_ACTIONS - FIRST_PLACEMENT):
        if (FIRST_CELL[heading, placement], SECOND_CELL[heading, placement]) == (first, second):
            return FIRST_PLACEMENT + placement
    return None


def describe(action: int, state: State) -> str:
    """An action in words, with the squares that it means in a state.

    Any action is described in any phase, whether it is legal or not.

    Returns:
        For example `turn Assam left, to face east` or
        `lay the rug on 34 and 35 (ahead, then straight on)`, squares as digits x, y.

    Raises:
        ValueError: Not a whole number 0..14, or not one state.
    """
    action = _checked(action)
    if action < FIRST_PLACEMENT:
        facing = _COMPASS[(int(one_state(state)["facing"]) + action - STRAIGHT) % 4]
        if action == STRAIGHT:
            return f"let Assam go straight on, facing {facing}"
        return f"turn Assam {_TURN_NAMES[action]}, to face {facing}"
    side, turn = divmod(action - FIRST_PLACEMENT, len(_TURN_NAMES))
    way = f"{_SIDES_IN_WORDS[side]}, then {_TURNS_IN_WORDS[turn]}"
    squares = squares_of(action, state)
    if squares is None:
        return f"lay the rug off the board ({way})"
    return f"lay the rug on {square_name(squares[0])} and {square_name(squares[1])} ({way})"


def action_number(action: object) -> int | None:
    """Return one whole number as an int: Python's, or an array or tensor of one element.

    Anything else is None: floats, bools, texts, lists, and arrays of several elements.
    """
    if not isinstance(action, (int, np.integer)) and hasattr(action, "item"):
        try:
            action = action.item()
        except (TypeError, ValueError, RuntimeError):  # several elements
            return None
    return whole_number(action)


def describe_illegal(game: int, action: object, mask: NDArray[np.bool_]) -> str:
    """The message of an error: an action that a mask, bool (15,), does not allow in a game."""
    legal = ", ".join(map(str, np.flatnonzero(mask)))
    return f"game {game}: action {action} is not legal; legal actions: {legal}"


def _heading(state: State) -> int:
    """Where Assam stands and looks, as `tables` count it."""
    record = one_state(state)
    return 4 * int(record["assam"]) + int(record["facing"])


def _checked(action: object) -> int:
    """The action as an int; True and False are no actions, although Python counts with them."""
    number = whole_number(action)
    if number is None or not 0 <= number < NUM_ACTIONS:
        raise ValueError(
            f"action {action!r} is not allowed; allowed: a whole number 0..{NUM_ACTIONS - 1} "
            f"({', '.join(ACTION_NAMES[:FIRST_PLACEMENT])}, then side-turn such as "
            f"{ACTION_NAMES[4]})"
        )
    return number
