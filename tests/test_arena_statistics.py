"""The arena's statistics: intervals by deal, and ratings with theirs."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from arena_players import Highest, Lowest, Noisy, entrants

from marrakech_env import arena
from marrakech_env.arena.interval import mean_estimate, share_estimate, t_quantile
from marrakech_env.arena.match import play_deals
from marrakech_env.arena.rating import POINTS, rate
from marrakech_env.spec import RuleSet

# ----------------------------------------------------------------------------------- intervals


def test_intervals_are_computed_by_deal() -> None:
    """At many deals Wilson's interval is the mean plus or minus 1.96 standard errors of deals."""
    result = arena.play([Noisy(), Lowest()], deals=400, seed=4)
    pairing = result.pairings[0]
    entrant_games = play_deals(
        entrants(Noisy(), Lowest()), RuleSet.preset("official"), 4, first_deal=0, num_deals=4
    )
    np.testing.assert_array_equal(pairing.deal_shares[:4], entrant_games.shares[:, :, 0].mean(1))
    np.testing.assert_array_equal(pairing.deal_margins[:4], entrant_games.margins[:, :, 0].mean(1))
    for estimate, deals in (
        (pairing.win_share, pairing.deal_shares),
        (pairing.margin, pairing.deal_margins),
    ):
        half = 1.966 * deals.std(ddof=1) / math.sqrt(len(deals))
        assert estimate.value == deals.mean()
        assert estimate.low == pytest.approx(estimate.value - half, rel=0.02)
        assert estimate.high == pytest.approx(estimate.value + half, rel=0.02)


@pytest.mark.parametrize("value", [0.0, 1.0])
def test_winning_or_losing_everything_is_no_certainty(value: float) -> None:
    estimate = share_estimate(np.full(100, value), games=2)
    assert estimate.value == value
    assert estimate.high - estimate.low == pytest.approx(0.019, abs=0.001)
    assert 0 <= estimate.low <= value <= estimate.high <= 1


def test_few_equal_deals_are_no_certainty_but_many_are() -> None:
    few, many = share_estimate(np.full(4, 0.5), 2), share_estimate(np.full(1000, 0.5), 2)
    assert few.high - few.low > 0.4
    assert many.high - many.low < 0.003


def test_one_deal_has_no_interval() -> None:
    assert math.isnan(share_estimate(np.array([0.5]), games=2).low)
    assert math.isnan(mean_estimate(np.array([3.0])).high)
    assert arena.play([Noisy(), Lowest()], deals=1).pairings[0].deals == 1


@pytest.mark.parametrize(("freedom", "exact"), [(3, 3.182), (10, 2.2281), (30, 2.0423)])
def test_student_quantiles(freedom: int, exact: float) -> None:
    """Exact values from any table of the t distribution."""
    assert t_quantile(freedom) == pytest.approx(exact, rel=0.01 if freedom < 10 else 1e-4)


@pytest.mark.parametrize("deals", [12, 60])
@pytest.mark.parametrize("strength", [0.5, 0.75, 0.95])
def test_intervals_cover_the_truth_of_simulated_agents(strength: float, deals: int) -> None:
    """Deals of two games that share part of their luck; 2,000 evaluations each."""
    rng = np.random.default_rng(1)
    trials = 2000
    luck = rng.random((trials, deals, 1))
    own = rng.random((trials, deals, 2))
    # In half of the deals the dice decide both games, for the seat: one is won by either agent.
    shared = rng.random((trials, deals, 1)) < 0.5
    wins = np.where(shared, np.concatenate([luck, 1 - luck], axis=2), own) < strength
    covered = 0
    for observations in wins.mean(axis=2):
        estimate = share_estimate(observations, games=2)
        covered += estimate.low <= strength <= estimate.high
    assert covered / trials >= 0.94
    assert covered / trials <= (0.975 if deals == 60 else 1)  # few deals: on the safe side


