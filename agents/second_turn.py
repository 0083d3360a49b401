"""One full turn of whoever moves next, as it leaves everybody: what searches deeper are made of.

The walker is taken to play what `turn` would play for him: for every steering and roll the rug that
is worth most to him by `evaluation.value`. With `steering=end` he also turns Assam for the player
after him.

Legend: *games* and *boards* are scratch as in `turn`: `games[at]` and its patches `boards[old]` are
given, what comes after them is overwritten (three games, one board); *shares* float64 (4,) is what
a position is worth to each seat, about his share of the win.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.state import LAY, STEER, STEER_AT_END, Int, Record
from marrakech_env.tables import NUM_PLACEMENTS

from .evaluation import share, value
from .patches import MAX_STEPS, NUM_STEERINGS, ROLL_CHANCE, steerings_of, survey
from .turn import FloatArray, lay_rug


@kernel
def is_inside_turn(state: Record) -> bool:
    """Whether the mover has walked, and has still to lay or with `steering=end` to steer."""
    return bool(state.phase == LAY or (state.phase == STEER and state.flags & STEER_AT_END))


@kernel
def write_turn(
    games: NDArray[Any],
    at: Int,
    boards: NDArray[Any],
    old: Int,
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
    turn: FloatArray,
) -> Int:
    """Writes into `turn` what every steering and roll in `games[at]` leaves each seat.

    Args:
        games: Positions; `games[at]` is before a walk.
        at: Which one.
        boards: Patches.
        old: Those of `games[at]`.
        weights: See `evaluation.value`.
        spreads: See `evaluation.value`.
        sheet: Scratch.
        turn: float64 (3, 4, 4), by steering, roll - 1 and seat.

    Returns:
        The steering that is worth most to the walker.
    """
    state: Record = games[at]
    walker = np.int64(state.player)
    first, last = steerings_of(state)
    best, most = first, -np.inf
    for steering in range(first, last):
        worth = 0.0
        for k in range(MAX_STEPS):
            games[at + 1] = state
            game.step(games[at + 1], steering, k + 1)
            _write_walk(
                games, at + 1, walker, boards, old, weights, spreads, sheet, turn[steering, k]
            )
            worth += ROLL_CHANCE[k] * turn[steering, k, walker]
        if worth > most:
            best, most = steering, worth
    return best


@kernel
def _write_walk(
    games: NDArray[Any],
    at: Int,
    walker: Int,
    boards: NDArray[Any],
    old: Int,
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
    shares: FloatArray,
) -> None:
    """Writes what `games[at]`, after a walk, leaves each seat once the walker has laid his rug."""
    walked: Record = games[at]
    if walked.phase != LAY or walked.player != walker:
        survey(walked, boards[old + 1])  # whoever went bankrupt owns no patches any more
        keep_better(walked, boards[old + 1], walker, -np.inf, weights, spreads, sheet, shares)
        return
    legal = game.legal_placements(walked)
    most = -np.inf
    for placement in range(NUM_PLACEMENTS):
        if legal >> np.uint32(placement) & np.uint32(1):
            # The colour of his next rug is not drawn: no fact asks for the one of the last mover.
            lay_rug(games, at, boards, old, placement, -1)
            most = write_rug(
                games, at + 1, walker, boards, old + 1, most, weights, spreads, sheet, shares
            )


@kernel
def write_rug(
    games: NDArray[Any],
    at: Int,
    mover: Int,
    boards: NDArray[Any],
    old: Int,
    most: float,
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
    shares: FloatArray,
) -> float:
    """`keep_better` for `games[at]`, in which `mover` has just laid and may have to steer yet."""
    laid: Record = games[at]
    if is_inside_turn(laid):
        for steering in range(NUM_STEERINGS):
            games[at + 1] = laid
            game.step(games[at + 1], steering, -1)
            most = keep_better(
                games[at + 1], boards[old], mover, most, weights, spreads, sheet, shares
            )
        return most
    return keep_better(laid, boards[old], mover, most, weights, spreads, sheet, shares)


@kernel
def keep_better(
    state: Record,
    board: Record,
    mover: Int,
    most: float,
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
    shares: FloatArray,
) -> float:
    """Writes what a position between two turns is worth to each seat if `mover` gets over `most`.

    This is the one place where the searches value a position.

    Returns:
        The larger one of `most` and the worth to `mover`.
    """
    worth = value(state, board, mover, weights, spreads, sheet)
    if worth <= most:
        return most
    for seat in range(state.num_players):
        shares[seat] = worth if seat == mover else share(state, seat, spreads, sheet)
    return worth
