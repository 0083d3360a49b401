"""Everybody's prospects in any phase of a game, as expectimax sees them.

Where the mover still has to lay, or with `steering=end` to turn Assam, he does what is worth most
to him after one full turn (`turn`); the position between two turns is then valued for all seats.
Luck-adjusted matches measure the dice by it.

Legend: `B` games, `P` players; *mind* as in `turn`.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.state import LAY, STEER, STEER_AT_END, Record, States

from .evaluation import fill_facts, margin, predict_scores, win_chance
from .one_turn import FloatArray, decide
from .regions import survey


@kernel
def forecast(
    states: States,
    all_weights: NDArray[np.void],
    minds: NDArray[np.void],
    shares: FloatArray,
    margins: FloatArray,
) -> None:
    """Writes every seat's expected share of the win and final margin, exact in finished games.

    Args:
        states: STATE (B,), games in any phase; their turns are ended in place.
        all_weights: WEIGHTS (1,).
        minds: MIND (1,).
        shares: float64 (B, P), overwritten.
        margins: float64 (B, P), overwritten: final score minus the best other one, in dirhams.
    """
    weights, mind = all_weights[0], minds[0]
    for i in range(len(states)):
        state: Record = states[i]
        while state.phase == LAY or (state.phase == STEER and state.flags & STEER_AT_END):
            action = decide(state, weights, mind)
            # The colour of the next rug is not drawn: no fact asks for the one of who has just laid
            game.step(state, action, -1)
        _between_turns(state, weights, mind, shares[i], margins[i])


@kernel
def _between_turns(
    state: Record, weights: Record, mind: Record, shares: FloatArray, margins: FloatArray
) -> None:
    """As `forecast`, for one game that is before a walk or over."""
    board, sheet = mind.boards[0], mind.sheet
    over = game.is_over(state)
    scores = sheet.scores
    if over:
        for seat in range(state.num_players):
            scores[seat] = game.score(state, seat)
    else:
        survey(state, board)
        fill_facts(state, board, sheet)
        predict_scores(state, weights, sheet)
    for seat in range(state.num_players):
        margins[seat] = margin(state, scores, seat)
        if over:
            shares[seat] = game.winner_share(state, seat)
        elif state.eliminated[seat]:
            shares[seat] = 0.0
        else:
            shares[seat] = win_chance(state, seat, weights, sheet)
