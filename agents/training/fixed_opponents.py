"""Fixed opponents in the training games of the value network: greedy and expectimax.

Expectimax looks one full turn ahead here, without `heuristic.reply`. The turns of fixed opponents
are valued like all others: the expectation over the die of the network's values after the turn.

Legend: *kind* of a seat: SELF (the network plays it), GREEDY or EXPECTIMAX; `opponents` is a record
of `OPPONENTS`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import MAX_PLAYERS
from marrakech_env.state import LAY, Int, Record
from marrakech_env.tables import DIE_PROBABILITY, MAX_STEPS

from .. import greedy
from ..heuristic import one_turn
from ..heuristic.evaluation import EVALUATION_WEIGHTS, EXPECTIMAX_WORKSPACE
from ..value_net.inputs import NOBODY
from ..value_net.network import MAX_MARGIN
from ..value_net.one_turn import copy_state, draw_chance, value_between

SELF, GREEDY, EXPECTIMAX = range(3)
OPPONENTS: Final = np.dtype(
    [
        ("greedy", greedy.GREEDY_WORKSPACE),
        ("expectimax", EXPECTIMAX_WORKSPACE),
        ("weights", EVALUATION_WEIGHTS),
    ],
    align=True,
)
"""Workspaces of both agents, and the weights of expectimax."""


def new_opponents(weights: NDArray[np.void]) -> NDArray[np.void]:
    """Return OPPONENTS (1,) for one thread, with weights of expectimax, EVALUATION_WEIGHTS (1,)."""
    opponents = np.zeros(1, OPPONENTS)
    opponents["weights"] = weights
    return opponents


@kernel
def decide(state: Record, kind: Int, opponents: Record) -> Int:
    """The decision of an opponent."""
    if kind == GREEDY:
        return greedy.decide(state, opponents.greedy)
    return one_turn.decide(state, opponents.weights, opponents.expectimax)


@kernel
def value_opponent_turn(
    state: Record, kind: Int, opponents: Record, workspace: Record, evaluator: Record
) -> None:
    """Write an opponent's steering and the values of all seats after it into `workspace.turn`."""
    found, after = workspace.turn, workspace.trial
    work, sums = workspace.other_work, workspace.sums
    mover = np.int64(state.player)
    for seat in range(MAX_PLAYERS):
        found.seat_margin[seat] = 0
        found.seat_win[seat] = 0
    found.best = decide(state, kind, opponents)
    for steps in range(1, MAX_STEPS + 1):
        copy_state(state, after)
        game.step(after, found.best, steps)
        laid, draw = np.int64(-1), np.float32(1)
        while game.is_inside_turn(after):
            laid, draw = np.int64(-1), np.float32(1)
            if after.phase == LAY:
                laid = np.int64(after.next_colour[mover])
                draw = draw_chance(after, laid)
            lower, upper = game.next_colour_weights(after)
            colour = game.NO_OUTCOME if lower + upper == 0 else 2 * mover + (lower == 0)
            game.step(after, decide(after, kind, opponents), colour)
        value_between(after, mover, laid, draw, work, workspace, evaluator)
        chance = DIE_PROBABILITY[steps]
        for seat in range(MAX_PLAYERS):
            slot = work.slot_of_seat[seat]
            if slot == NOBODY:
                found.seat_margin[seat] -= chance * MAX_MARGIN
            else:
                found.seat_margin[seat] += chance * sums.margin[slot]
                found.seat_win[seat] += chance * sums.win[slot]
