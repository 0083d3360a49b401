"""Kernels that store eight bytes at once, where one byte at a time would cost most of the work."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.state import Bits, Int

_SPREAD: Final = np.array(
    [sum((bits >> k & 1) << 8 * k for k in range(8)) for bits in range(256)], np.uint64
)
"""uint64 (256,): eight bits, each as a byte of 0 or 1, the lowest first."""
_LAST_EIGHT: Final = NUM_ACTIONS - 8


@kernel
def put_eight(out: NDArray[np.uint8], at: Bits, values: Bits) -> None:
    """Writes the bytes of a number, the lowest first; the compiler makes it one store.

    `at` is unsigned: Numba would ask of a signed index whether it counts from the end.
    """
    for k in range(8):
        out[at + np.uint64(k)] = np.uint8(values >> np.uint64(8 * k))


@kernel
def bytes_of(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """A mask (B, 15) as `put_mask` takes it: the same memory."""
    return mask.reshape(-1).view(np.uint8)


@kernel
def put_mask(out: NDArray[np.uint8], game: Int, legal: Bits) -> None:
    """Writes legal actions, given as 15 bits, into the row of a game: two stores, not fifteen."""
    at = np.uint64(game) * np.uint64(NUM_ACTIONS)
    put_eight(out, at, _SPREAD[np.uint64(legal) & np.uint64(255)])
    at += np.uint64(_LAST_EIGHT)
    put_eight(out, at, _SPREAD[np.uint64(legal) >> np.uint64(_LAST_EIGHT)])
