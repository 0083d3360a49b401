"""Expected tolls: what the coming walks meet on the board, as it lies and with one more rug.

Legend: the *size* of a square is the number of squares of its region, counted up for the
observer's, down for those of others still in the game, else 0. Cell `NOWHERE` is beyond the board;
its size is 0. Chances and sums of them are packed, see `coming_walks`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import lowest_cell, with_neighbours
from marrakech_env.kernels.regions import REGIONS, find_regions
from marrakech_env.observation.coming_walks import (
    EVEN,
    NUM_WALKS,
    Real,
    amount,
    amount_of_two,
    packed_toll,
    total_and_cheapest,
    ways,
)
from marrakech_env.spec import BOARD_SIZE, MAX_PLAYERS, NUM_CELLS, NUM_COLOURS
from marrakech_env.state import Bits, Int, Record
from marrakech_env.tables import FIRST_CELL, SECOND_CELL

OWN, WALKERS, THIRD = range(3)
"""Whose a region is: the observer's, the seat's that takes walk 0, or somebody else's."""
NOWHERE: Final = NUM_CELLS
NO_REGION: Final = 255

_STRIDE: Final = BOARD_SIZE + 2
_MARGIN: Final = 2 * _STRIDE + 2
_PADDED: Final = 104
_SPREAD: Final = 64
"""The board with a margin of two squares on each side; the margin at the end of a row is that of
the next one too. A row takes `_STRIDE` squares, `_MARGIN` come before cell 0. `_PADDED`: all with
the margin, rounded up; `_SPREAD`: those from cell 0 to the last cell, rounded up."""
SPOT: Final = np.array(
    [_STRIDE * (cell // BOARD_SIZE) + cell % BOARD_SIZE for cell in range(NUM_CELLS)], np.uint8
)
"""uint8 (49,): where a cell stands in `most` and `least` of `WORK`."""

WORK: Final = np.dtype(
    [
        ("before", np.uint64, (3, 2)),  # chances times sizes, summed over OWN, WALKERS, THIRD
        ("after", np.uint64, (3, 2)),  # the same once a rug is laid
        ("size", np.float32, (NUM_CELLS + 1,)),  # size of each square
        ("tolls", np.uint32, (NUM_CELLS,)),  # packed tolls of one walker, see `coming_walks`
        ("padded", np.int8, (_PADDED,)),  # size of each square, on a board with a margin
        ("most", np.int8, (_SPREAD,)),  # see `find_near`
        ("least", np.int8, (_SPREAD,)),
        ("swings", np.uint64, (4, 2)),  # see `bitboards.find_swings`
        ("region_of", np.uint8, (NUM_CELLS,)),  # region of each square, or NO_REGION
        ("regions", REGIONS),
        ("sums", np.uint64, (NUM_CELLS, 2)),  # chances to end on each region
        ("kind", np.int64, (NUM_COLOURS,)),  # OWN, WALKERS or THIRD, by colour
        ("largest", np.int64, (NUM_COLOURS,)),  # squares of each colour's largest region
        ("square_sum", np.int64, (NUM_COLOURS,)),  # squared region sizes of each colour, summed
        ("walkers", np.int64, (NUM_WALKS,)),  # seats of the coming walks, -1 none
        ("own_walks", np.int64),  # coming walks of the observer
        ("other_walks", np.int64),  # coming walks of the others
        ("rugs", np.int64, (MAX_PLAYERS,)),  # scratch of `find_walkers`
        ("boards", np.uint64, (MAX_PLAYERS,)),  # scratch of `feature_kernels`: the others' squares
    ],
    align=True,
)
"""Workspace of the feature kernels for one game. A record is passed by reference, without the cost
of array arguments."""

_ZERO, _ONE = np.uint64(0), np.uint64(1)


@kernel
def find_sizes(state: Record, observer: Int, work: Record, chances: NDArray[np.uint64]) -> None:
    """Write the regions, the sizes of all squares and what they amount to into `work`.

    Args:
        state: The game.
        observer: The observing seat.
        work: Holds the walkers already.
        chances: uint64 (49, 2), of `CHANCES`.
    """
    regions = work.regions
    find_regions(state, regions)
    for cell in range(NUM_CELLS):
        work.size[cell] = 0
        work.region_of[cell] = NO_REGION
    work.before[:] = 0
    work.padded[:] = 0
    for colour in range(NUM_COLOURS):
        work.largest[colour] = 0
        work.square_sum[colour] = 0
        seat = np.int64(game.owner(state, colour))
        work.kind[colour] = (
            OWN if seat == observer else (WALKERS if seat == work.walkers[0] else THIRD)
        )
    for region in range(regions.count):
        bits, squares = regions.bits[region], regions.squares[region]
        shown = np.uint64(regions.colour[region])
        whose = np.uint64(work.kind[shown])
        work.largest[shown] = max(work.largest[shown], squares)
        work.square_sum[shown] += squares * squares
        size = np.int8(squares if whose == OWN else -squares)
        one, two = _ZERO, _ZERO
        while bits:
            cell = lowest_cell(bits)
            bits &= bits - _ONE
            work.region_of[cell] = region
            work.size[cell] = size
            work.padded[SPOT[cell] + np.uint64(_MARGIN)] = size
            one += chances[cell, 0]
            two += chances[cell, 1]
        work.sums[region, 0], work.sums[region, 1] = one, two
        work.before[whose, 0] += np.uint64(squares) * one
        work.before[whose, 1] += np.uint64(squares) * two


@kernel
def try_placement(
    state: Record, placement: Int, heading: Int, work: Record, chances: NDArray[np.uint64]
) -> tuple[Int, Bits]:
    """Write what the sizes amount to once the mover has laid a rug, into `work.after`.

    The mover is the observer of `work`, and the state is to lay.

    Returns:
        Squares of the region that the rug then belongs to, and the bitboard of the rug.
    """
    colour = np.int64(state.next_colour[state.player])
    first = np.uint64(FIRST_CELL[heading, placement])
    second = np.uint64(SECOND_CELL[heading, placement])
    rug = _ONE << first | _ONE << second
    board = state.colour_boards[colour]
    regions = work.regions
    work.after[:] = work.before

    here_one, here_two = chances[first, 0], chances[first, 1]
    there_one, there_two = chances[second, 0], chances[second, 1]
    covered, other = np.uint64(work.region_of[first]), np.uint64(work.region_of[second])
    if covered != NO_REGION and not regions.bits[covered] & board:
        is_both = np.uint64(covered == other)
        one, two = here_one + is_both * there_one, here_two + is_both * there_two
        _cut(work, covered, rug, one, two, chances)
    if other != NO_REGION and other != covered and not regions.bits[other] & board:
        _cut(work, other, rug, there_one, there_two, chances)

    fresh = rug & ~board
    is_fresh, other_is_fresh = fresh >> first & _ONE, fresh >> second & _ONE
    one = is_fresh * here_one + other_is_fresh * there_one
    two = is_fresh * here_two + other_is_fresh * there_two
    squares = game.popcount(fresh)
    out_one, out_two = _ZERO, _ZERO  # of the regions that grow together
    touched = with_neighbours(rug) & board
    while touched:
        region = np.uint64(work.region_of[lowest_cell(touched)])
        touched &= ~regions.bits[region]
        here = regions.squares[region]
        part_one, part_two = work.sums[region, 0], work.sums[region, 1]
        squares += here
        out_one += np.uint64(here) * part_one
        out_two += np.uint64(here) * part_two
        one += part_one
        two += part_two
    work.after[OWN, 0] += np.uint64(squares) * one - out_one
    work.after[OWN, 1] += np.uint64(squares) * two - out_two
    return squares, rug


@kernel
def _cut(
    work: Record, region: Int, rug: Bits, one: Bits, two: Bits, chances: NDArray[np.uint64]
) -> None:
    """Take the squares of a rug, with these chances, out of a region, which may fall apart."""
    bits, times = work.regions.bits[region], np.uint64(work.regions.squares[region])
    sum_one, sum_two = work.sums[region, 0], work.sums[region, 1]
    out_one, out_two = times * sum_one, times * sum_two
    one, two = sum_one - one, sum_two - two
    left = bits & ~rug
    # Each part lies beside the rug, so with one square there, or none, the region stays whole.
    beside = with_neighbours(rug) & left
    while beside & (beside - _ONE):
        part = game.region(left, lowest_cell(beside))
        beside &= ~part
        if not beside:
            break
        left ^= part
        part_one, part_two = _sum_chances(part, chances)
        times = np.uint64(game.popcount(part))
        out_one -= times * part_one
        out_two -= times * part_two
        one -= part_one
        two -= part_two
    times, whose = np.uint64(game.popcount(left)), work.kind[work.regions.colour[region]]
    work.after[whose, 0] += times * one - out_one
    work.after[whose, 1] += times * two - out_two


@kernel
def _sum_chances(bits: Bits, chances: NDArray[np.uint64]) -> tuple[Bits, Bits]:
    """The chances to end on one of some squares, packed."""
    one, two = _ZERO, _ZERO
    while bits:
        cell = lowest_cell(bits)
        bits &= bits - _ONE
        one += chances[cell, 0]
        two += chances[cell, 1]
    return one, two


@kernel
def find_near(work: Record) -> None:
    """Write the greatest and the least size within two steps of each cell; see `SPOT`.

    The loop runs over the whole board, byte by byte, so that the compiler makes vectors of it.
    """
    sizes, row = work.padded, _STRIDE
    for k in range(_SPREAD):
        at = k + _MARGIN
        most, least = np.int8(0), np.int8(0)
        for step in (1, 2, row - 1, row, row + 1, 2 * row):
            one, two = sizes[at - step], sizes[at + step]
            most = one if one > most else most
            most = two if two > most else most
            least = one if one < least else least
            least = two if two < least else least
        work.most[k], work.least[k] = most, least


@kernel
def income(sums: NDArray[np.uint64], work: Record, observer: Int, walk: Int, column: Int) -> Real:
    """The expected income of a coming walk, 0 where nobody takes it.

    Args:
        sums: `work.before` or `work.after`.
        work: Holds the walkers.
        observer: The observing seat.
        walk: 0..3.
        column: Of `CHANCES`.
    """
    if work.walkers[walk] == observer:
        return -amount_of_two(sums, WALKERS, THIRD, column)
    return amount(sums, OWN, column) if work.walkers[walk] >= 0 else np.float32(0)


@kernel
def even_amounts(sums: NDArray[np.uint64], work: Record) -> tuple[Real, Real]:
    """Income of all coming walks of others and dues of the observer's, over even ends."""
    gain = np.float32(work.other_walks) * amount(sums, OWN, EVEN)
    return gain, np.float32(work.own_walks) * amount_of_two(sums, WALKERS, THIRD, EVEN)


@kernel
def incomes_after(work: Record, observer: Int) -> tuple[Int, Int]:
    """`total_and_cheapest` of walk 0 after `try_placement`."""
    is_own_walk = work.walkers[0] == observer
    return total_and_cheapest(
        _toll_after(work.after, is_own_walk, 0),
        _toll_after(work.after, is_own_walk, 1),
        _toll_after(work.after, is_own_walk, 2),
    )


@kernel
def _toll_after(after: NDArray[np.uint64], is_own_walk: bool, steering: Int) -> Int:
    """The expected packed toll of walk 0, so steered."""
    to_own, to_third = ways(after, OWN, steering), ways(after, THIRD, steering)
    if is_own_walk:
        toll = to_third + ways(after, WALKERS, steering)
        return packed_toll(toll, -toll)
    return packed_toll(to_third + to_own, to_own)
