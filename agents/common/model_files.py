"""Files of trained models.

A model is two files: `model.json` (or NAME.json) says what it is and names the weights, which lie
beside it in the safetensors format. Neither can carry code, and both are read up to a limit, so a
stranger's model is safe to load. The core package alone can read it.

Legend: a *head* is a dataclass of int, float and str fields, all that the JSON file says.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec
import numpy as np
import safetensors.numpy
from numpy.typing import NDArray

from marrakech_env.files import read_ordinary, write_atomically
from marrakech_env.spec import MAX_PLAYERS

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

WEIGHTS: Final = Path(__file__).parents[1] / "weights"
"""Where the shipped models lie, KIND-PLAYERS.json each."""
FORMAT: Final = 1
"""Version of the two files; another one is refused."""

MAX_BYTES: Final = 2**28
"""Of the weights of a model."""
MAX_HEADER: Final = 2**16
"""Bytes of the names and shapes of the weights."""
MAX_WEIGHT: Final = 1e6
"""Larger weights are refused: what an agent compares has to stay finite."""

Tensors = Mapping[str, NDArray[np.float32]]
Head = TypeVar("Head", bound="DataclassInstance")
Model = TypeVar("Model")


def save(
    folder: str | os.PathLike[str],
    kind: str,
    head: DataclassInstance,
    weights: Tensors,
    name: str = "model",
) -> None:
    """Writes a model into a folder so that at any moment an old or the new one is whole.

    Args:
        folder: Where; it must exist.
        kind: By which the loader is found, see `marrakech_env.agent.model_file`.
        head: What the model is.
        weights: Its numbers.
        name: Of the JSON file, without `.json`.

    Raises:
        OSError: The folder cannot be written.
    """
    data = safetensors.numpy.save({name: np.ascontiguousarray(a) for name, a in weights.items()})
    digest = hashlib.sha256(data).hexdigest()
    file = f"{name}-{digest[:12]}.safetensors"
    content = {"kind": kind, "format": FORMAT, "weights": file, "sha256": digest, **asdict(head)}
    write_atomically(Path(folder) / file, data)
    write_atomically(Path(folder) / f"{name}.json", (json.dumps(content, indent=2) + "\n").encode())
    for old in Path(folder).glob(f"{name}-{'[0-9a-f]' * 12}.safetensors"):
        if old.name != file:
            old.unlink(missing_ok=True)


def load(
    path: str | os.PathLike[str],
    kind: str,
    head_type: type[Head],
    make: Callable[[Head, Tensors], Model],
) -> Model:
    """Loads a model from the path of its JSON file, or of the folder that holds `model.json`.

    Args:
        path: Where it lies.
        kind: What it must be.
        head_type: What the JSON file is read into.
        make: Makes the model of head and weights; ValueError where they make no sense.

    Raises:
        ValueError: The files are missing, damaged, or made for another version of the package; the
            message names the file.
    """
    description = _description(path)
    try:
        text = read_ordinary(description)
        facts = msgspec.json.decode(text, type=_Facts)
        if facts.kind != kind:
            raise ValueError(f"it does not describe a model of kind {kind!r}")
        if facts.format != FORMAT:
            raise ValueError(f"its format is {facts.format}; known: {FORMAT}")
        head = msgspec.json.decode(text, type=head_type)
        if Path(facts.weights).name != facts.weights:
            raise ValueError(f"the weights {facts.weights!r} must lie beside it")
        data = read_ordinary(description.parent / facts.weights, MAX_BYTES)
        if hashlib.sha256(data).hexdigest() != facts.sha256:
            raise ValueError(f"the weights in {facts.weights} are damaged: their SHA-256 differs")
        return make(head, _read_tensors(data))
    except (OSError, ValueError, OverflowError, RecursionError) as error:
        raise ValueError(f"model {os.fspath(description)!r} cannot be loaded: {error}") from error


def shipped(kind: str, load: Callable[[Path], Model]) -> dict[int, Model]:
    """The models of a kind that come with the package, by number of players."""
    files = {players: WEIGHTS / f"{kind}-{players}.json" for players in range(2, MAX_PLAYERS + 1)}
    return {players: load(file) for players, file in files.items() if file.exists()}


def for_players(by_players: Mapping[int, Model], players: int, name: str) -> Model:
    """The model for a number of players.

    Args:
        by_players: What an agent has.
        players: P of the games.
        name: What the agent is called.

    Raises:
        ValueError: There is none; the message says for which there are.
    """
    if players not in by_players:
        known = " or ".join(map(str, by_players)) or "no"
        raise ValueError(f"agent {name!r} is made for {known} players, not for {players}")
    return by_players[players]


def display_name(path: str | os.PathLike[str], kind: str) -> str:
    """How to call the agent of a model: by its folder, or by its file where that has a name."""
    description = _description(path)
    return (description.parent.name or kind) if description.stem == "model" else description.stem


def _description(path: str | os.PathLike[str]) -> Path:
    return Path(path) / "model.json" if Path(path).is_dir() else Path(path)


class _Facts(msgspec.Struct):
    """What the JSON file says about the files themselves."""

    kind: str
    format: int
    weights: str
    sha256: str


def _read_tensors(data: bytes) -> Tensors:
    """The tensors of a safetensors file.

    Raises:
        ValueError: The bytes make no sense, or hold something other than float32.
    """
    if int.from_bytes(data[:8], "little") > MAX_HEADER:
        raise ValueError(f"the header of the weights has more than {MAX_HEADER} bytes")
    try:
        tensors = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise ValueError(f"the weights are no safetensors file: {error}") from error
    for name, tensor in tensors.items():
        if tensor.dtype != np.float32:
            raise ValueError(f"the weights {name!r} must be float32, not {tensor.dtype}")
    return tensors


def check_weights(name: str, weights: NDArray[Any]) -> None:
    """Check that no number is so large that what is computed from it might not be finite.

    Raises:
        ValueError: A number is beyond +-`MAX_WEIGHT`, or none.
    """
    if not (np.abs(weights) <= MAX_WEIGHT).all():
        raise ValueError(f"the weights {name!r} hold numbers beyond +-{MAX_WEIGHT:g}")
