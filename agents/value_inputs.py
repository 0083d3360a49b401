"""What the value network sees of a position right after a turn, and how a rug changes it.

The position is seen by *slots*, not by seats: slot 0 is the player who has just laid, slot 1 the
one who walks next, and so on round the table; eliminated players have no slot, so that a game of
four with one player out looks like a game of three. *Colour slots* follow: with two colours each,
0 and 1 are those of slot 0 (the one just laid, the other one), 2 and 3 those of slot 1 (his next
rug, the other one); with one colour each, colour slot and slot are the same (0 and 2 with two
players). The next rug of slot 0 is not drawn yet: its chance is an input, so that the value is the
expectation over the draw.

The board looks the same after a half turn and after a reflection in either diagonal; the one of
these that lets Assam look north is applied to everything (in the tables, not to the board).

All kernels work on one record of `WORK`. `prepare` takes in a position, `look` says where Assam
stands and looks, `lay` puts a rug on the board as prepared, and `write_inputs` writes the numbers.
The same tables and records serve all placements of a turn, which is what makes them cheap.

Legend: *size* of a square = squares of the region that it belongs to.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import BOARD_SIZE, MAX_PLAYERS, NUM_CELLS, NUM_COLOURS
from marrakech_env.state import SINGLE, TIE_BY_SQUARES, Bits, Int, Record
from marrakech_env.tables import DIE_PROBABILITY, NUM_HEADINGS, WALK

NUM_STEERINGS: Final = 3
NUM_FACES: Final = 4
NUM_COLUMNS: Final = 8
"""Columns of the table of chances: the next walk after each steering (3), the walk after that one
by the same steering (3), the third and the fourth walk."""
NOWHERE: Final = NUM_CELLS
"""Index of a square that is not seen; its size is 0."""
NOBODY: Final = MAX_PLAYERS
"""The slot of empty and neutral squares and of eliminated players."""
NO_REGION: Final = 255
WINDOW: Final = 7
"""Width of the window around Assam in which every square is an input."""

# ------------------------------------------------------------------------------ the inputs as data

VARYING: Final = (
    ("ahead", 48, "size of the 12 squares where the next walk can end, by owner's slot"),
    ("under", 4, "size of Assam's square, by owner's slot"),
    ("expected", 32, "expected size where coming walks end, by owner's slot and column"),
    ("least_due", 1, "what the next walk costs when steered to cost least"),
    ("least_income", 4, "what each slot gets of it"),
    ("ruin", 3, "chance that the next walk eliminates its walker, by steering"),
    ("squares", 4, "visible squares, by colour slot"),
    ("square_sum", 4, "squared region sizes, summed, by colour slot"),
    ("largest", 4, "squares of the largest region, by colour slot"),
    ("threat", 4, "largest region of others, over money + 1, at most 2; by slot"),
    ("lead", 4, "score minus the best of the others; by slot"),
    ("late_lead", 4, "the same over 2 + turns left, within 5; by slot"),
)
"""Inputs that a placement changes: name, count, meaning."""
FIXED: Final = (
    ("money", 4, "dirhams, by slot"),
    ("low_money", 8, "min(dirhams, 5)/5 by slot, min(dirhams, 15)/15 by slot"),
    ("in_game", 4, "1 for a slot that is taken"),
    ("turns", 4, "rugs still to lay: all, and ramps up to 2, 6 and 12"),
    ("rugs", 4, "rugs still to lay, by colour slot"),
    ("draw", 1, "chance that the next rug of slot 0 has the colour just laid"),
)
"""Inputs that are the same for all placements of a rug."""
NUM_VARYING: Final = sum(count for _, count, _ in VARYING)
NUM_DENSE: Final = NUM_VARYING + sum(count for _, count, _ in FIXED)
ASSAM: Final = NUM_DENSE
"""First of 49 inputs, one for Assam's square."""
SEEN: Final = NUM_DENSE + NUM_CELLS
"""First of 4*49 inputs: colour slot by square of the window."""
NUM_INPUTS: Final = SEEN + NUM_COLOURS * WINDOW * WINDOW

