"""Regions, reachable squares and what laying a rug does to both: the kernels under `features`.

All are consequences of the rules on the board as it lies; nothing here values a position.

Legend: *size*, *income* and expected amounts are those of `features`; a *due* is what a player owes
for stopping on a square, not limited by his money. Walks are numbered from the next one on, which
is walk 0. Cell `NOWHERE` is beyond the board; its size is 0.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import BOARD_SIZE, MAX_PLAYERS, NUM_CELLS, NUM_COLOURS
from marrakech_env.state import LAY, OVER, STEER, STEER_AT_END, Bits, Int, Record
from marrakech_env.tables import DIE_PROBABILITY, FIRST_CELL, NUM_HEADINGS, SECOND_CELL, WALK

NUM_WALKS: Final = 4
"""How many walks from now are looked at."""
NUM_STEERINGS: Final = 3
EVEN: Final = NUM_STEERINGS + NUM_WALKS
NUM_CHANCES: Final = EVEN + 1
"""Columns of `CHANCES`: one a steering, one a walk, and EVEN."""
NOWHERE: Final = NUM_CELLS
NO_REGION: Final = 255
OWN, WALKERS, THIRD = range(3)
"""Whose a region is: the observer's, the seat's that takes walk 0, or somebody else's."""

WORK: Final = np.dtype(
    [
        ("sums", np.float32, (NUM_CELLS, NUM_CHANCES)),  # chances to end in each region
        ("patch", np.float32, (NUM_CHANCES,)),  # the same of a region that comes into being
        ("before", np.float32, (3, NUM_CHANCES)),  # size * chances, summed over OWN, WALKERS, THIRD
        ("after", np.float32, (3, NUM_CHANCES)),  # the same once a rug was laid
        ("size", np.int32, (NUM_CELLS + 1,)),  # size of each square
        ("dues", np.float32, (NUM_CELLS,)),  # of one walker on each square, see `find_dues`
        ("incomes", np.float32, (NUM_CELLS,)),  # of the observer, if that walker stops there
        ("choices", np.float32, (NUM_STEERINGS, 2)),  # expected due and income of each steering
        ("region_of", np.uint8, (NUM_CELLS,)),  # region of each square, or NO_REGION
        ("bits", np.uint64, (NUM_CELLS,)),  # bitboard of each region
        ("squares", np.int64, (NUM_CELLS,)),  # squares of each region
        ("whose", np.int64, (NUM_CELLS,)),  # OWN, WALKERS or THIRD
        ("largest", np.int64, (NUM_COLOURS,)),  # squares of each colour's largest region
        ("square_sum", np.int64, (NUM_COLOURS,)),  # squared region sizes of each colour, summed
        ("walkers", np.int64, (NUM_WALKS,)),  # seats of the coming walks, -1 none
        ("own_walks", np.int64),  # coming walks of the observer
        ("other_walks", np.int64),  # coming walks of the others
        ("rugs", np.int64, (MAX_PLAYERS,)),  # scratch of `find_walkers`
    ],
    align=True,
)
"""What the kernels find out about one game, in one record: records are passed for free."""


def _frozen(table: NDArray[Any]) -> NDArray[Any]:
    table.setflags(write=False)
    return table


