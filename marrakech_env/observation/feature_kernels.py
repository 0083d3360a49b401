"""The kernels that write `features`, whose schema and legend stand in the module `features`.

Each `_write_...` writes some entries into one row of the array, before the division that the schema
asks for; the row was 0 before. `to` is a record of offsets with a field for each entry.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import board_of_others, find_swings, largest_swing, lowest_cell
from marrakech_env.kernels.regions import (
    CHANCES,
    ENDS,
    EVEN,
    NOWHERE,
    NUM_CENTRED,
    NUM_STEERINGS,
    NUM_WALKS,
    OWN,
    SPOT,
    THIRD,
    WALKERS,
    WAYS,
    WHOLE,
    WORK,
    amount,
    amount_of_two,
    find_near,
    find_regions,
    find_walkers,
    heading_after,
    try_placement,
    ways,
)
from marrakech_env.observation.features import (
    FEATURES,
    LOW_MONEY,
    LOW_TURNS,
    MAX_LATE_MARGIN,
    WINDOW,
)
from marrakech_env.observation.packed_tolls import (
    bill_of,
    bill_of_walk,
    due_of,
    find_bills,
    total_and_cheapest,
)
from marrakech_env.observation.perspective import colour_of_slot, num_slots, seat_after
from marrakech_env.observation.schema import factor_table, offset_table
from marrakech_env.spec import BOARD_SIZE, NUM_CELLS
from marrakech_env.state import COVER_OWN, LAY, OVER, STEER, WALK, Int, Record, States
from marrakech_env.tables import (
    DX,
    DY,
    NEAR,
    NUM_HEADINGS,
    NUM_PLACEMENTS,
    on_board,
)
from marrakech_env.tables import WALK as WALK_TABLE

IntArray = NDArray[np.int64]
Row = NDArray[np.float32]
Offsets: TypeAlias = Any
Real: TypeAlias = Any


# -------------------------------------------------------------------------------------- tables


def _cells_around(heading: int, steps: list[tuple[int, int]]) -> list[int]:
    """The cells so many steps to the right of and behind Assam, NOWHERE beyond the board."""
    y, x = divmod(heading // 4, BOARD_SIZE)
    right, behind = (heading + 1) % 4, (heading + 2) % 4
    squares = [
        (x + column * DX[right] + row * DX[behind], y + column * DY[right] + row * DY[behind])
        for row, column in steps
    ]
    return [BOARD_SIZE * sy + sx if on_board(sx, sy) else NOWHERE for sx, sy in squares]


_REACH = range(-(WINDOW // 2), WINDOW // 2 + 1)
_SQUARE: Final = [(row, column) for row in _REACH for column in _REACH]
_WINDOW = np.array([_cells_around(h, _SQUARE) for h in range(NUM_HEADINGS)], np.uint64)
"""uint64 (196, 25): the cells of the window, row by row as Assam sees it."""
_OUTSIDE = (_WINDOW == NOWHERE).astype(np.float32)

_OFFSETS, _FACTORS = offset_table(FEATURES), factor_table(FEATURES)
_FACES = len(WAYS)
_SIXTHS, _EIGHTEENTHS = np.float32(WHOLE[0]), np.float32(WHOLE[NUM_STEERINGS])
_NONE, _ONE, _ROW = np.uint64(0), np.uint64(1), np.uint64(BOARD_SIZE)
_EDGE = np.uint64(
    sum(1 << c for c in range(NUM_CELLS) if {0, BOARD_SIZE - 1} & set(divmod(c, BOARD_SIZE)))
)


# ------------------------------------------------------------------------------------- kernels


@kernel
def fill_features(states: States, games: IntArray, players: IntArray, out: Row) -> None:
    """Kernel: write the features of some games into their rows; see `Form.fill`."""
    work = np.zeros(1, WORK)[0]
    for j in range(len(games)):
        state = states[games[j]]
        observer = players[games[j]] if players[games[j]] >= 0 else np.int64(state.player)
        to, factors = _OFFSETS[state.num_players], _FACTORS[state.num_players]
        row = out[games[j] * to.total : (games[j] + 1) * to.total]
        heading = 4 * np.int64(state.assam) + state.facing
        chances = CHANCES[0 if state.phase == WALK else 1, heading]
        for k in range(to.total):
            row[k] = 0
        find_walkers(state, observer, work)
        find_regions(state, observer, work, chances)
        _write_facts(state, observer, work, row, to)
        _write_window(state, observer, heading, work, row, to)
        if state.phase != OVER:
            _write_ahead(state, observer, work, row, to)
        if observer == state.player and state.phase == STEER:
            _write_steerings(state, observer, work, row, to)
        if observer == state.player and state.phase == LAY:
            _write_placements(state, observer, heading, work, chances, row, to)
        for k in range(to.total):
            row[k] *= factors[k]


@kernel
def _write_facts(state: Record, observer: Int, work: Record, row: Row, to: Offsets) -> None:
    """Who has what: `turn` to `under`."""
    players = np.int64(state.num_players)
    own_score = game.score(state, observer)
    best, turns = np.int64(-1), np.int64(0)
    for k in range(players):
        seat = seat_after(state, observer, k)
        money = np.float32(state.money[seat])
        row[to.turn + k] = state.phase != OVER and seat == state.player
        row[to.walker + k] = seat == work.walkers[0]
        row[to.eliminated + k] = state.eliminated[seat] > 0
        row[to.money + k] = money
        for ramp in range(len(LOW_MONEY)):
            low = np.float32(LOW_MONEY[ramp])
            row[to.money_low + ramp * players + k] = min(money, low) / low
        row[to.squares + k] = game.popcount(game.board_of(state, seat))
        turns += game.rugs_left(state, seat)
        if k > 0:
            score = game.score(state, seat)
            row[to.lead + k - 1] = own_score - score
            best = max(best, score)
    late_margin: Real = (own_score - best) / (2 + turns)
    row[to.late_margin] = min(max(late_margin, -MAX_LATE_MARGIN), MAX_LATE_MARGIN)
    row[to.turns] = turns
    for ramp in range(len(LOW_TURNS)):
        row[to.turns_low + ramp] = min(turns, LOW_TURNS[ramp]) / LOW_TURNS[ramp]
    if state.phase != OVER:
        row[to.phase + state.phase] = 1
    row[to.facing_east_west] = state.facing & 1
    row[to.under] = work.size[state.assam]
    for slot in range(num_slots(state)):
        colour = colour_of_slot(state, observer, slot)
        if colour >= 0:
            row[to.rugs + slot] = state.rugs[colour]
            row[to.largest + slot] = work.largest[colour]
            row[to.even_toll + slot] = np.float32(work.square_sum[colour]) / NUM_CELLS


@kernel
def _write_window(
    state: Record, observer: Int, heading: Int, work: Record, row: Row, to: Offsets
) -> None:
    """The board around Assam: `window_...`."""
    # All indices are unsigned, because of signed ones Numba asks whether they count from the end,
    # and the squares are counted by the table, because the compiler makes vectors of loops whose
    # length it does not know, but unrolls short others. It took more than twice as long before.
    squares, seen_from = np.uint64(to.window_size - to.window_outside), np.uint64(heading)
    start = np.uint64(to.window_colours)
    for slot in range(num_slots(state)):
        colour = colour_of_slot(state, observer, slot)
        board = state.colour_boards[colour] if colour >= 0 else _NONE
        for k in range(squares):
            row[start + k] = np.int32(board >> _WINDOW[seen_from, k] & _ONE)
        start += squares
    for k in range(squares):
        row[start + k] = _OUTSIDE[seen_from, k]
    start += squares
    for k in range(squares):
        row[start + k] = work.size[_WINDOW[seen_from, k]]


@kernel
def _write_ahead(state: Record, observer: Int, work: Record, row: Row, to: Offsets) -> None:
    """What the coming walks meet on the board as it lies: `income` to `ruin`."""
    before = work.before
    for walk in range(NUM_WALKS):
        k = NUM_STEERINGS + walk
        if work.walkers[walk] == observer:
            row[to.income + walk] = -amount_of_two(before, WALKERS, THIRD, k)
        elif work.walkers[walk] >= 0:
            row[to.income + walk] = amount(before, OWN, k)
    row[to.even_gain] = np.float32(work.other_walks) * amount(before, OWN, EVEN)
    even_due = amount_of_two(before, WALKERS, THIRD, EVEN)
    row[to.even_cost] = np.float32(work.own_walks) * even_due
    walker = work.walkers[0]
    money: Int = np.int64(state.money[walker]) if walker >= 0 else 0
    find_bills(state, observer, walker, work)
    for steering in range(NUM_STEERINGS):
        if state.phase == WALK and steering != 1:
            continue
        row[to.ahead_own + steering] = amount(before, OWN, steering)
        row[to.ahead_others + steering] = amount_of_two(before, WALKERS, THIRD, steering)
        heading, ruin = heading_after(state, steering), np.uint32(0)
        for face in range(_FACES):
            cell = ENDS[heading, face]
            row[to.ahead + _FACES * steering + face] = work.size[cell]
            ruin += WAYS[face] * np.uint32(due_of(work.bills[cell]) > money)
        row[to.ruin + steering] = np.float32(ruin) / _SIXTHS


@kernel
def _write_steerings(state: Record, observer: Int, work: Record, row: Row, to: Offsets) -> None:
    """What follows from each steering: `steer_...`."""
    walker, before = work.walkers[0], work.before
    find_bills(state, observer, work.walkers[1], work)
    own, others = game.board_of(state, observer), board_of_others(state, observer)
    # Where the rules let a player cover both halves of an own rug, its link is no obstacle.
    spare = own if state.flags & COVER_OWN else np.uint64(0)
    east, south = ~(state.links_east & ~spare), ~(state.links_south & ~spare)
    find_swings(own, others, east, south, work.swings)
    find_near(work)
    for steering in range(NUM_STEERINGS):
        row[to.steer_income + steering] = amount(before, OWN, steering)
        if walker == observer:
            row[to.steer_income + steering] = -amount_of_two(before, WALKERS, THIRD, steering)
        start = heading_after(state, steering)
        follows, follows_best, shift = np.int32(0), np.int32(0), np.int64(0)
        near_own, near_others, near_squares = np.int32(0), np.int32(0), np.int64(0)
        for face in range(_FACES):
            heading = np.int64(WALK_TABLE[face + 1, start])
            cell, ways_here = heading >> 2, np.int32(WAYS[face])
            total, cheapest = total_and_cheapest(
                bill_of_walk(work, (heading & ~3) | ((heading + 3) & 3)),
                bill_of_walk(work, heading),
                bill_of_walk(work, (heading & ~3) | ((heading + 1) & 3)),
            )
            follows += ways_here * total
            follows_best += ways_here * cheapest
            near_own += ways_here * np.int32(work.most[SPOT[cell]])
            near_others -= ways_here * np.int32(work.least[SPOT[cell]])
            near_squares += ways_here * game.popcount(others & NEAR[cell])
            shift += ways_here * largest_swing(cell, work.swings)
        row[to.steer_next + steering] = np.float32(follows) / (_SIXTHS * _EIGHTEENTHS)
        row[to.steer_next_best + steering] = np.float32(follows_best) / (_SIXTHS * _SIXTHS)
        row[to.steer_near_own + steering] = np.float32(near_own) / _SIXTHS
        row[to.steer_near_others + steering] = np.float32(near_others) / _SIXTHS
        row[to.steer_near_squares + steering] = np.float32(near_squares) / _SIXTHS
        row[to.steer_shift + steering] = np.float32(shift) / _SIXTHS
    for first in range(to.steer_income, to.lay_legal, NUM_STEERINGS):
        mean = (row[first] + row[first + 1] + row[first + 2]) / np.float32(NUM_STEERINGS)
        for steering in range(NUM_STEERINGS):
            row[first + steering] -= mean


@kernel
def _write_placements(
    state: Record,
    observer: Int,
    heading: Int,
    work: Record,
    chances: NDArray[np.uint64],
    row: Row,
    to: Offsets,
) -> None:
    """What follows from each placement: `lay_...`."""
    legal = np.uint64(game.legal_placements(state))
    count = np.float32(game.popcount(legal))
    own, others = game.board_of(state, observer), board_of_others(state, observer)
    after = work.after
    for k in range(1, state.num_players):
        seat = seat_after(state, observer, k)
        work.boards[k] = _NONE if state.eliminated[seat] else game.board_of(state, seat)
    for entry in range(NUM_CENTRED):
        work.totals[entry] = 0
    while legal:
        placement = lowest_cell(legal)
        legal &= legal - _ONE
        squares, rug = try_placement(state, placement, heading, work, chances)
        row[to.lay_legal + placement] = 1
        # A rug breaks where it covers one of the two halves that a link joins.
        east = state.links_east & (rug | rug >> _ONE)
        south = state.links_south & (rug | rug >> _ROW)
        row[to.lay_breaks_own + placement] = game.popcount(east & own) + game.popcount(south & own)
        broken = game.popcount(east & others) + game.popcount(south & others)
        row[to.lay_breaks_others + placement] = broken
        row[to.lay_edge + placement] = game.popcount(rug & _EDGE)
        row[to.lay_own + placement] = game.popcount(rug & own)
        for k in range(1, state.num_players):
            covered = game.popcount(rug & work.boards[k])
            row[to.lay_others + NUM_PLACEMENTS * (k - 1) + placement] = covered
        row[to.lay_region + placement] = squares

        if work.walkers[0] >= 0:
            is_own_walk = work.walkers[0] == observer
            total, cheapest = total_and_cheapest(
                _bill_after(after, is_own_walk, 0),
                _bill_after(after, is_own_walk, 1),
                _bill_after(after, is_own_walk, 2),
            )
            row[to.lay_next + placement] = np.float32(total) / _EIGHTEENTHS
            row[to.lay_next_best + placement] = np.float32(cheapest) / _SIXTHS
        even_gain = amount(after, OWN, EVEN)
        even_due = amount_of_two(after, WALKERS, THIRD, EVEN)
        row[to.lay_even_gain + placement] = np.float32(work.other_walks) * even_gain
        row[to.lay_even_cost + placement] = np.float32(work.own_walks) * even_due
        for walk in range(1, NUM_WALKS):
            k = NUM_STEERINGS + walk
            if work.walkers[walk] == observer:
                row[to.lay_cost + placement] += amount_of_two(after, WALKERS, THIRD, k)
            elif work.walkers[walk] >= 0:
                row[to.lay_gain + placement] += amount(after, OWN, k)
        for entry in range(NUM_CENTRED):
            work.totals[entry] += row[to.lay_region + NUM_PLACEMENTS * entry + placement]
    for entry in range(NUM_CENTRED):
        mean, first = work.totals[entry] / count, to.lay_region + NUM_PLACEMENTS * entry
        for placement in range(NUM_PLACEMENTS):
            row[first + placement] -= row[to.lay_legal + placement] * mean


@kernel
def _bill_after(after: NDArray[np.uint64], is_own_walk: bool, steering: Int) -> Int:
    """The bill of the next walk, so steered, once a rug was laid."""
    to_own, to_third = ways(after, OWN, steering), ways(after, THIRD, steering)
    if is_own_walk:
        due = to_third + ways(after, WALKERS, steering)
        return bill_of(due, -due)
    return bill_of(to_third + to_own, to_own)
