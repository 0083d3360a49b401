"""Squares as bits: single ones, those beside them, and all rugs that could be laid.

Legend: *swing* of a rug: what its halves cover, 2 for a square of others, 1 for an empty or neutral
one, 0 for an own one.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import BOARD_SIZE
from marrakech_env.state import Bits, Int, Record
from marrakech_env.tables import RUGS_AROUND

_ZERO, _ONE, _ROW = np.uint64(0), np.uint64(1), np.uint64(BOARD_SIZE)


@kernel
def lowest_cell(bits: Bits) -> Int:
    """The lowest cell of a bitboard that is not empty."""
    return game.popcount(~bits & (bits - _ONE))


@kernel
def cell_at(bits: Bits, uniform: float) -> Int:
    """The cell of a bitboard at a uniform number in [0, 1), all equally often; -1 if empty.

    The bits may also be actions.
    """
    if bits == 0:
        return -1
    for _ in range(np.int64(uniform * game.popcount(bits))):
        bits &= bits - _ONE
    return lowest_cell(bits)


@kernel
def lowest_square(bits: Bits) -> Bits:
    """The bitboard of the lowest square of a bitboard, 0 for an empty one."""
    return bits & (~bits + _ONE)


@kernel
def with_neighbours(bits: Bits) -> Bits:
    """A bitboard and the squares side-adjacent to it (and some bits beyond the board)."""
    across = ((bits & game.NOT_EAST_EDGE) << _ONE) | ((bits & game.NOT_WEST_EDGE) >> _ONE)
    return bits | across | bits << _ROW | bits >> _ROW


@kernel
def board_of_others(state: Record, player: Int) -> Bits:
    """The visible squares of all other players still in the game."""
    squares = _ZERO
    for other in range(np.int64(state.num_players)):
        if other != player and not state.eliminated[other]:
            squares |= game.board_of(state, other)
    return squares


@kernel
def find_swings(
    own: Bits, others: Bits, east: Bits, south: Bits, swings: NDArray[np.uint64]
) -> None:
    """Write which rugs swing at least 1, 2, 3 and 4: their west cells, their north cells.

    All rugs at once, so that the best of twelve at each of twelve cells takes a few operations.

    Args:
        own: The squares of the player who lays.
        others: Those of others still in the game.
        east: The cells where a rug may lie on this one and the one to the east.
        south: The same to the south.
        swings: uint64 (4, 2), overwritten.
    """
    for way in range(2):
        may_lie, step = (south, _ROW) if way else (east, _ONE)
        one, two = ~own, ~own >> step
        one_of_others, two_of_others = others, others >> step
        swings[0, way] = may_lie & (one | two)
        swings[1, way] = may_lie & (one & two | one_of_others | two_of_others)
        swings[2, way] = may_lie & (one & two_of_others | one_of_others & two)
        swings[3, way] = may_lie & one_of_others & two_of_others


@kernel
def largest_swing(cell: Int, swings: NDArray[np.uint64]) -> Int:
    """The most that a rug swings that may be laid with Assam on a cell, after `find_swings`."""
    east, south = RUGS_AROUND[cell, 0], RUGS_AROUND[cell, 1]
    most: Int = 0
    for least in range(4):
        most += (swings[least, 0] & east | swings[least, 1] & south) != 0
    return most
