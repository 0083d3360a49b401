"""Features: the form that states, for each legal action, what the rules make of it.

A vector of facts and consequences: who has what, a window of the board around Assam, the squares
that the next walk can reach, and for each steering and each placement what follows from it. Nothing
in it values a position. Perspective and symmetry are those of `observation`: by seat from the
observer on, by colour slot, and by steering, placement and square as Assam sees them.

*Income* is signed: dirhams that the observer gets count up, those that he pays count down. Expected
amounts are for the board as it lies and not limited by anybody's money; where a walk's steering is
not given, each of the three is taken to be equally likely.

Legend: `P` players, `N` numbers.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.regions import (
    CHANCES,
    ENDS,
    NO_REGION,
    NOWHERE,
    NUM_STEERINGS,
    NUM_WALKS,
    OWN,
    THIRD,
    WALKERS,
    WORK,
    find_regions,
    find_walkers,
    heading_after,
    lay,
)
from marrakech_env.schema import MAX_MONEY_OF_ALL, Entry, Schema, offset_table
from marrakech_env.spec import BOARD_SIZE, MAX_PLAYERS, MAX_RUGS, NUM_CELLS
from marrakech_env.state import LAY, OVER, STEER, WALK, Bits, Int, Record, States
from marrakech_env.tables import DIE_PROBABILITY, DX, DY, NUM_HEADINGS, NUM_PLACEMENTS, on_board
from marrakech_env.tables import WALK as WALK_TABLE
from marrakech_env.views import colour_of_slot, seat_after, seen_row

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]

WINDOW_SIZE: Final = 5
_SQUARES = WINDOW_SIZE * WINDOW_SIZE
_CELLS, _TURNS = NUM_CELLS, MAX_RUGS * 4
_SEATS, _OTHERS, _SLOTS, _ONE, _THREE, _TWELVE = (
    (2, 3, 4),
    (1, 2, 3),
    (4, 3, 4),
    (1, 1, 1),
    (3, 3, 3),
    (12, 12, 12),
)
LOW_MONEY: Final = (5, 15)
"""Ends of the ramps `money_low`."""
LOW_TURNS: Final = (4, 12)
"""Ends of the ramps `turns_low`."""
MAX_LATE_MARGIN: Final = 5.0

_STEER = " (0 unless the observer is to steer or walk)"
_LAY = "; by placement (0 where it is not legal)"

FEATURES: Final = Schema(
    (
        Entry("turn", _SEATS, "1 for the seat to move, all 0 when the game is over; by seat"),
        Entry("phase", _THREE, "1 where it is to steer, to lay, to walk on unsteered"),
        Entry("walker", _SEATS, "1 for the seat that takes the next walk; by seat"),
        Entry("eliminated", _SEATS, "1 where eliminated; by seat"),
        Entry("money", _SEATS, "dirhams; by seat", 0, MAX_MONEY_OF_ALL, 30),
        Entry(
            "money_low",
            tuple(2 * n for n in _SEATS),
            f"min(dirhams, {LOW_MONEY[0]})/{LOW_MONEY[0]} by seat, "
            f"then min(dirhams, {LOW_MONEY[1]})/{LOW_MONEY[1]} by seat",
        ),
        Entry("squares", _SEATS, "visible squares; by seat", 0, _CELLS, 15),
        Entry(
            "lead",
            _OTHERS,
            "own score minus that of each other seat, as the game stands; by seat",
            -MAX_MONEY_OF_ALL - _CELLS,
            MAX_MONEY_OF_ALL + _CELLS,
            20,
        ),
        Entry(
            "late_margin",
            _ONE,
            "own score minus the best other one, over 2 + all unlaid rugs, within "
            f"+-{MAX_LATE_MARGIN:g}",
            -MAX_LATE_MARGIN,
            MAX_LATE_MARGIN,
        ),
        Entry("rugs", _SLOTS, "unlaid rugs; by colour slot", 0, MAX_RUGS, 12),
        Entry("turns", _ONE, "unlaid rugs of all players still in the game", 0, _TURNS, 24),
        Entry(
            "turns_low",
            (2, 2, 2),
            f"min(turns, {LOW_TURNS[0]})/{LOW_TURNS[0]} and min(turns, {LOW_TURNS[1]})/"
            f"{LOW_TURNS[1]}",
        ),
        Entry("largest", _SLOTS, "squares of the largest region; by colour slot", 0, _CELLS, 8),
        Entry(
            "even_toll",
            _SLOTS,
            "toll of that colour at a square drawn evenly from all 49: the squared region sizes "
            "over 49; by colour slot",
            0,
            _CELLS,
            2,
        ),
        Entry("facing_east_west", _ONE, "1 where Assam truly faces east or west"),
        Entry("under", _ONE, "`size` of Assam's square, see `window_size`", -_CELLS, _CELLS, 5),
        Entry(
            "income",
            (NUM_WALKS,) * 3,
            "expected income in the next walk, the one after it, the third, the fourth",
            -_CELLS,
            _CELLS,
            2,
        ),
        Entry(
            "ahead",
            _TWELVE,
            "`size` of each square that the next walk can end on; by steering, then roll 1..4",
            -_CELLS,
            _CELLS,
            5,
        ),
        Entry(
            "ahead_mine",
            _THREE,
            "expected toll for others in the next walk; by steering",
            0,
            _CELLS,
            3,
        ),
        Entry(
            "ahead_theirs",
            _THREE,
            "expected toll for the observer in the next walk, were it his; by steering",
            0,
            _CELLS,
            3,
        ),
        Entry("ruin", _THREE, "chance that the next walk eliminates its walker; by steering"),
        Entry(
            "steer_next",
            _THREE,
            "expected income in the walk after the next; by steering" + _STEER,
            -_CELLS,
            _CELLS,
            2,
        ),
        Entry(
            "steer_next_best",
            _THREE,
            "the same, if that walk is steered to cost its walker least; by steering" + _STEER,
            -_CELLS,
            _CELLS,
            2,
        ),
        Entry(
            "steer_near_mine",
            _THREE,
            "largest region of the observer that a rug laid after the walk can touch or cover, "
            "expected; by steering" + _STEER,
            0,
            _CELLS,
            5,
        ),
        Entry(
            "steer_near_theirs",
            _THREE,
            "largest region of another seat that it can cover, expected; by steering" + _STEER,
            0,
            _CELLS,
            5,
        ),
        Entry(
            "steer_near_squares",
            _THREE,
            "squares of other seats that it can cover, expected; by steering" + _STEER,
            0,
            12,
            5,
        ),
        Entry("lay_legal", _TWELVE, "1 where legal; by placement"),
        Entry("lay_own", _TWELVE, "own squares that it covers" + _LAY, 0, 2),
        Entry(
            "lay_others",
            tuple(12 * n for n in _OTHERS),
            "squares of each other seat still in the game that it covers; by seat" + _LAY,
            0,
            2,
        ),
        Entry(
            "lay_region", _TWELVE, "squares of the region that it becomes part of" + _LAY,
            0, _CELLS, 8,
        ),
        Entry(
            "lay_next",
            _TWELVE,
            "expected income in the next walk after it" + _LAY,
            -_CELLS,
            _CELLS,
            2,
        ),
        Entry(
            "lay_next_best",
            _TWELVE,
            "the same, if that walk is steered to cost its walker least" + _LAY,
            -_CELLS,
            _CELLS,
            2,
        ),
        Entry(
            "lay_gain",
            _TWELVE,
            "what it adds to the expected income from the walks of others after that, up to the "
            "fourth" + _LAY,
            -3 * _CELLS,
            3 * _CELLS,
        ),
        Entry(
            "lay_cost",
            _TWELVE,
            "what it adds to the expected tolls that the observer pays in his own walks among "
            "these" + _LAY,
            -3 * _CELLS,
            3 * _CELLS,
        ),
        Entry(
            "window_colours",
            tuple(_SQUARES * n for n in _SLOTS),
            "1 where the colour is visible in the 5x5 window around Assam, row by row; "
            "by colour slot",
        ),
        Entry("window_outside", (_SQUARES,) * 3, "1 beyond the edge of the board in the window"),
        Entry(
            "window_size",
            (_SQUARES,) * 3,
            "`size`: squares of the region that a square of the window belongs to, counted up for "
            "the observer's, down for those of others still in the game, 0 elsewhere",
            -_CELLS,
            _CELLS,
            5,
        ),
    )
)
"""The schema of `features`."""

_OFFSETS = offset_table(FEATURES)
_SCALES = np.zeros((MAX_PLAYERS + 1, _OFFSETS.max()), np.float32)
for _players in (2, 3, 4):
    _divisors = [e.divisor for e in FEATURES.entries for _ in range(e.size(_players))]
    _SCALES[_players, : len(_divisors)] = 1 / np.array(_divisors)


def fill_features(
    states: States, games: IntArray, players: IntArray, out: FloatArray
) -> None:
    """Writes the features of some games into their rows; see `observation.Form.fill`."""
    _fill(states, games, players, out, np.zeros(1, WORK), CHANCES)


# -------------------------------------------------------------------------------------- tables


def _build_window() -> NDArray[np.uint8]:
    """`window[heading]` = the cells of the window around Assam, turned so that he looks up."""
    steps = range(-(WINDOW_SIZE // 2), WINDOW_SIZE // 2 + 1)
    window = np.full((NUM_HEADINGS, _SQUARES), NOWHERE, np.uint8)
    for heading in range(NUM_HEADINGS):
        y, x = divmod(heading // 4, BOARD_SIZE)
        right, down = (heading + 1) % 4, (heading + 2) % 4
        for k, (row, column) in enumerate((r, c) for r in steps for c in steps):
            wx = x + column * DX[right] + row * DX[down]
            wy = y + column * DY[right] + row * DY[down]
            if on_board(wx, wy):
                window[heading, k] = BOARD_SIZE * wy + wx
    return window


def _build_near() -> NDArray[np.uint8]:
    """`near[cell]` = the cells at most two steps away, which a rug laid from there can cover."""
    steps = [(dx, dy) for dy in range(-2, 3) for dx in range(-2, 3) if 1 <= abs(dx) + abs(dy) <= 2]
    near = np.full((NUM_CELLS, len(steps)), NOWHERE, np.uint8)
    for cell in range(NUM_CELLS):
        y, x = divmod(cell, BOARD_SIZE)
        for k, (dx, dy) in enumerate(steps):
            if on_board(x + dx, y + dy):
                near[cell, k] = BOARD_SIZE * (y + dy) + x + dx
    return near


_WINDOW, _NEAR = _build_window(), _build_near()
_CHANCE = DIE_PROBABILITY[1:].astype(np.float32)
_FACES = len(_CHANCE)


# ------------------------------------------------------------------------------------- kernels

(
    _TURN,
    _PHASE,
    _WALKER,
    _ELIMINATED,
    _MONEY,
    _MONEY_LOW,
    _SQUARES_OF,
    _LEAD,
    _LATE_MARGIN,
    _RUGS,
    _TURNS_LEFT,
    _TURNS_LOW,
    _LARGEST,
    _EVEN_TOLL,
    _EAST_WEST,
    _UNDER,
    _INCOME,
    _AHEAD,
    _AHEAD_MINE,
    _AHEAD_THEIRS,
    _RUIN,
    _STEER_NEXT,
    _STEER_NEXT_BEST,
    _NEAR_MINE,
    _NEAR_THEIRS,
    _NEAR_SQUARES,
    _LEGAL,
    _LAY_OWN,
    _LAY_OTHERS,
    _LAY_REGION,
    _LAY_NEXT,
    _LAY_NEXT_BEST,
    _LAY_GAIN,
    _LAY_COST,
    _WINDOW_COLOURS,
    _WINDOW_OUTSIDE,
    _WINDOW_SIZE,
) = range(len(FEATURES.entries))
# The entries are written before their division; `_fill` divides the whole row in the end.


@kernel
def _fill(
    states: States,
    games: IntArray,
    players: IntArray,
    out: FloatArray,
    works: NDArray[np.void],
    chances: NDArray[np.float32],
) -> None:
    work = works[0]
    for j in range(len(games)):
        state = states[games[j]]
        observer = players[games[j]] if players[games[j]] >= 0 else np.int64(state.player)
        offsets = _OFFSETS[state.num_players]
        size = offsets[-1]
        at = games[j] * size
        for k in range(size):
            out[np.uint64(at + k)] = 0
        heading = 4 * np.int64(state.assam) + state.facing
        half = chances[0 if state.phase == WALK else 1]
        find_walkers(state, work)
        find_regions(state, observer, heading, work, half)
        _write_facts(state, observer, work, out, at, offsets)
        _write_window(state, observer, heading, work, out, at, offsets)
        if state.phase != OVER:
            _write_ahead(state, observer, work, out, at, offsets)
        if observer == state.player:
            if state.phase == STEER or state.phase == WALK:
                _write_steerings(state, observer, work, out, at, offsets)
            elif state.phase == LAY:
                _write_placements(state, observer, heading, work, half, out, at, offsets)
        for k in range(size):
            out[np.uint64(at + k)] *= _SCALES[state.num_players, k]


@kernel
def _write_facts(
    state: Record, observer: Int, work: Record, out: FloatArray, at: Int, offsets: IntArray
) -> None:
    """Who has what."""
    num_players = np.int64(state.num_players)
    own_score = game.score(state, observer)
    best, turns = np.int64(-1), np.int64(0)
    for k in range(num_players):
        seat = seat_after(state, observer, k)
        money = np.float32(state.money[seat])
        squares = game.popcount(game.board_of(state, seat))
        score = 0 if state.eliminated[seat] else np.int64(state.money[seat]) + squares
        if not state.eliminated[seat]:
            turns += game.rugs_left(state, seat)
        out[at + offsets[_TURN] + k] = state.phase != OVER and seat == state.player
        out[at + offsets[_WALKER] + k] = seat == work.walkers[0]
        out[at + offsets[_ELIMINATED] + k] = state.eliminated[seat] > 0
        out[at + offsets[_MONEY] + k] = money
        for ramp in range(2):
            low = np.float32(LOW_MONEY[ramp])
            out[at + offsets[_MONEY_LOW] + ramp * num_players + k] = min(money, low) / low
        out[at + offsets[_SQUARES_OF] + k] = squares
        if k > 0:
            best = max(best, score)
            out[at + offsets[_LEAD] + k - 1] = own_score - score
    late = (own_score - best) / (2 + turns)
    out[at + offsets[_LATE_MARGIN]] = min(max(late, -MAX_LATE_MARGIN), MAX_LATE_MARGIN)
    out[at + offsets[_TURNS_LEFT]] = turns
    for ramp in range(2):
        out[at + offsets[_TURNS_LOW] + ramp] = min(turns, LOW_TURNS[ramp]) / LOW_TURNS[ramp]
    out[at + offsets[_UNDER]] = work.size[state.assam]
    if state.phase != OVER:
        out[at + offsets[_PHASE] + state.phase] = 1
    out[at + offsets[_EAST_WEST]] = state.facing & 1
    for slot in range(offsets[_RUGS + 1] - offsets[_RUGS]):
        colour = colour_of_slot(state, observer, slot)
        if colour >= 0:
            out[at + offsets[_RUGS] + slot] = state.rugs[colour]
            out[at + offsets[_LARGEST] + slot] = work.largest[colour]
            out[at + offsets[_EVEN_TOLL] + slot] = np.float32(work.square_sum[colour]) / NUM_CELLS


@kernel
def _write_window(
    state: Record,
    observer: Int,
    heading: Int,
    work: Record,
    out: FloatArray,
    at: Int,
    offsets: IntArray,
) -> None:
    """The board around Assam."""
    start = at + offsets[_WINDOW_COLOURS]
    for slot in range((offsets[_WINDOW_COLOURS + 1] - offsets[_WINDOW_COLOURS]) // _SQUARES):
        colour = colour_of_slot(state, observer, slot)
        board = state.colour_boards[colour] if colour >= 0 else np.uint64(0)
        for k in range(_SQUARES):
            out[np.uint64(start + slot * _SQUARES + k)] = np.float32(np.int32(
                (board >> np.uint64(_WINDOW[heading, k])) & np.uint64(1)
            ))
    outside, size = at + offsets[_WINDOW_OUTSIDE], at + offsets[_WINDOW_SIZE]
    for k in range(_SQUARES):
        cell = _WINDOW[heading, k]
        out[np.uint64(outside + k)] = np.float32(cell == NOWHERE)
        out[np.uint64(size + k)] = work.size[cell]


@kernel
def _write_ahead(
    state: Record, observer: Int, work: Record, out: FloatArray, at: Int, offsets: IntArray
) -> None:
    """What the coming walks meet on the board as it lies."""
    for walk in range(NUM_WALKS):
        k = NUM_STEERINGS + walk
        if work.walkers[walk] == observer:
            out[at + offsets[_INCOME] + walk] = -work.before[WALKERS, k] - work.before[THIRD, k]
        elif work.walkers[walk] >= 0:
            out[at + offsets[_INCOME] + walk] = work.before[OWN, k]
    walker = work.walkers[0]
    for steering in range(NUM_STEERINGS):
        if state.phase == WALK and steering != 1:
            continue
        out[at + offsets[_AHEAD_MINE] + steering] = work.before[OWN, steering]
        out[at + offsets[_AHEAD_THEIRS] + steering] = (
            work.before[WALKERS, steering] + work.before[THIRD, steering]
        )
        heading, ruin = heading_after(state, steering), np.float32(0)
        for face in range(_FACES):
            cell = ENDS[heading, face]
            out[at + offsets[_AHEAD] + _FACES * steering + face] = work.size[cell]
            if walker >= 0 and _due(work, walker == observer, cell) > state.money[walker]:
                ruin += _CHANCE[face]
        out[at + offsets[_RUIN] + steering] = ruin


@kernel
def _due(work: Record, is_observer: bool, cell: Int) -> Int:
    """What the seat that takes walk 0 owes on a cell."""
    region = work.region_of[cell]
    if region == NO_REGION or work.whose[region] == (OWN if is_observer else WALKERS):
        return 0
    return work.squares[region]


@kernel
def _write_steerings(
    state: Record, observer: Int, work: Record, out: FloatArray, at: Int, offsets: IntArray
) -> None:
    """What follows from each steering: the walk after the next, and what can be covered."""
    for steering in range(NUM_STEERINGS):
        if state.phase == WALK and steering != 1:
            continue
        mean, best = np.float32(0), np.float32(0)
        mine, theirs, squares = np.float32(0), np.float32(0), np.float32(0)
        for face in range(_FACES):
            chance = _CHANCE[face]
            heading = np.int64(WALK_TABLE[face + 1, heading_after(state, steering)])
            each, cheapest = _next_incomes(state, observer, heading, work)
            mean += chance * each
            best += chance * cheapest
            most, least, count = np.float32(0), np.float32(0), np.float32(0)
            for k in range(_NEAR.shape[1]):
                size = work.size[_NEAR[heading >> 2, k]]
                most, least = max(most, size), min(least, size)
                count += np.float32(size < 0)
            mine += chance * most
            theirs -= chance * least
            squares += chance * count
        out[at + offsets[_STEER_NEXT] + steering] = mean
        out[at + offsets[_STEER_NEXT_BEST] + steering] = best
        out[at + offsets[_NEAR_MINE] + steering] = mine
        out[at + offsets[_NEAR_THEIRS] + steering] = theirs
        out[at + offsets[_NEAR_SQUARES] + steering] = squares


@kernel
def _next_incomes(
    state: Record, observer: Int, heading: Int, work: Record
) -> tuple[float, float]:
    """Expected income of walk 1 from a heading: steered at random, and cheapest for its walker."""
    walker = work.walkers[1]
    mean, lowest, at_lowest = np.float32(0), np.float32(np.inf), np.float32(0)
    if walker < 0:
        return mean, at_lowest
    for turn in range(NUM_STEERINGS):
        turned = 4 * (heading >> 2) + ((heading + turn + 3) & 3)
        due, income = np.float32(0), np.float32(0)
        for face in range(_FACES):
            cell = ENDS[turned, face]
            size = work.size[cell]
            if size > 0:
                income += _CHANCE[face] * size
            elif size < 0 and game.cell_bit(cell) & ~game.board_of(state, walker):
                due -= _CHANCE[face] * size
        if walker == observer:
            income = -due
        else:
            due += income
        mean += income / NUM_STEERINGS
        if _is_cheaper(due, income, lowest, at_lowest):
            lowest, at_lowest = due, income
    return mean, at_lowest


@kernel
def _is_cheaper(due: float, income: float, lowest: float, at_lowest: float) -> bool:
    """Whether a walker steers there: to owe least, and among equals to the observer's harm."""
    rounding = np.float32(1e-5)
    return due < lowest - rounding or (due < lowest + rounding and income < at_lowest)


