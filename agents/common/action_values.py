"""What actions are worth: the rows of `analyse`, the choice among actions, checked settings.

Legend: `B` games, `A` = 15 actions; *q* of an action: its value in shares of the win.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.spec import whole_number

MAX_TEMPERATURE: Final = 1e6
"""Far above, noise times temperature would no longer be a finite number."""


@dataclass(frozen=True, slots=True)
class ActionValue:
    """What a legal action brings the player to move.

    Attributes:
        action: The action.
        q: What the agent compares, in shares of the win (`ppo`: a logarithm of probability).
        margin: Expected final score minus the best of the other players, in dirhams. `value` cuts
            it at +-30 unless the position is solved. None where the agent has no estimate.
        win: Expected share of the win; None where the agent has no estimate.
        visits: Playouts through the action, 0 where its q was never tried; None without a tree.
    """

    action: int
    q: float
    margin: float | None = None
    win: float | None = None
    visits: int | None = None


def empty_table(games: int) -> NDArray[np.float64]:
    """Make a table in which no action is legal: float64 (B, A, 4).

    The columns are q, margin, win and visits; q is -inf where an action is not legal, the others
    are NaN where they are unknown.
    """
    table = np.full((games, NUM_ACTIONS, 4), np.nan)
    table[:, :, 0] = -np.inf
    return table


def ranked(table: NDArray[np.float64]) -> list[ActionValue]:
    """List the legal actions of one state, the best first, the lowest first among equals.

    Args:
        table: float64 (A,) of q, or (A, 4) as in `empty_table`.
    """
    rows = []
    for action, (q, *others) in enumerate(table.reshape(NUM_ACTIONS, -1).tolist()):
        if q > -math.inf:
            margin, win, visits = (None if np.isnan(x) else x for x in others or [math.nan] * 3)
            count = None if visits is None else int(visits)
            rows.append(ActionValue(action, q, margin, win, count))
    return sorted(rows, key=lambda row: (-row.q, row.action))


def checked_temperature(temperature: float) -> float:
    """Check the temperature of an agent.

    Raises:
        ValueError: It is no number 0..`MAX_TEMPERATURE`.
    """
    return checked_number("temperature", temperature, MAX_TEMPERATURE)


def checked_number(name: str, value: Any, most: float = math.inf) -> float:
    """Check a setting of an agent that is a number 0..`most`.

    Raises:
        ValueError: It is not; the message names the setting.
    """
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or isinstance(value, np.complexfloating) or not 0 <= value <= most:
        wanted = "at least 0" if most == math.inf else f"0..{most:g}"
        raise ValueError(f"{name} must be a number, {wanted}, not {value!r}")
    return float(value)


def checked_count(name: str, value: Any) -> int:
    """Check a setting of an agent that is a whole number of at least 1 and fits into 64 bits.

    Raises:
        ValueError: It is not; the message names the setting.
    """
    count = whole_number(value)
    if count is None or not 1 <= count < 2**63:
        raise ValueError(f"{name} must be a whole number, at least 1, not {value!r}")
    return count


def choose_actions(
    values: NDArray[np.float64], temperature: float, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Choose one action for each game.

    Args:
        values: float64 (B, A), q of the actions, -inf where the action is not legal.
        temperature: 0 takes the best one, the lowest among equals; above, an action's chance
            falls by the factor e for each `temperature` of q that it loses.
        rng: Used at a temperature above 0.

    Returns:
        int64 (B,).
    """
    if temperature > 0:  # the largest with Gumbel noise is a draw from the softmax
        values = values + temperature * rng.gumbel(size=values.shape)
    actions: NDArray[np.int64] = values.argmax(axis=1)
    return actions