@pytest.mark.long
@pytest.mark.parametrize("players", [2, 3])
def test_intervals_cover_the_truth_of_played_games(players: int) -> None:
    """Two equally strong agents that draw differently: 95 of 100 intervals hold the even share."""
    trials = 2000
    shares = margins = 0
    rule_set = RuleSet.preset("official", players, rugs=6)
    for trial in range(trials):
        result = arena.play(["random"], players, rule_set, 16, seed=trial, field=[Noisy()])
        pairing = result.pairings[0]
        shares += pairing.win_share.low <= 1 / players <= pairing.win_share.high
        margins += pairing.margin.low <= 0 <= pairing.margin.high
    assert 0.935 <= shares / trials <= 0.97
    if players == 2:  # with more, an even agent's mean margin is below 0
        assert 0.935 <= margins / trials <= 0.965


# ------------------------------------------------------------------------------------- ratings

KNOWN = np.array([200.0, 50.0, 0.0, -250.0])


def simulated_deals(
    line_ups: Any, points: Any, deals: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Wins by slot of P games a deal, drawn from the rating model."""
    players = line_ups.shape[1]
    out = []
    for line_up in line_ups:
        chance = np.exp(points[line_up] / POINTS)
        winners = rng.choice(players, (deals, players), p=chance / chance.sum())
        out.append((winners[:, :, None] == np.arange(players)).sum(axis=1).astype(float))
    return out


def test_rating_of_two_agents_is_elos_formula() -> None:
    wins = np.tile([[2.0, 0.0], [1.0, 1.0], [2.0, 0.0], [1.0, 1.0]], (5000, 1))
    first, second = rate(2, np.array([[0, 1]]), [wins])
    assert first.value - second.value == pytest.approx(400 * math.log10(3), abs=0.1)
    assert first.value + second.value == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_ratings_find_known_strengths_and_cover_them(players: int) -> None:
    rng = np.random.default_rng(3)
    pairs = itertools.permutations(range(4), 2)
    line_ups = np.array([(a,) + (b,) * (players - 1) for a, b in pairs])
    truth = KNOWN - KNOWN.mean()
    trials, covered = 50, 0
    means = np.zeros(4)
    for _ in range(trials):
        ratings = rate(4, line_ups, simulated_deals(line_ups, KNOWN, 150, rng))
        means += [rating.value / trials for rating in ratings]
        covered += sum(r.low <= t <= r.high for r, t in zip(ratings, truth))
    np.testing.assert_allclose(means, truth, atol=8)
    assert 0.90 <= covered / (4 * trials) <= 0.99


def test_shared_luck_within_a_deal_widens_a_rating() -> None:
    """The games of a deal are not independent, so doubling each of them adds no certainty."""
    rng = np.random.default_rng(0)
    line_ups = np.array([[0, 1], [0, 2], [1, 2]])
    single = [rng.multinomial(1, [0.6, 0.4], 500).astype(float) for _ in line_ups]
    once = rate(3, line_ups, single)
    twice = rate(3, line_ups, [2 * shares for shares in single])
    for a, b in zip(once, twice):
        assert b.high - b.low == pytest.approx(a.high - a.low, rel=0.05)


def test_an_agent_that_won_everything_has_a_finite_and_uncertain_rating() -> None:
    always = np.tile([2.0, 0.0], (500, 1))
    even = np.tile([1.0, 1.0], (500, 1))
    first, second, third = rate(3, np.array([[0, 1], [0, 2], [1, 2]]), [always, always, even])
    assert 600 < first.value - second.value < 2500
    assert first.high - first.low > 100
    assert second.value == pytest.approx(third.value, abs=1e-6)


def test_ratings_appear_with_three_agents() -> None:
    two = arena.play([Noisy(), Lowest()], deals=20)
    three = arena.play([Noisy(), Lowest(), Highest()], 4, deals=20)
    assert [agent.rating for agent in two.agents] == [None, None]
    ratings = {agent.name: agent.rating for agent in three.agents}
    assert all(rating is not None for rating in ratings.values())
    assert sum(rating.value for rating in ratings.values() if rating) == pytest.approx(0, abs=1e-6)
