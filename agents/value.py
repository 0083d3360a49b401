"""The value agent: a network over the positions between turns, with one full turn of lookahead.

When steering it looks at all three steerings, all rolls and all placements after them, when laying
at all placements, and takes what leads to the best position on average. Where several actions are
close, they are judged after the next player's turn too; the last two turns of a game are solved
(`endings`). The worth of a position is the win chance plus a little for the margin, as the network
was trained by self-play (`td`).

A model is made for one number of players (`models` has its files). Playing needs NumPy and Numba
alone.

Legend: `B` games, `A` = 15 actions.
"""

from __future__ import annotations

import os
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import rewards
from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.rewards import MARGIN_UNIT
from marrakech_env.rules import scores, winner_shares
from marrakech_env.state import OVER, State, States, as_states, one_state

from .common import model_files as models
from .common.action_values import (
    ActionValue,
    best_first,
    checked_count,
    checked_number,
    checked_temperature,
    choose_actions,
)
from .common.endgame import is_late, solved_actions
from .value_net.model import KIND, ValueHead, ValueModel, load_model, save
from .value_net.one_turn import new_evaluator, new_workspaces, value_seats
from .value_net.two_turns import EFFORT, value_actions

__all__ = ["Effort", "ValueAgent", "ValueHead", "ValueModel", "load", "load_model", "save"]


@dataclass(frozen=True, slots=True)
class Effort:
    """How much of the second turn is searched, see `value_deep`; counts, never a clock.

    Attributes:
        placements: How many placements at most are judged after the next player's turn too; with
            1 none is.
        placement_gap: How much less worth than the best one such a placement may have.
        steerings: The same for steerings.
        steering_gap: The same for steerings; `math.inf` is no limit.
    """

    placements: int
    placement_gap: float
    steerings: int
    steering_gap: float

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
            ValueError: A count below 1, a negative gap, or no number.
        """
        for name in ("placements", "steerings"):
            checked_count(name, getattr(self, name))
        for name in ("placement_gap", "steering_gap"):
            checked_number(name, getattr(self, name))


ONE_TURN: Final = Effort(1, 0.0, 1, 0.0)
"""No second turn."""
USUAL: Final = {
    2: Effort(5, 0.05, 2, 0.008),
    3: Effort(6, 0.06, 1, 0.0),
    4: Effort(6, 0.06, 1, 0.0),
}
"""By number of players: about 0.4 milliseconds a decision."""


class ValueAgent:
    """Plays the action of the greatest worth, or draws one at a temperature above 0.

    Attributes:
        temperature: How much it deviates from the best action, see the argument.
        name: Display name.
        num_players: The only number of players it can play with; not there with shipped models.
        num_parameters: Weights of all its networks.
        version: Grows whenever it plays differently, see `load_agent`.
    """

    version = 2

    def __init__(
        self,
        model: ValueModel | None = None,
        temperature: float = 0.0,
        name: str = "value",
        effort: Effort | None = None,
    ) -> None:
        """Takes a model.

        Args:
            model: The network, for one number of players; None for the shipped ones, of which each
                game gets that for its number of players.
            temperature: 0 plays the best action; above, actions are drawn with a chance that
                falls by the factor e for each `temperature` of worth that they lose (0.05 is
                noticeably weaker).
            name: Display name.
            effort: How much of the second turn is searched; None for the `USUAL` amount.

        Raises:
            ValueError: A bad temperature.
        """
        self.temperature = checked_temperature(temperature)
        self.name = name
        if model is None:
            by_players = models.shipped(KIND, load_model)
        else:
            self.num_players = model.head.num_players
            by_players = {self.num_players: model}
        self.num_parameters = sum(
            array.size for each in by_players.values() for array in each.weights().values()
        )
        self._evaluators = {p: new_evaluator(each.net) for p, each in by_players.items()}
        self._efforts = {
            players: np.array([astuple(effort or USUAL[players])], EFFORT) for players in by_players
        }

    def act(self, states: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Decides for the player to move: int64 (B,).

        Raises:
            ValueError: Not an array of states, or no model for their number of players.
        """
        return choose_actions(self.action_values(as_states(states)), self.temperature, rng)

    def action_values(self, states: States) -> NDArray[np.float64]:
        """What every action is worth to the player to move.

        Args:
            states: STATE (B,), with one number of players.

        Returns:
            float64 (B, A), about shares of the win, -inf where the action is not legal.

        Raises:
            ValueError: There is no model for that number of players.
        """
        return np.ascontiguousarray(self._judge(as_states(states))[:, :, 0])

    def analyse(self, state: State) -> list[ActionValue]:
        """What each legal action of a state is worth, the best first.

        Raises:
            ValueError: Not one state, or no model for its number of players.
        """
        (values,) = self._judge(one_state(state).reshape(1))
        rows = (ActionValue(a, *map(float, values[a])) for a in range(NUM_ACTIONS))
        return best_first(row for row in rows if row.worth > -np.inf)

    def evaluate(self, states: States) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """What every seat can expect of a game: float64 (B, P), share of the win and margin.

        Args:
            states: STATE (B,), in any phase, also finished games, where it is exact. The margin
                is the final score minus the best other one, in dirhams, in unfinished games cut
                at +-30.

        Raises:
            ValueError: There is no model for the games' number of players.
        """
        states = as_states(states)
        shares, margins = winner_shares(states), MARGIN_UNIT * rewards.margins(scores(states))
        if len(states):
            players = int(states["num_players"][0])
            value_seats(states, new_workspaces(), self._evaluator_for(players), shares, margins)
        return shares, margins

    def _evaluator_for(self, players: int) -> NDArray[np.void]:
        """What the lookahead reads, for a number of players: EVALUATOR (1,)."""
        return models.for_players(self._evaluators, players, self.name)

    def _judge(self, states: States) -> NDArray[np.float64]:
        """Worth, margin and win of every action: (B, A, 3), worth -inf where it is not legal."""
        values = np.zeros((len(states), NUM_ACTIONS, 3))
        values[:, :, 0] = -np.inf
        if not len(states):
            return values
        players = int(states["num_players"][0])
        evaluator, effort = self._evaluator_for(players), self._efforts[players]
        late = is_late(states)  # finished games too
        early = np.flatnonzero(~late)
        value_actions(states, early, new_workspaces(), evaluator, effort, values)
        for i in np.flatnonzero(late & (states["phase"] != OVER)):
            legal, solved = solved_actions(states[i])
            values[i, legal] = solved
        return values


def load(path: str | os.PathLike[str], temperature: float = 0.0) -> ValueAgent:
    """The agent of a model, see `load_model`.

    Raises:
        ValueError: As `load_model`, or a bad temperature.
    """
    return ValueAgent(load_model(path), temperature, models.display_name(path, KIND))
