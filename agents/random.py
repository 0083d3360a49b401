"""RandomAgent: every legal action equally often.

Legend: `B` games.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import cell_at
from marrakech_env.state import States, as_states


class RandomAgent:
    """Plays uniformly among the legal actions."""

    def act(self, states: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Chooses an action in each game.

        Args:
            states: STATE (B,), unfinished games.
            rng: Gives one uniform number a game, in the order of the games.

        Returns:
            int64 (B,), legal actions (-1 in a finished game).

        Raises:
            ValueError: Not an array of states with one number of players.
        """
        states = as_states(states)
        actions = np.empty(len(states), np.int64)
        _choose(states, rng.random(len(states)), actions)
        return actions


@kernel
def _choose(states: States, uniforms: NDArray[np.float64], actions: NDArray[np.int64]) -> None:
    """Writes the legal action at each game's uniform number, in [0, 1), into `actions`."""
    for i in range(len(states)):
        actions[i] = cell_at(np.uint64(game.legal_actions(states[i])), uniforms[i])
