"""What the value network sees of a position right after a turn, and how a rug changes it.

The position is seen by *slots*, not by seats: slot 0 is the player who has just laid, slot 1 the
one who walks next, and so on round the table; eliminated players have no slot, so that a game of
four with one player out looks like a game of three. *Colour slots* follow: with two colours each,
0 and 1 are those of slot 0 (the one just laid, the other one), 2 and 3 those of slot 1 (his next
rug, the other one); with one colour each, colour slot and slot are the same (0 and 2 with two
players). The next rug of slot 0 is not drawn yet: its chance is an input, so that the value is the
expectation over the draw.

The board looks the same after a half turn and after a reflection in either diagonal; the one of
these that lets Assam look north is applied to everything (in `value_tables`, not to the board).

`value_board` takes in a position and lays rugs; `write_fixed`, `write_inputs` and
`value_reply.write_replies` write the numbers; all work on one record of `WORK`.

Legend: *size* of a square = squares of the region that it belongs to.
"""

from __future__ import annotations

from typing import Any, Final, TypeAlias

import numpy as np

from marrakech_env.compile import kernel
from marrakech_env.spec import MAX_PLAYERS, NUM_CELLS, NUM_COLOURS
from marrakech_env.state import Int, Record
from marrakech_env.tables import DIE_PROBABILITY

Real: TypeAlias = Any
"""A number inside a kernel, float32 or float64 once compiled."""

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
    ("reply", 69, "what the next turn may do, 23 facts by its steering, see REPLY_FACTS"),
    ("likely", 23, "the same facts for the steering that the walker is likely to choose"),
    ("shape", 12, "squares on the edge, squares in corners, whole rugs; by colour slot"),
)
"""Inputs that a placement changes: name, count, meaning."""
REPLY_FACTS: Final = (
    ("due", 1, 1 / 3, "toll that the walker pays"),
    ("ruin", 1, 1.0, "chance that it eliminates him"),
    ("swing", 1, 1 / 2, "squares that his best rug shifts in his favour, 1 to 4"),
    ("growth", 1, 1 / 5, "largest region of his next rug's colour within two steps of the landing"),
    ("worst_cut", 1, 1 / 5, "largest region of others beside the landing"),
    ("second_due", 1, 1 / 3, "toll that the follower pays"),
    ("second_ruin", 1, 1.0, "chance that it eliminates him"),
    ("income", 4, 1 / 3, "toll that each slot gets from the walker"),
    ("cover", 4, 1.0, "chance that the walker lands beside a square of each slot"),
    ("cut", 4, 1 / 5, "largest region of each slot beside the landing"),
    ("second_income", 4, 1 / 3, "toll that each slot gets from the follower"),
)
"""Facts of a steering of the next walker: name, count, factor, meaning; all are expected over the
roll. The *follower* walks after him, the cheapest way from where he lands (the dearest one where
the walker steers for him)."""
FIXED: Final = (
    ("money", 4, "dirhams, by slot"),
    ("low_money", 8, "min(dirhams, 5)/5 by slot, min(dirhams, 15)/15 by slot"),
    ("in_game", 4, "1 for a slot that is taken"),
    ("turns", 4, "rugs still to lay: all, and ramps up to 2, 6 and 12"),
    ("rugs", 4, "rugs still to lay, by colour slot"),
    ("draw", 1, "chance that the next rug of slot 0 has the colour just laid"),
)
"""Inputs that are the same for all placements of a rug."""
NUM_REPLY_FACTS: Final = sum(count for _, count, _, _ in REPLY_FACTS)
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
    REPLY,
    LIKELY,
    SHAPE,
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
        ("colours_a_slot", np.int64),  # 2 with two players, although one may stay empty
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
        ("links_east", np.uint64),  # of the board as prepared
        ("links_south", np.uint64),
        ("rug", np.uint64),  # bitboard of the rug laid on it, or 0
        ("visible", np.uint64, (NUM_COLOURS,)),  # bitboards of the board as looked at
        ("free_east", np.uint64),  # cells where a rug may lie on this and the one to the east
        ("free_south", np.uint64),  # the same to the south
        ("swings", np.uint64, (4, 2)),  # see `bitboards.find_swings`
        ("straight_on", np.int64),  # whether the next walk is not steered
        ("reply_colour", np.int64),  # colour of the next rug of slot 1
        ("follower", np.int64),  # slot that walks after slot 1, or NOBODY
        ("bills", np.float32, (NUM_CELLS + 1,)),  # what the follower would pay on each cell
        ("reply", np.float32, (NUM_STEERINGS, NUM_REPLY_FACTS)),  # unscaled
        ("beside", np.float32, (MAX_PLAYERS + 1,)),  # scratch: largest region beside a landing
        ("cut", np.int64, (2,)),  # regions that lose a square, or -1
        ("piece", np.float32, (NUM_COLOURS + 1,)),  # largest piece of a cut region
    ],
    align=True,
)
"""Everything about one position, in one record: records are passed for free."""

CHANCE: Final = DIE_PROBABILITY[1:].astype(np.float32)
_ROUNDING = np.float32(1e-3)
# Multiplying is several times as fast as dividing.
_THIRD, _FIFTH, _EIGHTH, _TENTH, _EIGHTIETH, _OF_LEAD = (
    np.float32(1 / n) for n in (3, 5, 8, 10, 80, LEAD_UNIT)
)


@kernel
def write_fixed(work: Record) -> None:
    """Writes the fixed inputs."""
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


# --------------------------------------------------------------------------------- the numbers


@kernel
def write_scores(work: Record) -> None:
    """Writes `score` and `lead` of all slots on the board as looked at."""
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
def squares_of(work: Record, slot: Int) -> Real:
    """Visible squares of a slot on the board as looked at."""
    squares = work.now.squares
    if work.colours_a_slot == 2:
        return squares[2 * slot] + squares[2 * slot + 1]
    return squares[slot]


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
            x[np.uint64(_AHEAD + 12 * slot + k)] = now.size[cell] * _FIFTH
    if now.slot[work.assam] != NOBODY:
        x[_UNDER + now.slot[work.assam]] = now.size[work.assam] * _FIFTH
    for slot in range(work.num_slots):
        for k in range(NUM_COLUMNS):
            x[_EXPECTED + NUM_COLUMNS * slot + k] = now.expected[slot, k] * _THIRD
    _write_next_walk(work, tables)
    for colour_slot in range(NUM_COLOURS):
        x[_SQUARES + colour_slot] = now.squares[colour_slot] * _TENTH
        x[_SQUARE_SUM + colour_slot] = now.square_sum[colour_slot] * _EIGHTIETH
        x[_LARGEST + colour_slot] = now.largest[colour_slot] * _EIGHTH
    write_scores(work)
    late = np.float32(1) / (np.float32(2) + np.float32(work.turns))
    for slot in range(work.num_slots):
        threat = np.float32(0)
        for colour in range(NUM_COLOURS):
            if work.slot_of_colour[colour] != slot:
                threat = max(threat, now.largest[work.colour_slot[colour]])
        x[_THREAT + slot] = min(threat / (work.money[slot] + np.float32(1)), np.float32(2))
        lead = work.lead[slot]
        x[_LEAD + slot] = lead * _OF_LEAD
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
                ruin += CHANCE[face]
        x[_RUIN + steering] = ruin
        if due < least - _ROUNDING:  # so that sums in another order choose the same steering
            least, at = due, steering
    x[_LEAST_DUE] = least * _THIRD
    for slot in range(work.num_slots):
        if slot != 1:
            x[_LEAST_INCOME + slot] = now.expected[slot, at] * _THIRD
