"""The leaderboard: every agent against every other with 2, 3 and 4 players, within a budget.

What limits the games is time, so they are handed out where they tell most: a round of deals goes to
the line-up whose win share has the widest interval for the time that it has taken. An agent a
hundred times slower than another so gets ten times fewer games, in ten times the time. With 3 and 4
players both of each pair sit alone among copies of the other.

The deals of a line-up are those that `evaluate.py` plays with the same seed, in the same rounds.
With a *ladder*, an earlier leaderboard, agents meet its entries only, whose ratings are held fixed.

Legend: `P` players, `D` deals.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.agent import agent_number, agent_version, ask, known_agents, load_agent
from marrakech_env.arena.endgames import EndgameResult, load_endgames, play_endgames
from marrakech_env.arena.interval import average_estimate
from marrakech_env.arena.luck import DEFAULT_BASELINE
from marrakech_env.arena.match import Entrant, IllegalActionError
from marrakech_env.arena.result import AgentSummary, Pairing, Row, Standings, share_matrix
from marrakech_env.arena.tournament import MOST_DEALS, Tournament
from marrakech_env.spec import MAX_PLAYERS, RuleSet

Ladder = Mapping[int, Mapping[str, float]]
"""Ratings of the entries of an earlier leaderboard: by number of players, by name."""
Progress = Callable[[float, str], None]
"""Called with the seconds of the budget that are used, and with what is going on."""

PLAYER_COUNTS: Final = range(2, MAX_PLAYERS + 1)
RULES: Final = "official"
PROBES: Final = 32
"""Decisions by which the speed of an agent is guessed before its first game."""


@dataclass
class Table:
    """A line-up and what it has cost.

    Attributes:
        tournament: Where it is played.
        line_up: Its index there.
        deal_seconds: What a deal takes; a guess before the first round.
        deals: Deals played.
        width: Of the interval of its win share.
    """

    tournament: Tournament
    line_up: int
    deal_seconds: float
    deals: int = 0
    width: float = math.inf

    @property
    def next_seconds(self) -> float:
        """What the next round will take."""
        return self.deal_seconds * self.tournament.next_round(self.line_up)

    @property
    def urgency(self) -> tuple[float, float]:
        """Greater where a round tells more for its time; among unknown line-ups, the quick ones."""
        seconds = self.deal_seconds * self.deals + self.next_seconds
        return self.width**2 / seconds, -seconds

    def play(self, on_end: Callable[[int], None]) -> None:
        """Plays the next round."""
        started = perf_counter()
        spent = self.deal_seconds * self.deals
        self.tournament.play_round(self.line_up, on_end)
        pairing = self.tournament.pairing(self.line_up)
        assert pairing is not None
        self.deals = pairing.deals
        self.deal_seconds = (spent + perf_counter() - started) / self.deals
        self.width = pairing.win_share.high - pairing.win_share.low


def choose(tables: Iterable[Table], seconds: float) -> Table | None:
    """The table that shall play next, of those whose round fits into the seconds left."""
    fitting = (t for t in tables if 0 < t.next_seconds <= seconds)
    return max(fitting, key=lambda table: table.urgency, default=None)


class Leaderboard:
    """A leaderboard that can be stopped: `standings` tells what is known at any time."""

    def __init__(
        self,
        agents: Sequence[str] = (),
        seed: int = 0,
        baseline: str = DEFAULT_BASELINE,
        ladder: Ladder | None = None,
    ) -> None:
        """Draws up who meets whom.

        Args:
            agents: Names, paths or `module:attr`, as `load_agent` takes them. Without a ladder
                all agents that are known by name play as well.
            seed: Of dice and agents.
            baseline: What luck is measured by.
            ladder: Ratings that are held fixed.

        Raises:
            ValueError: An unknown agent, one on the ladder that is not installed in that version,
                one whose numbers are none, one of `agents` that can be rated with no number of
                players, or nobody to be rated.
            IllegalActionError: An agent cannot play.
        """
        self.ladder = ladder
        self.seed = seed
        self.baseline = baseline
        self._tournaments: dict[int, Tournament] = {}
        self._endgames: dict[tuple[int, str], tuple[EndgameResult, ...]] = {}
        self._left_out: dict[int, dict[str, str]] = {}
        self._num_parameters: dict[tuple[int, str], int | None] = {}
        given = [versioned(spec) for spec in agents]
        known = [versioned(name) for name in known_agents()] if ladder is None else []
        if not given and not known:
            raise ValueError("no agent given that could be rated against the ladder")
        self._names = list(dict.fromkeys([*known, *given]))
        for players in PLAYER_COUNTS:
            self._draw_up(players)
        for name in given if self._tournaments else self._names:
            reasons = {players: out.get(name) for players, out in self._left_out.items()}
            if all(reasons.values()):
                told = "; ".join(f"with {players}: {why}" for players, why in reasons.items())
                raise ValueError(f"agent {name!r} can be rated with no number of players, {told}")

    def run(self, seconds: float, progress: Progress = lambda seconds, doing: None) -> None:
        """Lets everybody play late positions, and then games until the seconds are over.

        The first decisions, where kernels compile, do not count. The late positions are all played,
        even where they take longer than the seconds.
        """
        for players, tournament in self._tournaments.items():
            progress(0, f"{players} players, first decisions")
            tournament.warm_up()
        started = perf_counter()

        def used() -> float:
            return perf_counter() - started

        for players, tournament in self._tournaments.items():
            for entrant in self._rated(tournament):
                progress(used(), f"{players} players, late positions: {entrant.name}")
                results = play_endgames(entrant.agent, players, self.seed)
                self._endgames[players, entrant.name] = tuple(results)
        tables = [t for tournament in self._tournaments.values() for t in _tables(tournament)]
        while table := choose(tables, seconds - used()):
            doing = _described(table)
            progress(used(), doing)

            def tell(_: int, doing: str = doing) -> None:
                progress(used(), doing)

            table.play(tell)

    def standings(self) -> list[Standings]:
        """What is known now, for each number of players."""
        return [self._standings(players) for players in PLAYER_COUNTS]

    def _draw_up(self, players: int) -> None:
        field = None if self.ladder is None else self.ladder.get(players, {})
        reasons = {name: _refusal(name, players) for name in self._names}
        able = [name for name, reason in reasons.items() if reason is None]
        self._left_out[players] = {name: r for name, r in reasons.items() if r is not None}
        if field is None and len(able) == 1:
            self._left_out[players][able[0]] = "there is nobody to play with"
        if field is not None and not field:
            self._left_out[players] |= dict.fromkeys(able, "the ladder has no entries")
        if len(self._left_out[players]) == len(reasons):
            return
        tournament = Tournament(
            able,
            players,
            RULES,
            MOST_DEALS,
            self.seed,
            field=None if field is None else list(field),
            tables="both",
            baseline=self.baseline,
            field_ratings=None if field is None else list(field.values()),
        )
        self._tournaments[players] = tournament
        for entrant in self._rated(tournament):
            number = agent_number(entrant.agent, "num_parameters", entrant.name)
            self._num_parameters[players, entrant.name] = number

    def _rated(self, tournament: Tournament) -> list[Entrant]:
        """The entrants without the ladder."""
        fixed = 0 if self.ladder is None else len(self.ladder[tournament.num_players])
        return tournament.entrants[: len(tournament.entrants) - fixed]

    def _standings(self, players: int) -> Standings:
        tournament = self._tournaments.get(players)
        if tournament is None:
            return Standings(players, [], [], [], self._left_out[players])
        result = tournament.result()
        rated = self._rated(tournament)
        rows = [
            self._row(players, entrant, summary, result.pairings)
            for entrant, summary in zip(rated, result.agents, strict=False)
        ]
        rows.sort(key=_strength, reverse=True)
        names = [row.name for row in rows]
        if self.ladder is not None:
            names = [entrant.name for entrant in tournament.entrants[len(rated) :]]
        return Standings(players, rows, names, result.pairings, self._left_out[players])

    def _row(
        self, players: int, entrant: Entrant, summary: AgentSummary, pairings: Sequence[Pairing]
    ) -> Row:
        plain, adjusted = (
            [
                estimate
                for (name, _), estimate in share_matrix(pairings, players, luck_adjusted).items()
                if name == entrant.name
            ]
            for luck_adjusted in (False, True)
        )
        return Row(
            name=entrant.name,
            rating=summary.rating,
            win_share=average_estimate(plain) if plain else None,
            luck_adjusted=average_estimate(adjusted) if adjusted else None,
            endgames=self._endgames.get((players, entrant.name), ()),
            ms_per_decision=summary.ms_per_decision,
            num_parameters=self._num_parameters[players, entrant.name],
        )


def versioned(spec: str) -> str:
    """An agent's name with its version, as it can be loaded again: `greedy` becomes `greedy@1`.

    Raises:
        ValueError: There is no such agent, or not of the version that is asked for.
    """
    version = f"@{agent_version(load_agent(spec), spec)}"
    return spec if spec.endswith(version) else spec + version


def _refusal(name: str, players: int) -> str | None:
    """Why an agent cannot play with so many players, None if it can.

    Raises:
        IllegalActionError: It plays, but not by the rules.
    """
    try:
        Entrant(name, load_agent(name, players)).warm_up(RuleSet.preset(RULES, players))
    except IllegalActionError:
        raise
    except ValueError as error:
        return " ".join(str(error).split()) or "it raises ValueError"
    return None


def _tables(tournament: Tournament) -> list[Table]:
    """The line-ups of a tournament that is warmed up, with guesses of what they cost."""
    positions = load_endgames(tournament.num_players).states[:: 1 + 1000 // PROBES]
    speeds = [_decision_seconds(entrant, positions) for entrant in tournament.entrants]
    decisions = 2 * tournament.rule_set.rugs * tournament.num_players  # of a slot in a deal
    return [
        Table(tournament, number, decisions * sum(speeds[index] for index in line_up))
        for number, line_up in enumerate(tournament.line_ups)
    ]


def _decision_seconds(entrant: Entrant, positions: NDArray[np.void]) -> float:
    started = perf_counter()
    ask(entrant.agent, entrant.name, positions.copy(), np.random.default_rng(0))
    return (perf_counter() - started) / len(positions)


def _described(table: Table) -> str:
    players, entrants = table.tournament.num_players, table.tournament.entrants
    agent, opponent = (entrants[i].name for i in table.tournament.line_ups[table.line_up][:2])
    return f"{players} players, {agent} against {opponent}"


def _strength(row: Row) -> float:
    """What the rows are sorted by: the figure that is known best."""
    share = row.luck_adjusted or row.win_share
    return -math.inf if share is None else share.value
