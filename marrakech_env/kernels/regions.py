"""Regions, reachable squares and what laying a rug does to both: the kernels under `features`.

All are consequences of the rules on the board as it lies; nothing here values a position.

Legend: *size*, *income* and expected amounts are those of `features`; a *due* is what a player owes
for stopping on a square, not limited by his money. Walks are numbered from the next one on, which
is walk 0. Cell `NOWHERE` is beyond the board; its size is 0.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import (
    boards_in_play,
    colour_at,
    joined_squares,
    lowest_cell,
    lowest_regions,
    with_neighbours,
)
from marrakech_env.spec import BOARD_SIZE, DIE, MAX_PLAYERS, NUM_CELLS, NUM_COLOURS
from marrakech_env.state import LAY, OVER, STEER, STEER_AT_END, Bits, Int, Record
from marrakech_env.tables import FIRST_CELL, NUM_HEADINGS, SECOND_CELL, WALK

NUM_WALKS: Final = 4
"""How many walks from now are looked at."""
NUM_STEERINGS: Final = 3
EVEN: Final = NUM_STEERINGS + NUM_WALKS
NUM_CHANCES: Final = EVEN + 1
"""Columns of `CHANCES`: one a steering, one a walk, and EVEN."""
NOWHERE: Final = NUM_CELLS
NO_REGION: Final = 255
NUM_CENTRED: Final = 7
"""Entries of `features` for each placement, the last ones, of which the mean is taken off."""
Real: TypeAlias = Any
OWN, WALKERS, THIRD = range(3)
"""Whose a region is: the observer's, the seat's that takes walk 0, or somebody else's."""

_STRIDE: Final = BOARD_SIZE + 2
_MARGIN: Final = 2 * _STRIDE + 2
_PADDED: Final = 104
_SPREAD: Final = 64
"""The board with a margin of two squares on each side; the margin at the end of a row is that of
the next one too. A row takes `_STRIDE` squares, `_MARGIN` come before cell 0. `_PADDED`: all with
the margin, rounded up; `_SPREAD`: those from cell 0 to the last cell, rounded up."""

WORK: Final = np.dtype(
    [
        ("before", np.uint64, (3, 2)),  # squares * chances, summed over OWN, WALKERS, THIRD
        ("after", np.uint64, (3, 2)),  # the same once a rug was laid
        ("size", np.float32, (NUM_CELLS + 1,)),  # size of each square
        ("bills", np.uint32, (NUM_CELLS,)),  # of one walker on each square, see `bills`
        ("padded", np.int8, (_PADDED,)),  # size of each square, on a board with a margin
        ("most", np.int8, (_SPREAD,)),  # see `find_near`
        ("least", np.int8, (_SPREAD,)),
        ("swings", np.uint64, (4, 2)),  # see `bitboards.find_swings`
        ("region_of", np.uint8, (NUM_CELLS,)),  # region of each square, or NO_REGION
        # Of each region, with a place more for one that may be missing:
        ("bits", np.uint64, (NUM_CELLS + 1,)),  # bitboard
        ("squares", np.int64, (NUM_CELLS + 1,)),  # how many
        ("whose", np.int64, (NUM_CELLS + 1,)),  # OWN, WALKERS or THIRD
        ("sums", np.uint64, (NUM_CELLS + 1, 2)),  # chances to end there, packed
        ("kind", np.int64, (NUM_COLOURS,)),  # OWN, WALKERS or THIRD, by colour
        ("latest", np.int64, (NUM_COLOURS,)),  # region of each colour that was found last
        ("largest", np.int64, (NUM_COLOURS,)),  # squares of each colour's largest region
        ("square_sum", np.int64, (NUM_COLOURS,)),  # squared region sizes of each colour, summed
        ("walkers", np.int64, (NUM_WALKS,)),  # seats of the coming walks, -1 none
        ("own_walks", np.int64),  # coming walks of the observer
        ("other_walks", np.int64),  # coming walks of the others
        ("rugs", np.int64, (MAX_PLAYERS,)),  # scratch of `find_walkers`
        ("boards", np.uint64, (MAX_PLAYERS,)),  # scratch of `feature_kernels`: the others' squares
        ("totals", np.float32, (NUM_CENTRED,)),  # likewise: sums over all placements
    ],
    align=True,
)
"""What the kernels find out about one game, in one record: records are passed for free."""


def _frozen(table: NDArray[Any]) -> NDArray[Any]:
    table.setflags(write=False)
    return table


