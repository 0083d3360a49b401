"""Luck-adjusted matches: unbiased with any baseline, and less varying with a good one."""

from __future__ import annotations

import csv
import json
import math
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marrakech_env import arena, rules
from marrakech_env.agent import load_agent
from marrakech_env.arena.cli import main
from marrakech_env.arena.interval import mean_estimate
from marrakech_env.arena.luck import Luck, load_baseline, without_luck
from marrakech_env.arena.match import Entrant, play_deals
from marrakech_env.batch import Batch
from marrakech_env.spec import RuleSet
from marrakech_env.tables import DIE_PROBABILITY


class Lowest:
    """Always the first legal action."""

    def act(self, states: Any, rng: np.random.Generator) -> Any:
        return rules.action_mask(states).argmax(axis=1)


class Noisy:
    """Any legal action."""

    def act(self, states: Any, rng: np.random.Generator) -> Any:
        mask = rules.action_mask(states)
        return (mask * rng.random(mask.shape)).argmax(axis=1)


class ByScore:
    """A rough baseline: who leads now will win."""

    sign = 1

    def evaluate(self, states: Any) -> Any:
        scores = self.sign * rules.scores(states).astype(float)
        weights = np.exp((scores - scores.max(axis=1, keepdims=True)) / 10)
        return weights / weights.sum(axis=1, keepdims=True), scores - scores.mean(1, keepdims=True)


class Contrary(ByScore):
    """A bad baseline: who is behind will win. Not even true at the end."""

    sign = -1


class Hashing:
    """A worthless baseline: numbers that depend on the state and mean nothing."""

    def evaluate(self, states: Any) -> Any:
        raw = np.frombuffer(states.tobytes(), np.uint8).reshape(len(states), -1).astype(np.uint64)
        keys = (raw * np.arange(3, 3 + 2 * raw.shape[1], 2, dtype=np.uint64) ** 5).sum(axis=1)
        seats = np.arange(1, 1 + int(states["num_players"][0]), dtype=np.uint64)
        noise = (keys[:, None] * np.uint64(0x9E3779B97F4A7C15) * seats) >> np.uint64(11)
        return noise * 2.0**-53, noise * 2.0**-48


def positions(players: int, steps: int, games: int = 40, preset: str = "official") -> Batch:
    """A batch of games after some random decisions."""
    batch = Batch(games, players, preset, seed=4)
    rng = np.random.default_rng(steps)
    for _ in range(steps):
        batch.step(Noisy().act(batch.states, rng))
    return batch


# ------------------------------------------------------------------------------------- one roll


@pytest.mark.parametrize("preset", ["official", "boardgamearena", "official;steering=end"])
@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_roll_that_is_foretold_comes(players: int, preset: str) -> None:
    batch = positions(players, 0, preset=preset)
    rng = np.random.default_rng(0)
    seen = set()
    for _ in range(60):
        actions = Noisy().act(batch.states, rng)
        rolls = batch.next_rolls(np.arange(40))
        before = batch.states.copy()
        batch.step(actions)
        for i in np.flatnonzero(before["phase"] != 1):
            outcomes, _ = rules.chance_outcomes(before[i], actions[i])
            if len(outcomes) > 1:
                seen.add(int(rolls[i]))
                rules.step(before[i : i + 1], actions[i : i + 1], rolls[i : i + 1])
                if not batch.done[i]:
                    assert before[i] == batch.states[i]
    assert seen == {1, 2, 3, 4}


