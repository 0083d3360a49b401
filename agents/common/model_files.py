"""Files of trained models.

A model is two files: `model.json` (or NAME.json) says what it is and names the weights, which lie
beside it in the safetensors format. Neither can carry code, so a stranger's model is safe to load,
and the core package alone can read it.

Legend: a *head* is a dataclass of int, float and str fields, all that the JSON file says.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_type_hints

from marrakech_env.files import write_atomically
from marrakech_env.spec import MAX_PLAYERS

from . import tensors

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

WEIGHTS: Final = Path(__file__).parents[1] / "weights"
"""Where the shipped models lie, KIND-PLAYERS.json each."""
FORMAT: Final = 1
"""Version of the two files; another one is refused."""

Head = TypeVar("Head", bound="DataclassInstance")
Model = TypeVar("Model")


def save(
    folder: str | os.PathLike[str],
    kind: str,
    head: DataclassInstance,
    weights: tensors.Tensors,
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
    data = tensors.to_bytes(weights)
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
    make: Callable[[Head, tensors.Tensors], Model],
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
        content = json.loads(description.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("kind") != kind:
            raise ValueError(f"it does not describe a model of kind {kind!r}")
        if content.get("format") != FORMAT:
            raise ValueError(f"its format is {content.get('format')!r}; known: {FORMAT}")
        head = head_type(**_values(content, head_type))
        file = Path(str(content.get("weights")))
        if file.name != str(file):
            raise ValueError(f"the weights {str(file)!r} must lie beside it")
        data = (description.parent / file).read_bytes()
        if hashlib.sha256(data).hexdigest() != content.get("sha256"):
            raise ValueError(f"the weights in {file} are damaged: their SHA-256 differs")
        return make(head, tensors.from_bytes(data))
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


def _values(content: Mapping[str, Any], head_type: type[DataclassInstance]) -> dict[str, Any]:
    """The fields of the head in the content of the JSON file, each of its type."""
    types = get_type_hints(head_type)
    values: dict[str, Any] = {}
    for field in fields(head_type):
        wanted = types[field.name]
        value: Any = content.get(field.name)
        if wanted is float and isinstance(value, int) and not isinstance(value, bool):
            value = float(value)
        if type(value) is not wanted or (wanted is float and not math.isfinite(value)):
            raise ValueError(
                f"the field {field.name!r} must be of type {wanted.__name__}, not {value!r}"
            )
        values[field.name] = value
    return values
