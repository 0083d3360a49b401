"""Fixed opponents in the training games of the value network: greedy and expectimax.

Expectimax looks one full turn ahead here (`turn`), never at the reply. Their turns are valued like
all others: the expectation over the die of what the network says after the turn.

Legend: *kind* of a seat: SELF (the network plays it), GREEDY or EXPECTIMAX; *rivals*: weights and
scratch of the two, a record of `turn.MIND`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import MAX_PLAYERS
from marrakech_env.state import LAY, STEER, STEER_AT_END, Int, Record
from marrakech_env.tables import DIE_PROBABILITY

from .. import greedy
from ..expectimax import ExpectimaxAgent
from ..heuristic import one_turn as turn
from ..value_net.inputs import NOBODY, NUM_FACES
from ..value_net.network import MAX_MARGIN
from ..value_net.one_turn import copy_state, draw_chance, value_between

SELF, GREEDY, EXPECTIMAX = range(3)


def new_rivals(num_players: int) -> NDArray[np.void]:
    """Weights of expectimax for a number of players, and scratch of both agents: MIND (1,)."""
    return ExpectimaxAgent().mind_for(num_players)


@kernel
def decide(state: Record, kind: Int, rivals: Record) -> Int:
    """The decision of a rival."""
    if kind == GREEDY:
        return greedy.decide(state, rivals.boards[0])
    return turn.decide(state, rivals)


@kernel
def value_rival_turn(
    state: Record, kind: Int, rivals: Record, workspace: Record, evaluator: Record
) -> None:
    """Write a rival's steering and the values of all seats after it into `workspace.turn`."""
    found, after = workspace.turn, workspace.trial
    work, sums = workspace.other_work, workspace.sums
    mover = np.int64(state.player)
    for seat in range(MAX_PLAYERS):
        found.seat_margin[seat] = 0
        found.seat_win[seat] = 0
    found.best = decide(state, kind, rivals)
    for steps in range(1, NUM_FACES + 1):
        copy_state(state, after)
        game.step(after, found.best, steps)
        laid: Int = -1
        draw = np.float32(1)
        if after.phase == LAY:
            laid = np.int64(after.next_colour[mover])
            draw = draw_chance(after, laid)
            lower, upper = game.next_colour_weights(after)
            colour = -1 if lower + upper == 0 else 2 * mover + (lower == 0)
            game.step(after, decide(after, kind, rivals), colour)
            if after.phase == STEER and after.flags & STEER_AT_END:
                game.step(after, decide(after, kind, rivals), -1)
                laid, draw = -1, np.float32(1)
        value_between(after, mover, laid, draw, work, workspace, evaluator)
        chance = DIE_PROBABILITY[steps]
        for seat in range(MAX_PLAYERS):
            slot = work.slot_of_seat[seat]
            if slot == NOBODY:
                found.seat_margin[seat] -= chance * MAX_MARGIN
            else:
                found.seat_margin[seat] += chance * sums.margin[slot]
                found.seat_win[seat] += chance * sums.win[slot]
