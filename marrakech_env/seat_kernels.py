"""Kernels of `seats`: line-ups, and play until an agent or the caller has to decide.

Legend: `B` games, `P` players.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import chance, game
from marrakech_env.batch_kernels import new_arrays
from marrakech_env.compile import kernel, machine_code
from marrakech_env.kernels.unpack_bits import bytes_of, put_mask
from marrakech_env.opponents import CALLER, UNIFORM, seat_game, uniform_choice
from marrakech_env.state import OVER, Int, Record, States

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

NO_ACTION: Final = -1
"""In the place of an action: take none."""


@kernel
def seat_all(
    clocks: NDArray[np.void],
    first_game: Int,
    seat: Int,
    shared: bool,
    numbers: IntArray,
    edges: FloatArray,
    lineups: IntArray,
) -> None:
    """`seat_game` for every game."""
    for i in range(len(clocks)):
        seat_game(clocks[i], first_game + i, seat, shared, numbers, edges, lineups[i])


@functools.cache
def play_code() -> Callable[..., Int]:
    """`play` as machine code: the types of its arguments are the same in every batch."""
    # Only types count here: any array of the right type stands for the others.
    arrays, games = new_arrays(1, 2), np.zeros(1, np.int64)
    edges, lineups = np.zeros((1, 1)), np.zeros((1, 1), np.int64)
    ends = (arrays.done, arrays.final_scores, arrays.final_shares, arrays.final_states)
    lineup = (0, 0, True, lineups, edges, lineups, lineups)
    board = (arrays.states, games, games, arrays.start, arrays.clocks, arrays.action_mask)
    return machine_code(play, *board, *ends, *lineup, games, True)


@kernel
def play(
    states: States,
    games: IntArray,
    actions: IntArray,
    template: States,
    clocks: NDArray[np.void],
    mask: NDArray[np.bool_],
    done: NDArray[np.bool_],
    final_scores: IntArray,
    final_shares: FloatArray,
    final_states: States,
    first_game: Int,
    seat: Int,
    shared: bool,
    numbers: IntArray,
    edges: FloatArray,
    lineups: IntArray,
    final_lineups: IntArray,
    awaited: IntArray,
    autoreset: bool,
) -> Int:
    """Take a decision in each listed game, in place, and play on for the `random` seats.

    `actions` holds a legal action of each of `games`, or `NO_ACTION` to take none. With
    `autoreset` a game that ends goes on to its next episode. The next one cannot end in the same
    step: the caller holds rugs until the first decision, and the first player walks on an empty
    board.

    Returns:
        How many of the listed games wait for an agent, whose number is in `awaited`.
    """
    waiting = 0
    rows = bytes_of(mask)
    for j in range(len(games)):
        i = games[j]
        state: Record = states[i]
        action = actions[j]
        while True:
            if action != NO_ACTION:
                chance.advance(state, action, clocks[i])
            if state.phase == OVER:
                done[i] = True
                final_states[i] = state
                final_lineups[i] = lineups[i]
                for player in range(state.num_players):
                    final_scores[i, player] = game.score(state, player)
                    final_shares[i, player] = game.winner_share(state, player)
                if not autoreset:
                    agent: Int = CALLER
                    break
                chance.start_next(states, i, template, clocks)
                seat_game(clocks[i], first_game + i, seat, shared, numbers, edges, lineups[i])
            agent = lineups[i, state.player]
            if agent != UNIFORM:
                break
            action = uniform_choice(state, clocks[i])
        awaited[i] = agent
        waiting += agent != CALLER
        put_mask(rows, i, game.legal_actions(state))
    return waiting
