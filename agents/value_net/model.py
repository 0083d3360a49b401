"""The model of the value agent: what its two files say, checked (`common.model_files`)."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.spec import check_num_players, resolve_rules

from ..common import model_files
from ..common.tensors import Tensors
from .network import NET, empty_net

KIND: Final = "value"


@dataclass(frozen=True, slots=True)
class ValueHead:
    """What `model.json` says about a model.

    Attributes:
        num_players: The number of players that it was trained for.
        rules: The RULES text of its training games.
        seed: Seed of the training.
        games: Games that it learned from.
        minutes: How long that took.
        machine: On what.
        margin_weight: What a dirham of margin is worth beside a win.
        trained_by: The command or program, for people.
    """

    num_players: int
    rules: str
    seed: int
    games: int
    minutes: float
    machine: str
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
        if abs(head.margin_weight) > 1:
            raise ValueError(f"margin_weight must be -1..1, not {head.margin_weight}")
        net = empty_net(head.margin_weight)
        for name in WEIGHT_NAMES:
            wanted = NET[name].shape
            if name not in weights or weights[name].shape != wanted:
                found = weights[name].shape if name in weights else "nothing"
                raise ValueError(f"the weights {name!r} have shape {wanted}, found: {found}")
            if not (np.abs(weights[name]) <= MAX_WEIGHT).all():  # not a number neither
                raise ValueError(f"the weights {name!r} hold numbers beyond +-{MAX_WEIGHT:g}")
            net[name][0] = weights[name]
        return cls(head, net)

    def weights(self) -> dict[str, NDArray[np.float32]]:
        """The tensors as they are kept in a file."""
        return {name: self.net[name][0] for name in WEIGHT_NAMES}


WEIGHT_NAMES: Final = ("first", "bias", "second")
MAX_WEIGHT: Final = 1e6
"""Larger ones are refused: what the search compares has to stay finite."""


def save(folder: str | os.PathLike[str], model: ValueModel, name: str = "model") -> None:
    """Writes a model into a folder, see `model_files.save`.

    Raises:
        OSError: The folder cannot be written.
    """
    model_files.save(folder, KIND, model.head, model.weights(), name)


def load_model(path: str | os.PathLike[str]) -> ValueModel:
    """Loads a model from the path of its JSON file or of its folder, see `model_files.load`.

    Raises:
        ValueError: The files are missing, damaged, or made for another version of the package.
    """
    return model_files.load(path, KIND, ValueHead, ValueModel.from_weights)
