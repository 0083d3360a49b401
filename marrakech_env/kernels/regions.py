"""Regions: the side-connected squares of one colour, listed for a whole board.

A square belongs to a region as long as the owner of its colour is still in the game: whoever else
stops on it owes the owner the number of its squares. Neutral rugs (rule 7) belong to no region.

Legend: *boards* are four bitboards, one a colour.
"""

from __future__ import annotations

from typing import Final, TypeAlias

import numpy as np

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import lowest_square
from marrakech_env.spec import BOARD_SIZE, NUM_CELLS, NUM_COLOURS
from marrakech_env.state import Bits, Int, Record

Boards: TypeAlias = tuple[Bits, Bits, Bits, Bits]

REGIONS: Final = np.dtype(
    [
        ("count", np.uint64),
        # Of each region; one place more for a region that turns out empty:
        ("bits", np.uint64, (NUM_CELLS + 1,)),  # bitboard
        ("squares", np.int64, (NUM_CELLS + 1,)),  # how many
        ("colour", np.int64, (NUM_CELLS + 1,)),
    ],
    align=True,
)
"""All regions of a board, see `find_regions`. A record is passed by reference, without the cost of
array arguments."""

_ZERO, _ONE, _ROW = np.uint64(0), np.uint64(1), np.uint64(BOARD_SIZE)


@kernel
def find_regions(state: Record, regions: Record) -> None:
    """List the regions of all players still in the game, in `regions`."""
    boards = boards_in_play(state)
    east, south = joined_squares(boards)
    # Numbers of regions are unsigned: Numba checks a signed index for counting from the end.
    count, left = _ZERO, boards[0] | boards[1] | boards[2] | boards[3]
    while left:
        grown = lowest_regions(boards, left, east, south)
        left ^= grown
        for colour in range(NUM_COLOURS):
            bits = boards[colour] & grown
            regions.bits[count] = bits
            regions.squares[count] = game.popcount(bits)
            regions.colour[count] = colour
            count += np.uint64(bits != _ZERO)  # else the next region takes this place
    regions.count = count


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

    Growing the four colours' regions together costs little more than growing one, because their
    loops share one branch.

    Args:
        boards: The squares of each colour.
        left: The squares that are left: whole regions.
        east: See `joined_squares`.
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
