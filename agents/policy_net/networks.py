"""The policy networks, in NumPy: from observations to one number for each action.

`mlp`: dense layers with tanh between them, for every form of observation.

`scorer`, for `features`: what an observation says of one steering or one placement goes through the
same small network for all 3 steerings, and another for all 12 placements, together with a summary
of the whole observation. What is learned of one placement so holds for all of them. A number for
each action that is read from the summary directly is added: it knows where the actions lie (see
docs/training.md).

Legend: `B` games, `F` numbers of a flat observation, `A` = 15 actions, `H` hidden units, `U` units
of the summary.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.observation import FEATURES
from marrakech_env.tables import NUM_PLACEMENTS

Weights = Mapping[str, NDArray[np.float32]]
Network = Callable[[NDArray[np.float32]], NDArray[np.float32]]
"""From float32 (B, F) to logits float32 (B, A)."""

NUM_STEERINGS: Final = NUM_ACTIONS - NUM_PLACEMENTS
_STEERING_PARTS: Final = ("ahead", "ruin", "steer")
_PLACEMENT_PARTS: Final = ("lay",)


def action_parts(num_players: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where `features` speaks of single actions.

    Returns:
        int64 (3, S): the numbers about each steering; int64 (12, L): those about each placement.
    """
    steerings, placements = [], []
    for entry in FEATURES.entries:
        part = FEATURES.part(entry.name, num_players)
        numbers = np.arange(part.start, part.stop)
        kind = entry.name.split("_")[0]
        if entry.name == "ahead":  # by steering, then roll
            steerings.append(numbers.reshape(NUM_STEERINGS, -1))
        elif kind in _STEERING_PARTS:
            steerings.append(numbers.reshape(-1, NUM_STEERINGS).T)
        elif kind in _PLACEMENT_PARTS:  # by seat, then placement
            placements.append(numbers.reshape(-1, NUM_PLACEMENTS).T)
    return np.hstack(steerings), np.hstack(placements)


def network(kind: str, num_players: int, size: int, weights: Weights) -> Network:
    """The network of a model.

    Args:
        kind: `mlp` or `scorer`.
        num_players: P.
        size: F.
        weights: `NAME.weight` (out, in) and `NAME.bias` (out,) of every layer.

    Raises:
        ValueError: An unknown kind, or weights that are missing, too many, of the wrong shape or
            not finite.
    """
    if kind not in _NETWORKS:
        raise ValueError(f"unknown kind of network {kind!r}; known: {', '.join(_NETWORKS)}")
    for name, array in weights.items():
        if not np.isfinite(array).all():
            raise ValueError(f"the weights {name!r} hold numbers that are not finite")
    return _NETWORKS[kind](num_players, size, _Layers(weights))


class _Layers:
    """Hands out the layers of a model and checks that they fit together."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._used: set[str] = set()

    def names(self) -> set[str]:
        return {name.rpartition(".")[0] for name in self._weights}

    def weight(self, name: str, inputs: int, outputs: int | None = None) -> NDArray[np.float32]:
        """A matrix (inputs, outputs); any number of outputs where none is given."""
        matrix = self._take(f"{name}.weight")
        wanted = (matrix.shape[0] if outputs is None and matrix.ndim else outputs, inputs)
        if matrix.shape != wanted:
            raise ValueError(f"layer {name!r} has weights {matrix.shape}; wanted: {wanted}")
        return np.ascontiguousarray(matrix.T, np.float32)

    def layer(self, name: str, inputs: int, outputs: int | None = None) -> Network:
        """A dense layer."""
        weight = self.weight(name, inputs, outputs)
        bias = self._take(f"{name}.bias").astype(np.float32)
        if bias.shape != weight.shape[1:]:
            raise ValueError(f"layer {name!r} has biases {bias.shape}; wanted: {weight.shape[1:]}")
        return lambda values: values @ weight + bias

    def width(self, name: str) -> int:
        """Units of a layer."""
        return len(self._take(f"{name}.bias"))

    def finish(self) -> None:
        unused = sorted(set(self._weights) - self._used)
        if unused:
            raise ValueError(f"the network has no layers for the weights {', '.join(unused)}")

    def _take(self, name: str) -> NDArray[Any]:
        if name not in self._weights:
            raise ValueError(
                f"the weights lack {name!r}; found: {', '.join(sorted(self._weights))}"
            )
        self._used.add(name)
        return self._weights[name]


def _mlp(num_players: int, size: int, layers: _Layers) -> Network:
    """Layers `0`, `1`, ... with tanh between them."""
    count = len(layers.names())
    dense = []
    for index in range(count):
        last = index == count - 1
        dense.append(layers.layer(str(index), size, NUM_ACTIONS if last else None))
        size = layers.width(str(index))
    if not dense:
        raise ValueError("the network has no layer")
    layers.finish()

    def run(values: NDArray[np.float32]) -> NDArray[np.float32]:
        for layer in dense[:-1]:
            values = np.tanh(layer(values))
        return dense[-1](values)

    return run


def _scorer(num_players: int, size: int, layers: _Layers) -> Network:
    """`state.0` (F, U), `state.1` (U, U), `direct` (U, A), and for `steer` and `lay` a `_head`."""
    steerings, placements = action_parts(num_players)
    first = layers.layer("state.0", size)
    summary = layers.width("state.0")
    second = layers.layer("state.1", summary, summary)
    direct = layers.layer("direct", summary, NUM_ACTIONS)
    steer = _head("steer", steerings.shape[1], summary, layers)
    lay = _head("lay", placements.shape[1], summary, layers)
    layers.finish()

    def run(values: NDArray[np.float32]) -> NDArray[np.float32]:
        state = _relu(second(_relu(first(values))))
        scores = [steer(values[:, steerings], state), lay(values[:, placements], state)]
        return np.concatenate(scores, axis=1) + direct(state)

    return run


def _head(
    name: str, inputs: int, summary: int, layers: _Layers
) -> Callable[[NDArray[np.float32], NDArray[np.float32]], NDArray[np.float32]]:
    """Scores N actions from what is said of each (B, N, inputs) and the summary (B, U)."""
    own = layers.layer(f"{name}.own", inputs)
    hidden = layers.width(f"{name}.own")
    state_weight = layers.weight(f"{name}.state", summary, hidden)
    middle = layers.layer(f"{name}.0", hidden)
    last = layers.layer(f"{name}.1", layers.width(f"{name}.0"), 1)

    def run(actions: NDArray[np.float32], state: NDArray[np.float32]) -> NDArray[np.float32]:
        values = _relu(own(actions) + (state @ state_weight)[:, None])
        return last(_relu(middle(values)))[..., 0]

    return run


def _relu(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.maximum(values, np.float32(0))


_NETWORKS: Final[Mapping[str, Callable[[int, int, _Layers], Network]]] = {
    "mlp": _mlp,
    "scorer": _scorer,
}
