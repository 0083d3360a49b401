"""ChampionAgent: the strongest player here, the tree of `mcts` with more time.

It follows nearly twice as many playouts and solves the last three turns.
"""

from __future__ import annotations

from typing import Final

from .mcts import EXPLORATION, MctsAgent
from .value import ValueModel

PLAYOUTS: Final = 140
"""About 20 milliseconds a decision on one core."""


class ChampionAgent(MctsAgent):
    """As `MctsAgent`, with other settings."""

    solved_turns = 3
    version = 1

    def __init__(
        self,
        model: ValueModel | None = None,
        temperature: float = 0.0,
        playouts: int = PLAYOUTS,
        exploration: float = EXPLORATION,
        name: str = "champion",
    ) -> None:
        """As `MctsAgent`.

        Raises:
            ValueError: As there.
        """
        super().__init__(model, temperature, playouts, exploration, name)
