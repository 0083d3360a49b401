"""The board as the value network needs it: slots, regions, and what a rug does to them.

All kernels work on one record of `value_inputs.WORK`. `prepare` takes in a position, `look` says
where Assam stands and looks, `lay` puts a rug on the board as prepared. The rug changes only what
it touches, which is what makes all the placements of a turn cheap.

Legend: see `value_inputs`.
"""

from __future__ import annotations

import numpy as np

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import lowest_cell, with_neighbours
from marrakech_env.spec import MAX_PLAYERS, NUM_CELLS, NUM_COLOURS
from marrakech_env.state import TIE_BY_SQUARES, Bits, Int, Record
from marrakech_env.tables import NUM_HEADINGS

from .inputs import NO_REGION, NOBODY, NUM_COLUMNS, Real, write_fixed

_ONE = np.uint64(1)


# ------------------------------------------------------------------------------- one position


@kernel
def next_walker(state: Record, mover: Int) -> Int:
    """The seat that walks after a mover who has laid, the mover himself where nobody else can."""
    seat = game.next_player(state, mover)
    return mover if seat == game.NO_SEAT else seat


@kernel
def prepare(
    state: Record, mover: Int, walker: Int, laid: Int, is_laid: bool, draw: Real, work: Record
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
    turns: Int = 0
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
    work.links_east = state.links_east
    work.links_south = state.links_south
    work.reply_colour = laid
    work.follower = NOBODY
    if work.num_slots > 1:
        seat = work.seat_of_slot[1]
        work.reply_colour = np.int64(state.next_colour[seat])
        if work.reply_colour < 0:
            work.reply_colour = 2 * seat if game.has_two_colours(state) else seat
        for slot in range(2, work.num_slots + 1):
            follower = slot if slot < work.num_slots else 0
            if work.follower == NOBODY and _holds_rug(work, follower):
                work.follower = follower
    _find_regions(work)


@kernel
def _holds_rug(work: Record, slot: Int) -> bool:
    """Whether a slot has a rug to lay."""
    if work.colours_a_slot == 2:
        return bool(work.rugs[2 * slot] + work.rugs[2 * slot + 1] > 0)
    return bool(work.rugs[slot] > 0)


@kernel
def _find_slots(state: Record, mover: Int, walker: Int, laid: Int, work: Record) -> None:
    """Writes who sits in which slot, and the slots of the colours."""
    num_players = np.int64(state.num_players)
    for k in range(MAX_PLAYERS):
        work.slot_of_seat[k] = NOBODY
    slot: Int = 1
    seat = walker
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
    work.colours_a_slot = 2 if num_players == 2 else 1
    for colour in range(NUM_COLOURS):
        work.slot_of_colour[colour] = NOBODY
        work.colour_slot[colour] = NUM_COLOURS
        if colour >= (4 if two_colours else num_players):
            continue
        owner = work.slot_of_seat[game.owner(state, colour)]
        work.slot_of_colour[colour] = owner
        if owner == NOBODY:
            continue
        work.colour_slot[colour] = work.colours_a_slot * owner
        if two_colours:
            first = laid if owner == 0 else np.int64(state.next_colour[work.seat_of_slot[owner]])
            if first < 0:  # the last rug is laid: the lower colour comes first
                first = colour & ~1
            work.colour_slot[colour] += first != colour


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
            bits = game.region(left, lowest_cell(left))
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
                cell = lowest_cell(bits)
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
        tables: Of `value_tables`.
        heading: Where Assam is and looks when the next walk begins.
        straight_on: Whether that walk goes straight on.
    """
    work.look = heading + (NUM_HEADINGS if straight_on else 0)
    work.assam = heading >> 2
    work.straight_on = straight_on
    work.rug = np.uint64(0)
    base = work.base
    for slot in range(MAX_PLAYERS + 1):
        for k in range(NUM_COLUMNS):
            base.expected[slot, k] = 0
    for cell in range(NUM_CELLS):
        owner = np.uint64(base.slot[cell])
        if owner != NOBODY:
            for k in range(NUM_COLUMNS):
                base.expected[owner, k] += base.size[cell] * tables.chances[work.look, cell, k]
    write_fixed(work)
    _reset_board(work)


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
    work.rug = rug
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
    touched = with_neighbours(rug) & board
    while touched:
        region = work.region_of[lowest_cell(touched)]
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
            bits = game.region(left, lowest_cell(left))
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
def _set_size(work: Record, tables: Record, bits: Bits, size: Real, slot: Int) -> None:
    """Gives squares a new size and owner, and corrects `expected`."""
    now = work.now
    to = np.uint64(slot)
    while bits:
        cell = np.uint64(lowest_cell(bits))
        bits &= bits - _ONE
        old, of = now.size[cell], np.uint64(now.slot[cell])
        for k in range(NUM_COLUMNS):
            chance = tables.chances[work.look, cell, k]
            now.expected[of, k] -= old * chance
            now.expected[to, k] += size * chance
        now.size[cell] = size
        now.slot[cell] = slot
