"""The value agent: a network over the positions between turns, with one full turn of lookahead.

When steering it looks at all three steerings, all rolls and all placements after them, when laying
at all placements, and takes what leads to the best position on average. Its worth of a position is
the win chance plus a little for the margin, as the network was trained by self-play (`td`).

A model is made for one number of players (`models` has its files). Playing needs NumPy and Numba
alone.

Legend: `B` games, `A` = 15 actions.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.spec import check_num_players, resolve_rules
from marrakech_env.state import State, States, as_states, one_state

from . import models
from .tensors import Tensors
from .value_net import NET, empty_net
from .value_search import MIND, TABLE, new_mind, value_actions

KIND: Final = "value"


@dataclass(frozen=True, slots=True)
class ValueHead:
    """What `model.json` says about a model.

    Attributes:
        num_players: The number of players that it was trained for.
        rules: The RULES text of its training games.
        games: Games that it learned from.
        margin_weight: What a dirham of margin is worth beside a win.
        trained_by: The command or program, for people.
    """

    num_players: int
    rules: str
    games: int
    margin_weight: float
    trained_by: str


@dataclass(frozen=True, slots=True)
class ValueModel:
    """A head and its weights, checked.

    Attributes:
        head: What the model is.
        net: NET (1,).
    """

    head: ValueHead
    net: NDArray[np.void]

    @classmethod
    def from_weights(cls, head: ValueHead, weights: Tensors) -> ValueModel:
        """Checks head and weights.

        Raises:
            ValueError: They do not fit this version of the package.
        """
        check_num_players(head.num_players)
        resolve_rules(head.rules, head.num_players)
        if abs(head.margin_weight) > float(np.finfo(np.float32).max):
            raise ValueError(f"margin_weight is too large: {head.margin_weight}")
        net = empty_net(head.margin_weight)
        for name in WEIGHT_NAMES:
            wanted = NET[name].shape
            if name not in weights or weights[name].shape != wanted:
                found = weights[name].shape if name in weights else "nothing"
                raise ValueError(f"the weights {name!r} have shape {wanted}, found: {found}")
            if not np.isfinite(weights[name]).all():
                raise ValueError(f"the weights {name!r} hold numbers that are not finite")
            net[name][0] = weights[name]
        return cls(head, net)

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The tensors as they are kept in a file."""
        return {name: self.net[name][0] for name in WEIGHT_NAMES}


WEIGHT_NAMES: Final = ("first", "bias", "second")


@dataclass(frozen=True, slots=True)
class ActionValue:
    """What an action is worth to the player to move.

    Attributes:
        action: The action.
        worth: What the agent compares: win + margin_weight * margin.
        margin: Expected final score minus the best among the others, in dirhams.
        win: Expected share of the win.
    """

    action: int
    worth: float
    margin: float
    win: float


class ValueAgent:
    """Plays the action of the greatest worth, or draws one at a temperature above 0."""

    def __init__(
        self,
        model: ValueModel,
        temperature: float = 0.0,
        name: str = "value",
    ) -> None:
        """Takes a model.

        Args:
            model: The network, for one number of players.
            temperature: 0 plays the best action; above, actions are drawn with a chance that
                falls by the factor e for each `temperature` of worth that they lose (0.05 is
                noticeably weaker).
            name: Display name.

        Raises:
            ValueError: A bad temperature.
        """
        if not temperature >= 0:
            raise ValueError(f"temperature must be at least 0, not {temperature!r}")
        self.temperature = temperature
        self.name = name
        self.num_players = model.head.num_players
        self._mind = new_mind(model.net)

    def act(self, states: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Decides for the player to move: int64 (B,), -1 in a finished game.

        Raises:
            ValueError: The games have another number of players than the model.
        """
        states = as_states(states)
        noise = np.zeros((0, NUM_ACTIONS))
        if self.temperature > 0:  # the largest with Gumbel noise is a draw from the softmax
            noise = self.temperature * rng.gumbel(size=(len(states), NUM_ACTIONS))
        actions = np.empty(len(states), np.int64)
        mind = self._mind_for(states)
        value_actions(states, mind, TABLE, noise, np.zeros((0, NUM_ACTIONS, 3)), actions)
        return actions

    def analyse(self, state: State) -> list[ActionValue]:
        """What each legal action of a state is worth, the best first.

        Raises:
            ValueError: Not one state, or another number of players than the model.
        """
        states = one_state(state).reshape(1)
        values = np.zeros((1, NUM_ACTIONS, 3))
        value_actions(
            states,
            self._mind_for(states),
            TABLE,
            np.zeros((0, NUM_ACTIONS)),
            values,
            np.zeros(1, np.int64),
        )
        rows = [ActionValue(a, *map(float, values[0, a])) for a in range(NUM_ACTIONS)]
        return sorted(
            (row for row in rows if row.worth > -np.inf), key=lambda row: (-row.worth, row.action)
        )

    def _mind_for(self, states: States) -> NDArray[np.void]:
        """Weights and scratch, if these games have the model's number of players."""
        players = int(states["num_players"][0]) if len(states) else self.num_players
        if players != self.num_players:
            raise ValueError(
                f"agent {self.name!r} is made for {self.num_players} players, not for {players}"
            )
        return self._mind


def save(folder: str | os.PathLike[str], model: ValueModel, name: str = "model") -> None:
    """Writes a model into a folder, see `models.save`.

    Raises:
        OSError: The folder cannot be written.
    """
    models.save(folder, KIND, model.head, model.weights(), name)


def load_model(path: str | os.PathLike[str]) -> ValueModel:
    """Loads a model from the path of its JSON file or of its folder, see `models.load`.

    Raises:
        ValueError: The files are missing, damaged, or made for another version of the package.
    """
    return models.load(path, KIND, ValueHead, ValueModel.from_weights)


def load(path: str | os.PathLike[str], temperature: float = 0.0) -> ValueAgent:
    """The agent of a model, see `load_model`.

    Raises:
        ValueError: As `load_model`, or a bad temperature.
    """
    return ValueAgent(load_model(path), temperature, models.display_name(path, KIND))


assert MIND["net"] == NET
