"""The last turns of a game, which the searching agents solve instead of estimating them."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.solver import solve
from marrakech_env.state import OVER, States

SOLVED_TURNS: Final = 2
"""Turns left at which a position is solved, where an agent does not say otherwise."""
MARGIN_BONUS: Final = 1e-6
"""What a dirham of margin adds to a solved share of the win: it decides among equal shares."""


def is_late(states: States, turns: int = SOLVED_TURNS) -> NDArray[np.bool_]:
    """Whether games are over or have at most `turns` turns left: bool (B,)."""
    late: NDArray[np.bool_] = (states["rugs"].sum(axis=1) <= turns) | (states["phase"] == OVER)
    return late


def solve_late(
    states: States, table: NDArray[np.float64], turns: int = SOLVED_TURNS
) -> NDArray[np.int64]:
    """Solve the games of a batch that are near their end.

    Args:
        states: STATE (B,).
        table: float64 (B, A, 4) of `action_values.empty_table`. The legal actions of these games
            get their exact values; q is the share of the win, by margin among equals.
        turns: Most turns left of a game that is solved.

    Returns:
        int64 (N,), the games with more turns left; their rows are not changed.
    """
    late = is_late(states, turns)
    for i in np.flatnonzero(late & (states["phase"] != OVER)):
        solution, mover = solve(states[i]), states["player"][i]
        wins, margins = solution.shares[:, mover], solution.margins[:, mover]
        q = wins + MARGIN_BONUS * margins
        table[i, solution.actions, :3] = np.stack([q, margins, wins], axis=1)
    return np.flatnonzero(~late)
