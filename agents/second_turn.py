"""One full turn of whoever moves next, as it leaves everybody: what searches deeper are made of.

The walker is taken to play what `turn` would play for him: for every steering and roll the rug that
is worth most to him by `evaluation.value`. With `steering=end` he also turns Assam for the player
after him.

Legend: *mind* as in `turn`: `games[at]` and its patches `boards[old]` are given, what comes after
them is overwritten (three games, one board); *shares* float64 (4,) is what a position is worth to
each seat, about his share of the win.
"""

from __future__ import annotations

import numpy as np

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
def write_turn(mind: Record, at: Int, old: Int) -> Int:
    """Writes into `mind.turn` what every steering and roll in `games[at]` leaves each seat.

    The game is before a walk; the axes are steering, roll - 1 and seat.

    Returns:
        The steering that is worth most to the walker.
    """
    games, turn = mind.games, mind.turn
    state: Record = games[at]
    walker = np.int64(state.player)
    first, last = steerings_of(state)
    best, most = first, -np.inf
    for steering in range(first, last):
        worth = 0.0
        for k in range(MAX_STEPS):
            games[at + 1] = state
            game.step(games[at + 1], steering, k + 1)
            _write_walk(mind, at + 1, walker, old, turn[steering, k])
            worth += ROLL_CHANCE[k] * turn[steering, k, walker]
        if worth > most:
            best, most = steering, worth
    return best


@kernel
def _write_walk(mind: Record, at: Int, walker: Int, old: Int, shares: FloatArray) -> None:
    """Writes what `games[at]`, after a walk, leaves each seat once the walker has laid his rug."""
    walked: Record = mind.games[at]
    if walked.phase != LAY or walked.player != walker:
        survey(walked, mind.boards[old + 1])  # whoever went bankrupt owns no patches any more
        _keep_better(walked, mind.boards[old + 1], walker, -np.inf, mind.sheet, shares)
        return
    legal = game.legal_placements(walked)
    most = -np.inf
    for placement in range(NUM_PLACEMENTS):
        if legal >> np.uint32(placement) & np.uint32(1):
            # The colour of his next rug is not drawn: no fact asks for the one of the last mover.
            lay_rug(mind, at, old, placement, -1)
            most = _write_rug(mind, at + 1, walker, old + 1, most, shares)


@kernel
def _write_rug(
    mind: Record, at: Int, mover: Int, old: Int, most: float, shares: FloatArray
) -> float:
    """`_keep_better` for `games[at]`, in which `mover` has just laid and may have to steer yet."""
    games, board, sheet = mind.games, mind.boards[old], mind.sheet
    laid: Record = games[at]
    if is_inside_turn(laid):
        for steering in range(NUM_STEERINGS):
            games[at + 1] = laid
            game.step(games[at + 1], steering, -1)
            most = _keep_better(games[at + 1], board, mover, most, sheet, shares)
        return most
    return _keep_better(laid, board, mover, most, sheet, shares)


@kernel
def _keep_better(
    state: Record, board: Record, mover: Int, most: float, sheet: Record, shares: FloatArray
) -> float:
    """Writes what a position between two turns is worth to each seat if `mover` gets over `most`.

    This is the one place where the searches value a position.

    Returns:
        The larger one of `most` and the worth to `mover`.
    """
    worth = value(state, board, mover, sheet)
    if worth <= most:
        return most
    for seat in range(state.num_players):
        shares[seat] = worth if seat == mover else share(state, seat, sheet)
    return worth
