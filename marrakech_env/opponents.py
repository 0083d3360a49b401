"""The agents at the seats that the caller (the learner) does not play: mixtures and line-ups.

Legend: `B` games, `P` players, `K` agents of a mixture.

A *line-up* holds for each seat of a game what decides there: `CALLER`, `UNIFORM`, or the number of
another agent. The draws depend on (seed, game, episode) alone; in the terms of `chance`:

    opponents_key = absorb(episode_key, 2**63)
    agent of seat p = uniform(opponents_key, 0, 3 + p), looked up in the cumulative weights;
                      where one mixture is given for all seats, p = 0 draws for all of them
    "random" plays    the legal action number int(n * uniform(opponents_key, turn, phase)) of n
    seat="rotate"     the caller's seat is (game + episode) modulo P
"""

from __future__ import annotations

import contextlib
import math
import reprlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import chance, game
from marrakech_env.agent import Agent, agent_name, load_agent
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import cell_at
from marrakech_env.spec import whole_number
from marrakech_env.state import Bits, Int, Record

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Pool = list[tuple[Any, float]]

CALLER: Final = -1
"""In a line-up: the seat is played from outside."""
UNIFORM: Final = 0
"""In a line-up: `random`, given by this name, plays the seat inside the kernels. Every other agent
has a higher number."""
ROTATE: Final = -1
"""Instead of a seat: (game + episode) modulo P."""

_OPPONENTS = np.uint64(1 << 63)
_AGENT_DRAW = 3  # the kinds 0..2 are the phases in which `random` draws


@dataclass(frozen=True)
class Mixture:
    """The agents that each seat is drawn from; it never changes, so threads may share it.

    Attributes:
        agents: The agents by number; None at `UNIFORM`.
        names: Their names in tables.
        shared: Whether one draw holds for all seats of a game.
        numbers: int64 (P, K), the numbers of the agents that a seat is drawn from.
        edges: float64 (P, K), cumulative weights; from a seat's last agent on at least 1.
    """

    agents: tuple[Agent | None, ...]
    names: tuple[str, ...]
    shared: bool
    numbers: IntArray
    edges: FloatArray

    @classmethod
    def of_caller(cls, players: int) -> Mixture:
        """Return the mixture in which the caller plays every seat."""
        return cls((None,), ("random",), True, np.full((players, 1), CALLER), np.ones((players, 1)))

    @classmethod
    def read(cls, opponents: Any, players: int, seat: int) -> Mixture:
        """Load what `SeatedBatch.set_opponents` accepts; `seat` is the caller's, or `ROTATE`.

        Raises:
            ValueError: As said there.
        """
        pools, shared = _pools(opponents, players, seat)
        agents: list[Agent | None] = [None]
        names = ["random"]
        loaded: list[tuple[Any, int]] = [("random", UNIFORM)]  # agents need not be hashable
        size = (players, max(map(len, pools)))
        numbers, edges = np.full(size, UNIFORM), np.ones(size)
        for p, pool in enumerate(pools):
            for k, (spec, _) in enumerate(pool):
                number = next((n for known, n in loaded if _is_same(known, spec)), None)
                if number is None:
                    number = len(agents)
                    agent = load_agent(spec, players)
                    agents.append(agent)
                    names.append(agent_name(agent, spec))
                    loaded.append((spec, number))
                numbers[p, k] = number
            weights = np.array([weight for _, weight in pool])
            edges[p, : len(pool) - 1] = np.cumsum(weights)[:-1] / weights.sum()
        return cls(tuple(agents), tuple(names), shared, numbers, edges)

    def beside(self, earlier: Mixture, lineups: IntArray) -> tuple[Mixture, IntArray]:
        """Return this mixture for games to come, with the agents that running games keep.

        Args:
            earlier: The mixture whose numbers are in the line-ups.
            lineups: int64 (B, P), of the games under way.

        Returns:
            This mixture with the agents in use that are not among its own put behind them, and the
            line-ups in its numbers.
        """
        agents, names = list(self.agents), list(self.names)
        moved = np.arange(len(earlier.agents))
        for number in np.unique(lineups[lineups > UNIFORM]):
            agent = earlier.agents[number]
            place = next((n for n, known in enumerate(agents) if known is agent), len(agents))
            if place == len(agents):
                agents.append(agent)
                names.append(earlier.names[number])
            moved[number] = place
        mixture = replace(self, agents=tuple(agents), names=tuple(names))
        return mixture, np.where(lineups > UNIFORM, moved[lineups], lineups)


