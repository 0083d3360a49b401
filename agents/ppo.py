"""A policy network that `train.py` trained with MaskablePPO, as an agent.

Playing needs NumPy alone, not torch. `models` has the files.

Legend: `B` games, `A` = 15 actions.
"""

from __future__ import annotations

import os

import numpy as np
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.observation import encode
from marrakech_env.rules import action_mask
from marrakech_env.state import State, States, as_states, one_state

from .common import model_files as models
from .common.action_values import ActionValue, checked_temperature, choose_actions, ranked
from .policy_net.model import KIND, ModelHead, PPOModel, load_model, save

__all__ = ["ModelHead", "PPOAgent", "PPOModel", "load", "load_model", "save"]


class PPOAgent:
    """Plays the most probable legal action, or draws one at a temperature above 0.

    Attributes:
        temperature: How wild it is, see the argument.
        name: Display name.
        num_players: The only number of players it can play with; not there with shipped models.
        num_parameters: Weights of all its networks.
        version: Grows whenever the shipped models play differently, see `load_agent`.
    """

    version = 1

    def __init__(
        self, model: PPOModel | None = None, temperature: float = 0.0, name: str = KIND
    ) -> None:
        """Takes a model.

        Args:
            model: The network, for one number of players; None for the shipped ones, of which each
                game gets that for its number of players.
            temperature: 0 plays the best action; 1 plays as the network learned; above, wilder.
            name: Display name.

        Raises:
            ValueError: A bad temperature.
        """
        self.temperature = checked_temperature(temperature)
        self.name = name
        if model is None:
            self._models = models.shipped(KIND, load_model)
        else:
            self.num_players = model.head.num_players
            self._models = {self.num_players: model}
        self.num_parameters = sum(model.num_parameters for model in self._models.values())

    def act(self, states: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Decides for the player to move: int64 (B,).

        Raises:
            ValueError: Not an array of states, or no model for their number of players.
        """
        return choose_actions(self._logits(as_states(states)), self.temperature, rng)

    def analyse(self, state: State) -> list[ActionValue]:
        """The legal actions of one unfinished game, the best first.

        Their worth is the natural logarithm of the probability that the network gives them.

        Raises:
            ValueError: Not one state, or no model for its number of players.
        """
        (logits,) = self._logits(one_state(state).reshape(1))
        legal = logits > -np.inf
        logits[legal] -= np.logaddexp.reduce(logits[legal])
        return ranked(logits)

    def _logits(self, states: States) -> NDArray[np.float64]:
        """(B, A), -inf where the action is not legal."""
        if not len(states):
            return np.empty((0, NUM_ACTIONS))
        model = models.for_players(self._models, int(states["num_players"][0]), self.name)
        logits = model.logits(encode(states, model.head.observation)).astype(np.float64)
        logits[~action_mask(states)] = -np.inf
        return logits


def load(path: str | os.PathLike[str], temperature: float = 0.0) -> PPOAgent:
    """The agent of a model, see `load_model`.

    Raises:
        ValueError: As `load_model`, or a bad temperature.
    """
    return PPOAgent(load_model(path), temperature, models.display_name(path, KIND))
