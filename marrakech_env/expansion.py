"""Every legal action with every possible outcome of chance: the successors of a batch.

Legend: `B` games, `N` rows, one for each game, action and outcome.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.state import STATE, Int, State, States, as_states


class Expansion(NamedTuple):
    """The rows of `expand`, in the order of game, action and outcome.

    Attributes:
        game: int64 (N,), the index into the states.
        action: int64 (N,), a legal action.
        outcome: int8 (N,): the die 1..4, a colour, or -1 where nothing is drawn.
        probability: float64 (N,), which adds up to 1 for each game and action.
        after: STATE (N,), the successors.
    """

    game: NDArray[np.int64]
    action: NDArray[np.int64]
    outcome: NDArray[np.int8]
    probability: NDArray[np.float64]
    after: States


def expand(states: State | States) -> Expansion:
    """List every legal action with every possible outcome of chance.

    Use it for lookahead: one call gives all successors of a batch, without a Python loop.

    Args:
        states: Games to expand, shape (B,), or one record. Finished games contribute no rows.

    Returns:
        The rows; see `Expansion`.

    Raises:
        ValueError: `states` are no states, or mix numbers of players.
    """
    states = as_states(states)
    size = _write_rows(states, _rows(0), False)
    rows = _rows(size)
    _write_rows(states, rows, True)
    return rows


def _rows(size: int) -> Expansion:
    return Expansion(
        np.empty(size, np.int64),
        np.empty(size, np.int64),
        np.empty(size, np.int8),
        np.empty(size, np.float64),
        np.empty(size, STATE),
    )


@kernel
def _write_rows(states: States, rows: Any, is_writing: bool) -> Int:
    """Count the rows, and write them where `is_writing`."""
    row = 0
    for i in range(len(states)):
        legal = game.legal_actions(states[i])
        for action in range(NUM_ACTIONS):
            if not legal >> np.uint32(action) & np.uint32(1):
                continue
            for outcome in game.OUTCOMES:
                probability = game.outcome_chance(states[i], outcome)
                if probability == 0.0:
                    continue
                if is_writing:
                    rows.game[row] = i
                    rows.action[row] = action
                    rows.outcome[row] = outcome
                    rows.probability[row] = probability
                    rows.after[row] = states[i]
                    game.step(rows.after[row], action, outcome)
                row += 1
    return row