@pytest.mark.parametrize("baseline", [ByScore(), Contrary(), Hashing()])
def test_the_luck_of_all_rolls_cancels_out(baseline: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    batch = positions(3, 44)
    games = np.arange(batch.num_games)
    actions = Noisy().act(batch.states, np.random.default_rng(1))
    total = np.zeros((2, batch.num_games, 3))
    largest = 0.0
    for roll in (1, 2, 3, 4):
        monkeypatch.setattr(batch, "next_rolls", lambda games, roll=roll: np.full(len(games), roll))
        luck = Luck(baseline, batch.num_games, 3)
        luck.add(batch, games, actions)
        total += DIE_PROBABILITY[roll] * np.array([luck.shares, luck.margins])
        largest = max(largest, np.abs(luck.shares).max())
    np.testing.assert_allclose(total, 0, atol=1e-12)
    assert largest > 0.01
    lays = batch.states["phase"] == 1
    assert not luck.shares[lays].any()


# ----------------------------------------------------------------------------------- whole games


@pytest.mark.parametrize("players", [2, 3, 4])
def test_luck_of_a_slot_is_what_a_plain_loop_over_one_game_finds(players: int) -> None:
    agents = [Lowest(), *(Noisy() for _ in range(players - 1))]
    entrants = [Entrant(str(slot), agent) for slot, agent in enumerate(agents)]
    rule_set = RuleSet.preset("official", players, money=12)
    baseline = ByScore()
    got = play_deals(entrants, rule_set, 5, first_deal=30, num_deals=1, baseline=baseline)
    assert got.lucky_shares is not None
    assert got.lucky_margins is not None
    for rotation in range(players):
        rngs = [np.random.default_rng([5, 30, seat]) for seat in range(players)]
        batch = Batch(1, players, rule_set, seed=5, first_game=30)
        luck = np.zeros((2, players))
        while not batch.done[0]:
            seat = int(batch.states["player"][0])
            state = batch.states.copy()
            action = agents[(seat + rotation) % players].act(state, rngs[seat])
            batch.step(action)
            if state["phase"][0] == 1:
                continue
            after = batch.final_states if batch.done[0] else batch.states
            luck += np.array(baseline.evaluate(after))[:, 0]
            for outcome, chance in zip(*rules.chance_outcomes(state, int(action[0]))):
                possible = state.copy()
                rules.step(possible, action, np.array([outcome]))
                luck -= chance * np.array(baseline.evaluate(possible))[:, 0]
        seats = (np.arange(players) - rotation) % players
        np.testing.assert_allclose(got.lucky_shares[0, rotation], luck[0, seats], atol=1e-9)
        np.testing.assert_allclose(got.lucky_margins[0, rotation], luck[1, seats], atol=1e-9)
    assert np.abs(got.lucky_shares).max() > 0.05


@pytest.mark.parametrize(
    ("baseline", "players", "deals"),
    [(ByScore(), 2, 1500), (Contrary(), 2, 1500), (Hashing(), 2, 1500), (ByScore(), 4, 500)],
)
def test_luck_has_the_mean_zero_with_any_baseline(baseline: Any, players: int, deals: int) -> None:
    """Over some thousand games, before and after it has been weighted."""
    line_up = [Entrant("noisy", Noisy()), *[Entrant("lowest", Lowest())] * (players - 1)]
    rule_set = RuleSet.preset("official", players, money=15)
    games = play_deals(line_up, rule_set, 0, 0, deals, baseline=baseline)
    assert games.lucky_shares is not None
    assert games.lucky_margins is not None
    for plain, luck in (
        (games.shares, games.lucky_shares),
        (games.margins, games.lucky_margins),
    ):
        by_deal = luck[..., 0].mean(axis=1)
        results = plain[..., 0].mean(axis=1)
        for difference in (by_deal, results - without_luck(results, by_deal)):
            mean = mean_estimate(difference)
            assert mean.high > mean.low
            assert abs(mean.value) < 2 * (mean.high - mean.value)  # four standard errors


def test_a_weight_makes_the_best_of_every_baseline_and_leaves_the_mean_alone() -> None:
    rng = np.random.default_rng(5)
    hits, trials, deals = 0, 400, 150
    for _ in range(trials):
        luck, rest = rng.normal(0, [0.3, 0.1], (deals, 2)).T
        results = 0.6 + luck + rest
        for seen, wanted in (
            (luck, 0.1),  # all of the luck
            (3 * luck, 0.1),  # three times of it
            (-luck, 0.1),  # its opposite
            (rng.normal(0, 0.3, deals), 0.3),  # something else
        ):
            fair = without_luck(results, seen)
            assert fair.std() < 1.6 * wanted
            mean = mean_estimate(fair)
            hits += mean.low <= 0.6 <= mean.high
    assert 0.93 <= hits / (4 * trials) <= 0.97


def test_of_few_deals_the_luck_counts_in_full() -> None:
    results, luck = np.random.default_rng(0).normal(size=(2, 99))
    np.testing.assert_array_equal(without_luck(results, luck), results - luck)
    results, luck = np.random.default_rng(0).normal(size=(2, 100))
    assert (without_luck(results, luck) != results - luck).all()
    np.testing.assert_array_equal(without_luck(results, np.zeros(100)), results)


def test_expectimax_takes_most_of_the_luck_out() -> None:
    for players, deals in ((2, 100), (4, 30)):
        result = arena.play(
            ["expectimax"], players, field=["greedy"], deals=deals, baseline="expectimax"
        )
        fair = result.pairings[0].luck_adjusted
        assert fair is not None
        assert fair.variance_ratio > (2 if players == 2 else 1.5)
        assert fair.margin_variance_ratio > (2 if players == 2 else 1.2)
        assert result.baseline == "expectimax"
        plain, adjusted = result.pairings[0].win_share, fair.win_share
        assert adjusted.high - adjusted.low < plain.high - plain.low
        assert fair.win_share == mean_estimate(fair.deal_shares)
        assert fair.margin == mean_estimate(fair.deal_margins)
        assert fair.variance_ratio == pytest.approx(
            result.pairings[0].deal_shares.var() / fair.deal_shares.var()
        )


def test_measuring_luck_changes_no_game() -> None:
    plain = arena.play([Noisy(), Lowest()], 3, deals=20).pairings
    measured = arena.play([Noisy(), Lowest()], 3, deals=20, baseline=Hashing()).pairings
    for first, second in zip(plain, measured):
        np.testing.assert_array_equal(first.deal_margins, second.deal_margins)
        assert first.luck_adjusted is None


# ------------------------------------------------------------------------ expectimax as baseline


@pytest.mark.parametrize("preset", ["official", "official;steering=end"])
@pytest.mark.parametrize("players", [2, 3, 4])
def test_expectimax_values_every_phase_for_all_seats(players: int, preset: str) -> None:
    agent = load_agent("expectimax")
    assert isinstance(agent, arena.Baseline)
    phases = set()
    for steps in (0, 1, 2, 50, 51, 52):
        states = positions(players, steps, 20, preset).states
        phases |= set(states["phase"])
        before = states.copy()
        shares, margins = agent.evaluate(states)
        np.testing.assert_array_equal(states, before)
        assert shares.shape == margins.shape == (20, players)
        np.testing.assert_allclose(shares.sum(axis=1), 1)
        assert (shares[states["eliminated"][:, :players] > 0] == 0).all()
        best = shares.argmax(axis=1)
        np.testing.assert_array_equal(margins.argmax(axis=1), best)  # of predicted scores
        single = agent.evaluate(states[7:8])
        np.testing.assert_array_equal(single[0][0], shares[7])
    assert phases == ({0, 1} if preset == "official" else {0, 1, 2})


@pytest.mark.parametrize("players", [2, 3, 4])
def test_expectimax_is_exact_in_finished_games(players: int) -> None:
    batch = Batch(60, players, "official;money=9", seed=2)
    rng = np.random.default_rng(0)
    checked = 0
    for _ in range(100):
        batch.step(Noisy().act(batch.states, rng))
        ended = np.flatnonzero(batch.done)
        if len(ended):
            shares, margins = load_baseline("expectimax", players).evaluate(
                batch.final_states[ended]
            )
            np.testing.assert_array_equal(shares, batch.final_shares[ended])
            scores = batch.final_scores[ended]
            for seat in range(players):
                others = np.delete(scores, seat, axis=1).max(axis=1)
                np.testing.assert_array_equal(margins[:, seat], scores[:, seat] - others)
            checked += len(ended)
    assert checked > 30


# -------------------------------------------------------------------------------------- refusal


class Wrong:
    def __init__(self, shares: Any) -> None:
        self.shares = shares

    def evaluate(self, states: Any) -> Any:
        return self.shares(states), np.zeros((len(states), 2))


@pytest.mark.parametrize(
    "shares",
    [
        lambda states: np.full((len(states), 2), math.nan),
        lambda states: np.full((len(states), 2), math.inf),
        lambda states: np.zeros(len(states)),
        lambda states: np.zeros((len(states), 3)),
    ],
)
def test_a_baseline_that_gives_no_numbers_is_refused(shares: Any) -> None:
    with pytest.raises(ValueError, match=r"`evaluate` must give two arrays of 4 x 2 finite"):
        arena.play([Lowest(), Noisy()], deals=4, baseline=Wrong(shares))


def test_an_agent_that_values_nothing_is_no_baseline() -> None:
    with pytest.raises(ValueError, match="'greedy' cannot be the baseline of luck: it has no meth"):
        arena.play(["random", "random"], deals=1, baseline="greedy")
    with pytest.raises(ValueError, match="unknown agent 'nobody'"):
        arena.play(["random", "random"], deals=1, baseline="nobody")


# -------------------------------------------------------------------------------------- command


def test_the_command_reports_luck_adjusted_figures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = ["--json", str(tmp_path / "o.json"), "--csv", str(tmp_path / "o.csv")]
    assert main(["greedy", "random", "--games", "40", "--luck-adjusted", *files]) == 0
    result = arena.play(["greedy", "random"], deals=20, baseline="expectimax")
    fair = result.pairings[0].luck_adjusted
    assert fair is not None
    told = json.loads((tmp_path / "o.json").read_text())
    assert told["baseline"] == "expectimax"
    adjusted = told["pairings"][0]["luck_adjusted"]
    share, margin = fair.win_share, fair.margin
    assert adjusted["win_share"] == {"value": share.value, "low": share.low, "high": share.high}
    assert adjusted["margin"] == {"value": margin.value, "low": margin.low, "high": margin.high}
    assert adjusted["margin_variance_ratio"] == fair.margin_variance_ratio
    with (tmp_path / "o.csv").open(newline="") as file:
        row = next(csv.DictReader(file))
    assert float(row["adjusted_win_share"]) == share.value
    assert float(row["adjusted_margin_high"]) == margin.high
    assert float(row["variance_ratio"]) == fair.variance_ratio
    printed = capsys.readouterr().out
    assert "without the luck of the dice, as expectimax sees it" in printed
    assert re.search(
        rf"greedy +random +{100 * share.value:.1f} .*"
        rf"{fair.variance_ratio:.1f}, {fair.margin_variance_ratio:.1f} *\n",
        printed,
    )


def test_what_does_not_vary_has_no_ratio(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "o.json"
    assert main(["random", "random", "--games", "8", "--luck-adjusted", "--json", str(path)]) == 0
    assert json.loads(path.read_text())["pairings"][0]["luck_adjusted"]["variance_ratio"] is None
    assert "nan" not in capsys.readouterr().out


def test_a_baseline_without_luck_adjustment_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["random", "random", "--baseline", "greedy"]) == 2
    assert "add --luck-adjusted" in capsys.readouterr().err
    assert main(["random", "random", "--baseline", "greedy", "--luck-adjusted"]) == 2
    assert "cannot be the baseline of luck" in capsys.readouterr().err
