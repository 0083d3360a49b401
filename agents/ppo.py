"""A policy network that `train.py` trained with MaskablePPO, as an agent.

A model is two files: `model.json` says what it is, `model.safetensors` holds the weights. Neither
can carry code, so a stranger's model is safe to load. Playing needs NumPy alone, not torch.

Legend: `B` games, `A` = 15 actions.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.observation import encode, find_form
from marrakech_env.rules import action_mask
from marrakech_env.spec import check_num_players, resolve_rules
from marrakech_env.state import States

from .networks import Weights, network
from .runs import write_atomically

FORMAT: Final = 1
"""Version of the two files; another one is refused."""


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


class PPOAgent:
    """Plays the most probable legal action, or draws one at a temperature above 0."""

    def __init__(
        self, head: ModelHead, weights: Weights, temperature: float = 0.0, name: str = "ppo"
    ) -> None:
        """Checks that the weights fit together and to the observation.

        Args:
            head: What the model is.
            weights: Its layers.
            temperature: 0 plays the best action; 1 plays as the network learned; above, wilder.
            name: Display name.

        Raises:
            ValueError: Head or weights do not fit this version of the package.
        """
        if not temperature >= 0:
            raise ValueError(f"temperature must be at least 0, not {temperature!r}")
        self.head = head
        self.name = name
        self.num_players = head.num_players
        self.temperature = temperature
        _check_head(head)
        self._network = network(head.network, head.num_players, head.observation_size, weights)

    def act(self, states: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Decides for the player to move: int64 (B,).

        Raises:
            ValueError: The games have another number of players than the model.
        """
        players = int(states["num_players"][0])
        if players != self.num_players:
            raise ValueError(
                f"agent {self.name!r} is made for {self.num_players} players, not for {players}"
            )
        scores: NDArray[Any] = self.logits(encode(states, self.head.observation))
        if self.temperature > 0:  # the largest of logits with Gumbel noise is a draw from softmax
            scores = scores / self.temperature + rng.gumbel(size=scores.shape)
        legal: NDArray[Any] = np.where(action_mask(states), scores, -np.inf)
        return legal.argmax(1)  # type: ignore[no-any-return]

    def logits(self, observations: NDArray[Any]) -> NDArray[np.float32]:
        """The network: observations (B, ...) to logits float32 (B, A), illegal ones included."""
        flat = observations.reshape(len(observations), -1)
        return self._network(flat.astype(np.float32, copy=False))


def save(folder: str | os.PathLike[str], head: ModelHead, weights: Weights) -> None:
    """Writes a model into a folder so that at any moment an old or the new one is whole.

    Raises:
        OSError: The folder cannot be written.
    """
    from safetensors.numpy import save as to_bytes

    data = to_bytes({name: np.ascontiguousarray(array) for name, array in weights.items()})
    digest = hashlib.sha256(data).hexdigest()
    file = f"model-{digest[:12]}.safetensors"
    description = {
        "kind": "ppo",
        "format": FORMAT,
        "weights": file,
        "sha256": digest,
        **asdict(head),
    }
    write_atomically(Path(folder) / file, data)
    write_atomically(Path(folder) / "model.json", json.dumps(description, indent=2).encode())
    for old in Path(folder).glob("model-*.safetensors"):
        if old.name != file:
            old.unlink(missing_ok=True)


def load(description: str | os.PathLike[str], temperature: float = 0.0) -> PPOAgent:
    """Loads a model from the path of its `model.json`, or of the folder that holds it.

    Raises:
        ValueError: The files are missing, damaged, or made for another version of the package.
    """
    from safetensors.numpy import load as from_bytes

    path = Path(description)
    path = path / "model.json" if path.is_dir() else path
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(content, dict) or content.get("kind") != "ppo":
            raise ValueError("it does not describe a model of kind 'ppo'")
        if content.get("format") != FORMAT:
            raise ValueError(f"its format is {content.get('format')!r}; known: {FORMAT}")
        head = _head_from(content)
        file = Path(str(content.get("weights")))
        if file.name != str(file):
            raise ValueError(f"the weights {str(file)!r} must lie beside it")
        data = (path.parent / file).read_bytes()
        if hashlib.sha256(data).hexdigest() != content.get("sha256"):
            raise ValueError(f"the weights in {file} are damaged: their SHA-256 differs")
        weights = from_bytes(data)
    except Exception as error:  # safetensors has errors of its own for bytes that make no sense
        raise ValueError(f"model {os.fspath(path)!r} cannot be loaded: {error}") from error
    try:
        return PPOAgent(head, weights, temperature, name=path.parent.name or "ppo")
    except ValueError as error:
        raise ValueError(f"model {os.fspath(path)!r} cannot be used: {error}") from error


def _head_from(content: dict[str, Any]) -> ModelHead:
    """The head in the content of `model.json`, with every field of its type."""
    values: dict[str, Any] = {}
    for field in fields(ModelHead):
        kind = {"int": int, "str": str}[str(field.type)]
        value = content.get(field.name)
        if not isinstance(value, kind) or isinstance(value, bool):
            raise ValueError(f"the field {field.name!r} must be a {kind.__name__}, not {value!r}")
        values[field.name] = value
    return ModelHead(**values)


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
