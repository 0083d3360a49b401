"""Where environments take their chance from: one uniform number for each key.

A key is (seed, game, episode, turn, kind): `turn` counts the walks so far in this game, `kind`
says what is drawn (`FACING`, `FIRST_COLOUR` + seat, `DIE`, `NEXT_COLOUR`). The law:

    absorb(h, n) = mix(h + 0x9E3779B97F4A7C15 * (n + 1))        modulo 2**64
    episode_key  = absorb(absorb(absorb(0, seed), game), episode)
    uniform      = absorb(episode_key, 8 * turn + kind) >> 11, times 2**-53, in [0, 1)

where `mix` is the finaliser of SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom
number generators, 2014). The number becomes a facing `int(4u)`, a face `DIE[int(6u)]`, or the
lower of two colours where `u * (lower + upper) < lower` for their weights.

So a game's chance depends neither on the batch size nor on the actions: game i is the same alone
or among 8192, and two matches with one seed see the same dice.
"""

from __future__ import annotations

import secrets
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import DIE, FACING_RULES, FACINGS, whole_number
from marrakech_env.state import (
    ALTERNATE,
    LAY,
    STEER,
    STEER_AT_END,
    Bits,
    Int,
    Record,
    States,
)
from marrakech_env.tables import DIE_FACES

FACING: Final = 0
FIRST_COLOUR: Final = 1
DIE_ROLL: Final = 5
NEXT_COLOUR: Final = 6

CLOCK: Final = np.dtype(
    [
        ("game_key", np.uint64),  # the key after seed and game
        ("key", np.uint64),  # the key of the running episode
        ("episode", np.int64),  # starts before this one, -1 before the first
        ("turn", np.int64),  # walks so far in this episode
    ]
)
"""Where a game stands in its stream of chance; environments keep it beside the state."""

_GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_MIX_1, _MIX_2 = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_ONE = np.uint64(1)
_RANDOM_FACING = FACING_RULES.index("random")
_FACING_OF_RULE = np.array([max(FACINGS.find(facing), 0) for facing in FACING_RULES], np.uint8)
_NUM_FACES = len(DIE)


def checked_seed(seed: int | None) -> int:
    """A seed as a whole number 0..2**64-1; None draws one from the system.

    Raises:
        ValueError: Not a whole number, negative, or 2**64 and more.
    """
    if seed is None:
        return secrets.randbits(63)
    number = whole_number(seed)
    if number is None:
        raise ValueError(f"a seed is a whole number or None, not {seed!r}")
    if not 0 <= number < 2**64:
        raise ValueError(f"a seed lies in 0..2**64-1, not {number}")
    return number


@kernel
def absorb(state: Bits, number: Bits) -> Bits:
    """Mixes one more number into a key."""
    z = state + _GOLDEN * (number + _ONE)
    z = (z ^ (z >> np.uint64(30))) * _MIX_1
    z = (z ^ (z >> np.uint64(27))) * _MIX_2
    return z ^ (z >> np.uint64(31))


@kernel
def uniform(key: Bits, turn: Int, kind: Int) -> float:
    """The uniform number of an episode for a turn and a kind, in [0, 1)."""
    bits = absorb(key, np.uint64(8 * turn + kind))
    return np.float64(bits >> np.uint64(11)) * 2.0**-53


def set_clocks(clocks: NDArray[np.void], seed: int, first_game: int) -> None:
    """Puts clocks before episode 0 of the games `first_game`, `first_game + 1`, ... of a seed.

    Args:
        clocks: CLOCK (B,), overwritten.
        seed: 0..2**64-1.
        first_game: Number of the first game.
    """
    seed_key = absorb(np.uint64(0), np.uint64(seed))
    for i in range(len(clocks)):
        clocks["game_key"][i] = absorb(np.uint64(seed_key), np.uint64(first_game + i))
    clocks["episode"] = -1


@kernel
def start_next(states: States, i: Int, template: States, clocks: NDArray[np.void]) -> None:
    """Puts game i to the start of its next episode, in place.

    Args:
        states: STATE (B,).
        i: The game.
        template: STATE (1,) that holds the rule fields.
        clocks: CLOCK (B,).
    """
    clock: Record = clocks[i]
    clock.episode += 1
    clock.turn = 0
    clock.key = absorb(clock.game_key, np.uint64(clock.episode))
    states[i] = template[0]
    state: Record = states[i]
    game.clear_for_start(state)
    if state.facing_rule == _RANDOM_FACING:
        state.facing = np.uint8(uniform(clock.key, 0, FACING) * 4)
    else:
        state.facing = _FACING_OF_RULE[state.facing_rule]
    for player in range(state.num_players):
        upper = (
            uniform(clock.key, 0, FIRST_COLOUR + player) >= 0.5 and state.colour_rule != ALTERNATE
        )
        game.set_start_outcome(state, player, 2 * player + (1 if upper else 0))


@kernel
def draw(state: Record, clock: Record) -> Int:
    """Draws the outcome of the coming decision, as `game.step` takes it; moves the clock."""
    lays = state.phase == LAY
    u = uniform(clock.key, clock.turn, NEXT_COLOUR if lays else DIE_ROLL)
    if lays and game.has_two_colours(state):
        lower, upper = game.next_colour_weights(state)
        if lower + upper == 0:
            return -1
        return 2 * np.int64(state.player) + (0 if u * (lower + upper) < lower else 1)
    walks = not lays and not (state.phase == STEER and state.flags & STEER_AT_END)
    clock.turn += walks
    return _face(u) if walks else -1


@kernel
def next_roll(clock: Record) -> Int:
    """What the die of the next walk will show, 1..4."""
    return _face(uniform(clock.key, clock.turn, DIE_ROLL))


@kernel
def _face(u: float) -> Int:
    """The face at a uniform number in [0, 1)."""
    return np.int64(DIE_FACES[np.uint64(u * _NUM_FACES)])


@kernel
def advance(state: Record, action: Int, clock: Record) -> Int:
    """Draws the chance of one legal decision and takes it, in place; returns the outcome.

    Args:
        state: An unfinished game.
        action: A legal action of it.
        clock: Its clock, a record of CLOCK.
    """
    outcome = draw(state, clock)
    game.step(state, action, outcome)
    return outcome