_starts = np.cumsum([0] + [count for _, count, _ in VARYING + FIXED]).tolist()
(
    _AHEAD,
    _UNDER,
    _EXPECTED,
    _LEAST_DUE,
    _LEAST_INCOME,
    _RUIN,
    _SQUARES,
    _SQUARE_SUM,
    _LARGEST,
    _THREAT,
    _LEAD,
    _LATE_LEAD,
    _MONEY,
    _LOW_MONEY,
    _IN_GAME,
    _TURNS,
    _RUGS,
    _DRAW,
) = _starts[:-1]
LEAD_INPUT: Final = _LEAD
"""First of the 4 inputs that hold the leads."""
LEAD_UNIT: Final = 20.0
"""Dirhams for which such an input is 1."""

# ------------------------------------------------------------------------------------- tables

TABLES: Final = np.dtype(
    [
        ("chances", np.float32, (2 * NUM_HEADINGS, NUM_CELLS, NUM_COLUMNS)),
        ("ends", np.int64, (2 * NUM_HEADINGS, NUM_STEERINGS * NUM_FACES)),
        ("seen", np.int64, (NUM_HEADINGS, NUM_CELLS)),
        ("assam", np.int64, (NUM_HEADINGS,)),
    ],
    align=True,
)
"""By *look*: a heading, plus 196 where the next walk goes straight on whatever the steering.
`chances`: how likely the walk of a column ends on a cell, later steerings being random; `ends`: the
cells of the next walk by steering and roll. `seen`: the place of a cell in the window; `assam`:
Assam's square. Left and right change places where the board is reflected."""


def _turned(x: int, y: int, facing: int) -> tuple[int, int]:
    """A square once the symmetry that lets Assam look north is applied."""
    last = BOARD_SIZE - 1
    return ((x, y), (last - y, last - x), (last - x, last - y), (y, x))[facing]


