"""ChampionAgent: a tree of positions that grows where play is likely to go, see `value_net.tree`.

The tree values positions by the networks of the agent `value`. Positions with at most three turns
left are solved to their end (`common.endgame`).

Legend: `B` games, `A` = 15 actions.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.state import State, States, as_states, one_state

from .common.action_values import ActionValue, checked_count, checked_number, ranked
from .common.endgame import solve_late
from .value import ValueAgent
from .value_net.model import ValueModel
from .value_net.tree import new_tree, search

PLAYOUTS: Final = 140
"""Playouts of a decision where none are given: about 20 milliseconds on one core."""
EXPLORATION: Final = 0.15
MAX_EXPLORATION: Final = 1e6
"""Highest exploration; the tree then tries all actions alike."""
SOLVED_TURNS: Final = 3
"""Positions with at most this many turns left are solved."""


class ChampionAgent(ValueAgent):
    """Plays the action of the highest worth after its playouts, or draws at a temperature above 0.

    Attributes:
        version: As for `ValueAgent`.
    """

    version = 3

    def __init__(
        self,
        model: ValueModel | None = None,
        temperature: float = 0.0,
        playouts: int = PLAYOUTS,
        exploration: float = EXPLORATION,
        name: str = "champion",
    ) -> None:
        """Takes a model, as `ValueAgent` does.

        Args:
            model: As there.
            temperature: As there.
            playouts: Playouts of each decision, at least 1.
            exploration: How readily it tries actions that look worse, see `tree.new_tree`.
            name: Display name.

        Raises:
            ValueError: As there, or playouts that are no whole number of at least 1, or an
                exploration that is no number 0..`MAX_EXPLORATION`.
        """
        super().__init__(model, temperature, name)
        self._playouts = checked_count("playouts", playouts)
        self._exploration = checked_number("exploration", exploration, MAX_EXPLORATION)

    def analyse(self, state: State) -> list[ActionValue]:
        """The legal actions of one unfinished game with their worth, the best first.

        Raises:
            ValueError: Not one state, or no model for its number of players.
        """
        return ranked(self.action_values(one_state(state).reshape(1))[0])

    def action_values(self, states: States) -> NDArray[np.float64]:
        """As `ValueAgent.action_values`."""
        states = as_states(states)
        values = np.full((len(states), NUM_ACTIONS), -np.inf)
        if len(states):
            evaluator = self._evaluator_for(int(states["num_players"][0]))
            tree = new_tree(self._playouts, self._exploration, evaluator)
            early = solve_late(states, values, SOLVED_TURNS)
            search(states, early, self._playouts, tree, values)
        return values
