"""How the next two players are likely to walk, and what the first of them can do with their rug.

The *walker* moves next and steers for what they want (`likely_steering`). The *follower* walks
after them, by the cheapest way; with `steering=end` by the dearest, since the walker steers for
them. Amounts are dirhams.

The value network models the next walks by slots and in float32 (`value_net.reply_inputs`). Sums
in another precision break ties between steerings differently, so both keep their own kernels and
share the constants.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.game import NO_SEAT
from marrakech_env.kernels.bitboards import board_of_others, find_swings, largest_swing, lowest_cell
from marrakech_env.spec import DIE, NUM_CELLS
from marrakech_env.state import STEER_AT_END, Int, Record
from marrakech_env.tables import (
    BESIDE,
    DIE_COUNTS,
    LANDINGS,
    MAX_STEPS,
    NEAR,
    NUM_STEERINGS,
    ROLL_CHANCE,
)

RUIN_COST: Final = 15
"""Cost of a bankruptcy to a player who chooses a way, beyond the money lost."""
WANT_SECOND, WANT_SWING, WANT_GROWTH, WANT_CUT = 0.7, 0.5, 0.2, 0.15
"""What the walker steers for, in dirhams of toll: a dirham that the follower will pay them, a
square of `swing`, a square of `growth`, a square of the largest region that they can cut."""
_EQUAL: Final = 1e-9
_ONE = np.uint64(1)

# A packed toll: income in bits 0 to 15, a steering from bit _CHOICE, cost from bit _HIGH. With
# steering=end costs are counted down from _MOST.
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
    """The seat that walks after the walker, or NO_SEAT."""
    if game.all_rugs_left(state) <= 1:
        return NO_SEAT
    return game.next_player(state, np.int64(state.player))


@kernel
def likely_steering(state: Record, regions: Record, work: Record) -> tuple[Int, Int]:
    """How the walker is likely to steer, and which steering costs them the least toll.

    Writes what the walker can expect of each landing into `work`.
    """
    walker, heading = np.int64(state.player), game.heading_of(state)
    money = np.int64(state.money[walker])
    first, last = game.steerings_of(state)
    _look_at_landings(state, regions, heading, first, last, work)
    likely, cheap, least_toll, least_cost = first, first, np.inf, np.inf
    for steering in range(first, last):
        toll, wants = 0.0, 0.0
        for k in range(MAX_STEPS):
            cell = _ENDS[heading, steering, k]
            size = np.int64(regions.size[cell])
            cost = size if size <= money else money + RUIN_COST
            toll += ROLL_CHANCE[k] * (0 if regions.owner[cell] == walker else cost)
            want = WANT_SWING * work.swing[steering, k] + WANT_GROWTH * work.growth[steering, k]
            want += WANT_CUT * work.cut[steering, k] + WANT_SECOND * work.income[steering, k]
            wants += ROLL_CHANCE[k] * want
        if toll < least_toll - _EQUAL:
            cheap, least_toll = steering, toll
        if toll - wants < least_cost - _EQUAL:
            likely, least_cost = steering, toll - wants
    return likely, cheap


@kernel
def _look_at_landings(
    state: Record, regions: Record, heading: Int, first: Int, last: Int, work: Record
) -> None:
    """Write what the walker can expect of every landing after the steerings `first`..`last` - 1."""
    walker, follower = np.int64(state.player), follower_of(state)
    own, others = game.board_of(state, walker), board_of_others(state, walker)
    if follower != NO_SEAT:
        _pack_tolls(state, regions, follower, walker, work)
    find_swings(own, others, ~state.links_east, ~state.links_south, work.swings)
    for cell in range(NUM_CELLS):
        is_own = regions.owner[cell] == walker
        work.other_sizes[cell] = np.int16(0) if is_own else regions.size[cell]
    for steering in range(first, last):
        for k in range(MAX_STEPS):
            landing, cut = np.int64(LANDINGS[heading, steering, k]), np.int64(0)
            for side in range(4):
                cut = max(cut, np.int64(work.other_sizes[_NEIGHBOURS[landing >> 2, side]]))
            work.cut[steering, k] = cut
            work.swing[steering, k] = max(1, largest_swing(landing >> 2, work.swings))
            work.growth[steering, k] = 0
            work.income[steering, k] = 0.0
            if follower != NO_SEAT:
                follows, income = _second_walk(landing, work)
                work.follows[steering, k], work.income[steering, k] = follows, income
    # Region by region and not landing by landing: no branch depends on how many lie near one.
    squares = state.colour_boards[state.next_colour[walker]]
    while squares:
        cell = lowest_cell(squares)
        region, size = regions.region[cell], np.int64(regions.size[cell])
        squares &= ~region & (squares - _ONE)
        for steering in range(first, last):
            for k in range(MAX_STEPS):
                is_near = (region & _NEAR_LANDINGS[heading, steering, k]) != 0
                growth = size if is_near else np.int64(0)
                work.growth[steering, k] = max(work.growth[steering, k], growth)


@kernel
def _pack_tolls(state: Record, regions: Record, payer: Int, creditor: Int, work: Record) -> None:
    """Write the cost of stopping on each cell for a payer, packed with what `creditor` gets of it.

    One addition adds both, and the lesser of two sums is the one that costs less. With
    `steering=end` it is the one that costs more: the walker steers for the payer.
    """
    money, is_steered = np.int64(state.money[payer]), state.flags & STEER_AT_END != 0
    for cell in range(NUM_CELLS):
        size, owner = np.int64(regions.size[cell]), np.int64(regions.owner[cell])
        cost = size if size <= money else money + RUIN_COST
        cost = np.int64(0) if owner == payer else cost
        income = cost if owner == creditor else np.int64(0)
        work.packed_tolls[cell] = (_MOST - cost if is_steered else cost) << _HIGH | income


@kernel
def _second_walk(heading: Int, work: Record) -> tuple[Int, float]:
    """How the follower steers from a heading, and the walker's expected income from it."""
    best: Int = np.int64(1) << (2 * _HIGH)
    for steering in range(NUM_STEERINGS):
        total = np.int64(steering) << _CHOICE  # the lower steering of equal ones
        for k in range(MAX_STEPS):
            total += (
                np.int64(DIE_COUNTS[k]) * work.packed_tolls[_ENDS[heading, steering, k]]
            )  # sixths
        best = min(total, best)
    return best >> _CHOICE & 3, np.float64(best & _INCOME) / len(DIE)
