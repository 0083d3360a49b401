"""One full turn of exact lookahead: the value of every action once the mover has ended the turn.

Steering tries all three steerings, the four rolls and every placement after each; laying tries
every placement.

Legend: as in `evaluation`; *q* is the value of an action in shares of the win.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.actions import FIRST_PLACEMENT, NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import lowest_cell
from marrakech_env.state import LAY, STEER, WALK, Int, Record
from marrakech_env.tables import FIRST_CELL, MAX_STEPS, NUM_STEERINGS, ROLL_CHANCE, SECOND_CELL

from .evaluation import position_value, seat_value
from .regions import joined_region, map_regions, update_regions

FloatArray = NDArray[np.float64]
_ONE = np.uint64(1)
NO_COLOUR = np.int64(-1)
"""The mover's next rug colour is left unset: the evaluation does not use it."""


@kernel
def decide(state: Record, weights: Record, work: Record) -> Int:
    """The action of highest value after one full turn, the lowest of equal ones."""
    write_q(state, weights, work, work.q)
    best: Int = 0
    for action in range(NUM_ACTIONS):
        if work.q[action] > work.q[best]:
            best = action
    return best


@kernel
def write_q(state: Record, weights: Record, work: Record, q: FloatArray) -> None:
    """Write the value of every action to the player to move, -inf for illegal actions.

    Leaves the regions of the game in `work.regions`.
    """
    player = np.int64(state.player)
    map_regions(state, work.listed, work.regions)
    if game.is_inside_turn(state):
        end_turn(state, work.regions, player, weights, work, q)
        return
    for action in range(NUM_ACTIONS):
        q[action] = -np.inf
    if state.phase == WALK:
        q[1] = 0.0
    elif state.phase == STEER:
        for steering in range(NUM_STEERINGS):
            q[steering] = steering_value(state, work.regions, steering, player, weights, work)


@kernel
def steering_value(
    state: Record, regions: Record, steering: Int, player: Int, weights: Record, work: Record
) -> float:
    """Value to a player of the mover's turn with one steering, in expectation over the die."""
    total, walked = 0.0, work.walked
    for k in range(MAX_STEPS):
        work.walked = state
        game.step(walked, steering, k + 1)
        if game.is_inside_turn(walked):
            after = end_turn(walked, regions, player, weights, work, work.walked_q)
        else:
            map_regions(
                walked, work.listed, work.laid_regions
            )  # an eliminated player owns no regions
            after = position_value(walked, work.laid_regions, player, weights, work)
        total += ROLL_CHANCE[k] * after
    return total


@kernel
def end_turn(
    state: Record, regions: Record, player: Int, weights: Record, work: Record, q: FloatArray
) -> float:
    """Try every way for the mover to end a turn whose walk is over.

    Args:
        state: The game, inside a turn.
        regions: Its regions.
        player: A seat.
        weights: The weights.
        work: The workspace.
        q: Gets the value of every action to the mover, -inf for illegal actions.

    Returns:
        The value to `player` of the mover's best action.
    """
    mover, ended = np.int64(state.player), work.ended
    for action in range(NUM_ACTIONS):
        q[action] = -np.inf
    most, found = -np.inf, -np.inf
    legal = np.uint64(game.legal_actions(state))
    while legal:
        action = lowest_cell(legal)
        legal &= legal - _ONE
        work.laid = state
        work.laid_regions = regions
        take(work.laid, work.laid_regions, action, NO_COLOUR)
        steers = game.is_inside_turn(work.laid)
        for steering in range(NUM_STEERINGS if steers else 1):
            work.ended = work.laid
            if steers:
                game.step(ended, steering, NO_COLOUR)
            after = position_value(ended, work.laid_regions, mover, weights, work)
            if after > q[action]:
                q[action] = after
            if after > most:
                most = after
                found = after if player == mover else seat_value(ended, player, weights, work)
    return found


@kernel
def take(state: Record, regions: Record, action: Int, colour: Int) -> None:
    """Take an action inside a turn, in place, and update the regions.

    Args:
        state: The game.
        regions: Its regions.
        action: A legal action.
        colour: Colour of the mover's rug after the one that is laid, -1 for none.
    """
    if state.phase == LAY:
        player, heading = np.int64(state.player), game.heading_of(state)
        first = np.int64(FIRST_CELL[heading, action - FIRST_PLACEMENT])
        second = np.int64(SECOND_CELL[heading, action - FIRST_PLACEMENT])
        board = state.colour_boards[state.next_colour[player]]
        joined = joined_region(regions, board, game.cell_bit(first) | game.cell_bit(second))
        update_regions(regions, player, joined, first, second)
    game.step(state, action, colour)