@kernel
def _write_placements(
    state: Record,
    observer: Int,
    heading: Int,
    work: Record,
    chances: NDArray[np.float32],
    out: FloatArray,
    at: Int,
    offsets: IntArray,
) -> None:
    """What follows from each placement."""
    legal = game.legal_placements(state)
    before, after = work.before, work.after
    for placement in range(NUM_PLACEMENTS):
        if not legal >> np.uint32(placement) & np.uint32(1):
            continue
        squares, rug = lay(state, placement, heading, work, chances)
        row = at + placement
        out[row + offsets[_LEGAL]] = 1
        out[row + offsets[_LAY_OWN]] = game.popcount(rug & game.board_of(state, observer))
        for k in range(1, state.num_players):
            seat = seat_after(state, observer, k)
            if not state.eliminated[seat]:
                covered = game.popcount(rug & game.board_of(state, seat))
                out[row + offsets[_LAY_OTHERS] + NUM_PLACEMENTS * (k - 1)] = covered
        out[row + offsets[_LAY_REGION]] = squares

        mean, lowest, at_lowest = np.float32(0), np.float32(np.inf), np.float32(0)
        if work.walkers[0] >= 0:
            for k in range(NUM_STEERINGS):
                income, due = after[OWN, k], after[OWN, k] + after[THIRD, k]
                if work.walkers[0] == observer:
                    due = after[WALKERS, k] + after[THIRD, k]
                    income = -due
                mean += income / NUM_STEERINGS
                if _is_cheaper(due, income, lowest, at_lowest):
                    lowest, at_lowest = due, income
        gain, cost = np.float32(0), np.float32(0)
        for walk in range(1, NUM_WALKS):
            k = NUM_STEERINGS + walk
            if work.walkers[walk] == observer:
                for whose in (WALKERS, THIRD):
                    cost += after[whose, k] - before[whose, k]
            elif work.walkers[walk] >= 0:
                gain += after[OWN, k] - before[OWN, k]
        out[row + offsets[_LAY_NEXT]] = mean
        out[row + offsets[_LAY_NEXT_BEST]] = at_lowest
        out[row + offsets[_LAY_GAIN]] = gain
        out[row + offsets[_LAY_COST]] = cost
