"""The leaderboard: who meets whom, how time is spent, frozen ladders, versions."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from leaderboard_agents import NOISY

from marrakech_env import arena
from marrakech_env.agent import agent_version, load_agent
from marrakech_env.arena import leaderboard
from marrakech_env.arena.endgames import play_endgames
from marrakech_env.arena.interval import Estimate, average_estimate, share_estimate
from marrakech_env.arena.leaderboard import Leaderboard, Table, choose
from marrakech_env.arena.rating import POINTS, rate

# ------------------------------------------------------------------------------------- versions


def test_an_agent_is_loaded_by_its_version_and_no_other(here: Path) -> None:
    assert agent_version(load_agent("greedy")) == 1
    assert type(load_agent("greedy@1")) is type(load_agent("greedy"))
    assert agent_version(load_agent("noisy.py@3")) == 3
    assert agent_version(load_agent("noisy.py:agent@3", 4)) == 3
    with pytest.raises(ValueError, match="'greedy@2' is not installed; 'greedy' has version 1"):
        load_agent("greedy@2")
    with pytest.raises(ValueError, match=r"'noisy.py@1' is not installed; .* has version 3 here"):
        load_agent("noisy.py@1")
    with pytest.raises(ValueError, match="unknown agent 'nobody'"):
        load_agent("nobody@1")
    for spec in ("greedy@", "greedy@x", "@1"):
        with pytest.raises(ValueError, match=f"unknown agent '{spec}'"):
            load_agent(spec)
    Path("odd@2.py").write_text(NOISY)
    assert agent_version(load_agent("odd@2.py")) == 3


# ------------------------------------------------------------------------------ spending the time


class FakeTournament:
    """Line-ups whose intervals shrink as those of independent games do, and whose rounds double."""

    def __init__(self, costs: list[float]) -> None:
        self.costs = costs
        self.deals = [0] * len(costs)

    def next_round(self, line_up: int) -> int:
        return min(256, 4 + self.deals[line_up])


def spend(costs: list[float], seconds: float) -> FakeTournament:
    """Plays for so long, as `Leaderboard.run` does, by a clock of its own."""
    tournament: Any = FakeTournament(costs)
    tables = [Table(tournament, number, cost) for number, cost in enumerate(costs)]
    while (table := choose(tables, seconds)) is not None:
        seconds -= table.next_seconds
        table.deals += tournament.next_round(table.line_up)
        tournament.deals[table.line_up] = table.deals
        table.width = 1 / math.sqrt(table.deals)
    assert seconds >= 0
    return tournament


def test_time_is_spent_where_it_tells_most() -> None:
    quick, slow = spend([0.01, 0.01, 1.0], 2000).deals[1:]
    # A hundred times the cost: ten times fewer games in ten times the time.
    assert 5 < quick / slow < 20
    assert slow > 1000


def test_the_widest_interval_shrinks_first_at_equal_cost() -> None:
    assert max(spend([0.1] * 7, 300).deals) < 3 * min(spend([0.1] * 7, 300).deals)


def test_every_table_plays_once_before_any_plays_twice_the_quick_ones_first() -> None:
    costs = [3.0, 0.1, 1.0]
    assert spend(costs, 4 * 4.2).deals == [4, 4, 4]
    assert spend(costs, 4 * 1.2).deals == [0, 4, 4]


def test_nothing_is_begun_that_does_not_fit() -> None:
    assert spend([3.0, 1.0], 3.9).deals == [0, 0]


def test_no_round_is_begun_after_the_budget(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock on which every round takes a second."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1e-6
        return now

    def play_round(tournament: arena.Tournament, *arguments: Any) -> None:
        nonlocal now
        now += 1
        really_play(tournament, *arguments)

    really_play = arena.Tournament.play_round
    monkeypatch.setattr(arena.Tournament, "play_round", play_round)
    monkeypatch.setattr(leaderboard, "perf_counter", clock)
    board, seen = Leaderboard(), []
    board.run(7.5, lambda seconds, doing: seen.append(seconds))
    assert sum(len(standings.pairings) for standings in board.standings()) == 5  # of 1 + 2 + 2
    assert seen == sorted(seen)
    assert 4.5 < now < 7.6


def test_late_positions_count_for_the_budget(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By a clock that stands still, but for ten seconds with each agent's late positions."""
    now = 0.0

    def play_late(*arguments: Any) -> tuple[()]:
        nonlocal now
        now += 10
        return ()

    monkeypatch.setattr(leaderboard, "play_endgames", play_late)
    monkeypatch.setattr(leaderboard, "perf_counter", lambda: now)
    board, seen = Leaderboard(), []
    board.run(59, lambda seconds, doing: seen.append(seconds))  # two agents, 2, 3 and 4 players
    assert max(seen) == 50
    assert all(not standings.pairings for standings in board.standings())


# ------------------------------------------------------------------------------------ standings