def _walked(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """From each heading, what a walk straight on leads to, summed over the faces: (196, ...)."""
    total = np.zeros_like(counts)
    for steps in DIE:
        total += counts[WALK[steps]]
    return total


def _steered(counts: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The counts of the headings after turning left, not at all and right."""
    headings = np.arange(NUM_HEADINGS)
    return [counts[headings // 4 * 4 + (headings + turn) % 4] for turn in (3, 0, 1)]


def _build_chances() -> NDArray[np.uint64]:
    """`chances[steered, heading, cell]`, see `CHANCES`."""
    counts = np.zeros((2, NUM_HEADINGS, NUM_CELLS, NUM_CHANCES), np.int64)
    ends = np.repeat(np.eye(NUM_CELLS, dtype=np.int64), 4, axis=0)  # each heading: its own cell
    by_steering = _steered(_walked(ends))
    counts[0, :, :, 1] = by_steering[1]
    for steering in range(NUM_STEERINGS):
        counts[1, :, :, steering] = by_steering[steering]
    for column in range(NUM_STEERINGS, EVEN):
        straight = _walked(ends)
        ends = np.sum(_steered(straight), axis=0)
        counts[0, :, :, column] = NUM_STEERINGS * straight
        counts[1, :, :, column] = ends
    counts[..., EVEN] = 1
    packed = np.zeros((*counts.shape[:-1], 2), np.uint64)
    for column, (word, shift) in enumerate(zip(_WORD, _SHIFT, strict=True)):
        packed[..., word] |= counts[..., column].astype(np.uint64) << shift
    return _frozen(packed)


WHOLE: Final = np.array(
    [len(DIE)] * NUM_STEERINGS
    + [(NUM_STEERINGS * len(DIE)) ** walks for walks in range(1, NUM_WALKS + 1)]
    + [NUM_CELLS]
)
"""What chances are counted in, by column: sixths, then powers of eighteenths, then 49ths."""
_WORD: Final = np.array([0, 0, 0, 1, 0, 1, 1, 0])
_BITS: Final = np.array([int(NUM_CELLS * whole).bit_length() for whole in WHOLE], np.uint64)
_SHIFT: Final = np.array(
    [sum(b for b, w in zip(_BITS[:k], _WORD[:k], strict=True) if w == _WORD[k]) for k in range(8)],
    np.uint64,
)
_MASK: Final = (np.uint64(1) << _BITS) - np.uint64(1)
"""Where the count of a column lies, with room for 49 times the whole: word, bits, lowest bit."""

CHANCES: Final = _build_chances()
"""uint64 (2, 196, 49, 2): how likely a walk ends on a cell, from a heading. Columns 0 to 2: walk 0
after each steering; 3 to 6: the walks 0 to 3, each steering as likely as the others; EVEN: a walk
that ends on all 49 cells alike. In the first half of the table walk 0 goes straight on.

A chance is a whole number of ways, see `WHOLE`; those of all columns are packed into two numbers,
so that two additions add eight of them without rounding. Features took 1.5 times as long with
chances as float32."""
ENDS: Final = _frozen(np.ascontiguousarray((WALK[1:] >> 2).T))
"""uint8 (196, 4): the cells on which the rolls 1 to 4 end from a heading, going straight on."""

WAYS: Final = _frozen(np.array([DIE.count(roll) for roll in range(1, max(DIE) + 1)], np.uint32))
"""uint32 (4,): how many sixths of all walks are of 1 to 4 squares."""

SPOT: Final = _frozen(
    np.array([_STRIDE * (c // BOARD_SIZE) + c % BOARD_SIZE for c in range(NUM_CELLS)], np.uint8)
)
"""uint8 (49,): where a cell stands in `most` and `least` of `WORK`."""
_ZERO, _ONE = np.uint64(0), np.uint64(1)


@kernel
def heading_after(state: Record, steering: Int) -> Int:
    """The heading once Assam is turned left (0), not at all (1) or right (2)."""
    return 4 * np.int64(state.assam) + ((np.int64(state.facing) + steering + 3) & 3)


@kernel
def find_walkers(state: Record, observer: Int, work: Record) -> None:
    """Writes who takes the coming walks, if nobody is eliminated, into `work`."""
    for walk in range(NUM_WALKS):
        work.walkers[walk] = -1
    work.own_walks = 0
    work.other_walks = 0
    if state.phase == OVER:
        return
    for k in range(state.num_players):
        work.rugs[k] = 0 if state.eliminated[k] else game.rugs_left(state, k)
    seat: Int = np.int64(state.player)
    has_walked = state.phase == LAY or (state.phase == STEER and state.flags & STEER_AT_END)
    if state.phase == LAY:
        work.rugs[seat] -= 1
    for k in range(state.num_players):
        if k == observer:
            work.own_walks = max(work.rugs[k], 0)
        else:
            work.other_walks += max(work.rugs[k], 0)
    for walk in range(NUM_WALKS):
        if walk > 0 or has_walked:
            for _ in range(state.num_players):
                seat = seat + 1 if seat + 1 < state.num_players else 0
                if work.rugs[seat] > 0:
                    break
            if work.rugs[seat] <= 0:
                return
        work.walkers[walk] = seat
        work.rugs[seat] -= 1


@kernel
def find_regions(state: Record, observer: Int, work: Record, chances: NDArray[np.uint64]) -> None:
    """Writes the regions of all players still in the game and what they amount to.

    Args:
        state: The game.
        observer: The seat that looks.
        work: Gets sizes, regions, what is known of colours, and `before`; `walkers` must be
            there.
        chances: uint64 (49, 2), the part of `CHANCES` for Assam's heading.
    """
    for cell in range(NUM_CELLS):
        work.size[cell] = 0
        work.region_of[cell] = NO_REGION
    for whose in range(3):
        work.before[whose, 0] = work.before[whose, 1] = 0
    work.padded[:] = 0
    for colour in range(NUM_COLOURS):
        work.largest[colour] = 0
        work.square_sum[colour] = 0
        seat = np.int64(game.owner(state, colour))
        work.kind[colour] = (
            OWN if seat == observer else (WALKERS if seat == work.walkers[0] else THIRD)
        )
    boards = boards_in_play(state)
    east, south = joined_squares(boards)
    # Numbers of regions are unsigned: of a signed index Numba asks whether it counts from the end.
    count, left = _ZERO, boards[0] | boards[1] | boards[2] | boards[3]
    while left:
        grown = lowest_regions(boards, left, east, south)
        left ^= grown
        for colour in range(NUM_COLOURS):
            bits = boards[colour] & grown
            squares = game.popcount(bits)
            work.bits[count] = bits
            work.squares[count] = squares
            work.whose[count] = work.kind[colour]
            work.largest[colour] = max(work.largest[colour], squares)
            work.square_sum[colour] += squares * squares
            work.sums[count, 0] = work.sums[count, 1] = _ZERO
            work.latest[colour] = count
            count += np.uint64(bits != 0)  # else the next region takes this place
        while grown:
            cell = lowest_cell(grown)
            grown &= grown - _ONE
            region = np.uint64(work.latest[colour_at(boards, cell)])
            squares = work.squares[region]
            size = np.int8(squares if work.whose[region] == OWN else -squares)
            work.region_of[cell] = region
            work.size[cell] = size
            work.padded[SPOT[cell] + np.uint64(_MARGIN)] = size
            work.sums[region, 0] += chances[cell, 0]
            work.sums[region, 1] += chances[cell, 1]
    for k in range(count):
        owner, times = np.uint64(work.whose[k]), np.uint64(work.squares[k])
        work.before[owner, 0] += times * work.sums[k, 0]
        work.before[owner, 1] += times * work.sums[k, 1]


@kernel
def try_placement(
    state: Record, placement: Int, heading: Int, work: Record, chances: NDArray[np.uint64]
) -> tuple[Int, Bits]:
    """Writes what the regions amount to once the mover has laid a rug, into `work.after`.

    The mover is the observer of `work`, and the state is to lay.

    Returns:
        Squares of the region that the rug belongs to then, and the bitboard of the rug.
    """
    colour = np.int64(state.next_colour[state.player])
    first = np.uint64(FIRST_CELL[heading, placement])
    second = np.uint64(SECOND_CELL[heading, placement])
    rug = _ONE << first | _ONE << second
    board = state.colour_boards[colour]
    for whose in range(3):
        for word in range(2):
            work.after[whose, word] = work.before[whose, word]

    here_one, here_two = chances[first, 0], chances[first, 1]
    there_one, there_two = chances[second, 0], chances[second, 1]
    covered, other = np.uint64(work.region_of[first]), np.uint64(work.region_of[second])
    if covered != NO_REGION and not work.bits[covered] & board:
        is_both = np.uint64(covered == other)
        one, two = here_one + is_both * there_one, here_two + is_both * there_two
        _cut(work, covered, rug, one, two, chances)
    if other != NO_REGION and other != covered and not work.bits[other] & board:
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
        touched &= ~work.bits[region]
        here, part_one, part_two = work.squares[region], work.sums[region, 0], work.sums[region, 1]
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
    """Takes the squares of a rug, with these chances, out of a region, which may fall apart."""
    bits, times = work.bits[region], np.uint64(work.squares[region])
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
    times, whose = np.uint64(game.popcount(left)), np.uint64(work.whose[region])
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
def ways(sums: NDArray[np.uint64], whose: Int, column: Int) -> Int:
    """What a walker is expected to meet of squares of one kind of owners, in parts of `WHOLE`.

    Args:
        sums: `before` or `after` of `WORK`.
        whose: OWN, WALKERS or THIRD.
        column: Of `CHANCES`.
    """
    return np.int32(sums[whose, _WORD[column]] >> _SHIFT[column] & _MASK[column])


@kernel
def amount(sums: NDArray[np.uint64], whose: Int, column: Int) -> Real:
    """The same as a number."""
    return np.float32(ways(sums, whose, column)) / np.float32(WHOLE[column])


@kernel
def amount_of_two(sums: NDArray[np.uint64], whose: Int, other: Int, column: Int) -> Real:
    """The same of two kinds of owners together."""
    both = ways(sums, whose, column) + ways(sums, other, column)
    return np.float32(both) / np.float32(WHOLE[column])


@kernel
def find_near(work: Record) -> None:
    """Writes the greatest and the least size within two steps of each cell; `SPOT` tells where.

    The whole board at once, byte by byte, is a few instructions: the twelve squares around each of
    the twelve ends of a walk one by one took ten times as long.
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
