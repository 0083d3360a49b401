"""The model of the ppo agent: what its two files say, checked (`common.model_files`)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.observation import find_form
from marrakech_env.spec import check_num_players, resolve_rules

from ..common import model_files
from .networks import Network, Weights, network

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


def save(folder: str | os.PathLike[str], head: ModelHead, weights: Weights) -> None:
    """Writes a model into a folder, see `model_files.save`.

    Raises:
        OSError: The folder cannot be written.
    """
    model_files.save(folder, KIND, head, weights)


def load_model(path: str | os.PathLike[str]) -> PPOModel:
    """Loads a model from the path of its JSON file or of its folder, see `model_files.load`.

    Raises:
        ValueError: The files are missing, damaged, or made for another version of the package.
    """
    return model_files.load(path, KIND, ModelHead, PPOModel.from_weights)


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
