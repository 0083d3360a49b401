"""How the next two players are likely to walk, and what the first of them can do with his rug.

The *walker*, who moves next, steers by what he wants (`likely_steering`), and the *follower* after
him takes the cheapest way (with `steering=end`: the dearest one, since the walker steers for him).

Legend: *board* is a record of `patches.PATCHES`, *sheet* one of `evaluation.SHEET`; amounts are
dirhams; a heading is 4*cell + facing.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import board_of_others, find_swings, largest_swing, lowest_cell
from marrakech_env.spec import BOARD_SIZE, DIE, NUM_CELLS
from marrakech_env.state import STEER_AT_END, Bits, Int, Record
from marrakech_env.tables import BESIDE, DIE_COUNTS, NEAR

from .regions import (
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
    own, theirs = game.board_of(state, walker), board_of_others(state, walker)
    if follower != NOBODY:
        fill_bills(state, board, follower, walker, sheet)
    find_swings(own, theirs, ~state.links_east, ~state.links_south, sheet.swings)
    for cell in range(NUM_CELLS):
        sheet.rival_sizes[cell] = np.int16(0) if board.owner[cell] == walker else board.size[cell]
    for steering in range(first, last):
        for k in range(MAX_STEPS):
            landing, cut = np.int64(LANDINGS[heading, steering, k]), np.int64(0)
            for side in range(4):
                cut = max(cut, np.int64(sheet.rival_sizes[_NEIGHBOURS[landing >> 2, side]]))
            sheet.cut[steering, k] = cut
            sheet.swing[steering, k] = max(1, largest_swing(landing >> 2, sheet.swings))
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
            total += np.int64(DIE_COUNTS[k]) * sheet.bills[_ENDS[heading, steering, k]]  # in sixths
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
