"""How the next two players are likely to walk, and what the first of them can do with his rug.

The *walker*, who moves next, steers by what he wants (`likely_steering`), and the *follower* after
him takes the cheapest way (with `steering=end`: the dearest one, since the walker steers for him).

Legend: *board* is a record of `patches.PATCHES`, *sheet* one of `evaluation.SHEET`; amounts are
dirhams; a heading is 4*cell + facing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.bitboards import lowest_cell
from marrakech_env.compile import kernel
from marrakech_env.regions import WAYS
from marrakech_env.spec import BOARD_SIZE, DIE, NUM_CELLS
from marrakech_env.state import STEER_AT_END, Bits, Int, Record
from marrakech_env.tables import RUGS_AROUND

from .patches import (
    LANDINGS,
    MAX_STEPS,
    NOBODY,
    NUM_STEERINGS,
    ROLL_CHANCE,
    heading_of,
    next_player,
    steerings_of,
    turns_left,
)

RUIN_COST: Final = 15
"""What a bankruptcy is taken to cost a player who chooses his way, beyond the money lost."""
WANT_SECOND, WANT_SWING, WANT_GROWTH, WANT_CUT = 0.7, 0.5, 0.2, 0.15
"""What the walker is taken to steer for, in dirhams of toll: a dirham that the follower will pay
him, a square of `swing`, a square of `growth`, a square of the largest patch he can cut into."""
_SOFT: Final = 1e-9

_ONE, _ROW = np.uint64(1), np.uint64(BOARD_SIZE)
# A sum of bills: income in bits 0 to 15, steering from bit _CHOICE, cost from bit _HIGH. With
# steering=end `fill_bills` counts costs down from _MOST.
_MOST: Final = NUM_CELLS + RUIN_COST
_CHOICE, _HIGH = 16, 24
_INCOME: Final = (1 << _CHOICE) - 1
_ALL_CELLS = np.uint64((1 << NUM_CELLS) - 1)


def cells_where(chosen: Callable[[int, int], bool]) -> np.uint64:
    """The bitboard of the cells (x, y) that are chosen."""
    squares = (divmod(cell, BOARD_SIZE)[::-1] for cell in range(NUM_CELLS))
    return np.uint64(sum(1 << c for c, (x, y) in enumerate(squares) if chosen(x, y)))


def _around(distance: int) -> NDArray[np.uint64]:
    """For each cell, the bitboard of those at most `distance` steps away, itself left out."""
    squares = (divmod(cell, BOARD_SIZE)[::-1] for cell in range(NUM_CELLS))

    def around(cx: int, cy: int) -> np.uint64:
        return cells_where(lambda x, y: 0 < abs(x - cx) + abs(y - cy) <= distance)

    return np.array([around(*square) for square in squares], np.uint64)


BESIDE: Final = _around(1)
NEAR: Final = _around(2)
_ENDS = LANDINGS >> 2
"""uint8 (196, 3, 4): the cell of each landing."""
_NEAR_LANDINGS = NEAR[_ENDS]
"""uint64 (196, 3, 4): `NEAR` of each landing."""


def _neighbours(cell: int) -> list[int]:
    """The cells beside a cell, and NUM_CELLS for those beyond the board."""
    return ([c for c in range(NUM_CELLS) if int(BESIDE[cell]) >> c & 1] + [NUM_CELLS] * 2)[:4]


_NEIGHBOURS = np.array([_neighbours(cell) for cell in range(NUM_CELLS)], np.uint8)


@kernel
def follower_of(state: Record) -> Int:
    """Who walks after the walker, or NOBODY."""
    return next_player(state, np.int64(state.player)) if turns_left(state) > 1 else NOBODY


@kernel
def fill_bills(state: Record, board: Record, payer: Int, creditor: Int, sheet: Record) -> None:
    """Writes what stopping on each cell costs a player who wants to stay in the game.

    What of it goes to `creditor` stands in the same number, the cost `_HIGH` bits higher, so that
    one addition adds both and the less of two sums is the one that costs less. With `steering=end`
    the cost is counted down from `_MOST`: the walker steers for him, and likes the dearest way.
    """
    money, is_steered = np.int64(state.money[payer]), state.flags & STEER_AT_END != 0
    for cell in range(NUM_CELLS):
        size, owner = np.int64(board.size[cell]), np.int64(board.owner[cell])
        bill = size if size <= money else money + RUIN_COST
        bill = np.int64(0) if owner == payer else bill
        income = bill if owner == creditor else np.int64(0)
        sheet.bills[cell] = (_MOST - bill if is_steered else bill) << _HIGH | income


@kernel
def others_board(state: Record, player: Int) -> Bits:
    """The visible squares of all other players in the game."""
    squares = np.uint64(0)
    for other in range(state.num_players):
        if other != player and not state.eliminated[other]:
            squares |= game.board_of(state, other)
    return squares


@kernel
def likely_steering(state: Record, board: Record, sheet: Record) -> tuple[int, int]:
    """How the walker is likely to steer, and which steering costs him the least toll.

    What he thinks of each landing stays on the sheet.
    """
    walker, heading = np.int64(state.player), heading_of(state)
    money = np.int64(state.money[walker])
    first, last = steerings_of(state)
    _look_at_landings(state, board, heading, first, last, sheet)
    likely, cheap, least_toll, least_cost = first, first, np.inf, np.inf
    for steering in range(first, last):
        toll, wants = 0.0, 0.0
        for k in range(MAX_STEPS):
            cell = LANDINGS[heading, steering, k] >> 2
            size = np.int64(board.size[cell])
            bill = size if size <= money else money + RUIN_COST
            toll += ROLL_CHANCE[k] * (0 if board.owner[cell] == walker else bill)
            want = WANT_SWING * sheet.swing[steering, k] + WANT_GROWTH * sheet.growth[steering, k]
            want += WANT_CUT * sheet.cut[steering, k] + WANT_SECOND * sheet.income[steering, k]
            wants += ROLL_CHANCE[k] * want
        if toll < least_toll - _SOFT:
            cheap, least_toll = steering, toll
        if toll - wants < least_cost - _SOFT:
            likely, least_cost = steering, toll - wants
    return likely, cheap


@kernel
def _look_at_landings(
    state: Record, board: Record, heading: Int, first: Int, last: Int, sheet: Record
) -> None:
    """Writes what the walker thinks of every landing after the steerings `first` to `last` - 1."""
    walker, follower = np.int64(state.player), follower_of(state)
    own, theirs = game.board_of(state, walker), others_board(state, walker)
    if follower != NOBODY:
        fill_bills(state, board, follower, walker, sheet)
    fill_swings(state, own, theirs, sheet)
    for cell in range(NUM_CELLS):
        sheet.rival_sizes[cell] = np.int16(0) if board.owner[cell] == walker else board.size[cell]
    for steering in range(first, last):
        for k in range(MAX_STEPS):
            landing, cut = np.int64(LANDINGS[heading, steering, k]), np.int64(0)
            for side in range(4):
                cut = max(cut, np.int64(sheet.rival_sizes[_NEIGHBOURS[landing >> 2, side]]))
            sheet.cut[steering, k] = cut
            sheet.swing[steering, k] = swing(landing >> 2, sheet)
            sheet.growth[steering, k] = 0
            sheet.income[steering, k] = 0.0
            if follower != NOBODY:
                follows, income = _second_walk(landing, sheet)
                sheet.follows[steering, k], sheet.income[steering, k] = follows, income
    # Patches are few, and for each of them nobody has to foretell how many lie near a landing.
    squares = state.colour_boards[state.next_colour[walker]]
    while squares:
        cell = lowest_cell(squares)
        patch, size = board.patch[cell], np.int64(board.size[cell])
        squares &= ~patch & (squares - _ONE)
        for steering in range(first, last):
            for k in range(MAX_STEPS):
                is_near = (patch & _NEAR_LANDINGS[heading, steering, k]) != 0
                growth = size if is_near else np.int64(0)
                sheet.growth[steering, k] = max(sheet.growth[steering, k], growth)


@kernel
def _second_walk(heading: Int, sheet: Record) -> tuple[Int, float]:
    """How the follower steers from a heading, and what the walker can expect of it."""
    best: Int = np.int64(1) << (2 * _HIGH)
    for steering in range(NUM_STEERINGS):
        total = np.int64(steering) << _CHOICE  # tells which it was, and decides between equals
        for k in range(MAX_STEPS):
            total += np.int64(WAYS[k]) * sheet.bills[_ENDS[heading, steering, k]]  # in sixths
        best = min(total, best)
    return best >> _CHOICE & 3, np.float64(best & _INCOME) / len(DIE)


@kernel
def largest_patch(board: Record, squares: Bits) -> Int:
    """Size of the largest patch that some squares belong to, 0 without any."""
    most: Int = 0
    while squares:
        cell = lowest_cell(squares)
        most = max(most, np.int64(board.size[cell]))
        squares &= ~board.patch[cell] & (squares - _ONE)
    return most


@kernel
def fill_swings(state: Record, own: Bits, theirs: Bits, sheet: Record) -> None:
    """Writes which rugs shift at least 2, 3 and 4 squares: their west halves, their north halves.

    Half a rug on a rival's square counts 2, on an empty or neutral one 1, on an own one 0; the two
    halves of one rug are never covered together (rule 8).
    """
    free = _ALL_CELLS & ~(own | theirs)
    for way in range(2):
        step = _ROW if way else _ONE
        may_lie = ~state.links_south if way else ~state.links_east
        four = may_lie & theirs & theirs >> step
        three = may_lie & (theirs & free >> step | free & theirs >> step)
        two = may_lie & (theirs & own >> step | own & theirs >> step | free & free >> step)
        sheet.swings[2, way] = four
        sheet.swings[1, way] = four | three
        sheet.swings[0, way] = four | three | two


@kernel
def swing(cell: Int, sheet: Record) -> Int:
    """Squares won plus squares taken by the best rug that can be laid from a cell, 1 to 4."""
    most: Int = 1
    for least in range(len(sheet.swings)):
        west = sheet.swings[least, 0] & RUGS_AROUND[cell, 0]
        most += (west | sheet.swings[least, 1] & RUGS_AROUND[cell, 1]) != 0
    return most
