"""The coming walks: who takes them, where they end, and what they are expected to cost.

Legend: walks are numbered from the next one on, which is walk 0. A *toll* is not limited by the
walker's money. *Income* is what the observer gets, or, counted down, what the observer pays.

A chance is counted in `WHOLE` parts, so that sums are exact. The counts of several events stand in
one number, so that one addition adds them all.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import DIE, NUM_CELLS
from marrakech_env.state import LAY, OVER, Int, Record
from marrakech_env.tables import DIE_COUNTS, NUM_HEADINGS, NUM_STEERINGS, WALK

Real: TypeAlias = Any

NUM_WALKS: Final = 4
"""Walks that are looked at."""
EVEN: Final = NUM_STEERINGS + NUM_WALKS
"""Columns of `CHANCES`: one a steering, one a walk, and EVEN."""


# ------------------------------------------------------------------------------ who, and where to


@kernel
def find_walkers(state: Record, observer: Int, work: Record) -> None:
    """Write who takes the coming walks, if nobody is eliminated, into `work`."""
    work.walkers[:] = -1
    work.own_walks = 0
    work.other_walks = 0
    if state.phase == OVER:
        return
    seat: Int = np.int64(state.player)
    for k in range(np.int64(state.num_players)):
        is_laid_now = state.phase == LAY and k == seat
        work.rugs[k] = max(game.rugs_left(state, k) - is_laid_now, 0)  # the eliminated have none
        if k == observer:
            work.own_walks = work.rugs[k]
        else:
            work.other_walks += work.rugs[k]
    for walk in range(NUM_WALKS):
        if walk > 0 or game.is_inside_turn(state):
            for _ in range(state.num_players):
                seat = seat + 1 if seat + 1 < state.num_players else 0
                if work.rugs[seat] > 0:
                    break
            if work.rugs[seat] <= 0:
                return
        work.walkers[walk] = seat
        work.rugs[seat] -= 1


@kernel
def turned(heading: Int, steering: Int) -> Int:
    """The heading once Assam is turned left (0), not at all (1) or right (2)."""
    return heading & ~3 | (heading + steering + 3) & 3


def _walked(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """From each heading, what a walk straight on leads to, summed over the faces: (196, ...)."""
    total: NDArray[np.int64] = np.sum([counts[WALK[steps]] for steps in DIE], axis=0)
    return total


def _steered(counts: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The counts of the headings after turning left, not at all and right."""
    headings = np.arange(NUM_HEADINGS)
    return [counts[headings // 4 * 4 + (headings + turn) % 4] for turn in (3, 0, 1)]


def _build_chances() -> NDArray[np.uint64]:
    """Build `chances[steered, heading, cell]`, see `CHANCES`."""
    counts = np.zeros((2, NUM_HEADINGS, NUM_CELLS, EVEN + 1), np.int64)
    ends = np.repeat(np.eye(NUM_CELLS, dtype=np.int64), 4, axis=0)  # each heading: its own cell
    counts[0, :, :, 1] = _walked(ends)
    for steering, steered in enumerate(_steered(_walked(ends))):
        counts[1, :, :, steering] = steered
    for column in range(NUM_STEERINGS, EVEN):
        straight = _walked(ends)
        ends = np.sum(_steered(straight), axis=0)
        counts[0, :, :, column] = NUM_STEERINGS * straight
        counts[1, :, :, column] = ends
    counts[..., EVEN] = 1
    packed = np.zeros((*counts.shape[:-1], 2), np.uint64)
    for column, (word, shift) in enumerate(zip(_WORD, _SHIFT, strict=True)):
        packed[..., word] |= counts[..., column].astype(np.uint64) << shift
    packed.setflags(write=False)
    return packed


WHOLE: Final = np.array(
    [len(DIE)] * NUM_STEERINGS
    + [(NUM_STEERINGS * len(DIE)) ** walks for walks in range(1, NUM_WALKS + 1)]
    + [NUM_CELLS]
)
"""Parts that chances are counted in, by column: sixths, then powers of eighteenths, then 49ths."""
_WORD: Final = np.array([0, 0, 0, 1, 0, 1, 1, 0])
_BITS: Final = np.array([int(NUM_CELLS * whole).bit_length() for whole in WHOLE], np.uint64)
_SHIFT: Final = np.array(
    [sum(b for b, w in zip(_BITS[:k], _WORD[:k], strict=True) if w == _WORD[k]) for k in range(8)],
    np.uint64,
)
_MASK: Final = (np.uint64(1) << _BITS) - np.uint64(1)
"""Where the count of a column lies, with room for 49 times the whole: word, bits, lowest bit."""

CHANCES: Final = _build_chances()
"""uint64 (2, 196, 49, 2): how likely a walk ends on a cell, from a heading, in two packed numbers.
Columns 0 to 2: walk 0 after each steering; 3 to 6: the walks 0 to 3, each steering as likely as the
others; EVEN: a walk that ends on all 49 cells alike. In the first half of the table walk 0 goes
straight on."""
ENDS: Final = np.ascontiguousarray((WALK[1:] >> 2).T)
"""uint8 (196, 4): the cells on which the rolls 1 to 4 end from a heading, going straight on."""


@kernel
def ways(sums: NDArray[np.uint64], whose: Int, column: Int) -> Int:
    """What a walk is expected to meet of squares of one kind of owner, in parts of `WHOLE`.

    Args:
        sums: uint64 (3, 2): packed chances times sizes, by kind of owner.
        whose: The kind of owner.
        column: Of `CHANCES`.
    """
    return np.int64(sums[whose, _WORD[column]] >> _SHIFT[column] & _MASK[column])


@kernel
def amount(sums: NDArray[np.uint64], whose: Int, column: Int) -> Real:
    """The same as a number."""
    return np.float32(ways(sums, whose, column)) / np.float32(WHOLE[column])


@kernel
def amount_of_two(sums: NDArray[np.uint64], whose: Int, other: Int, column: Int) -> Real:
    """The same of two kinds of owner together."""
    both = ways(sums, whose, column) + ways(sums, other, column)
    return np.float32(both) / np.float32(WHOLE[column])


# --------------------------------------------------------------------------------- packed tolls

# A packed toll holds what a walker owes and, below it, the income of the observer. So one addition
# adds both, and the least of several is that of the cheapest walk, among equals the one with the
# least income.
_HALF: Final = 16
"""Bits of the income."""
_LOW: Final = np.uint32((1 << _HALF) - 1)
_BIAS: Final = np.uint32(len(DIE) * NUM_CELLS)
"""Added to an income in sixths, so that it is never negative."""


@kernel
def find_tolls(state: Record, observer: Int, walker: Int, work: Record) -> None:
    """Write the packed toll of a walker on each square into `work`; -1 stands for no walker."""
    own_board = game.board_of(state, walker) if walker >= 0 else ~np.uint64(0)
    for cell in range(NUM_CELLS):
        size = np.int32(work.size[cell])
        toll = abs(size) * np.int32(~own_board >> np.uint64(cell) & np.uint64(1))
        income = -toll if walker == observer else min(toll, max(size, np.int32(0)))
        work.tolls[cell] = np.uint32(toll) << np.uint32(_HALF) | np.uint32(income + NUM_CELLS)


@kernel
def owed(packed: Int) -> Int:
    """What the walker owes, of a packed toll or a sum of them."""
    return np.int32(packed >> np.uint32(_HALF))


@kernel
def packed_toll(toll: Int, income: Int) -> Int:
    """The packed toll of a walk, in sixths."""
    return np.uint32(toll) << np.uint32(_HALF) | (np.uint32(income) + _BIAS)


@kernel
def _toll_of_walk(work: Record, heading: Int) -> Int:
    """The expected packed toll of a walk straight on, in sixths, after `find_tolls`."""
    total = np.uint32(0)
    for face in range(len(DIE_COUNTS)):
        total += DIE_COUNTS[face] * work.tolls[ENDS[heading, face]]
    return total


@kernel
def total_and_cheapest(left: Int, straight: Int, right: Int) -> tuple[Int, Int]:
    """The incomes of three packed tolls in sixths: their sum, and that of the cheapest walk."""
    total = np.int32((left & _LOW) + (straight & _LOW) + (right & _LOW)) - np.int32(3 * _BIAS)
    return total, np.int32(min(left, straight, right) & _LOW) - np.int32(_BIAS)


@kernel
def incomes_of_walk(work: Record, heading: Int) -> tuple[Int, Int]:
    """`total_and_cheapest` of a walk that begins at a heading, after `find_tolls`."""
    return total_and_cheapest(
        _toll_of_walk(work, turned(heading, 0)),
        _toll_of_walk(work, turned(heading, 1)),
        _toll_of_walk(work, turned(heading, 2)),
    )
