"""The arrays of a `Batch`, and its kernels.

Legend: `B` games, `N` listed ones, `P` players, `A` = 15 actions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marrakech_env import chance, game
from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel, machine_code
from marrakech_env.kernels.unpack_bits import bytes_of, put_mask
from marrakech_env.state import OVER, STATE, Int, Record, States

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class Arrays(NamedTuple):
    """What a batch consists of, in the order in which `_step_games` takes it."""

    states: States  # STATE (B,)
    start: States  # STATE (1,), holds the rule fields of every start
    clocks: NDArray[np.void]  # CLOCK (B,)
    action_mask: BoolArray  # (B, A)
    done: BoolArray  # (B,)
    outcomes: NDArray[np.int8]  # (B,)
    final_scores: IntArray  # (B, P)
    final_shares: FloatArray  # (B, P)
    final_states: States  # STATE (B,)

    def each(self, change: Callable[[NDArray[Any]], Any]) -> Arrays:
        """What a function makes of each array."""
        return Arrays(*map(change, self))


def new_arrays(games: int, players: int) -> Arrays:
    """Arrays of zeros."""
    return Arrays(
        states=np.zeros(games, STATE),
        start=np.zeros(1, STATE),
        clocks=np.zeros(games, chance.CLOCK),
        action_mask=np.zeros((games, NUM_ACTIONS), np.bool_),
        done=np.zeros(games, np.bool_),
        outcomes=np.zeros(games, np.int8),
        final_scores=np.zeros((games, players), np.int64),
        final_shares=np.zeros((games, players), np.float64),
        final_states=np.zeros(games, STATE),
    )


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view of the same memory that `setflags` cannot make writeable again."""
    memory: Any = array.reshape(-1).view(np.uint8)
    return np.frombuffer(memoryview(memory).toreadonly(), array.dtype).reshape(array.shape)


@kernel
def first_bad_game(games: IntArray, seen: BoolArray) -> Int:
    """Index into `games` of the first number that is none of a game or stands twice, else -1.

    `seen` is bool (B,), all False before.
    """
    for j in range(len(games)):
        i = games[j]
        if i < 0 or i >= len(seen) or seen[i]:
            return j
        seen[i] = True
    return -1


@kernel
def first_illegal(mask: BoolArray, games: IntArray, actions: IntArray) -> Int:
    """Index into `games` of the first illegal action, -1 where all are legal."""
    for j in range(len(games)):
        action = actions[j]
        if action < 0 or action >= NUM_ACTIONS or not mask[games[j], action]:
            return j
    return -1


@kernel
def fill_masks(states: States, games: IntArray, mask: BoolArray) -> None:
    """Writes the legal actions of the listed games, in place."""
    rows = bytes_of(mask)
    for i in games:
        put_mask(rows, i, game.legal_actions(states[i]))


@kernel
def fill_rolls(clocks: NDArray[np.void], games: IntArray, rolls: IntArray) -> None:
    """Writes what the die of the next walk will show in the listed games into `rolls`."""
    for j in range(len(games)):
        rolls[j] = chance.next_roll(clocks[games[j]])


@functools.cache
def step_code() -> Callable[..., Int]:
    """`_step_games` for the arrays of any batch: their types are always the same."""
    games = np.zeros(1, np.int64)
    return machine_code(_step_games, *new_arrays(1, 2), games, games)


@kernel
def _step_games(
    states: States,
    template: States,
    clocks: NDArray[np.void],
    mask: BoolArray,
    done: BoolArray,
    outcomes: NDArray[np.int8],
    scores: IntArray,
    shares: FloatArray,
    final_states: States,
    games: IntArray,
    actions: IntArray,
) -> Int:
    """One decision in each listed game, in place; draws chance, starts finished games anew.

    Returns:
        -1, or the index into `games` of the first illegal action; nothing has changed then.
    """
    bad = first_illegal(mask, games, actions)
    if bad >= 0:
        return bad
    for i in range(len(done)):
        outcomes[i] = game.NO_OUTCOME
        if done[i]:
            done[i] = False
            scores[i] = 0
            shares[i] = 0.0
    rows = bytes_of(mask)
    for j in range(len(games)):
        i = games[j]
        state: Record = states[i]
        outcomes[i] = chance.advance(state, actions[j], clocks[i])
        if state.phase == OVER:
            done[i] = True
            final_states[i] = state
            for player in range(state.num_players):
                scores[i, player] = game.score(state, player)
                shares[i, player] = game.winner_share(state, player)
            chance.start_next(states, i, template, clocks)
        put_mask(rows, i, game.legal_actions(state))
    return -1