def _pools(opponents: Any, players: int, seat: int) -> tuple[list[Pool], bool]:
    """The (agent, weight) of each seat, and whether one draw holds for all seats."""
    if not isinstance(opponents, list | tuple):
        return [_pool(opponents)] * players, True
    if len(opponents) != players:
        raise ValueError(
            f"a list of opponents has one entry for each of the {players} seats, "
            f"not {len(opponents)}: {reprlib.repr(opponents)}"
        )
    own = [("random", 1.0)]  # without effect: the caller sits there
    return [own if p == seat else _pool(entry) for p, entry in enumerate(opponents)], False


def _pool(entry: Any) -> Pool:
    """The agents with positive weights of one entry of opponents."""
    if not isinstance(entry, Mapping):
        return [(entry, 1.0)]
    pool = [(spec, _weight(weight, spec)) for spec, weight in entry.items()]
    pool = [(spec, weight) for spec, weight in pool if weight]
    if not 0 < sum(weight for _, weight in pool) < math.inf:
        raise ValueError(
            "a mixture of opponents needs a positive weight, and weights with a finite sum: "
            f"{reprlib.repr(entry)}"
        )
    return pool


def _weight(weight: Any, spec: Any) -> float:
    number = math.nan
    if isinstance(weight, int | float | np.integer | np.floating) and not isinstance(weight, bool):
        with contextlib.suppress(OverflowError):
            number = float(weight)
    if not 0 <= number < math.inf:
        raise ValueError(
            f"the weight of opponent {reprlib.repr(spec)} must be a number of at least 0, "
            f"not {reprlib.repr(weight)}"
        )
    return number


def _is_same(known: Any, spec: Any) -> bool:
    """Whether two specs stand for one agent; objects may define equality in any way."""
    return known is spec or (isinstance(known, str) and isinstance(spec, str) and known == spec)


def checked_seat(seat: Any, players: int) -> int:
    """Return the caller's seat as a number, `ROTATE` for `rotate`.

    Raises:
        ValueError: It is no seat of the game.
    """
    if isinstance(seat, str) and seat == "rotate":
        return ROTATE
    number = whole_number(seat)
    if number is not None and 0 <= number < players:
        return number
    raise ValueError(f"seat must be 0..{players - 1} or 'rotate', not {seat!r}")


@kernel
def seat_game(
    clock: Record,
    game_number: Int,
    seat: Int,
    shared: bool,
    numbers: IntArray,
    edges: FloatArray,
    lineup: IntArray,
) -> None:
    """Draw the agents of the episode that starts, into `lineup` (P,)."""
    key: Bits = chance.absorb(clock.key, _OPPONENTS)
    players = len(lineup)
    for player in range(players):
        u = chance.uniform(key, 0, _AGENT_DRAW + (0 if shared else player))
        choice = 0
        while u >= edges[player, choice]:
            choice += 1
        lineup[player] = numbers[player, choice]
    lineup[(game_number + clock.episode) % players if seat == ROTATE else seat] = CALLER


@kernel
def uniform_choice(state: Record, clock: Record) -> Int:
    """Return the legal action that `random` plays."""
    uniform = chance.uniform(chance.absorb(clock.key, _OPPONENTS), clock.turn, state.phase)
    return cell_at(np.uint64(game.legal_actions(state)), uniform)
