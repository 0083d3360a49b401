"""A policy network that `train.py` trained with MaskablePPO, as an agent.

Playing needs NumPy alone, not torch. `models` has the files.

Legend: `B` games, `A` = 15 actions.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.observation import encode, find_form
from marrakech_env.rules import action_mask
from marrakech_env.spec import check_num_players, resolve_rules
from marrakech_env.state import State, States, as_states, one_state

from .common import model_files as models
from .common.action_values import ActionValue, checked_temperature, choose_actions, ranked
from .policy_net.networks import Network, Weights, network

KIND: Final = "ppo"


@dataclass(frozen=True, slots=True)
class ModelHead:
    """What `model.json` says about a model.

    Attributes:
        num_players: The number of players that it was trained for.
        rules: The RULES text of its training games.
        observation: The form of observation that it reads.
        observation_size: Numbers of one observation, so that a change of the form is noticed.
        network: The kind of network, `mlp` or `scorer` (see `networks`).
        steps: Decisions that it learned from.
        trained_by: The command or program, for people.
    """

    num_players: int
    rules: str
    observation: str
    observation_size: int
    network: str
    steps: int
    trained_by: str


@dataclass(frozen=True, slots=True)
class PPOModel:
    """A head and its network, checked.

    Attributes:
        head: What the model is.
        weights: The tensors as they are kept in a file.
        network: From observations float32 (B, F) to logits float32 (B, A).
    """

    head: ModelHead
    weights: Weights
    network: Network

    @property
    def num_parameters(self) -> int:
        """Weights of the network."""
        return sum(array.size for array in self.weights.values())

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the numbers: functions made of them cannot be."""
        return PPOModel.from_weights, (self.head, self.weights)

    @classmethod
    def from_weights(cls, head: ModelHead, weights: Weights) -> PPOModel:
        """Checks that the weights fit together and to the observation.

        Raises:
            ValueError: Head or weights do not fit this version of the package.
        """
        _check_head(head)
        layers = network(head.network, head.num_players, head.observation_size, weights)
        return cls(head, weights, layers)

    def logits(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """The network: observations (B, ...) to logits float32 (B, A), illegal ones included."""
        flat = observations.reshape(len(observations), -1)
        return self.network(flat.astype(np.float32, copy=False))


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


def save(folder: str | os.PathLike[str], head: ModelHead, weights: Weights) -> None:
    """Writes a model into a folder, see `models.save`.

    Raises:
        OSError: The folder cannot be written.
    """
    models.save(folder, KIND, head, weights)


def load_model(path: str | os.PathLike[str]) -> PPOModel:
    """Loads a model from the path of its JSON file or of its folder, see `models.load`.

    Raises:
        ValueError: The files are missing, damaged, or made for another version of the package.
    """
    return models.load(path, KIND, ModelHead, PPOModel.from_weights)


def load(path: str | os.PathLike[str], temperature: float = 0.0) -> PPOAgent:
    """The agent of a model, see `load_model`.

    Raises:
        ValueError: As `load_model`, or a bad temperature.
    """
    return PPOAgent(load_model(path), temperature, models.display_name(path, KIND))


def _check_head(head: ModelHead) -> None:
    check_num_players(head.num_players)
    resolve_rules(head.rules, head.num_players)
    size = int(np.prod(find_form(head.observation).shape(head.num_players)))
    if size != head.observation_size:
        raise ValueError(
            f"it reads {head.observation_size} numbers of the observation {head.observation!r}, "
            f"which now has {size} with {head.num_players} players: train it again"
        )
    if head.network == "scorer" and head.observation != "features":
        raise ValueError(f"a scorer reads the observation 'features', not {head.observation!r}")