def _walked(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """The expected value where a walk straight on ends, from each heading: (196, ...)."""
    expected = np.zeros_like(values)
    for steps in range(1, len(DIE_PROBABILITY)):
        expected += DIE_PROBABILITY[steps] * values[WALK[steps]]
    return expected


def _steered(values: NDArray[np.float64]) -> list[NDArray[np.float64]]:
    """The values of the headings after turning left, not at all and right."""
    headings = np.arange(NUM_HEADINGS)
    return [values[headings // 4 * 4 + (headings + turn) % 4] for turn in (3, 0, 1)]


def _build_chances() -> NDArray[np.float32]:
    """`chances[steered, heading, cell]`, see `CHANCES`."""
    chances = np.zeros((2, NUM_HEADINGS, NUM_CELLS, NUM_CHANCES), np.float32)
    ends = np.repeat(np.eye(NUM_CELLS), 4, axis=0)  # from each heading: on its own cell for sure
    by_steering = _steered(_walked(ends))
    chances[0, :, :, 1] = by_steering[1]
    for steering in range(NUM_STEERINGS):
        chances[1, :, :, steering] = by_steering[steering]
    for column in range(NUM_STEERINGS, EVEN):
        straight = _walked(ends)
        ends = np.mean(_steered(straight), axis=0)
        chances[0, :, :, column] = straight
        chances[1, :, :, column] = ends
    chances[..., EVEN] = 1 / NUM_CELLS
    return _frozen(chances)


CHANCES: Final = _build_chances()
"""float32 (2, 196, 49, 8): how likely a walk ends on a cell, from a heading. Columns 0 to 2: walk 0
after each steering; 3 to 6: the walks 0 to 3, each steering as likely as the others; EVEN: a walk
that ends on all 49 cells alike. In the first half of the table walk 0 goes straight on. An argument
of kernels: too large to be compiled in."""
ENDS: Final = _frozen(np.ascontiguousarray((WALK[1:] >> 2).T))
"""uint8 (196, 4): the cells on which the rolls 1 to 4 end from a heading, going straight on."""

CHANCE: Final = _frozen(DIE_PROBABILITY[1:].astype(np.float32))
"""float32 (4,): how likely the rolls 1 to 4 are."""

_ONE, _ROW = np.uint64(1), np.uint64(BOARD_SIZE)
_NOT_WEST_EDGE = np.uint64(sum(1 << c for c in range(NUM_CELLS) if c % BOARD_SIZE))
_NOT_EAST_EDGE = np.uint64(sum(1 << c for c in range(NUM_CELLS) if (c + 1) % BOARD_SIZE))


@kernel
def _lowest_cell(bits: Bits) -> Int:
    """The lowest cell of a bitboard that is not empty."""
    return game.popcount(~bits & (bits - _ONE))


@kernel
def _with_neighbours(bits: Bits) -> Bits:
    """A bitboard and the squares side-adjacent to it (and some bits beyond the board)."""
    across = ((bits & _NOT_EAST_EDGE) << _ONE) | ((bits & _NOT_WEST_EDGE) >> _ONE)
    return bits | across | bits << _ROW | bits >> _ROW


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
def find_regions(
    state: Record, observer: Int, heading: Int, work: Record, chances: NDArray[np.float32]
) -> None:
    """Writes the regions of all players still in the game and what they amount to.

    Args:
        state: The game.
        observer: The seat that looks.
        heading: Where Assam stands and looks.
        work: Gets everything but `patch` and `after`; `walkers` must be there.
        chances: One half of `CHANCES`.
    """
    for cell in range(NUM_CELLS):
        work.size[cell] = 0
        work.region_of[cell] = NO_REGION
    for whose in range(3):
        for k in range(NUM_CHANCES):
            work.before[whose, k] = 0
    region = 0
    for colour in range(NUM_COLOURS):
        work.largest[colour] = 0
        work.square_sum[colour] = 0
        seat = np.int64(game.owner(state, colour))
        if state.eliminated[seat]:
            continue
        whose = OWN if seat == observer else (WALKERS if seat == work.walkers[0] else THIRD)
        left = state.colour_boards[colour]
        while left:
            bits = game.region(left, _lowest_cell(left))
            left ^= bits
            squares = game.popcount(bits)
            work.bits[region] = bits
            work.squares[region] = squares
            work.whose[region] = whose
            work.largest[colour] = max(work.largest[colour], squares)
            work.square_sum[colour] += squares * squares
            size = squares if whose == OWN else -squares
            _sum_chances(work, bits, heading, chances)
            for k in range(NUM_CHANCES):
                work.sums[region, k] = work.patch[k]
                work.before[whose, k] += np.float32(squares) * work.patch[k]
            while bits:
                cell = _lowest_cell(bits)
                bits &= bits - _ONE
                work.region_of[cell] = region
                work.size[cell] = size
            region += 1


@kernel
def try_placement(
    state: Record, placement: Int, heading: Int, work: Record, chances: NDArray[np.float32]
) -> tuple[Int, Bits]:
    """Writes what the regions amount to once the mover has laid a rug, into `work.after`.

    The mover is the observer of `work`, and the state is to lay.

    Returns:
        Squares of the region that the rug belongs to then, and the bitboard of the rug.
    """
    colour = np.int64(state.next_colour[state.player])
    first = np.int64(FIRST_CELL[heading, placement])
    second = np.int64(SECOND_CELL[heading, placement])
    rug = game.cell_bit(first) | game.cell_bit(second)
    board = state.colour_boards[colour]
    for whose in range(3):
        for k in range(NUM_CHANCES):
            work.after[whose, k] = work.before[whose, k]

    covered = work.region_of[first]
    if covered != NO_REGION and not work.bits[covered] & board:
        _cut(work, np.int64(covered), rug, heading, chances)
    other = work.region_of[second]
    if other != NO_REGION and other != covered and not work.bits[other] & board:
        _cut(work, np.int64(other), rug, heading, chances)

    fresh = rug & ~board
    _sum_chances(work, fresh, heading, chances)
    squares = game.popcount(fresh)
    touched = _with_neighbours(rug) & board
    while touched:
        region = np.int64(work.region_of[_lowest_cell(touched)])
        touched &= ~work.bits[region]
        squares += work.squares[region]
        _take_out(work, region)
        for k in range(NUM_CHANCES):
            work.patch[k] += work.sums[region, k]
    _put_in(work, OWN, squares)
    return squares, rug


@kernel
def _cut(work: Record, region: Int, rug: Bits, heading: Int, chances: NDArray[np.float32]) -> None:
    """Takes the squares of a rug out of a region, which may fall apart."""
    _take_out(work, region)
    left = work.bits[region] & ~rug
    while left:
        bits = game.region(left, _lowest_cell(left))
        left ^= bits
        _sum_chances(work, bits, heading, chances)
        _put_in(work, work.whose[region], game.popcount(bits))


@kernel
def _sum_chances(work: Record, bits: Bits, heading: Int, chances: NDArray[np.float32]) -> None:
    for k in range(NUM_CHANCES):
        work.patch[k] = 0
    while bits:
        cell = _lowest_cell(bits)
        bits &= bits - _ONE
        for k in range(NUM_CHANCES):
            work.patch[k] += chances[heading, cell, k]


@kernel
def _take_out(work: Record, region: Int) -> None:
    squares, whose = np.float32(work.squares[region]), work.whose[region]
    for k in range(NUM_CHANCES):
        work.after[whose, k] -= squares * work.sums[region, k]


@kernel
def _put_in(work: Record, whose: Int, squares: Int) -> None:
    for k in range(NUM_CHANCES):
        work.after[whose, k] += np.float32(squares) * work.patch[k]


@kernel
def find_dues(state: Record, observer: Int, walker: Int, work: Record) -> None:
    """Writes what a seat owes on each square, and what of it the observer gets, into `work`.

    The income is negative where the observer is the one who walks; -1 stands for nobody.
    """
    own_board = game.board_of(state, walker) if walker >= 0 else ~np.uint64(0)
    for cell in range(NUM_CELLS):
        size = work.size[cell]
        due = abs(size) * np.int32(~own_board >> np.uint64(cell) & _ONE)
        work.dues[cell] = due
        work.incomes[cell] = -due if walker == observer else min(due, max(size, np.int32(0)))


@kernel
def find_choice(work: Record, steering: Int, heading: Int) -> None:
    """Writes expected due and income of a walk straight on, after `find_dues`, into `choices`."""
    due, income = np.float32(0), np.float32(0)
    for face in range(len(CHANCE)):
        cell = np.uint64(ENDS[heading, face])
        due += CHANCE[face] * work.dues[cell]
        income += CHANCE[face] * work.incomes[cell]
    work.choices[steering, 0] = due
    work.choices[steering, 1] = income
