"""Whom an observer sees where: seats and colours, counted from the observer on.

The docstring of `observation` describes the perspective.
"""

from __future__ import annotations

import numpy as np

from marrakech_env.compile import kernel
from marrakech_env.state import SINGLE, Int, Record


@kernel
def seat_after(state: Record, observer: Int, k: Int) -> Int:
    """The seat k places after the observer's, 0 <= k < P."""
    seat = observer + k
    return seat - state.num_players if seat >= state.num_players else seat


@kernel
def num_slots(state: Record) -> Int:
    """Number of colour slots: two a seat with 2 players, else one."""
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
