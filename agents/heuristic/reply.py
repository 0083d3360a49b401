"""The only opponent's reply: the best placements are valued again after the opponent's turn.

The opponent steers as `likely_steering` predicts and then lays the rug of highest value to them.
With three and four players this gained nothing measurable, so only games of two players use it;
for steering it would cost ten times as much.

Legend: as in `one_turn`.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from marrakech_env import game
from marrakech_env.actions import FIRST_PLACEMENT, NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.state import LAY, STEER, STEER_AT_END, Int, Record

from .evaluation import position_value
from .one_turn import FloatArray, steering_value, take
from .opponent_model import likely_steering

WIDTH: Final = 2
"""Number of placements that are valued after the reply."""
_ONE = np.uint32(1)


@kernel
def look_at_replies(state: Record, weights: Record, work: Record, q: FloatArray) -> None:
    """Correct the values of the best placements, right after `write_q` has written `q` and `work`.

    All other placements keep their distance below the lowest of these, so that none of them is
    chosen. Nothing changes with more than two players or with `steering=end`.
    """
    if state.phase != LAY or state.num_players > 2 or state.flags & STEER_AT_END:
        return
    player, colour = np.int64(state.player), game.likelier_colour(state)
    looked, lowest, correction = np.uint32(0), np.inf, 0.0
    for _ in range(WIDTH):
        top: Int = -1
        for action in range(FIRST_PLACEMENT, NUM_ACTIONS):
            waits = not looked >> np.uint32(action) & _ONE and q[action] > -np.inf
            if waits and (top < 0 or q[action] > q[top]):
                top = action
        if top < 0:
            break
        looked |= _ONE << np.uint32(top)
        work.answered = state
        work.answered_regions = work.regions
        take(work.answered, work.answered_regions, top, colour)
        after = _value_after_reply(work.answered, player, weights, work)
        lowest = min(lowest, after)
        correction = lowest - float(q[top])
        q[top] = after
    for action in range(FIRST_PLACEMENT, NUM_ACTIONS):
        if not looked >> np.uint32(action) & _ONE:
            q[action] += correction


@kernel
def _value_after_reply(state: Record, player: Int, weights: Record, work: Record) -> float:
    """Value to `player` of `work.answered` after the next player's turn."""
    if state.phase != STEER:  # over
        return position_value(state, work.answered_regions, player, weights, work)
    steering, _ = likely_steering(state, work.answered_regions, work)
    return steering_value(state, work.answered_regions, steering, player, weights, work)