def build_tables() -> NDArray[np.void]:
    """The tables as TABLES (1,)."""
    tables = np.zeros(1, TABLES)
    straight = np.zeros((NUM_HEADINGS, NUM_HEADINGS))
    for heading in range(NUM_HEADINGS):
        for steps in range(1, NUM_FACES + 1):
            straight[heading, WALK[steps, heading]] += DIE_PROBABILITY[steps]
    headings = np.arange(NUM_HEADINGS)
    turned = [headings // 4 * 4 + (headings + turn) % 4 for turn in (3, 0, 1)]
    steered = sum(straight[to] for to in turned) / NUM_STEERINGS
    for heading in range(NUM_HEADINGS):
        facing = heading % 4
        y, x = divmod(heading // 4, BOARD_SIZE)
        ax, ay = _turned(x, y, facing)
        tables["assam"][0, heading] = BOARD_SIZE * ay + ax
        for cell in range(NUM_CELLS):
            cx, cy = _turned(cell % BOARD_SIZE, cell // BOARD_SIZE, facing)
            column, row = cx - ax + WINDOW // 2, cy - ay + WINDOW // 2
            inside = 0 <= column < WINDOW and 0 <= row < WINDOW
            tables["seen"][0, heading, cell] = WINDOW * row + column if inside else NOWHERE
        for straight_on in (0, 1):
            look = heading + NUM_HEADINGS * straight_on
            walks = []
            for steering in (2, 1, 0) if facing % 2 else (0, 1, 2):
                start = heading if straight_on else int(turned[steering][heading])
                k = NUM_FACES * len(walks)
                tables["ends"][0, look, k : k + NUM_FACES] = WALK[1:, start] // 4
                walks.append(straight[start])
            after = [walk @ steered for walk in walks]
            third = sum(after) / NUM_STEERINGS @ steered
            for column, chances in enumerate([*walks, *after, third, third @ steered]):
                tables["chances"][0, look, :, column] = chances.reshape(NUM_CELLS, 4).sum(1)
    tables.setflags(write=False)
    return tables


# --------------------------------------------------------------------------------------- work

_BOARD: Final[list[Any]] = [
    ("size", np.float32, (NUM_CELLS + 1,)),  # size of each square
    ("slot", np.int64, (NUM_CELLS + 1,)),  # owner's slot of each square
    ("expected", np.float32, (MAX_PLAYERS + 1, NUM_COLUMNS)),  # size * chances, by owner's slot
    ("squares", np.float32, (NUM_COLOURS + 1,)),  # by colour slot
    ("square_sum", np.float32, (NUM_COLOURS + 1,)),
    ("largest", np.float32, (NUM_COLOURS + 1,)),
]
BOARD: Final = np.dtype(_BOARD, align=True)
WORK: Final = np.dtype(
    [
        ("now", BOARD),  # the board as looked at
        ("base", BOARD),  # the board as prepared
        ("boards", np.uint64, (NUM_COLOURS,)),  # bitboards of the colours
        ("num_regions", np.int64),
        ("bits", np.uint64, (NUM_CELLS,)),  # bitboard of each region
        ("region_squares", np.int64, (NUM_CELLS,)),
        ("region_colour", np.int64, (NUM_CELLS,)),
        ("region_of", np.int64, (NUM_CELLS,)),  # region of each square, or NO_REGION
        ("num_slots", np.int64),
        ("seat_of_slot", np.int64, (MAX_PLAYERS,)),
        ("slot_of_seat", np.int64, (MAX_PLAYERS,)),
        ("slot_of_colour", np.int64, (NUM_COLOURS,)),
        ("colour_slot", np.int64, (NUM_COLOURS,)),
        ("two_colours", np.int64),
        ("by_squares", np.int64),  # whether visible squares decide between equal scores
        ("laid", np.int64),  # the colour that slot 0 lays or has laid
        ("turns", np.int64),  # rugs still to lay, once slot 0 has laid
        ("money", np.float32, (MAX_PLAYERS,)),  # by slot
        ("rugs", np.float32, (NUM_COLOURS + 1,)),  # by colour slot, once slot 0 has laid
        ("draw", np.float32),
        ("look", np.int64),
        ("assam", np.int64),
        ("score", np.float32, (MAX_PLAYERS,)),  # by slot, on the board as looked at
        ("lead", np.float32, (MAX_PLAYERS,)),  # score minus the best of the others
        ("inputs", np.float32, (NUM_DENSE,)),
        ("cut", np.int64, (2,)),  # regions that lose a square, or -1
        ("piece", np.float32, (NUM_COLOURS + 1,)),  # largest piece of a cut region
    ],
    align=True,
)
"""Everything about one position, in one record: records are passed for free."""

_ONE, _ROW = np.uint64(1), np.uint64(BOARD_SIZE)
_NOT_WEST_EDGE = np.uint64(sum(1 << c for c in range(NUM_CELLS) if c % BOARD_SIZE))
_NOT_EAST_EDGE = np.uint64(sum(1 << c for c in range(NUM_CELLS) if (c + 1) % BOARD_SIZE))
_CHANCE = DIE_PROBABILITY[1:].astype(np.float32)


@kernel
def _lowest_cell(bits: Bits) -> Int:
    """The lowest cell of a bitboard that is not empty."""
    return game.popcount(~bits & (bits - _ONE))


# ------------------------------------------------------------------------------- one position


@kernel
def next_walker(state: Record, mover: Int) -> Int:
    """The seat that walks after a mover who has laid, the mover himself where nobody else can."""
    seat = mover
    for _ in range(state.num_players):
        seat = seat + 1 if seat + 1 < state.num_players else 0
        if not state.eliminated[seat] and game.rugs_left(state, seat) > 0:
            return seat
    return mover


@kernel
def prepare(
    state: Record, mover: Int, walker: Int, laid: Int, is_laid: bool, draw: float, work: Record
) -> None:
    """Takes in slots, rugs, money and regions of a position.

    Args:
        state: The game.
        mover: The seat that lays or has laid.
        walker: The seat that walks next.
        laid: The colour of the mover's rug.
        is_laid: Whether the rug lies already.
        draw: Chance that the mover's next rug has that colour.
        work: Gets everything but what `look` and `lay` write.
    """
    _find_slots(state, mover, walker, laid, work)
    work.laid = laid
    work.draw = draw
    work.by_squares = state.flags & TIE_BY_SQUARES
    for slot in range(work.num_slots):
        work.money[slot] = state.money[work.seat_of_slot[slot]]
    turns = 0
    for colour_slot in range(NUM_COLOURS):
        work.rugs[colour_slot] = 0
    for colour in range(NUM_COLOURS):
        work.boards[colour] = state.colour_boards[colour]
        if work.slot_of_colour[colour] != NOBODY:
            rugs = np.int64(state.rugs[colour])
            if colour == laid and not is_laid and rugs > 0:
                rugs -= 1
            turns += rugs
            work.rugs[work.colour_slot[colour]] = rugs
    work.turns = turns
    _find_regions(work)


@kernel
def _find_slots(state: Record, mover: Int, walker: Int, laid: Int, work: Record) -> None:
    """Writes who sits in which slot, and the slots of the colours."""
    num_players = np.int64(state.num_players)
    for seat in range(MAX_PLAYERS):
        work.slot_of_seat[seat] = NOBODY
    slot = 1
    seat: Int = walker
    for _ in range(num_players):
        if seat != mover and not state.eliminated[seat]:
            work.seat_of_slot[slot] = seat
            work.slot_of_seat[seat] = slot
            slot += 1
        seat = seat + 1 if seat + 1 < num_players else 0
    if state.eliminated[mover]:  # the last one round the table before the walker takes slot 0
        slot -= 1
        work.seat_of_slot[0] = work.seat_of_slot[slot]
        work.slot_of_seat[work.seat_of_slot[0]] = 0
    else:
        work.seat_of_slot[0] = mover
        work.slot_of_seat[mover] = 0
    work.num_slots = slot
    two_colours = game.has_two_colours(state)
    work.two_colours = 1 if two_colours else 0
    for colour in range(NUM_COLOURS):
        work.slot_of_colour[colour] = NOBODY
        work.colour_slot[colour] = NUM_COLOURS
        if colour >= (4 if two_colours else num_players):
            continue
        slot = work.slot_of_seat[game.owner(state, colour)]
        work.slot_of_colour[colour] = slot
        if slot == NOBODY:
            continue
        if two_colours:
            first = laid if slot == 0 else np.int64(state.next_colour[work.seat_of_slot[slot]])
            other = first >= 0 and first != colour
            if first < 0:
                other = (colour & 1) == 1
            work.colour_slot[colour] = 2 * slot + (1 if other else 0)
        else:
            work.colour_slot[colour] = 2 * slot if num_players == 2 else slot


@kernel
def _find_regions(work: Record) -> None:
    """Writes the regions of all players still in the game, and the board without `expected`."""
    base = work.base
    for cell in range(NUM_CELLS + 1):
        base.size[cell] = 0
        base.slot[cell] = NOBODY
    for cell in range(NUM_CELLS):
        work.region_of[cell] = NO_REGION
    for colour_slot in range(NUM_COLOURS + 1):
        base.squares[colour_slot] = 0
        base.square_sum[colour_slot] = 0
        base.largest[colour_slot] = 0
    region = 0
    for colour in range(NUM_COLOURS):
        slot, colour_slot = work.slot_of_colour[colour], work.colour_slot[colour]
        if slot == NOBODY:
            continue
        left = work.boards[colour]
        while left:
            bits = game.region(left, _lowest_cell(left))
            left ^= bits
            squares = game.popcount(bits)
            size = np.float32(squares)
            work.bits[region] = bits
            work.region_squares[region] = squares
            work.region_colour[region] = colour
            base.squares[colour_slot] += size
            base.square_sum[colour_slot] += size * size
            base.largest[colour_slot] = max(base.largest[colour_slot], size)
            while bits:
                cell = _lowest_cell(bits)
                bits &= bits - _ONE
                work.region_of[cell] = region
                base.size[cell] = size
                base.slot[cell] = slot
            region += 1
    work.num_regions = region


@kernel
def look(work: Record, tables: Record, heading: Int, straight_on: bool) -> None:
    """Says where Assam stands and looks: writes `base.expected`, the fixed inputs, and `now`.

    Args:
        work: A prepared position with the money after the walk.
        tables: Of `build_tables`.
        heading: Where Assam is and looks when the next walk begins.
        straight_on: Whether that walk goes straight on.
    """
    work.look = heading + (NUM_HEADINGS if straight_on else 0)
    work.assam = heading >> 2
    base = work.base
    for slot in range(MAX_PLAYERS + 1):
        for k in range(NUM_COLUMNS):
            base.expected[slot, k] = 0
    for cell in range(NUM_CELLS):
        slot = np.uint64(base.slot[cell])
        if slot != NOBODY:
            for k in range(NUM_COLUMNS):
                base.expected[slot, k] += base.size[cell] * tables.chances[work.look, cell, k]
    _write_fixed(work)
    _reset_board(work)


@kernel
def _write_fixed(work: Record) -> None:
    x = work.inputs
    for slot in range(MAX_PLAYERS):
        taken = slot < work.num_slots
        money = work.money[slot] if taken else np.float32(0)
        x[_MONEY + slot] = money / np.float32(30)
        x[_LOW_MONEY + slot] = min(money, np.float32(5)) / np.float32(5)
        x[_LOW_MONEY + 4 + slot] = min(money, np.float32(15)) / np.float32(15)
        x[_IN_GAME + slot] = taken
        x[_RUGS + slot] = work.rugs[slot] / np.float32(12)
    turns = np.float32(work.turns)
    x[_TURNS] = turns / np.float32(24)
    x[_TURNS + 1] = min(turns, np.float32(2)) / np.float32(2)
    x[_TURNS + 2] = min(turns, np.float32(6)) / np.float32(6)
    x[_TURNS + 3] = min(turns, np.float32(12)) / np.float32(12)
    x[_DRAW] = work.draw


@kernel
def _reset_board(work: Record) -> None:
    """Puts `now` back to `base`."""
    now, base = work.now, work.base
    for cell in range(NUM_CELLS + 1):
        now.size[cell] = base.size[cell]
    for cell in range(NUM_CELLS + 1):
        now.slot[cell] = base.slot[cell]
    for slot in range(MAX_PLAYERS + 1):
        for k in range(NUM_COLUMNS):
            now.expected[slot, k] = base.expected[slot, k]
    for colour_slot in range(NUM_COLOURS + 1):
        now.squares[colour_slot] = base.squares[colour_slot]
        now.square_sum[colour_slot] = base.square_sum[colour_slot]
        now.largest[colour_slot] = base.largest[colour_slot]


# --------------------------------------------------------------------------------- one rug


@kernel
def lay(work: Record, tables: Record, first: Int, second: Int) -> None:
    """Lays the rug of slot 0 on two cells of the board as prepared: writes `now`."""
    _reset_board(work)
    now = work.now
    laid = work.laid
    own = work.colour_slot[laid]
    rug = game.cell_bit(first) | game.cell_bit(second)
    board = work.boards[laid]
    work.cut[0] = -1
    work.cut[1] = -1
    for k in range(2):
        region = work.region_of[second if k else first]
        if region != NO_REGION and work.region_colour[region] != laid:
            now.squares[work.colour_slot[work.region_colour[region]]] -= 1
            if region != work.cut[0]:
                work.cut[k] = region
    if work.cut[0] >= 0 or work.cut[1] >= 0:
        _cut(work, tables, rug)

    fresh = rug & ~board
    squares = game.popcount(fresh)
    now.squares[own] += squares
    bits = fresh
    touched = (
        rug
        | ((rug & _NOT_EAST_EDGE) << _ONE)
        | ((rug & _NOT_WEST_EDGE) >> _ONE)
        | rug << _ROW
        | rug >> _ROW
    ) & board
    while touched:
        region = work.region_of[_lowest_cell(touched)]
        touched &= ~work.bits[region]
        bits |= work.bits[region]
        part = work.region_squares[region]
        squares += part
        now.square_sum[own] -= part * part
    now.square_sum[own] += squares * squares
    now.largest[own] = max(now.largest[own], np.float32(squares))
    _set_size(work, tables, bits, np.float32(squares), 0)


@kernel
def _cut(work: Record, tables: Record, rug: Bits) -> None:
    """Takes the squares of a rug out of the regions that it covers, which may fall apart."""
    now = work.now
    for k in range(2):
        if work.cut[k] >= 0:
            work.piece[work.colour_slot[work.region_colour[work.cut[k]]]] = 0
    for k in range(2):
        region = work.cut[k]
        if region < 0:
            continue
        colour = work.region_colour[region]
        colour_slot = work.colour_slot[colour]
        squares = work.region_squares[region]
        now.square_sum[colour_slot] -= squares * squares
        left = work.bits[region] & ~rug
        while left:
            bits = game.region(left, _lowest_cell(left))
            left ^= bits
            size = np.float32(game.popcount(bits))
            now.square_sum[colour_slot] += size * size
            work.piece[colour_slot] = max(work.piece[colour_slot], size)
            _set_size(work, tables, bits, size, work.slot_of_colour[colour])
    for k in range(2):
        if work.cut[k] < 0:
            continue
        colour = work.region_colour[work.cut[k]]
        largest = work.piece[work.colour_slot[colour]]
        for region in range(work.num_regions):
            if (
                work.region_colour[region] == colour
                and region != work.cut[0]
                and region != work.cut[1]
            ):
                largest = max(largest, np.float32(work.region_squares[region]))
        now.largest[work.colour_slot[colour]] = largest


@kernel
def _set_size(work: Record, tables: Record, bits: Bits, size: float, slot: Int) -> None:
    """Gives squares a new size and owner, and corrects `expected`."""
    now = work.now
    to = np.uint64(slot)
    while bits:
        cell = np.uint64(_lowest_cell(bits))
        bits &= bits - _ONE
        old, of = now.size[cell], np.uint64(now.slot[cell])
        for k in range(NUM_COLUMNS):
            chance = tables.chances[work.look, cell, k]
            now.expected[of, k] -= old * chance
            now.expected[to, k] += size * chance
        now.size[cell] = size
        now.slot[cell] = slot


# --------------------------------------------------------------------------------- the numbers


@kernel
def write_scores(work: Record) -> None:
    """Writes `score` and `lead` of all slots on the board as looked at."""
    now = work.now
    best, second = np.float32(-1e6), np.float32(-1e6)
    for slot in range(work.num_slots):
        score = work.money[slot] + squares_of(work, slot)
        work.score[slot] = score
        if score > best:
            best, second = score, best
        elif score > second:
            second = score
    if work.num_slots == 1:
        second = np.float32(0)
    for slot in range(work.num_slots):
        score = work.score[slot]
        work.lead[slot] = score - (second if score == best else best)


@kernel
def squares_of(work: Record, slot: Int) -> float:
    """Visible squares of a slot on the board as looked at."""
    now = work.now
    if work.two_colours:
        return now.squares[2 * slot] + now.squares[2 * slot + 1]
    return now.squares[_first_colour_slot(work, slot)]


@kernel
def _first_colour_slot(work: Record, slot: Int) -> Int:
    for colour in range(NUM_COLOURS):
        if work.slot_of_colour[colour] == slot:
            return work.colour_slot[colour]
    return NUM_COLOURS


@kernel
def write_inputs(work: Record, tables: Record) -> None:
    """Writes the varying inputs of the board as looked at."""
    now, x = work.now, work.inputs
    for k in range(NUM_VARYING):
        x[k] = 0
    for k in range(NUM_STEERINGS * NUM_FACES):
        cell = np.uint64(tables.ends[work.look, k])
        slot = now.slot[cell]
        if slot != NOBODY:
            x[_AHEAD + 12 * slot + k] = now.size[cell] / np.float32(5)
    if now.slot[work.assam] != NOBODY:
        x[_UNDER + now.slot[work.assam]] = now.size[work.assam] / np.float32(5)
    for slot in range(work.num_slots):
        for k in range(NUM_COLUMNS):
            x[_EXPECTED + NUM_COLUMNS * slot + k] = now.expected[slot, k] / np.float32(3)
    _write_next_walk(work, tables)
    for colour_slot in range(NUM_COLOURS):
        x[_SQUARES + colour_slot] = now.squares[colour_slot] / np.float32(10)
        x[_SQUARE_SUM + colour_slot] = now.square_sum[colour_slot] / np.float32(80)
        x[_LARGEST + colour_slot] = now.largest[colour_slot] / np.float32(8)
    write_scores(work)
    late = np.float32(1) / (np.float32(2) + np.float32(work.turns))
    for slot in range(work.num_slots):
        threat = np.float32(0)
        for colour in range(NUM_COLOURS):
            if work.slot_of_colour[colour] != slot:
                threat = max(threat, now.largest[work.colour_slot[colour]])
        x[_THREAT + slot] = min(threat / (work.money[slot] + np.float32(1)), np.float32(2))
        lead = work.lead[slot]
        x[_LEAD + slot] = lead / np.float32(LEAD_UNIT)
        x[_LATE_LEAD + slot] = max(min(lead * late, np.float32(5)), np.float32(-5))


@kernel
def _write_next_walk(work: Record, tables: Record) -> None:
    """What the walk of slot 1 costs him, steered to cost least, and whether it ruins him."""
    if work.num_slots < 2:
        return
    now, x = work.now, work.inputs
    least, at = np.float32(np.inf), 0
    for steering in range(NUM_STEERINGS):
        due, ruin = np.float32(0), np.float32(0)
        for slot in range(work.num_slots):
            if slot != 1:
                due += now.expected[slot, steering]
        for face in range(NUM_FACES):
            cell = np.uint64(tables.ends[work.look, NUM_FACES * steering + face])
            if now.slot[cell] != 1 and now.size[cell] > work.money[1]:
                ruin += _CHANCE[face]
        x[_RUIN + steering] = ruin
        if due < least:
            least, at = due, steering
    x[_LEAST_DUE] = least / np.float32(3)
    for slot in range(work.num_slots):
        if slot != 1:
            x[_LEAST_INCOME + slot] = now.expected[slot, at] / np.float32(3)
