"""Tournaments: which agents meet, in what order the deals are played, and what came out.

Legend: `D` deals, `P` players, *entrant* = an agent with its name and clock.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from marrakech_env import chance
from marrakech_env.agent import agent_name, load_agent
from marrakech_env.arena.interval import Estimate, mean_estimate, share_estimate
from marrakech_env.arena.match import Entrant, Outcome, play_deals
from marrakech_env.arena.rating import rate
from marrakech_env.arena.result import AgentSummary, Pairing, Result, Tables
from marrakech_env.spec import RuleSet, resolve_rules

FIRST_ROUND: Final = 4
LARGEST_ROUND: Final = 256
"""Deals played side by side: few at first, so that slow agents show something early, then twice
as many each time. Never by the clock: the batches are part of what a seed fixes."""


def play(
    agents: Sequence[Any],
    num_players: int = 2,
    rules: str | RuleSet = "official",
    deals: int = 1000,
    seed: int | None = 0,
    field: Sequence[Any] | None = None,
    tables: Tables = "copies",
    progress: Callable[[int, int], None] | None = None,
) -> Result:
    """Plays a tournament; see `Tournament` for the arguments and errors.

    Args:
        agents: Who is measured.
        num_players: 2, 3 or 4.
        rules: A preset, a RULES text or a rule set.
        deals: Deals for each line-up, each of P games.
        seed: Fixes dice and agents; None takes one from the system.
        field: Opponents that are not measured against each other.
        tables: `copies` or `mixed`.
        progress: Called with the games played and the games in all, whenever some have ended.
    """
    tournament = Tournament(agents, num_players, rules, deals, seed, field, tables)
    tournament.run(progress)
    return tournament.result()


class Tournament:
    """A tournament that can be stopped: `result` tells what is known at any time.

    Attributes:
        entrants: The agents, then the field.
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
    ) -> None:
        """Loads the agents and draws up the line-ups; plays nothing yet.

        Args:
            agents: Who is measured: whatever `load_agent` takes.
            num_players: 2, 3 or 4.
            rules: A preset, a RULES text or a rule set.
            deals: Deals for each line-up, at least 1, each of P games.
            seed: Fixes dice and agents; None takes one from the system.
            field: Opponents of every agent; without them the agents meet each other.
            tables: `copies`: one agent and copies of one opponent in the other seats, for every
                ordered pair (with two players, where both are the same table, for every pair).
                `mixed`: P different agents, in every combination; an agent's result is its mean
                over all its tables.

        Raises:
            ValueError: Too few agents, an unknown one, one made for another number of players,
                or another argument that is not allowed.
        """
        for name, given in (("agents", agents), ("field", field)):
            if isinstance(given, str):
                raise ValueError(f"{name} must be a list of agents, not the text {given!r}")
        self.rule_set = resolve_rules(rules, num_players)
        self.num_players = self.rule_set.num_players
        self.seed = chance.checked_seed(seed)
        self.tables = tables
        if isinstance(deals, bool) or not isinstance(deals, int | np.integer) or deals < 1:
            raise ValueError(f"deals must be a whole number of at least 1, not {deals!r}")
        self.deals = int(deals)
        self._num_agents = len(agents)
        self._line_ups = self._draw_up(len(agents), len(field or ()))
        self.entrants = self._load([*agents, *(field or ())])
        self.num_games = self.deals * self.num_players * len(self._line_ups)
        self._outcomes: list[list[Outcome]] = [[] for _ in self._line_ups]
        self._rounds = list(_rounds(self.deals))

    def run(self, progress: Callable[[int, int], None] | None = None) -> None:
        """Plays what is still to be played.

        All line-ups play a round of deals before the next round begins. A round that is cut off
        is not counted and played anew by the next call: its finished games are the short ones.

        Args:
            progress: Called with the games played and the games in all, whenever some have ended.

        Raises:
            IllegalActionError: Names the agent, the game, the action and the legal ones.
        """
        if not any(self._outcomes):
            for entrant in self.entrants:
                entrant.warm_up(self.rule_set)
        played = sum(outcome.shares[..., 0].size for done in self._outcomes for outcome in done)

        def count(games: int) -> None:
            nonlocal played
            played += games
            if progress is not None:
                progress(played, self.num_games)

        for number, (first_deal, num_deals) in enumerate(self._rounds):
            for line_up, outcomes in zip(self._line_ups, self._outcomes, strict=True):
                if len(outcomes) > number:
                    continue
                entrants = [self.entrants[index] for index in line_up]
                outcomes.append(
                    play_deals(entrants, self.rule_set, self.seed, first_deal, num_deals, count)
                )

    def result(self) -> Result:
        """What is known now."""
        return Result(
            num_players=self.num_players,
            rules=str(self.rule_set),
            seed=self.seed,
            tables=self.tables,
            complete=all(len(done) == len(self._rounds) for done in self._outcomes),
            pairings=self._pairings(),
            agents=self._summaries(),
        )

    def _draw_up(self, agents: int, field: int) -> list[tuple[int, ...]]:
        """Every line-up, as P indices into `entrants`."""
        players = self.num_players
        everyone, rivals = range(agents), range(agents, agents + field)
        line_ups: list[tuple[int, ...]]
        if self.tables == "copies":
            wanted = "two agents, or one and a field"
            pairs: Iterator[tuple[int, ...]]
            if field:
                pairs = itertools.product(everyone, rivals)
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
            raise ValueError(f"tables must be 'copies' or 'mixed', not {self.tables!r}")
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
        for number, line_up in enumerate(self._line_ups):
            if self.tables == "copies":
                rows[line_up[0], line_up[1]] = [number]
            else:
                for agent in line_up:
                    if agent < self._num_agents:
                        rows.setdefault((agent, None), []).append(number)
        pairings = [self._pairing(*key, numbers) for key, numbers in sorted(rows.items())]
        return [pairing for pairing in pairings if pairing is not None]

    def _pairing(self, agent: int, opponent: int | None, numbers: list[int]) -> Pairing | None:
        """A row of the table from the line-ups that it is about; None where no deal is known."""
        # A deal at several tables is one observation, so only deals that all of them have played.
        rounds = min(len(self._outcomes[number]) for number in numbers)
        if rounds == 0:
            return None
        shares, margins = [], []
        for number in numbers:
            slot = self._line_ups[number].index(agent)
            outcomes = self._outcomes[number][:rounds]
            shares.append(np.concatenate([o.shares[..., slot].mean(axis=1) for o in outcomes]))
            margins.append(np.concatenate([o.margins[..., slot].mean(axis=1) for o in outcomes]))
        deal_shares, deal_margins = np.mean(shares, axis=0), np.mean(margins, axis=0)
        games = len(numbers) * self.num_players
        return Pairing(
            agent=self.entrants[agent].name,
            opponent="mixed" if opponent is None else self.entrants[opponent].name,
            deals=len(deal_shares),
            games=len(deal_shares) * games,
            win_share=share_estimate(deal_shares, games),
            margin=mean_estimate(deal_margins),
            deal_shares=deal_shares,
            deal_margins=deal_margins,
        )

    def _summaries(self) -> list[AgentSummary]:
        ratings: list[Estimate | None] = [None] * len(self.entrants)
        if len(self.entrants) > 2 and all(self._outcomes):
            ratings = list(
                rate(
                    len(self.entrants),
                    np.array(self._line_ups),
                    [
                        np.concatenate([outcome.shares.sum(axis=1) for outcome in outcomes])
                        for outcomes in self._outcomes
                    ],
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
