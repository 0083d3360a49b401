"""The look at the only rival's reply, for the placements that promise most after one full turn.

The rival is taken to steer as `walks.likely_steering` says; for every roll he lays the rug that is
worth most to him by the same estimate. What that leaves the one who looks, averaged over the die,
is what his placement is worth. That corrects what the estimate gets wrong about the turn to come.
With three and four players it gained nothing that could be measured, so it is left out there; to
steer, nothing is looked at beyond the full turn: that would cost ten times as much.

Legend: *mind* as in `turn`; `games[1]` is the position after the placement, `games[2]` after the
rival's walk, `games[3]` after his rug; `boards[1]` and `boards[2]` are the patches of the first and
of the last one.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from marrakech_env import game
from marrakech_env.actions import FIRST_PLACEMENT, NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import lowest_cell
from marrakech_env.state import LAY, STEER, STEER_AT_END, Int, Record

from .evaluation import share, value
from .one_turn import FloatArray, lay_rug
from .opponent_model import likely_steering
from .regions import MAX_STEPS, ROLL_CHANCE, likelier_colour, survey

WIDTH: Final = 2
"""For how many placements the reply is looked at."""
_ONE = np.uint64(1)


@kernel
def look_at_replies(state: Record, weights: Record, mind: Record, values: FloatArray) -> None:
    """Corrects `values`, as `turn.fill_values` left them, where a rug is to be laid.

    The best `WIDTH` placements get their values after the reply; all others keep their distance
    below the last of those, so that none of them is chosen. Nothing changes with more than two
    players, or where the mover also steers for the next one (`steering=end`).
    """
    if state.phase != LAY or state.num_players > 2 or state.flags & STEER_AT_END:
        return
    player, colour = np.int64(state.player), likelier_colour(state)
    survey(state, mind.boards[0])
    looked, lowest, correction = np.uint32(0), np.inf, 0.0
    for _ in range(WIDTH):
        top = -1
        for action in range(FIRST_PLACEMENT, NUM_ACTIONS):
            waits = not looked >> np.uint32(action) & np.uint32(1) and values[action] > -np.inf
            if waits and (top < 0 or values[action] > values[top]):
                top = action
        if top < 0:
            break
        looked |= np.uint32(1) << np.uint32(top)
        mind.games[0] = state
        lay_rug(mind, 0, 0, top - FIRST_PLACEMENT, colour)
        worth = _value_after_reply(weights, mind, player)
        lowest = min(lowest, worth)
        correction = lowest - values[top]
        values[top] = worth
    for action in range(FIRST_PLACEMENT, NUM_ACTIONS):
        if not looked >> np.uint32(action) & np.uint32(1):
            values[action] += correction


@kernel
def _value_after_reply(weights: Record, mind: Record, player: Int) -> float:
    """What `games[1]`, with patches `boards[1]`, is worth to a player after the next turn."""
    boards, sheet = mind.boards, mind.sheet
    state, walked = mind.games[1], mind.games[2]
    if state.phase != STEER:  # over
        return value(state, boards[1], player, weights, sheet)
    walker = np.int64(state.player)
    steering, _ = likely_steering(state, boards[1], sheet)
    total = 0.0
    for k in range(MAX_STEPS):
        mind.games[2] = state
        game.step(walked, steering, k + 1)
        if walked.phase == LAY and walked.player == walker:
            worth = _value_after_rug(weights, mind, player)
        else:
            survey(walked, boards[2])  # whoever went bankrupt owns no patches any more
            worth = value(walked, boards[2], player, weights, sheet)
        total += ROLL_CHANCE[k] * worth
    return total


@kernel
def _value_after_rug(weights: Record, mind: Record, player: Int) -> float:
    """What `games[2]` is worth to a player when its mover has laid the rug that suits him best."""
    games, sheet = mind.games, mind.sheet
    mover = np.int64(games[2].player)
    legal = np.uint64(game.legal_placements(games[2]))
    most, worth = -np.inf, 0.0
    while legal:
        lay_rug(mind, 2, 1, lowest_cell(legal), -1)
        legal &= legal - _ONE
        theirs = value(games[3], mind.boards[2], mover, weights, sheet)
        if theirs > most:
            most, worth = theirs, share(games[3], player, weights, sheet)
    return worth
