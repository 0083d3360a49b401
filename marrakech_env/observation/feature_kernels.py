"""The kernels that write `features`; the module `features` holds their schema and legend.

Each `_write_...` writes some entries into one row of zeros, before the division that the schema
asks for. `to` is a record of offsets with a field for each entry.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import board_of_others, find_swings, largest_swing, lowest_cell
from marrakech_env.observation.coming_walks import (
    CHANCES,
    NUM_WALKS,
    WHOLE,
    Real,
    amount,
    amount_of_two,
    find_tolls,
    find_walkers,
    incomes_of_walk,
    owed,
    turned,
)
from marrakech_env.observation.expected_tolls import (
    NOWHERE,
    OWN,
    SPOT,
    THIRD,
    WALKERS,
    WORK,
    even_amounts,
    find_near,
    find_sizes,
    income,
    incomes_after,
    try_placement,
)
from marrakech_env.observation.features import (
    FEATURES,
    LOW_MONEY,
    LOW_TURNS,
    MAX_LATE_MARGIN,
    WINDOW,
)
from marrakech_env.observation.perspective import colour_of_slot, num_slots, seat_after
from marrakech_env.observation.schema import factor_table, offset_table
from marrakech_env.spec import BOARD_SIZE, NUM_CELLS
from marrakech_env.state import COVER_OWN, LAY, OVER, STEER, WALK, Int, Record, States
from marrakech_env.tables import (
    DIE_COUNTS,
    EDGES,
    NEAR,
    NUM_HEADINGS,
    NUM_PLACEMENTS,
    NUM_STEERINGS,
)
from marrakech_env.tables import WALK as WALK_TABLE

IntArray = NDArray[np.int64]
Row = NDArray[np.float32]
Offsets: TypeAlias = Any


# -------------------------------------------------------------------------------------- tables


def _build_window() -> NDArray[np.uint64]:
    """Build `window[heading, square]`: the cells around Assam as he sees them."""
    margin = WINDOW // 2
    cells = np.arange(NUM_CELLS).reshape(BOARD_SIZE, BOARD_SIZE)
    padded = np.pad(cells, margin, constant_values=NOWHERE)
    around = np.lib.stride_tricks.sliding_window_view(padded, (WINDOW, WINDOW))
    seen = [np.rot90(around, facing, axes=(2, 3)) for facing in range(4)]
    return np.stack(seen, axis=2).reshape(NUM_HEADINGS, -1).astype(np.uint64)


_WINDOW = _build_window()
"""uint64 (196, 25): the cells of the window, row by row, NOWHERE beyond the board."""
_OUTSIDE = (_WINDOW == NOWHERE).astype(np.float32)

_OFFSETS, _FACTORS = offset_table(FEATURES), factor_table(FEATURES)
_FACES = len(DIE_COUNTS)
_SIXTHS, _EIGHTEENTHS = np.float32(WHOLE[0]), np.float32(WHOLE[NUM_STEERINGS])
_NONE, _ONE, _ROW = np.uint64(0), np.uint64(1), np.uint64(BOARD_SIZE)


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
        last = to.lay_legal  # from here on, the row stays 0 up to the window
        for k in range(to.window_colours):
            row[k] = 0
        find_walkers(state, observer, work)
        find_sizes(state, observer, work, chances)
        _write_facts(state, observer, work, row, to)
        if state.phase != OVER:
            _write_ahead(state, observer, heading, work, row, to)
        if observer == state.player and state.phase == STEER:
            _write_steerings(state, observer, heading, work, row, to)
        if observer == state.player and state.phase == LAY:
            _write_placements(state, observer, heading, work, chances, row, to)
            last = to.window_colours
        for k in range(last):
            row[k] *= factors[k]
        _write_window(state, observer, heading, work, factors[to.window_size], row, to)


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
    state: Record, observer: Int, heading: Int, work: Record, factor: Real, row: Row, to: Offsets
) -> None:
    """The board around Assam, divided: `window_...`."""
    # All indices are unsigned, because Numba checks a signed one for counting from the end. The
    # squares are counted by the table, because the compiler unrolls short loops of a known length
    # instead of making vectors of them. Both together save half of the time.
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
        row[start + k] = work.size[_WINDOW[seen_from, k]] * factor


@kernel
def _write_ahead(
    state: Record, observer: Int, heading: Int, work: Record, row: Row, to: Offsets
) -> None:
    """What the coming walks meet on the board as it lies: `income` to `ruin`."""
    before = work.before
    for walk in range(NUM_WALKS):
        row[to.income + walk] = income(before, work, observer, walk, NUM_STEERINGS + walk)
    row[to.even_gain], row[to.even_cost] = even_amounts(before, work)
    walker = work.walkers[0]
    money: Int = np.int64(state.money[walker]) if walker >= 0 else 0
    find_tolls(state, observer, walker, work)
    for steering in range(NUM_STEERINGS):
        if state.phase == WALK and steering != 1:
            continue
        row[to.ahead_own + steering] = amount(before, OWN, steering)
        row[to.ahead_others + steering] = amount_of_two(before, WALKERS, THIRD, steering)
        start, ruin = turned(heading, steering), np.uint32(0)
        for face in range(_FACES):
            cell = WALK_TABLE[face + 1, start] >> 2
            row[to.ahead + _FACES * steering + face] = work.size[cell]
            ruin += DIE_COUNTS[face] * np.uint32(owed(work.tolls[cell]) > money)
        row[to.ruin + steering] = np.float32(ruin) / _SIXTHS


@kernel
def _write_steerings(
    state: Record, observer: Int, heading: Int, work: Record, row: Row, to: Offsets
) -> None:
    """What follows from each steering: `steer_...`."""
    find_tolls(state, observer, work.walkers[1], work)
    own, others = game.board_of(state, observer), board_of_others(state, observer)
    # Where the rules let a player cover both halves of an own rug, its link is no obstacle.
    spare = own if state.flags & COVER_OWN else np.uint64(0)
    east, south = ~(state.links_east & ~spare), ~(state.links_south & ~spare)
    find_swings(own, others, east, south, work.swings)
    find_near(work)
    for steering in range(NUM_STEERINGS):
        row[to.steer_income + steering] = income(work.before, work, observer, 0, steering)
        start = turned(heading, steering)
        follows, follows_best, shift = np.int32(0), np.int32(0), np.int64(0)
        near_own, near_others, near_squares = np.int32(0), np.int32(0), np.int64(0)
        for face in range(_FACES):
            end = np.int64(WALK_TABLE[face + 1, start])
            cell, ways_here = end >> 2, np.int32(DIE_COUNTS[face])
            total, cheapest = incomes_of_walk(work, end)
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
    for k in range(1, state.num_players):
        seat = seat_after(state, observer, k)
        work.boards[k] = _NONE if state.eliminated[seat] else game.board_of(state, seat)
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
        row[to.lay_edge + placement] = game.popcount(rug & EDGES)
        row[to.lay_own + placement] = game.popcount(rug & own)
        for k in range(1, state.num_players):
            covered = game.popcount(rug & work.boards[k])
            row[to.lay_others + NUM_PLACEMENTS * (k - 1) + placement] = covered
        row[to.lay_region + placement] = squares

        if work.walkers[0] >= 0:
            total, cheapest = incomes_after(work, observer)
            row[to.lay_next + placement] = np.float32(total) / _EIGHTEENTHS
            row[to.lay_next_best + placement] = np.float32(cheapest) / _SIXTHS
        gain, cost = even_amounts(work.after, work)
        row[to.lay_even_gain + placement], row[to.lay_even_cost + placement] = gain, cost
        for walk in range(1, NUM_WALKS):
            brought = income(work.after, work, observer, walk, NUM_STEERINGS + walk)
            if work.walkers[walk] == observer:
                row[to.lay_cost + placement] -= brought
            else:
                row[to.lay_gain + placement] += brought
    for first in range(to.lay_region, to.window_colours, NUM_PLACEMENTS):
        mean = np.float32(0)
        for placement in range(NUM_PLACEMENTS):
            mean += row[first + placement]
        mean /= count
        for placement in range(NUM_PLACEMENTS):
            row[first + placement] -= row[to.lay_legal + placement] * mean
