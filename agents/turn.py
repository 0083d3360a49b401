"""One full turn ahead, exactly: what every action is worth if the position is valued after the rug.

To steer, the three steerings, the four rolls and every placement after each are tried; to lay,
every placement.

Legend: *games*, *boards* and *sheets* are scratch (`make_scratch`): positions one after the other,
their patches, and the facts of the last one; `boards[0]` holds the patches of `games[0]`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.bitboards import lowest_cell
from marrakech_env.compile import kernel
from marrakech_env.state import LAY, STATE, STEER, STEER_AT_END, WALK, Int, Record
from marrakech_env.tables import FIRST_CELL, NUM_PLACEMENTS, SECOND_CELL

from .evaluation import SHEET, value
from .patches import (
    MAX_STEPS,
    NUM_STEERINGS,
    PATCHES,
    ROLL_CHANCE,
    heading_of,
    relay,
    survey,
)

NUM_ACTIONS: Final = NUM_STEERINGS + NUM_PLACEMENTS
_ONE = np.uint64(1)

FloatArray = NDArray[np.float64]


def make_scratch() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], FloatArray]:
    """What the kernels write on: games, patches, a sheet, and values of the 15 actions."""
    return np.zeros(4, STATE), np.zeros(3, PATCHES), np.zeros(1, SHEET), np.zeros(NUM_ACTIONS)


@kernel
def decide(
    state: Record,
    weights: FloatArray,
    spreads: FloatArray,
    games: NDArray[Any],
    boards: NDArray[Any],
    sheets: NDArray[Any],
    values: FloatArray,
) -> Int:
    """The action of highest value after one full turn."""
    fill_values(state, weights, spreads, games, boards, sheets, values)
    return best_action(values)


@kernel
def best_action(values: FloatArray) -> Int:
    """The action of highest value, the lowest among equals."""
    best = 0
    for action in range(NUM_ACTIONS):
        if values[action] > values[best]:
            best = action
    return best


@kernel
def fill_values(
    state: Record,
    weights: FloatArray,
    spreads: FloatArray,
    games: NDArray[Any],
    boards: NDArray[Any],
    sheets: NDArray[Any],
    values: FloatArray,
) -> None:
    """Writes the value of every action into `values`, -inf for those that are not legal."""
    player = np.int64(state.player)
    for action in range(NUM_ACTIONS):
        values[action] = -np.inf
    games[0] = state
    if state.phase == WALK:
        values[1] = 0.0
        return
    survey(state, boards[0])
    if state.phase == LAY:
        legal = np.uint64(game.legal_placements(state))
        while legal:
            placement = lowest_cell(legal)
            legal &= legal - _ONE
            values[3 + placement] = _placement_value(
                games, 0, placement, player, boards, weights, spreads, sheets[0]
            )
    elif state.phase == STEER and state.flags & STEER_AT_END:
        for steering in range(NUM_STEERINGS):
            values[steering] = _handover_value(
                games, 0, steering, player, boards[0], weights, spreads, sheets[0]
            )
    elif state.phase == STEER:
        for steering in range(NUM_STEERINGS):
            values[steering] = 0.0
            for k in range(MAX_STEPS):
                games[1] = state
                game.step(games[1], steering, k + 1)
                values[steering] += ROLL_CHANCE[k] * _landing_value(
                    games, player, boards, weights, spreads, sheets[0]
                )


@kernel
def _landing_value(
    games: NDArray[Any],
    player: Int,
    boards: NDArray[Any],
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
) -> float:
    """The value of `games[1]` after the player's walk: the best placement if he may lay."""
    state = games[1]
    if state.phase != LAY or state.player != player:
        survey(state, boards[1])  # whoever went bankrupt owns no patches any more
        return value(state, boards[1], player, weights, spreads, sheet)
    best = -np.inf
    legal = np.uint64(game.legal_placements(state))
    while legal:
        placement = lowest_cell(legal)
        legal &= legal - _ONE
        worth = _placement_value(games, 1, placement, player, boards, weights, spreads, sheet)
        best = max(best, worth)
    return best


@kernel
def _placement_value(
    games: NDArray[Any],
    at: Int,
    placement: Int,
    player: Int,
    boards: NDArray[Any],
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
) -> float:
    """The value of laying in `games[at]`, whose patches are `boards[0]`."""
    # The colour of the next rug is not drawn: no fact asks for the one of who has just laid.
    lay_rug(games, at, boards, 0, placement, -1)
    after = games[at + 1]
    if after.phase == STEER and after.player == player and after.flags & STEER_AT_END:
        best = -np.inf
        for steering in range(NUM_STEERINGS):
            worth = _handover_value(
                games, at + 1, steering, player, boards[1], weights, spreads, sheet
            )
            best = max(best, worth)
        return best
    return value(after, boards[1], player, weights, spreads, sheet)


@kernel
def lay_rug(
    games: NDArray[Any], at: Int, boards: NDArray[Any], old: Int, placement: Int, colour: Int
) -> None:
    """Lays in `games[at]`, whose patches are `boards[old]`, into the next one of both.

    `colour` is the one that the mover's next rug will have, -1 for none.
    """
    heading = heading_of(games[at])
    games[at + 1] = games[at]
    game.step(games[at + 1], 3 + placement, colour)
    boards[old + 1] = boards[old]
    first, second = FIRST_CELL[heading, placement], SECOND_CELL[heading, placement]
    relay(games[at + 1], np.int64(first), np.int64(second), boards[old + 1])


@kernel
def _handover_value(
    games: NDArray[Any],
    at: Int,
    steering: Int,
    player: Int,
    board: Record,
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
) -> float:
    """With `steering=end`: the value of turning Assam in `games[at]` for the next player."""
    games[at + 1] = games[at]
    game.step(games[at + 1], steering, -1)
    return value(games[at + 1], board, player, weights, spreads, sheet)
