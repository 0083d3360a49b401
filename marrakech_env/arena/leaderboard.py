"""The leaderboard: every agent against every other with 2, 3 and 4 players, within a budget.

Each round of deals goes to the line-up whose interval of the win share is widest for its time. An
agent that is a hundred times slower than another gets ten times fewer games, in ten times the time.
With 3 and 4 players both agents of a pair sit alone among copies of the other.

The deals of a line-up are those that `evaluate.py` plays with the same seed, in the same rounds.
With a *ladder*, an earlier leaderboard, the agents meet its entries only, whose ratings are fixed.

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
from marrakech_env.arena.interval import Estimate, average_estimate
from marrakech_env.arena.luck import DEFAULT_BASELINE
from marrakech_env.arena.match import Entrant, IllegalActionError
from marrakech_env.arena.result import AgentSummary, Row, Standings, share_matrix
from marrakech_env.arena.tournament import MOST_DEALS, Tournament
from marrakech_env.spec import MAX_PLAYERS, RuleSet

Ladder = Mapping[int, Mapping[str, float]]
"""Ratings of the entries of an earlier leaderboard: by number of players, by name."""
Progress = Callable[[float, str], None]
"""Called with the used seconds of the budget and a description of the current work."""

PLAYER_COUNTS: Final = range(2, MAX_PLAYERS + 1)
RULES: Final = "official"
PROBES: Final = 32
"""Decisions that estimate the speed of an agent before its first game."""


@dataclass
class Table:
    """A line-up and its time.

    Attributes:
        tournament: The tournament of the line-up.
        line_up: Its index there.
        deal_seconds: Time of a deal; an estimate before the first round.
        deals: Deals played.
        width: Width of the interval of the win share.
    """

    tournament: Tournament
    line_up: int
    deal_seconds: float
    deals: int = 0
    width: float = math.inf

    @property
    def next_seconds(self) -> float:
        """Estimated time of the next round."""
        return self.deal_seconds * self.tournament.next_round(self.line_up)

    @property
    def urgency(self) -> tuple[float, float]:
        """Greater where a round shrinks the interval more for its time."""
        seconds = self.deal_seconds * self.deals + self.next_seconds
        return self.width**2 / seconds, -seconds

    def play(self, on_end: Callable[[int], None]) -> None:
        """Play the next round."""
        started = perf_counter()
        spent = self.deal_seconds * self.deals
        self.tournament.play_round(self.line_up, on_end)
        pairing = self.tournament.pairing(self.line_up)
        assert pairing is not None
        self.deals = pairing.deals
        self.deal_seconds = (spent + perf_counter() - started) / self.deals
        self.width = pairing.win_share.high - pairing.win_share.low


def choose(tables: Iterable[Table], seconds: float) -> Table | None:
    """Return the most urgent table whose next round fits into the seconds left."""
    fitting = (t for t in tables if 0 < t.next_seconds <= seconds)
    return max(fitting, key=lambda table: table.urgency, default=None)


class Leaderboard:
    """A leaderboard that can be stopped: `standings` gives the results so far at any time."""

    def __init__(
        self,
        agents: Sequence[str] = (),
        seed: int = 0,
        baseline: str = DEFAULT_BASELINE,
        ladder: Ladder | None = None,
    ) -> None:
        """Load the agents and draw up the line-ups.

        Args:
            agents: Names, paths or `module:attr`, as `load_agent` takes them. Without a ladder
                all agents that are known by name play as well.
            seed: Seed of dice and agents.
            baseline: What measures luck.
            ladder: Fixed ratings.

        Raises:
            ValueError: An unknown agent; an agent on the ladder that is not installed in that
                version; an agent with bad attributes; one of `agents` that can be rated with no
                number of players; or no agent to rate.
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
        """Let all agents play late positions, and then games until the seconds are over.

        The first decisions do not count, because kernels compile there. All late positions are
        played, even where they take longer than the seconds.
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
        """Return the results so far, for each number of players."""
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
        matrices = [share_matrix(result.pairings, players, adjusted) for adjusted in (False, True)]
        rows = [
            self._row(players, entrant, summary, matrices)
            for entrant, summary in zip(rated, result.agents, strict=False)
        ]
        rows.sort(key=_strength, reverse=True)
        names = [row.name for row in rows]
        if self.ladder is not None:
            names = [entrant.name for entrant in tournament.entrants[len(rated) :]]
        return Standings(players, rows, names, result.pairings, self._left_out[players])

    def _row(
        self,
        players: int,
        entrant: Entrant,
        summary: AgentSummary,
        matrices: Sequence[Mapping[tuple[str, str], Estimate]],
    ) -> Row:
        win_share, luck_adjusted = (_average(matrix, entrant.name) for matrix in matrices)
        return Row(
            name=entrant.name,
            rating=summary.rating,
            win_share=win_share,
            luck_adjusted=luck_adjusted,
            endgames=self._endgames.get((players, entrant.name), ()),
            ms_per_decision=summary.ms_per_decision,
            num_parameters=self._num_parameters[players, entrant.name],
        )


def versioned(spec: str) -> str:
    """Return an agent's name with its version, which `load_agent` takes: `greedy@1` for `greedy`.

    Raises:
        ValueError: There is no such agent, or not of the given version.
    """
    version = f"@{agent_version(load_agent(spec), spec)}"
    return spec if spec.endswith(version) else spec + version


def _refusal(name: str, players: int) -> str | None:
    """The reason why an agent cannot play with a number of players, None if it can.

    Raises:
        IllegalActionError: The agent chooses an illegal action.
    """
    try:
        Entrant(name, load_agent(name, players)).warm_up(RuleSet.preset(RULES, players))
    except IllegalActionError:
        raise
    except ValueError as error:
        return " ".join(str(error).split()) or "it raises ValueError"
    return None


def _tables(tournament: Tournament) -> list[Table]:
    """The line-ups of a tournament that is warmed up, with estimates of their time."""
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


def _average(matrix: Mapping[tuple[str, str], Estimate], agent: str) -> Estimate | None:
    shares = [share for (name, _), share in matrix.items() if name == agent]
    return average_estimate(shares) if shares else None


def _strength(row: Row) -> float:
    """The figure that sorts the rows, which is the one with the narrowest interval."""
    share = row.luck_adjusted or row.win_share
    return -math.inf if share is None else share.value
