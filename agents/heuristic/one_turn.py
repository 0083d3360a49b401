"""One full turn ahead, exactly: what every action is worth if the position is valued after the rug.

To steer, the three steerings, the four rolls and every placement after each are tried; to lay,
every placement.

Legend: *mind* is a record of `MIND`; `mind.boards[0]` holds the patches of `mind.games[0]`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.actions import FIRST_PLACEMENT, NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import lowest_cell
from marrakech_env.spec import MAX_PLAYERS
from marrakech_env.state import LAY, STATE, STEER, STEER_AT_END, WALK, Int, Record
from marrakech_env.tables import FIRST_CELL, SECOND_CELL

from .evaluation import SHEET, WEIGHTS, value
from .regions import (
    MAX_STEPS,
    NUM_STEERINGS,
    PATCHES,
    ROLL_CHANCE,
    heading_of,
    relay,
    survey,
)

_ONE = np.uint64(1)

FloatArray = NDArray[np.float64]


MIND: Final = np.dtype(
    [
        ("sheet", SHEET),  # the facts of the last position valued
        ("games", STATE, (7,)),  # positions one after the other
        ("boards", PATCHES, (4,)),  # their patches
        ("values", np.float64, (NUM_ACTIONS,)),  # of the actions
        ("turn", np.float64, (NUM_STEERINGS, MAX_STEPS, MAX_PLAYERS)),  # see `second_turn`
    ],
    align=True,
)
"""Workspace of one call. A record is passed by reference, without the cost of array arguments."""


def new_weights(terms: FloatArray, spreads: FloatArray) -> NDArray[np.void]:
    """Weights for a number of players: WEIGHTS (1,), read-only, so that threads may share them.

    Args:
        terms: float64 (P, `evaluation.MAX_TURNS` + 1, `evaluation.NUM_TERMS`).
        spreads: float64 (`evaluation.MAX_TURNS` + 1,).
    """
    weights = np.zeros(1, WEIGHTS)
    weights["terms"][0, : len(terms)] = terms
    weights["spreads"][0] = spreads
    weights.setflags(write=False)
    return weights


@kernel
def decide(state: Record, weights: Record, mind: Record) -> Int:
    """The action of highest value after one full turn."""
    fill_values(state, weights, mind, mind.values)
    return best_action(mind.values)


@kernel
def best_action(values: FloatArray) -> Int:
    """The action of highest value, the lowest among equals."""
    best = 0
    for action in range(NUM_ACTIONS):
        if values[action] > values[best]:
            best = action
    return best


@kernel
def fill_values(state: Record, weights: Record, mind: Record, values: FloatArray) -> None:
    """Writes the value of every action into `values`, -inf for those that are not legal."""
    player = np.int64(state.player)
    for action in range(NUM_ACTIONS):
        values[action] = -np.inf
    mind.games[0] = state
    if state.phase == WALK:
        values[1] = 0.0
        return
    survey(state, mind.boards[0])
    if state.phase == LAY:
        legal = np.uint64(game.legal_placements(state))
        while legal:
            placement = lowest_cell(legal)
            legal &= legal - _ONE
            values[FIRST_PLACEMENT + placement] = _placement_value(
                weights, mind, 0, placement, player
            )
    elif state.phase == STEER and state.flags & STEER_AT_END:
        for steering in range(NUM_STEERINGS):
            values[steering] = _handover_value(weights, mind, 0, steering, player, 0)
    elif state.phase == STEER:
        for steering in range(NUM_STEERINGS):
            values[steering] = 0.0
            for k in range(MAX_STEPS):
                mind.games[1] = state
                game.step(mind.games[1], steering, k + 1)
                values[steering] += ROLL_CHANCE[k] * _landing_value(weights, mind, player)


@kernel
def _landing_value(weights: Record, mind: Record, player: Int) -> float:
    """The value of `games[1]` after the player's walk: the best placement if he may lay."""
    state, board = mind.games[1], mind.boards[1]
    if state.phase != LAY or state.player != player:
        survey(state, board)  # whoever went bankrupt owns no patches any more
        return value(state, board, player, weights, mind.sheet)
    best = -np.inf
    legal = np.uint64(game.legal_placements(state))
    while legal:
        placement = lowest_cell(legal)
        legal &= legal - _ONE
        best = max(best, _placement_value(weights, mind, 1, placement, player))
    return best


@kernel
def _placement_value(weights: Record, mind: Record, at: Int, placement: Int, player: Int) -> float:
    """The value of laying in `games[at]`, whose patches are `boards[0]`."""
    # The colour of the next rug is not drawn: no fact asks for the one of who has just laid.
    lay_rug(mind, at, 0, placement, -1)
    after = mind.games[at + 1]
    if after.phase == STEER and after.player == player and after.flags & STEER_AT_END:
        best = -np.inf
        for steering in range(NUM_STEERINGS):
            best = max(best, _handover_value(weights, mind, at + 1, steering, player, 1))
        return best
    return value(after, mind.boards[1], player, weights, mind.sheet)


@kernel
def lay_rug(mind: Record, at: Int, old: Int, placement: Int, colour: Int) -> None:
    """Lays in `games[at]`, whose patches are `boards[old]`, into the next one of both.

    `colour` is the one that the mover's next rug will have, -1 for none.
    """
    games, boards = mind.games, mind.boards
    heading = heading_of(games[at])
    games[at + 1] = games[at]
    game.step(games[at + 1], FIRST_PLACEMENT + placement, colour)
    boards[old + 1] = boards[old]
    first, second = FIRST_CELL[heading, placement], SECOND_CELL[heading, placement]
    relay(games[at + 1], np.int64(first), np.int64(second), boards[old + 1])


@kernel
def _handover_value(
    weights: Record, mind: Record, at: Int, steering: Int, player: Int, board: Int
) -> float:
    """With `steering=end`: the value of turning Assam in `games[at]` for the next player."""
    games = mind.games
    games[at + 1] = games[at]
    game.step(games[at + 1], steering, -1)
    return value(games[at + 1], mind.boards[board], player, weights, mind.sheet)
