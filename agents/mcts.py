"""MctsAgent: a tree of positions that grows where play is likely to go, see `tree`.

The tree values positions by the networks of the agent `value`. Where few rugs are left to be laid
by all together, the position is solved to its end (`endings`).

Legend: `B` games, `A` = 15 actions.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.state import State, States, as_states, one_state

from .analysis import ActionValue, checked_count, checked_number, ranked
from .endings import SOLVED_TURNS, solve_late
from .tree import new_tree, search
from .value import ValueAgent, ValueModel
from .value_tables import TABLE

EXPLORATION: Final = 0.15
MAX_EXPLORATION: Final = 1e6
"""What no tree would ever want: it tries all actions alike."""


class MctsAgent(ValueAgent):
    """Chooses what is worth most after its playouts, or draws at a temperature above 0.

    Attributes:
        usual_name: Display name where none is given.
        usual_playouts: How many where nothing is said; 80 take about 10 milliseconds on one core.
        solved_turns: With how many turns left positions are solved.
        version: As for `ValueAgent`.
    """

    usual_name = "mcts"
    usual_playouts = 80
    solved_turns = SOLVED_TURNS
    version = 4

    def __init__(
        self,
        model: ValueModel | None = None,
        temperature: float = 0.0,
        playouts: int | None = None,
        exploration: float = EXPLORATION,
        name: str | None = None,
    ) -> None:
        """Takes a model, as `ValueAgent` does.

        Args:
            model: As there.
            temperature: As there.
            playouts: How many for each decision, at least 1; None for `usual_playouts`.
            exploration: How readily it tries what looks worse, see `tree.new_tree`.
            name: Display name; None for `usual_name`.

        Raises:
            ValueError: As there, or playouts that are no whole number of at least 1, or an
                exploration that is no number 0..`MAX_EXPLORATION`.
        """
        super().__init__(model, temperature, name or self.usual_name)
        self._playouts = checked_count(
            "playouts", self.usual_playouts if playouts is None else playouts
        )
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
            minds = self._minds_for(int(states["num_players"][0]))
            tree = new_tree(self._playouts, self._exploration, minds, TABLE)
            early = solve_late(states, values, self.solved_turns)
            search(states, early, self._playouts, tree, values)
        return values
