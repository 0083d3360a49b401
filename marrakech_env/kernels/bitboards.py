"""Squares as bits: single ones, those beside them, all rugs that could be laid, and all regions.

Kernels for the observation and the agents. Four regions that grow side by side take hardly longer
than one, and the processor has to foretell a fourth as often when they are done.

Legend: *boards* are four bitboards, one a colour; *swing* of a rug: what its halves cover, 2 for a
square of others, 1 for one of nobody, 0 for an own one.
"""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import BOARD_SIZE
from marrakech_env.state import Bits, Int, Record
from marrakech_env.tables import RUGS_AROUND

Boards: TypeAlias = tuple[Bits, Bits, Bits, Bits]

_ZERO, _ONE, _ROW = np.uint64(0), np.uint64(1), np.uint64(BOARD_SIZE)


@kernel
def lowest_cell(bits: Bits) -> Int:
    """The lowest cell of a bitboard that is not empty."""
    return game.popcount(~bits & (bits - _ONE))


@kernel
def cell_at(bits: Bits, uniform: float) -> Int:
    """The cell of a bitboard at a uniform number in [0, 1), every one equally often; -1 if empty.

    A mask of actions does as well.
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
    for other in range(state.num_players):
        if other != player and not state.eliminated[other]:
            squares |= game.board_of(state, other)
    return squares


@kernel
def find_swings(
    own: Bits, others: Bits, east: Bits, south: Bits, swings: NDArray[np.uint64]
) -> None:
    """Writes which rugs swing at least 1, 2, 3 and 4: their west cells, their north cells.

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


@kernel
def boards_in_play(state: Record) -> Boards:
    """The visible squares of each colour whose owner is still in the game."""
    return (
        _board_in_play(state, 0),
        _board_in_play(state, 1),
        _board_in_play(state, 2),
        _board_in_play(state, 3),
    )


@kernel
def _board_in_play(state: Record, colour: Int) -> Bits:
    return _ZERO if state.eliminated[game.owner(state, colour)] else state.colour_boards[colour]


@kernel
def joined_squares(boards: Boards) -> tuple[Bits, Bits]:
    """The squares of the same colour as the one to the east, and as the one to the south."""
    first, second, third, fourth = boards
    east = first & first >> _ONE | second & second >> _ONE
    east |= third & third >> _ONE | fourth & fourth >> _ONE
    south = first & first >> _ROW | second & second >> _ROW
    south |= third & third >> _ROW | fourth & fourth >> _ROW
    return east & game.NOT_EAST_EDGE, south


@kernel
def lowest_regions(boards: Boards, left: Bits, east: Bits, south: Bits) -> Bits:
    """Of each colour the region with the lowest of its squares that are left, all in one bitboard.

    Args:
        boards: The squares of each colour.
        left: The squares that are left: whole regions.
        east: As `joined_squares` tells.
        south: Likewise.
    """
    first, second, third, fourth = boards
    grown = lowest_square(first & left) | lowest_square(second & left)
    grown |= lowest_square(third & left) | lowest_square(fourth & left)
    reached = _ZERO
    while grown != reached:
        reached = grown
        grown |= (reached & east) << _ONE | reached >> _ONE & east
        grown |= (reached & south) << _ROW | reached >> _ROW & south
    return reached


@kernel
def colour_at(boards: Boards, cell: Int) -> Bits:
    """The colour of a cell that shows one."""
    _, second, third, fourth = boards
    upper = (third | fourth) >> np.uint64(cell) & _ONE
    return ((second | fourth) >> np.uint64(cell) & _ONE) | upper << _ONE
