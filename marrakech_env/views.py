"""How an observer sees a game: the board as Assam sees it, seats and colours from himself on.

`observation` says the perspective in words.
"""

from __future__ import annotations

import numpy as np

from marrakech_env.compile import kernel
from marrakech_env.spec import BOARD_SIZE, NUM_CELLS
from marrakech_env.state import SINGLE, Bits, Int, Record

_LAST, _SIZE = np.uint64(BOARD_SIZE - 1), np.uint64(BOARD_SIZE)
_ROW = np.uint64((1 << BOARD_SIZE) - 1)
_COLUMN = np.uint64(sum(1 << (BOARD_SIZE * k) for k in range(BOARD_SIZE)))
# Multiplied so, the bits of a row, 1 apart, or those of a column, 7 apart, come to lie 8 apart.
# Every bit of the product has one source only, so nothing is carried.
_SPREAD_ROW = _COLUMN
_SPREAD_COLUMN = _ROW
_BYTES = np.uint64(sum(1 << (8 * k) for k in range(BOARD_SIZE)))
_LOW_HALVES = np.array(
    [sum(1 << k for k in range(64) if not k >> step & 1) for step in range(6)], np.uint64
)


@kernel
def half_turned(bits: Bits) -> Bits:
    """A bitboard turned by half a turn: its 49 bits in reverse order."""
    for step in range(len(_LOW_HALVES)):
        width, low = np.uint64(1 << step), _LOW_HALVES[step]
        bits = (bits >> width & low) | (bits & low) << width
    return bits >> np.uint64(64 - NUM_CELLS)


@kernel
def row_of_bytes(bits: Bits, east_is_up: bool, row: Int) -> Bits:
    """A row of a board, turned so that north or east is up.

    Returns:
        Its squares from the left in 7 bytes of 0 or 1, the leftmost lowest; the eighth is 0.
    """
    if east_is_up:
        return ((bits >> (_LAST - np.uint64(row)) & _COLUMN) * _SPREAD_COLUMN) & _BYTES
    return ((bits >> _SIZE * np.uint64(row) & _ROW) * _SPREAD_ROW) & _BYTES


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
