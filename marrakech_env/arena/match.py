"""A match: one line-up of agents at a table, played deal by deal in every seat rotation.

Legend: `D` deals, `P` players, `R` = P rotations, *slot* = place in the line-up, *seat* = player.

A deal is one game number of `chance`: its rotations see the same dice and, in the same seat, the
same rug colours. In rotation r, slot k sits in seat (k - r) modulo P, so that over a deal every
slot has had every seat once, and the order round the table stays.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from marrakech_env.agent import Agent, ask
from marrakech_env.arena.luck import Baseline, Luck
from marrakech_env.batch import Batch
from marrakech_env.spec import RuleSet

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


class IllegalActionError(ValueError):
    """An agent chose an action that is not legal."""


@dataclass
class Entrant:
    """An agent in a tournament, with the clock of its decisions.

    Attributes:
        name: Its name in tables, different for all entrants.
        agent: The agent.
        decisions: Number of decisions taken.
        seconds: Time of all decisions together.
    """

    name: str
    agent: Agent
    decisions: int = 0
    seconds: float = 0.0

    @property
    def ms_per_decision(self) -> float | None:
        """Milliseconds for one decision, None where there was none."""
        return 1000 * self.seconds / self.decisions if self.decisions else None

    def decide(
        self, batch: Batch, games: IntArray, rng: np.random.Generator, where: str
    ) -> IntArray:
        """Return the agent's actions in the listed games, checked and timed: int64 (N,).

        Args:
            batch: The games.
            games: int64 (N,), the games in which the agent is to move.
            rng: What the agent draws from.
            where: What errors call these games.

        Raises:
            IllegalActionError: Names the agent, the game, the action and the legal ones.
            Exception: The agent's own error, see `ask`.
        """
        states = batch.states.take(games)
        started = time.perf_counter()
        actions = ask(self.agent, self.name, states, rng)
        self.seconds += time.perf_counter() - started
        self.decisions += len(games)
        try:
            return batch.check_actions(actions, games)
        except ValueError as error:
            raise IllegalActionError(f"agent {self.name!r} ({where}): {error}") from error

    def warm_up(self, rule_set: RuleSet) -> None:
        """Take the first decisions of a game outside the clock, because kernels compile there.

        Raises:
            IllegalActionError: As in `decide`.
        """
        batch = Batch(1, rule_set.num_players, rule_set)
        rng = np.random.default_rng(0)
        for _ in range(3):  # every phase, where a turn is to walk, to lay and to steer
            batch.step(self.decide(batch, np.arange(1), rng, _place(0, 0)))
        self.decisions, self.seconds = 0, 0.0


@dataclass(frozen=True)
class Outcome:
    """The results of some deals of a match.

    Attributes:
        shares: float64 (D, R, P): win share of each slot.
        margins: int64 (D, R, P): final score of each slot minus the best one among the others,
            in dirhams.
        lucky_shares: float64 (D, R, P): the part of the share that was the luck of the dice; None
            without a baseline.
        lucky_margins: float64 (D, R, P): the same of the margin.
    """

    shares: FloatArray
    margins: IntArray
    lucky_shares: FloatArray | None = None
    lucky_margins: FloatArray | None = None


def play_deals(
    line_up: Sequence[Entrant],
    rule_set: RuleSet,
    seed: int,
    first_deal: int,
    num_deals: int,
    on_end: Callable[[int], None] = lambda games: None,
    baseline: Baseline | None = None,
) -> Outcome:
    """Play some deals of a line-up, side by side.

    Every seat of every rotation has its own random numbers, which depend on the seed, the deals
    and the seat alone: two agents that decide alike play the same games in each other's seats.

    Args:
        line_up: P entrants; one may have several slots.
        rule_set: The rules, for P players.
        seed: Seed of the dice and of the agents.
        first_deal: Number of the first deal.
        num_deals: D, at least 1.
        on_end: Called with the number of games that have just ended.
        baseline: What measures luck; None measures none.

    Raises:
        IllegalActionError: Names the agent, the game, the action and the legal ones.
        ValueError: The baseline returns no numbers.
    """
    players = len(line_up)
    shares = np.zeros((num_deals, players, players))
    margins = np.zeros((num_deals, players, players), np.int64)
    lucky_shares, lucky_margins = np.zeros((2, num_deals, players, players))
    place = _place(first_deal, seed)
    for rotation in range(players):
        seat_of_slot = (np.arange(players) - rotation) % players
        rngs = [np.random.default_rng([seed, first_deal, seat]) for seat in range(players)]
        # A batch restarts a finished game at once; only `running` is stepped, so that it is not
        # played on.
        batch = Batch(num_deals, players, rule_set, seed, first_game=first_deal)
        luck = None if baseline is None else Luck(baseline, num_deals, players)
        running = np.arange(num_deals)
        actions = np.zeros(num_deals, np.int64)
        while len(running):
            movers = batch.states["player"][running]
            for slot, seat in enumerate(seat_of_slot):
                games = running[movers == seat]
                if len(games):
                    actions[games] = line_up[slot].decide(batch, games, rngs[seat], place)
            if luck is not None:
                luck.add(batch, running, actions[running])
            batch.step_games(running, actions[running])
            ended = running[batch.done[running]]
            if len(ended):
                shares[ended, rotation] = batch.final_shares[ended][:, seat_of_slot]
                margins[ended, rotation] = _margins(batch.final_scores[ended])[:, seat_of_slot]
                running = running[~batch.done[running]]
                on_end(len(ended))
        if luck is not None:
            lucky_shares[:, rotation] = luck.shares[:, seat_of_slot]
            lucky_margins[:, rotation] = luck.margins[:, seat_of_slot]
    if baseline is None:
        return Outcome(shares, margins)
    return Outcome(shares, margins, lucky_shares, lucky_margins)


def _place(first_deal: int, seed: int) -> str:
    return f"game 0 is deal {first_deal} of seed {seed}"


def _margins(scores: IntArray) -> IntArray:
    """Each player's score minus the best among the others: int64 (N, P)."""
    others = [np.delete(scores, player, axis=1).max(axis=1) for player in range(scores.shape[1])]
    return np.asarray(scores - np.stack(others, axis=1))
