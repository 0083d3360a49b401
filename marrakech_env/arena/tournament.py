"""Tournaments: the line-ups of agents, the order of their deals, and the results.

Legend: `D` deals, `P` players, *entrant* = an agent with its name and clock.
"""

from __future__ import annotations

import itertools
import math
import reprlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import chance
from marrakech_env.agent import agent_name, load_agent
from marrakech_env.arena.interval import Estimate, mean_estimate, share_estimate
from marrakech_env.arena.luck import Luck, load_baseline
from marrakech_env.arena.match import Entrant, Outcome, play_deals
from marrakech_env.arena.rating import rate
from marrakech_env.arena.result import AgentSummary, LuckAdjusted, Pairing, Result, Tables
from marrakech_env.batch import Batch
from marrakech_env.spec import RuleSet, resolve_rules, whole_number

FloatArray = NDArray[np.float64]

FIRST_ROUND: Final = 4
LARGEST_ROUND: Final = 256
"""Deals played side by side: few at first, so that slow agents have early results, then twice as
many each time. The clock has no part in it, so that a seed fixes the games."""

MOST_DEALS: Final = 10_000_000
"""Most deals of a line-up; the quickest agents need days for them."""


def play(
    agents: Sequence[Any],
    num_players: int = 2,
    rules: str | RuleSet = "official",
    deals: int = 1000,
    seed: int | None = 0,
    field: Sequence[Any] | None = None,
    tables: Tables = "copies",
    baseline: Any = None,
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Play a tournament; see `Tournament` for the arguments and errors.

    Args:
        agents: The agents to measure.
        num_players: 2, 3 or 4.
        rules: A preset, a RULES text or a rule set.
        deals: Deals for each line-up, each of P games.
        seed: Fixes dice and agents; None takes one from the system.
        field: Opponents that are not measured against each other.
        tables: `copies`, `both` or `mixed`.
        baseline: What measures luck, for example `"expectimax"`; None measures none.
        progress: Called with the games played and the games in all after games end.
    """
    tournament = Tournament(agents, num_players, rules, deals, seed, field, tables, baseline)
    tournament.run(progress)
    return tournament.result()


class Tournament:
    """A tournament that can be stopped: `result` gives the results so far at any time.

    Attributes:
        entrants: The agents, then the field.
        line_ups: The agents in the P slots of every kind of table, as indices into `entrants`.
        num_games: Games in all.
    """

    def __init__(
        self,
        agents: Sequence[Any],
        num_players: int = 2,
        rules: str | RuleSet = "official",
        deals: int = 1000,
        seed: int | None = 0,
        field: Sequence[Any] | None = None,
        tables: Tables = "copies",
        baseline: Any = None,
        field_ratings: Sequence[float] | None = None,
    ) -> None:
        """Load the agents and draw up the line-ups; play nothing yet.

        Args:
            agents: The agents to measure: what `load_agent` takes.
            num_players: 2, 3 or 4.
            rules: A preset, a RULES text or a rule set.
            deals: Deals for each line-up, at least 1, each of P games.
            seed: Fixes dice and agents; None takes one from the system.
            field: Opponents of every agent; without them the agents meet each other.
            tables: `copies`: one agent and copies of one opponent in the other seats, for every
                ordered pair (with two players, where both are the same table, for every pair);
                agents and a field: the agent among copies.
                `both`: the same, but the field's agents sit among copies of the agents as well.
                `mixed`: P different agents, in every combination; an agent's result is its mean
                over all its tables.
            baseline: What measures luck: an object with a method `evaluate` (see
                `luck.Baseline`), or what `load_agent` takes; None measures none.
            field_ratings: Fixed ratings of the field, in points.

        Raises:
            ValueError: Too few agents, an unknown agent, an agent made for another number of
                players, or another bad argument.
        """
        for name, given in (("agents", agents), ("field", field)):
            if isinstance(given, str):
                raise ValueError(f"{name} must be a list of agents, not the text {given!r}")
        self.rule_set = resolve_rules(rules, num_players)
        self.num_players = self.rule_set.num_players
        self.seed = chance.checked_seed(seed)
        self.tables = tables
        number = whole_number(deals)
        if number is None or not 1 <= number <= MOST_DEALS:
            raise ValueError(
                f"deals must be a whole number of 1 to {MOST_DEALS:,}, not {reprlib.repr(deals)}"
            )
        self.deals = number
        self._num_agents = len(agents)
        self._field_ratings = field_ratings
        self.line_ups = self._draw_up(len(agents), len(field or ()))
        self.entrants = self._load([*agents, *(field or ())])
        self._baseline = None
        self._baseline_name = None
        if baseline is not None:
            self._baseline = load_baseline(baseline, self.num_players)
            self._baseline_name = agent_name(self._baseline, baseline)
        self.num_games = self.deals * self.num_players * len(self.line_ups)
        self._outcomes: list[list[Outcome]] = [[] for _ in self.line_ups]
        self._rounds = list(_rounds(self.deals))

    def run(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Play all deals that are left.

        All line-ups play a round of deals before the next round begins. A round that is cut off
        does not count, because its finished games are the short ones. The next call plays it anew.

        Args:
            progress: Called with the games played and the games in all after games end.

        Raises:
            IllegalActionError: Names the agent, the game, the action and the legal ones.
            Exception: An agent's own error, with a note that names the agent.
        """
        if not any(self._outcomes):
            self.warm_up()
        played = sum(outcome.shares[..., 0].size for done in self._outcomes for outcome in done)

        def count(games: int) -> None:
            nonlocal played
            played += games
            if progress is not None:
                progress(played, self.num_games)

        for number in range(len(self._rounds)):
            for line_up, outcomes in enumerate(self._outcomes):
                if len(outcomes) == number:
                    self.play_round(line_up, count)

    def warm_up(self) -> None:
        """Let every agent and the baseline take their first decisions outside the clock.

        Raises:
            IllegalActionError: As `run`.
        """
        for entrant in self.entrants:
            entrant.warm_up(self.rule_set)
        if self._baseline is not None:
            batch = Batch(1, self.num_players, self.rule_set)
            Luck(self._baseline, 1, self.num_players).add(batch, np.arange(1), np.ones(1, np.int64))

    def next_round(self, line_up: int) -> int:
        """Return the number of deals in the next round of a line-up, 0 after the last one."""
        done = len(self._outcomes[line_up])
        return self._rounds[done][1] if done < len(self._rounds) else 0

    def play_round(self, line_up: int, on_end: Callable[[int], None] = lambda games: None) -> None:
        """Play the next round of deals of one line-up.

        Args:
            line_up: Its index in `line_ups`.
            on_end: Called with the number of games that have just ended.

        Raises:
            IllegalActionError: As `run`.
        """
        outcomes = self._outcomes[line_up]
        entrants = [self.entrants[index] for index in self.line_ups[line_up]]
        first_deal, num_deals = self._rounds[len(outcomes)]
        outcomes.append(
            play_deals(
                entrants, self.rule_set, self.seed, first_deal, num_deals, on_end, self._baseline
            )
        )

    def pairing(self, line_up: int) -> Pairing | None:
        """Return the results of a line-up's first agent; None before the first round."""
        agent, opponent = self.line_ups[line_up][:2]
        return self._pairing(agent, opponent, [line_up])

    def result(self) -> Result:
        """Return the results so far."""
        return Result(
            num_players=self.num_players,
            rules=str(self.rule_set),
            seed=self.seed,
            tables=self.tables,
            baseline=self._baseline_name,
            complete=all(len(done) == len(self._rounds) for done in self._outcomes),
            pairings=self._pairings(),
            agents=self._summaries(),
        )

    def _draw_up(self, agents: int, field: int) -> list[tuple[int, ...]]:
        """Every line-up, as P indices into `entrants`."""
        players = self.num_players
        everyone, rivals = range(agents), range(agents, agents + field)
        line_ups: list[tuple[int, ...]]
        if self.tables in ("copies", "both"):
            wanted = "two agents, or one and a field"
            pairs: Iterator[tuple[int, ...]]
            if field:
                pairs = itertools.product(everyone, rivals)
                if self.tables == "both" and players > 2:
                    pairs = itertools.chain(pairs, itertools.product(rivals, everyone))
            elif players == 2:
                pairs = itertools.combinations(everyone, 2)
            else:
                pairs = itertools.permutations(everyone, 2)
            line_ups = [(agent,) + (opponent,) * (players - 1) for agent, opponent in pairs]
        elif self.tables == "mixed":
            wanted = f"{players} agents, or one and a field of {players - 1}"
            if field:
                groups = itertools.combinations(rivals, players - 1)
                line_ups = [(agent, *group) for group in groups for agent in everyone]
            else:
                line_ups = list(itertools.combinations(everyone, players))
        else:
            raise ValueError(f"tables must be 'copies', 'both' or 'mixed', not {self.tables!r}")
        if not line_ups:
            raise ValueError(
                f"too few agents for a table: at least {wanted} are needed with {players} players "
                f"and tables {self.tables!r}; given: {agents} and a field of {field}"
            )
        return line_ups

    def _load(self, specs: Sequence[Any]) -> list[Entrant]:
        """The entrants; a name that has occurred before is numbered."""
        entrants: list[Entrant] = []
        taken: dict[str, int] = {}
        for spec in specs:
            agent = load_agent(spec, self.num_players)
            name = agent_name(agent, spec)
            taken[name] = taken.get(name, 0) + 1
            entrants.append(Entrant(name if taken[name] == 1 else f"{name} #{taken[name]}", agent))
        return entrants

    def _pairings(self) -> list[Pairing]:
        rows: dict[tuple[int, int | None], list[int]] = {}
        for number, line_up in enumerate(self.line_ups):
            if self.tables == "mixed":
                for agent in line_up:
                    if agent < self._num_agents:
                        rows.setdefault((agent, None), []).append(number)
            else:
                rows[line_up[0], line_up[1]] = [number]
        pairings = [self._pairing(*key, numbers) for key, numbers in sorted(rows.items())]
        return [pairing for pairing in pairings if pairing is not None]

    def _pairing(self, agent: int, opponent: int | None, numbers: list[int]) -> Pairing | None:
        """The pairing of the given line-ups; None where no deal is known."""
        # A deal at several tables is one observation, so only deals that all tables have played.
        rounds = min(len(self._outcomes[number]) for number in numbers)
        if rounds == 0:
            return None

        def by_deal(figure: str) -> FloatArray:
            tables = []
            for number in numbers:
                slot = self.line_ups[number].index(agent)
                outcomes = self._outcomes[number][:rounds]
                tables.append(
                    np.concatenate([getattr(o, figure)[..., slot].mean(axis=1) for o in outcomes])
                )
            return np.asarray(np.mean(tables, axis=0))

        deal_shares, deal_margins = by_deal("shares"), by_deal("margins")
        games = len(numbers) * self.num_players
        adjusted = None
        if self._baseline is not None:
            adjusted = LuckAdjusted.of(
                deal_shares, deal_margins, by_deal("lucky_shares"), by_deal("lucky_margins")
            )
        return Pairing(
            agent=self.entrants[agent].name,
            opponent="mixed" if opponent is None else self.entrants[opponent].name,
            deals=len(deal_shares),
            games=len(deal_shares) * games,
            win_share=share_estimate(deal_shares, games),
            margin=mean_estimate(deal_margins),
            deal_shares=deal_shares,
            deal_margins=deal_margins,
            luck_adjusted=adjusted,
        )

    def _summaries(self) -> list[AgentSummary]:
        ratings: list[Estimate | None] = [None] * len(self.entrants)
        fixed = None
        if self._field_ratings is not None:
            fixed = np.array([math.nan] * self._num_agents + list(self._field_ratings))
        if (len(self.entrants) > 2 or fixed is not None) and all(self._outcomes):
            ratings = list(
                rate(
                    len(self.entrants),
                    np.array(self.line_ups),
                    [
                        np.concatenate([outcome.shares.sum(axis=1) for outcome in outcomes])
                        for outcomes in self._outcomes
                    ],
                    fixed,
                )
            )
        return [
            AgentSummary(entrant.name, rating, entrant.decisions, entrant.ms_per_decision)
            for entrant, rating in zip(self.entrants, ratings, strict=True)
        ]


def _rounds(deals: int) -> Iterator[tuple[int, int]]:
    """The rounds: first deal and number of deals of each."""
    first, size = 0, FIRST_ROUND
    while first < deals:
        yield first, min(size, deals - first)
        first += size
        size = min(2 * size, LARGEST_ROUND)
