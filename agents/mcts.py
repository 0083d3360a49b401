"""MctsAgent: a tree of positions that grows where play is likely to go, see `tree`.

Where at most two rugs are left to be laid by all together, the position is solved to its end
(`endings`).

Legend: `B` games, `A` = 15 actions.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np

from marrakech_env.state import States

from .endings import solve_late
from .expectimax import ExpectimaxAgent
from .tree import make_tree, search
from .turn import NUM_ACTIONS, FloatArray

PLAYOUTS: Final = 100
"""About 10 milliseconds a decision on one core."""
EXPLORATION: Final = 0.15


class MctsAgent(ExpectimaxAgent):
    """Chooses what is worth most after its playouts, or draws at a temperature above 0."""

    def __init__(
        self,
        weights: str | Path | None = None,
        temperature: float = 0.0,
        playouts: int = PLAYOUTS,
        exploration: float = EXPLORATION,
    ) -> None:
        """Reads the weights, as `ExpectimaxAgent` does.

        Args:
            weights: As there.
            temperature: As there.
            playouts: How many for each decision, at least 1.
            exploration: How readily it tries what looks worse, see `tree.search`.

        Raises:
            ValueError: As there, or fewer than 1 playout, or a negative exploration.
            OSError: As there.
        """
        if playouts < 1:
            raise ValueError(f"playouts must be at least 1, not {playouts!r}")
        if not exploration >= 0:
            raise ValueError(f"exploration must be at least 0, not {exploration!r}")
        super().__init__(weights, temperature)
        self._playouts, self._exploration = playouts, float(exploration)

    def action_values(self, states: States) -> FloatArray:
        """As `ExpectimaxAgent.action_values`."""
        values = np.full((len(states), NUM_ACTIONS), -np.inf)
        early = solve_late(states, values)
        if len(early):
            weights, spreads = self.weights_for(int(states["num_players"][0]))
            playouts, scratch = self._playouts, make_tree(self._playouts)
            search(states, early, playouts, self._exploration, weights, spreads, *scratch, values)
        return values
