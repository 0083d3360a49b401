"""The forms of observation by name, and `encode`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from marrakech_env.compile import machine_code
from marrakech_env.observation.feature_kernels import fill_features
from marrakech_env.observation.features import FEATURES
from marrakech_env.observation.planes import MAX_PLANE_MONEY, PLANES, fill_flat, fill_planes
from marrakech_env.observation.schema import Schema
from marrakech_env.spec import BOARD_SIZE
from marrakech_env.state import STATE, State, States, as_seats, as_states

IntArray = NDArray[np.int64]

_ALIGNMENT: Final = 64
"""Bytes. JAX and other libraries take arrays that are so aligned without a copy."""


@dataclass(frozen=True)
class Form:
    """One form of observation.

    Attributes:
        name: `planes`, `flat` or `features`.
        dtype: Of the array.
        schema: What the array holds.
    """

    name: str
    dtype: np.dtype[Any]
    schema: Schema
    _kernel: Callable[[States, IntArray, IntArray, NDArray[Any]], None]

    def __reduce__(self) -> tuple[Callable[[str], Form], tuple[str]]:
        """Copy and pickle by name, so that no compiled kernel travels along."""
        return find_form, (self.name,)

    def shape(self, num_players: int) -> tuple[int, ...]:
        """Shape of one observation: (C, 7, 7) or (N,)."""
        planes = self.name == "planes"
        size = int(self.schema.offsets(num_players, planes)[-1])
        return (size, BOARD_SIZE, BOARD_SIZE) if planes else (size,)

    def space(self, num_players: int) -> Box:
        """The Gymnasium space of one observation, with the bounds of the schema."""
        shape = self.shape(num_players)
        low, high = self.schema.bounds(num_players, self.name == "planes")
        if self.name == "planes":
            high = np.minimum(high, MAX_PLANE_MONEY)
            low = np.broadcast_to(low[:, None, None], shape)
            high = np.broadcast_to(high[:, None, None], shape)
        return Box(low.astype(self.dtype), high.astype(self.dtype), shape, self.dtype.type)

    def zeros(self, num_games: int, num_players: int) -> NDArray[Any]:
        """An array (B, ...) of zeros for `fill`, aligned to 64 bytes."""
        shape = (num_games, *self.shape(num_players))
        size = int(np.prod(shape)) * self.dtype.itemsize
        memory = np.zeros(size + _ALIGNMENT, np.uint8)
        start = -memory.ctypes.data % _ALIGNMENT
        return memory[start : start + size].view(self.dtype).reshape(shape)

    def fill(self, states: States, games: IntArray, players: IntArray, out: NDArray[Any]) -> None:
        """Write the observations of some games into their rows, in place; arguments unchecked.

        Args:
            states: Shape (B,).
            games: int64 (N,), the game numbers to write.
            players: int64 (B,), the observing seat of each game; -1: the player to move.
            out: (B, ...) of this form's shape and dtype, contiguous.
        """
        _compiled(self.name)(states, games, players, out.reshape(-1))


def find_form(name: str) -> Form:
    """The form of a name.

    Raises:
        ValueError: Unknown; the message lists the known ones.
    """
    if not isinstance(name, str) or name not in FORMS:
        raise ValueError(f"unknown observation form {name!r}; known: {', '.join(FORMS)}")
    return FORMS[name]


def encode(
    states: State | States, form: str = "planes", players: ArrayLike | None = None
) -> NDArray[Any]:
    """Encode a batch as observations.

    Args:
        states: Shape (B,), or one record.
        form: `planes`, `flat` or `features`.
        players: The observing seats, int (B,) or one for all; None: the player to move (seat 0
            where the game is over).

    Returns:
        uint8 (B, C, 7, 7) or float32 (B, N).

    Raises:
        ValueError: An unknown form, a seat that does not play, or wrong states.
    """
    found = find_form(form)
    states = as_states(states)
    seated = int(states["num_players"][0]) if len(states) else 2
    out = found.zeros(len(states), seated)
    found.fill(states, np.arange(len(states)), as_seats(players, states), out)
    return out


@functools.cache
def _compiled(name: str) -> Callable[..., None]:
    """The kernel of a form as machine code; the types of its arguments are always the same."""
    form, games = FORMS[name], np.zeros(0, np.int64)
    return machine_code(form._kernel, np.zeros(0, STATE), games, games, np.zeros(0, form.dtype))


FORMS: Final = {
    form.name: form
    for form in (
        Form("planes", np.dtype(np.uint8), PLANES, fill_planes),
        Form("flat", np.dtype(np.float32), PLANES, fill_flat),
        Form("features", np.dtype(np.float32), FEATURES, fill_features),
    )
}
"""Every form by its name."""
