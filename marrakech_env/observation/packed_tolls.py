"""What a walker owes where his walk ends, and what of it an observer gets: kernels of `features`.

A *bill* packs both into one number, so that one addition adds both and the less of two bills is
that of the cheaper walk. The *due* is not limited by the walker's money.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.regions import ENDS, WAYS
from marrakech_env.spec import DIE, NUM_CELLS
from marrakech_env.state import Int, Record

_HALF: Final = 16
"""Bits of the income; the due stands above them."""
_LOW: Final = np.uint32((1 << _HALF) - 1)
_BIAS: Final = np.uint32(len(DIE) * NUM_CELLS)
"""What is added to an income in sixths, so that it is never negative."""


@kernel
def find_bills(state: Record, observer: Int, walker: Int, work: Record) -> None:
    """Writes what a seat owes on each square, and what of it the observer gets, into `work`.

    The income is negative where the observer is the one who walks; -1 stands for nobody. Both
    are packed into one number, see `bill_of`, to be added in one go.
    """
    own_board = game.board_of(state, walker) if walker >= 0 else ~np.uint64(0)
    for cell in range(NUM_CELLS):
        size = np.int32(work.size[cell])
        due = abs(size) * np.int32(~own_board >> np.uint64(cell) & np.uint64(1))
        income = -due if walker == observer else min(due, max(size, np.int32(0)))
        work.bills[cell] = np.uint32(due) << np.uint32(_HALF) | np.uint32(income + NUM_CELLS)


@kernel
def due_of(bill: Int) -> Int:
    """The due that is packed into a bill, or into a sum of bills."""
    return np.int32(bill >> np.uint32(_HALF))


@kernel
def bill_of(due: Int, income: Int) -> Int:
    """The due and the income of a walk, in sixths, in one number.

    Of two such numbers that is less whose due is less, and of equals that with less income.
    """
    return np.uint32(due) << np.uint32(_HALF) | (np.uint32(income) + _BIAS)


@kernel
def bill_of_walk(work: Record, heading: Int) -> Int:
    """What a walk straight on is expected to bring, after `find_bills`."""
    total = np.uint32(0)
    for face in range(len(WAYS)):
        total += WAYS[face] * work.bills[ENDS[heading, face]]
    return total


@kernel
def total_and_cheapest(left: Int, straight: Int, right: Int) -> tuple[Int, Int]:
    """The incomes of the bills of three steerings, in sixths: their sum, and the chosen one.

    The walker takes the steering that costs him least, and of equals the one with less income for
    the observer.
    """
    total = np.int32((left & _LOW) + (straight & _LOW) + (right & _LOW)) - np.int32(3 * _BIAS)
    return total, np.int32(min(left, straight, right) & _LOW) - np.int32(_BIAS)
