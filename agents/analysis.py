"""From what actions are worth to a decision, or to the table that `analyse` returns.

Legend: `B` games, `A` actions.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class ActionValue:
    """What a legal action is worth to the player to move.

    Attributes:
        action: The action.
        worth: What the agent compares, about a share of the win (`ppo`: a logarithm of
            probability).
        margin: Expected final score minus the best among the others, in dirhams; None where the
            agent does not estimate it by itself.
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
        ValueError: It is below 0, or no number.
    """
    if not temperature >= 0:
        raise ValueError(f"temperature must be at least 0, not {temperature!r}")
    return temperature


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
