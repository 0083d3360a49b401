"""The last turns of a game, which the searching agents solve instead of estimating them.

Legend: `B` games, `A` = 15 actions.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.solver import solve
from marrakech_env.state import OVER, State, States

SOLVED_TURNS: Final = 2
"""How many turns left a position may have to be solved if nothing else is said."""
MARGIN_BONUS: Final = 1e-6
"""What a dirham of margin counts beside a solved share of the win: only among equal shares."""


def is_late(states: States, turns: int = SOLVED_TURNS) -> NDArray[np.bool_]:
    """Which games of STATE (B,) are over or have at most so many turns left: bool (B,)."""
    late: NDArray[np.bool_] = (states["rugs"].sum(axis=1) <= turns) | (states["phase"] == OVER)
    return late


def solved_actions(state: State) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """The legal actions of an unfinished game with few turns left, and what they truly bring.

    Args:
        state: STATE, one game.

    Returns:
        int64 (N,), the actions, and float64 (N, 3): worth, margin and win of each for the player
        to move, as in `analysis.ActionValue`. The worth is the win, by margin among equals.
    """
    solution, mover = solve(state), state["player"]
    wins, margins = solution.shares[:, mover], solution.margins[:, mover]
    return solution.actions, np.stack([wins + MARGIN_BONUS * margins, margins, wins], axis=1)


def solve_late(
    states: States, values: NDArray[np.float64], turns: int = SOLVED_TURNS
) -> NDArray[np.int64]:
    """Solves the games of a batch that are near their end.

    Args:
        states: STATE (B,).
        values: float64 (B, A), gets the true value of every legal action of those games, -inf for
            the other actions and in finished games.
        turns: How many may be left.

    Returns:
        int64 (N,), the games that have more turns left; their values are not changed.
    """
    late = is_late(states, turns)
    for i in np.flatnonzero(late):
        values[i] = -np.inf
        if states["phase"][i] != OVER:
            actions, solved = solved_actions(states[i])
            values[i, actions] = solved[:, 0]
    return np.flatnonzero(~late)
