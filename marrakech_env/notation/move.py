"""Moves as text: an action and what chance made of it, such as `L3` or `33-34=1`."""

from __future__ import annotations

import re
from typing import Final

from marrakech_env import rules
from marrakech_env.actions import (
    FIRST_PLACEMENT,
    NUM_ACTIONS,
    action_name,
    action_of_squares,
    square_name,
    squares_of,
)
from marrakech_env.notation.position import turn_text
from marrakech_env.spec import BOARD_SIZE, whole_number
from marrakech_env.state import OVER, Record, State, one_state

_LETTERS: Final = "LSR"  # of the steering actions 0, 1, 2
_STEERING: Final = re.compile(r"([LSR])([0-9]?)")
_LAYING: Final = re.compile(r"([0-6])([0-6])-([0-6])([0-6])(?:=([0-9]))?")


def parse_move(state: State, text: str) -> tuple[int, int]:
    """Reads a move text, which must be legal in the state.

    Returns:
        The action 0..14 and the outcome: the die 1..4, the colour of the mover's next rug 0..3, or
        -1 where nothing is drawn.

    Raises:
        ValueError: Bad syntax, an illegal move or an impossible outcome; the message lists what
            is allowed. Or the game is over.
    """
    state = one_state(state)
    if not isinstance(text, str):
        raise ValueError(f"a move text must be a str, not {type(text).__name__}")
    action: int | None
    if match := _STEERING.fullmatch(text):
        action, drawn = _LETTERS.index(match[1]), match[2]
    elif match := _LAYING.fullmatch(text):
        x1, y1, x2, y2 = map(int, match.groups()[:4])
        action = action_of_squares(BOARD_SIZE * y1 + x1, BOARD_SIZE * y2 + x2, state)
        drawn = match[5] or ""
    else:
        raise ValueError(
            f"move {text!r} is not understood; allowed: steering such as 'L3' or 'L', laying such "
            f"as '33-34' or '33-34=1'"
        )
    outcome = int(drawn) if drawn else -1
    _check_move(state, text, action, outcome)
    assert action is not None  # an unknown pair of squares is no legal action
    return action, outcome


def format_move(state: State, action: int, outcome: int) -> str:
    """Writes the move text of an action and its outcome in the state before the move.

    Args:
        state: One state.
        action: A legal action.
        outcome: The die 1..4, the colour drawn for the mover's next rug, or -1 for nothing: one of
            those that `rules.chance_outcomes` lists.

    Raises:
        ValueError: An illegal action or an impossible outcome; the message lists what is
            allowed. Or the game is over.
    """
    state = one_state(state)
    name = action_name(action)  # refuses what is no action at all
    number = whole_number(outcome)
    if number is None:
        raise ValueError(f"outcome {outcome!r} is not a whole number")
    _check_move(state, name, int(action), number)
    return _move_text(state, int(action), number)


def legal_moves(state: State) -> list[str]:
    """The move texts of all legal actions in a state, without their chance; empty when over.

    Raises:
        ValueError: Not one state.
    """
    state = one_state(state)
    return [_move_text(state, action, -1) for action in _legal_actions(state)]


def _legal_actions(state: Record) -> list[int]:
    mask = rules.action_mask(state)[0]
    return [action for action in range(NUM_ACTIONS) if mask[action]]


def _check_move(state: Record, found: str, action: int | None, outcome: int) -> None:
    """Refuses an illegal action and an outcome that chance cannot bring."""
    if state["phase"] == OVER:
        raise ValueError(f"move {found!r}: the game is over, no move is legal")
    if action not in _legal_actions(state):
        raise ValueError(
            f"move {found!r} is not legal in phase {turn_text(state)!r}; legal: "
            f"{', '.join(legal_moves(state))}"
        )
    possible = rules.chance_outcomes(state, action)[0].tolist()
    if outcome not in possible:
        raise ValueError(
            f"move {found!r}: the outcome {outcome} is not possible; possible: "
            f"{', '.join(_move_text(state, action, other) for other in possible)}"
        )


def _move_text(state: Record, action: int, outcome: int) -> str:
    if action < FIRST_PLACEMENT:
        return _LETTERS[action] + (str(outcome) if outcome >= 0 else "")
    squares = squares_of(action, state)
    if squares is None:
        raise ValueError(f"action {action} ({action_name(action)}) leaves the board")
    text = "-".join(map(square_name, squares))
    return text + (f"={outcome}" if outcome >= 0 else "")