def test_everybody_meets_everybody_in_each_number_of_players(here: Path, one_round: None) -> None:
    board = Leaderboard(["noisy.py", "two.py", "random"], seed=5)
    board.run(600)
    names = {"greedy@1", "random@1", "noisy.py@3"}
    for standings in board.standings():
        players = standings.num_players
        known = names | ({"two.py@1"} if players == 2 else set())
        assert {row.name for row in standings.rows} == set(standings.opponents) == known
        pairs = {(p.agent, p.opponent) for p in standings.pairings}
        if players == 2:
            assert {frozenset(pair) for pair in pairs} == {
                frozenset(pair) for pair in itertools.combinations(known, 2)
            }
            assert standings.left_out == {}
        else:
            assert pairs == set(itertools.permutations(known, 2))
            assert standings.left_out == {"two.py@1": "only for two"}
        shares = [row.luck_adjusted.value for row in standings.rows if row.luck_adjusted]
        assert shares == sorted(shares, reverse=True)
        assert len(shares) == len(known)
        assert all(row.rating for row in standings.rows)
        first = standings.rows[0]
        assert first.name == "greedy@1"
        assert [result.turns for result in first.endgames] == [2, 3]
        assert first.endgames[0] == play_endgames(load_agent("greedy"), players, 5)[0]
        assert first.ms_per_decision is not None
        assert first.ms_per_decision > 0
        weights = {row.name: row.num_parameters for row in standings.rows}
        assert weights["noisy.py@3"] == 1234
        assert weights["greedy@1"] is None


def test_its_games_are_those_of_evaluate_with_the_same_seed(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaderboard, "MOST_DEALS", 12)
    monkeypatch.setattr(leaderboard, "PLAYER_COUNTS", [2])
    board = Leaderboard(seed=2)
    board.run(600)
    pairing = board.standings()[0].pairings[0]
    again = arena.play(
        ["greedy", "random"], deals=pairing.deals, seed=2, baseline="expectimax"
    ).pairings[0]
    np.testing.assert_array_equal(pairing.deal_margins, again.deal_margins)
    assert pairing.luck_adjusted is not None
    assert again.luck_adjusted is not None
    assert pairing.luck_adjusted.win_share == again.luck_adjusted.win_share


def test_an_average_is_known_better_than_its_parts() -> None:
    low, high = Estimate(0.2, 0.1, 0.3), Estimate(0.6, 0.5, 0.9)
    both = average_estimate([low, high])
    assert both.value == pytest.approx(0.4)
    assert both.low == pytest.approx(0.4 - math.sqrt(0.02) / 2)
    assert both.high == pytest.approx(0.4 + math.sqrt(0.1) / 2)
    rng = np.random.default_rng(0)
    hits = 0
    for _ in range(500):
        parts = [share_estimate(rng.binomial(2, p, 40) / 2, 2) for p in (0.1, 0.5, 0.8)]
        average = average_estimate(parts)
        hits += average.low <= (0.1 + 0.5 + 0.8) / 3 <= average.high
    assert 0.92 <= hits / 500 <= 0.98


# --------------------------------------------------------------------------------------- ladders


def test_fixed_ratings_stay_and_the_others_are_fitted_to_them() -> None:
    """Against opponents of known strength, a known strength is found; the error is not shared."""
    rng = np.random.default_rng(1)
    truth = np.array([120.0, 300.0, -50.0])
    line_ups = np.array([[0, 1], [0, 2]])
    fixed = np.array([math.nan, 300.0, -50.0])
    hits, trials = 0, 300
    for _ in range(trials):
        deals = []
        for a, b in line_ups:
            chance = 1 / (1 + math.exp((truth[b] - truth[a]) / POINTS))
            wins = rng.binomial(2, chance, 200)
            deals.append(np.stack([wins, 2 - wins], axis=1).astype(float))
        ratings = rate(3, line_ups, deals, fixed)
        assert [rating.value for rating in ratings[1:]] == pytest.approx([300, -50])
        assert ratings[1].low == ratings[1].high
        hits += ratings[0].low <= truth[0] <= ratings[0].high
    assert 0.92 <= hits / trials <= 0.98


def test_against_a_ladder_agents_meet_its_entries_only(here: Path, one_round: None) -> None:
    ladder = {players: {"greedy@1": 500.0, "random@1": -300.0} for players in (2, 3, 4)}
    board = Leaderboard(["noisy.py", "two.py"], ladder=ladder)
    board.run(600)
    for standings in board.standings():
        assert standings.opponents == ["greedy@1", "random@1"]
        able = ["noisy.py@3", "two.py@1"] if standings.num_players == 2 else ["noisy.py@3"]
        assert sorted(row.name for row in standings.rows) == able
        noisy = next(row for row in standings.rows if row.name == "noisy.py@3")
        assert noisy.rating is not None
        assert noisy.rating.low < -300 < noisy.rating.high  # it plays as `random` does
        pairs = {(p.agent, p.opponent) for p in standings.pairings}
        met = set(itertools.product(able, standings.opponents))
        if standings.num_players > 2:
            met |= {(opponent, agent) for agent, opponent in met}
        assert pairs == met


def test_both_kinds_of_tables_can_be_asked_for() -> None:
    result = arena.play(["random"], 3, deals=2, field=["greedy"], tables="both")
    assert [(p.agent, p.opponent) for p in result.pairings] == [
        ("random", "greedy"),
        ("greedy", "random"),
    ]
