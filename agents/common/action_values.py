"""From what actions are worth to a decision, or to the table that `analyse` returns; settings.

Legend: `B` games, `A` actions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.spec import whole_number

MAX_TEMPERATURE: Final = 1e6
"""Far above, noise times temperature would no longer be a finite number."""


@dataclass(frozen=True, slots=True)
class ActionValue:
    """What a legal action is worth to the player to move.

    Attributes:
        action: The action.
        worth: What the agent compares, about a share of the win (`ppo`: a logarithm of
            probability).
        margin: Expected final score minus the best among the others, in dirhams, of `value` cut
            at +-30 unless the position is solved; None where the agent does not estimate it by
            itself: only `value` does.
        win: Expected share of the win; None where the agent does not estimate it by itself.
    """

    action: int
    worth: float
    margin: float | None = None
    win: float | None = None


def best_first(rows: Iterable[ActionValue]) -> list[ActionValue]:
    """The table: by worth, equal ones by action."""
    return sorted(rows, key=lambda row: (-row.worth, row.action))


def ranked(values: NDArray[np.float64]) -> list[ActionValue]:
    """The table of one state from the worth of every action.

    Args:
        values: float64 (A,), -inf where the action is not legal.
    """
    legal = np.flatnonzero(values > -np.inf)
    return best_first(ActionValue(int(action), float(values[action])) for action in legal)


def checked_temperature(temperature: float) -> float:
    """The temperature of an agent.

    Raises:
        ValueError: It is no number 0..`MAX_TEMPERATURE`.
    """
    return checked_number("temperature", temperature, MAX_TEMPERATURE)


def checked_number(name: str, value: Any, most: float = math.inf) -> float:
    """A setting of an agent that is a number 0..`most`.

    Raises:
        ValueError: It is not; the message names the setting.
    """
    is_number = isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if not is_number or isinstance(value, np.complexfloating) or not 0 <= value <= most:
        wanted = "at least 0" if most == math.inf else f"0..{most:g}"
        raise ValueError(f"{name} must be a number, {wanted}, not {value!r}")
    return float(value)


def checked_count(name: str, value: Any) -> int:
    """A setting of an agent that is a whole number of at least 1 (and fits into 64 bits).

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
    """One action a game.

    Args:
        values: float64 (B, A), -inf where the action is not legal.
        temperature: 0 takes the best one, the lowest among equals; above, an action's chance
            falls by the factor e for each `temperature` of worth that it loses.
        rng: Used at a temperature above 0.

    Returns:
        int64 (B,).
    """
    if temperature > 0:  # the largest with Gumbel noise is a draw from the softmax
        values = values + temperature * rng.gumbel(size=values.shape)
    actions: NDArray[np.int64] = values.argmax(axis=1)
    return actions
