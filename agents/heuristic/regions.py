"""The regions of one board, looked up by square: bitboard, size and owner of each, in one record.

Only regions whose owner is still in the game are kept: other players owe their size for stopping
there. Neutral rugs (rule 7) belong to no region.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from marrakech_env import game
from marrakech_env.bitboards import (
    boards_in_play,
    joined_squares,
    lowest_cell,
    lowest_regions,
    lowest_square,
    with_neighbours,
)
from marrakech_env.compile import kernel
from marrakech_env.game import NO_SEAT
from marrakech_env.spec import MAX_PLAYERS, NUM_CELLS
from marrakech_env.state import Bits, Int, Record

REGIONS: Final = np.dtype(
    [
        ("region", np.uint64, (NUM_CELLS,)),  # bitboard of the region of each square, 0 for none
        ("size", np.int16, (NUM_CELLS,)),  # its squares
        ("owner", np.int8, (NUM_CELLS,)),  # the seat that owns it, or NO_SEAT
        ("rent", np.int64, (MAX_PLAYERS,)),  # sizes summed over all squares of each seat
    ],
    align=True,
)
_ONE = np.uint64(1)


@kernel
def survey(state: Record, regions: Record) -> None:
    """Write all regions of a game."""
    for cell in range(NUM_CELLS):
        regions.region[cell] = 0
        regions.size[cell] = 0
        regions.owner[cell] = NO_SEAT
    for player in range(MAX_PLAYERS):
        regions.rent[player] = 0
    boards = boards_in_play(state)
    east, south = joined_squares(boards)
    left = boards[0] | boards[1] | boards[2] | boards[3]
    while left:
        grown = lowest_regions(boards, left, east, south)
        left ^= grown
        first, second = boards[0] & grown, boards[1] & grown
        third, fourth = boards[2] & grown, boards[3] & grown
        for colour, region in enumerate((first, second, third, fourth)):
            size = game.popcount(region)
            regions.rent[game.owner(state, colour)] += size * size
        while grown:
            cell = lowest_cell(grown)
            square = lowest_square(grown)
            grown ^= square
            region, colour = first, 0
            region, colour = (second, 1) if second & square else (region, colour)
            region, colour = (third, 2) if third & square else (region, colour)
            region, colour = (fourth, 3) if fourth & square else (region, colour)
            regions.region[cell] = region
            regions.size[cell] = game.popcount(region)
            regions.owner[cell] = game.owner(state, colour)


@kernel
def joined_region(regions: Record, board: Bits, rug: Bits) -> Bits:
    """The region that a rug forms with those beside it on the bitboard of its colour."""
    joined = rug
    beside = with_neighbours(rug) & board
    while beside:
        joined |= regions.region[lowest_cell(beside)]
        beside &= ~joined
    return joined


@kernel
def update_regions(regions: Record, owner: Int, joined: Bits, first: Int, second: Int) -> None:
    """Update the regions in place after a rug is laid.

    Args:
        regions: The regions from before.
        owner: The seat that lays the rug.
        joined: The region that it forms, see `joined_region`.
        first: Cell of one half of the rug.
        second: Cell of the other half.
    """
    _take_rent(regions, regions.region[first] | regions.region[second] | joined)
    cut_regions(regions, joined, first, second)
    _write_regions(regions, joined, owner)


@kernel
def cut_regions(regions: Record, joined: Bits, first: Int, second: Int) -> None:
    """Update, as `update_regions` does, only what a rug leaves of the regions that it covers."""
    torn, torn_owner = regions.region[first] & ~joined, np.int64(regions.owner[first])
    other, other_owner = regions.region[second] & ~joined & ~torn, np.int64(regions.owner[second])
    _write_regions(regions, torn, torn_owner)
    _write_regions(regions, other, other_owner)


@kernel
def _take_rent(regions: Record, squares: Bits) -> None:
    """Take the regions of some squares out of `rent`."""
    while squares:
        cell = lowest_cell(squares)
        size = np.int64(regions.size[cell])
        regions.rent[regions.owner[cell]] -= size * size  # 0 where it has no owner
        squares &= ~regions.region[cell] & (squares - _ONE)


@kernel
def _write_regions(regions: Record, squares: Bits, owner: Int) -> None:
    """Write the regions that some squares of one colour form."""
    while squares:
        region = game.region(squares, lowest_cell(squares))
        squares &= ~region
        size = game.popcount(region)
        regions.rent[owner] += size * size
        left = region
        while left:
            cell = lowest_cell(left)
            left &= left - _ONE
            regions.region[cell] = region
            regions.size[cell] = size
            regions.owner[cell] = owner


@kernel
def largest_region(regions: Record, squares: Bits) -> Int:
    """Size of the largest region that some squares belong to, 0 without any."""
    most: Int = 0
    while squares:
        cell = lowest_cell(squares)
        most = max(most, np.int64(regions.size[cell]))
        squares &= ~regions.region[cell] & (squares - _ONE)
    return most
