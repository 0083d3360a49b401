"""How an observer sees a game: the board as Assam sees it, seats and colours from himself on.

`observation` says the perspective in words.
"""

from __future__ import annotations

import numpy as np

from marrakech_env.compile import kernel
from marrakech_env.spec import BOARD_SIZE, EAST, NORTH, SOUTH
from marrakech_env.state import SINGLE, Bits, Int, Record

_ROW_BITS = np.uint64((1 << BOARD_SIZE) - 1)
_LAST = np.uint64(BOARD_SIZE - 1)
_SIZE = np.uint64(BOARD_SIZE)
_REVERSED = np.array(
    [int(f"{bits:0{BOARD_SIZE}b}"[::-1], 2) for bits in range(1 << BOARD_SIZE)], np.uint64
)
# The 7 bits of a column lie 7 apart. Multiplied by _GATHER they come to lie side by side from bit
# _GATHERED on; no two partial products meet in one bit there or below, so nothing is carried.
_COLUMN = np.uint64(sum(1 << (BOARD_SIZE * y) for y in range(BOARD_SIZE)))
_GATHERED = np.uint64(BOARD_SIZE * (BOARD_SIZE - 1))
_GATHER = np.uint64(sum(1 << ((BOARD_SIZE - 1) * y) for y in range(1, BOARD_SIZE + 1)))


@kernel
def seen_row(bits: Bits, facing: Int, row: Int) -> Bits:
    """A row of a bitboard turned so that Assam looks up: 7 bits, the leftmost square lowest.

    Args:
        bits: The board.
        facing: Assam's facing.
        row: 0..6 from above, as he sees it.
    """
    down = np.uint64(row)
    up = _LAST - down
    if facing == NORTH:
        return bits >> (_SIZE * down) & _ROW_BITS
    if facing == EAST:
        return ((bits >> up & _COLUMN) * _GATHER) >> _GATHERED & _ROW_BITS
    if facing == SOUTH:
        return _REVERSED[bits >> (_SIZE * up) & _ROW_BITS]
    return _REVERSED[((bits >> down & _COLUMN) * _GATHER) >> _GATHERED & _ROW_BITS]


@kernel
def seat_after(state: Record, observer: Int, k: Int) -> Int:
    """The seat k places after the observer's, 0 <= k < P."""
    seat = observer + k
    return seat - state.num_players if seat >= state.num_players else seat


@kernel
def num_slots(state: Record) -> Int:
    """How many colour slots an observer has: two a seat with 2 players, else one."""
    return 4 if state.num_players == 2 else np.int64(state.num_players)


@kernel
def colour_of_slot(state: Record, observer: Int, slot: Int) -> Int:
    """The colour in an observer's colour slot, -1 where the slot stays empty."""
    if state.num_players > 2:
        return seat_after(state, observer, slot)
    seat = seat_after(state, observer, slot >> 1)
    if state.colour_rule == SINGLE:
        return -1 if slot & 1 else seat
    top = np.int64(state.next_colour[seat])
    if top < 0:
        top = 2 * seat
    return top ^ (slot & 1)
