"""The regions of one board by square: what greedy and expectimax look up, and keep up to date.

`kernels.regions` lists the regions of a board; here each square holds its own region, so that a
look-up takes one step and a rug changes few entries. Squares of no player in the game hold none.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.game import NO_SEAT
from marrakech_env.kernels.bitboards import lowest_cell, with_neighbours
from marrakech_env.kernels.regions import find_regions
from marrakech_env.spec import MAX_PLAYERS, NUM_CELLS
from marrakech_env.state import Bits, Int, Record

REGION_MAP: Final = np.dtype(
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
def map_regions(state: Record, listed: Record, regions: Record) -> None:
    """Write the regions of a game.

    Args:
        state: The game.
        listed: A record of `kernels.regions.REGIONS`, overwritten.
        regions: A record of `REGION_MAP`, overwritten.
    """
    for cell in range(NUM_CELLS):
        regions.region[cell] = 0
        regions.size[cell] = 0
        regions.owner[cell] = NO_SEAT
    for player in range(MAX_PLAYERS):
        regions.rent[player] = 0
    find_regions(state, listed)
    for k in range(listed.count):
        _write_region(regions, listed.bits[k], game.owner(state, listed.colour[k]))


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
    _write_region(regions, joined, owner)


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
        _write_region(regions, region, owner)


@kernel
def _write_region(regions: Record, region: Bits, owner: Int) -> None:
    """Write one region."""
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
