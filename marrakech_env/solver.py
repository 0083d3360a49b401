"""Exact values of late positions, by trying every action, roll and next colour to the end.

Every player maximises their own expected share of the win; among actions of equal share they take
the one with the greater expected margin (their final score minus the best of the others, in
dirhams; the score of an eliminated player is 0), and among those the lowest action. With two
players that is optimal play; with more, it is what happens if all think so.

The work grows about a hundredfold with each turn that is left: two turns take about a millisecond,
three about a tenth of a second with two players. Neither transpositions nor the half turn of the
board are looked for: different walks leave Assam in different places, so hardly any position comes
up twice.

Legend: `P` players, `A` legal actions, `D` nodes from the root to the end of the game.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.spec import MAX_PLAYERS, checked_number
from marrakech_env.state import (
    OVER,
    STATE,
    STEER,
    STEER_AT_END,
    Int,
    Record,
    State,
    States,
    one_state,
)

FloatArray = NDArray[np.float64]

MAX_TURNS: Final = 3
"""Turns left at which `solve` still takes a fraction of a second."""
SAME: Final = 1e-9
"""Expected values closer than this are equal: their sums were rounded in different orders."""
_NODES_A_TURN: Final = 3  # to walk, to lay, and with steering=end to steer


@dataclass(frozen=True)
class Solution:
    """What every legal action of a position is worth if all play on as the module says.

    Attributes:
        actions: int64 (A,), the legal actions, ascending.
        shares: float64 (A, P), everybody's expected share of the win, by seat.
        margins: float64 (A, P), everybody's expected margin in dirhams, by seat.
        best: The action that the player to move takes.
    """

    actions: NDArray[np.int64]
    shares: FloatArray
    margins: FloatArray
    best: int

    @property
    def value(self) -> FloatArray:
        """Everybody's expected share of the win after the best action: float64 (P,)."""
        row: FloatArray = self.shares[self.actions == self.best][0]
        return row


def turns_left(state: State) -> int:
    """Turns still to come if nobody is eliminated, the running one included until its rug is laid.

    That is one for each rug that is left. A mover without a rug has a turn too: only a position
    text can name them.

    Raises:
        ValueError: Not one state.
    """
    record = one_state(state)
    has_rug = record["phase"] == OVER or game.rugs_left(record, record["player"]) > 0
    is_after_laying = record["phase"] == STEER and record["flags"] & STEER_AT_END
    return int(record["rugs"].sum()) + (not has_rug and not is_after_laying)


def solve(state: State, max_turns: int = MAX_TURNS) -> Solution:
    """Solves a late position.

    Args:
        state: One unfinished game.
        max_turns: Most turns left to be accepted, a guard against endless work.

    Raises:
        ValueError: Not one state, the game is over, more turns are left than `max_turns`, or that
            is not a whole number of at least 0.
    """
    record = one_state(state)
    most = checked_number("max_turns", max_turns, 0)
    if record["phase"] == OVER:
        raise ValueError("the game of this position is over, nobody can move")
    turns = turns_left(record)
    if turns > most:
        raise ValueError(
            f"{turns} turns are left, more than max_turns={most}; each turn more takes about "
            "a hundred times as long"
        )
    players = int(record["num_players"])
    depth = _NODES_A_TURN * (turns + 1) + 1  # the last turn's steering may still be to come
    states = np.zeros(depth, STATE)
    states[0] = record
    values = np.zeros((depth, MAX_PLAYERS, 2))
    found = np.zeros((NUM_ACTIONS, MAX_PLAYERS, 2))
    best = _solve(states, values, np.zeros_like(values), found, 0)
    mask = game.legal_actions(states[0])
    actions = np.flatnonzero([mask >> action & 1 for action in range(NUM_ACTIONS)])
    return Solution(
        actions, found[actions, :players, 0].copy(), found[actions, :players, 1].copy(), int(best)
    )


@kernel
def _solve(
    states: States, values: FloatArray, sums: FloatArray, found: FloatArray, depth: Int
) -> Int:
    """Writes the value of `states[depth]` into `values[depth]`, by seat: share and margin.

    Args:
        states: STATE (D,), overwritten below `depth`.
        values: float64 (D, 4, 2).
        sums: float64 (D, 4, 2), scratch.
        found: float64 (15, 4, 2), gets the values of all actions of `states[0]`.
        depth: The node.

    Returns:
        The best action, -1 where the game is over.
    """
    state: Record = states[depth]
    if state.phase == OVER:
        _write_final(state, values[depth])
        return -1
    legal = np.uint32(game.legal_actions(state))
    player = np.int64(state.player)
    total, value = sums[depth], values[depth]
    best: Int = -1
    for action in range(NUM_ACTIONS):
        if not legal >> np.uint32(action) & np.uint32(1):
            continue
        total[:] = 0.0
        for outcome in game.OUTCOMES:
            chance = game.outcome_chance(state, outcome)
            if chance > 0:
                states[depth + 1] = state
                game.step(states[depth + 1], action, outcome)
                _solve(states, values, sums, found, depth + 1)
                for seat in range(state.num_players):
                    total[seat, 0] += chance * values[depth + 1, seat, 0]
                    total[seat, 1] += chance * values[depth + 1, seat, 1]
        if depth == 0:
            found[action] = total
        gain = total[player, 0] - value[player, 0]
        more = total[player, 1] - value[player, 1]
        if best < 0 or gain > SAME or (gain > -SAME and more > SAME):
            best = action
            value[:] = total
    return best


@kernel
def _write_final(state: Record, value: Any) -> None:
    """Writes shares and margins of a finished game."""
    first, second = -1, -1
    top, winners = -1, 0
    for seat in range(state.num_players):
        score = game.score(state, seat)
        if score > first:
            first, second = score, first
        elif score > second:
            second = score
        standing = game.standing(state, seat)
        if standing > top:
            top, winners = standing, 1
        elif standing == top:
            winners += 1
    for seat in range(state.num_players):
        score = game.score(state, seat)
        value[seat, 0] = 1.0 / winners if game.standing(state, seat) == top else 0.0
        value[seat, 1] = score - (second if score == first else first)
