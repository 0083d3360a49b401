"""Late positions with known values, and how well an agent plays them.

The shipped sets `endgames/N-players.tsv.gz` hold at least 1,000 positions for each number of
players, two or three turns before the end, one from a game. `solver` computed the value of every
legal action. Positions in which all actions have one value are left out. The games are of greedy
and expectimax in random seats, with some random actions (`benchmarks/make_endgames.py`).

A line is `POSITION<TAB>ACTION:SHARE ACTION:SHARE ...`: for each legal action, ascending, the
expected share of the win of the player to move, in six decimals.

Legend: `N` positions, `A` = 15 actions.
"""

from __future__ import annotations

import gzip
import math
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.agent import agent_name, load_agent
from marrakech_env.arena.interval import Estimate, mean_estimate
from marrakech_env.arena.match import Entrant
from marrakech_env.batch import Batch
from marrakech_env.chance import checked_seed
from marrakech_env.notation import parse_position
from marrakech_env.solver import turns_left
from marrakech_env.spec import check_num_players
from marrakech_env.state import States

SAME: Final = 1e-6
"""An action counts as best where it loses at most this share of the win."""


@dataclass(frozen=True)
class Endgames:
    """Positions with their true values.

    Attributes:
        states: STATE (N,).
        shares: float64 (N, A), the value of each action for the player to move; NaN where it is
            not legal.
        turns: int64 (N,), the turns left in each.
    """

    states: States
    shares: NDArray[np.float64]
    turns: NDArray[np.int64]


@dataclass(frozen=True)
class EndgameResult:
    """How well an agent plays late positions.

    Attributes:
        agent: Its name.
        num_players: Of the positions.
        turns: The turns left in them.
        positions: How many they are.
        regret: Mean loss against the best action, as a share of the win (0.01 is a percentage
            point).
        optimal: Mean of 1 where the action is as good as the best one and 0 elsewhere.
    """

    agent: str
    num_players: int
    turns: int
    positions: int
    regret: Estimate
    optimal: Estimate


def load_endgames(num_players: int) -> Endgames:
    """Return the shipped set for a number of players.

    Raises:
        ValueError: The number is not 2, 3 or 4.
    """
    check_num_players(num_players)
    games = _read(num_players)
    return Endgames(games.states.copy(), games.shares.copy(), games.turns.copy())


@cache
def _read(num_players: int) -> Endgames:
    """The shipped set, read once in a third of a second."""
    path = resources.files(__package__) / "endgames" / f"{num_players}-players.tsv.gz"
    lines = gzip.decompress(path.read_bytes()).decode("ascii").splitlines()
    shares = np.full((len(lines), NUM_ACTIONS), math.nan)
    positions = []
    for row, line in enumerate(lines):
        text, values = line.split("\t")
        positions.append(parse_position(text))
        for value in values.split(" "):
            action, share = value.split(":")
            shares[row, int(action)] = float(share)
    states = np.concatenate(positions)
    return Endgames(states, shares, np.array([turns_left(state) for state in states]))


def play_endgames(agent: Any, num_players: int = 2, seed: int | None = 0) -> list[EndgameResult]:
    """Let an agent decide in all positions of the shipped set.

    Args:
        agent: What `load_agent` takes.
        num_players: 2, 3 or 4.
        seed: Of the agent's random numbers; None takes one from the system.

    Returns:
        One result for each number of turns left, ascending.

    Raises:
        ValueError: No such agent or number of players, or a bad seed.
        IllegalActionError: An action is not legal.
        Exception: The agent's own error, with a note that names the agent.
    """
    games = load_endgames(num_players)
    player = load_agent(agent, num_players)
    entrant = Entrant(agent_name(player, agent), player)
    batch = Batch(len(games.states), num_players)
    batch.set_states(games.states)
    everywhere = np.arange(batch.num_games)
    rng = np.random.default_rng(checked_seed(seed))
    actions = entrant.decide(batch, everywhere, rng, "late positions")
    best = np.nanmax(games.shares, axis=1)
    regrets = best - games.shares[np.arange(len(actions)), actions]
    results = []
    for turns in np.unique(games.turns):
        these = regrets[games.turns == turns]
        results.append(
            EndgameResult(
                agent=entrant.name,
                num_players=num_players,
                turns=int(turns),
                positions=len(these),
                regret=mean_estimate(these),
                optimal=mean_estimate((these <= SAME).astype(np.float64)),
            )
        )
    return results
