"""Write bits as bytes of 0 or 1, eight at a time, by a look-up table."""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.spec import NUM_CELLS
from marrakech_env.state import Bits, Int

_SPREAD: Final = np.array(
    [sum((bits >> k & 1) << 8 * k for k in range(8)) for bits in range(256)], np.uint64
)
"""uint64 (256,): eight bits, each as a byte of 0 or 1, the lowest first."""
_LAST_SQUARES: Final = NUM_CELLS - 8
_LAST_ACTIONS: Final = NUM_ACTIONS - 8


@kernel
def put_eight(out: NDArray[np.uint8], at: Bits, bits: Bits) -> None:
    """Write the lowest eight bits from index `at` on, in place; the compiler makes it one store.

    `at` is unsigned, because Numba checks a signed index for counting from the end.
    """
    values = _SPREAD[bits & np.uint64(255)]
    for k in range(8):
        out[at + np.uint64(k)] = np.uint8(values >> np.uint64(8 * k))


@kernel
def put_board(out: NDArray[np.uint8], at: Bits, board: Bits) -> None:
    """Write the 49 squares of a bitboard from index `at` on, in place."""
    for start in range(0, _LAST_SQUARES, 8):
        put_eight(out, at + np.uint64(start), board >> np.uint64(start))
    put_eight(out, at + np.uint64(_LAST_SQUARES), board >> np.uint64(_LAST_SQUARES))


@kernel
def bytes_of(mask: NDArray[np.bool_]) -> NDArray[np.uint8]:
    """View a mask (B, 15) as `put_mask` takes it: the same memory."""
    return mask.reshape(-1).view(np.uint8)


@kernel
def put_mask(out: NDArray[np.uint8], game: Int, legal: Bits) -> None:
    """Write the legal actions, given as 15 bits, into the row of a game, in place."""
    at, bits = np.uint64(game) * np.uint64(NUM_ACTIONS), np.uint64(legal)
    put_eight(out, at, bits)
    put_eight(out, at + np.uint64(_LAST_ACTIONS), bits >> np.uint64(_LAST_ACTIONS))
