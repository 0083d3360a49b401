"""Reward schemes: what each pays, as plain sums over scores and shares."""

import numpy as np
import pytest
from positions import RULES

from marrakech_env import rules
from marrakech_env.rewards import SCHEMES, check_scheme, final_rewards, margins
from marrakech_env.spec import RuleSet
from marrakech_env.state import STATE


def test_known_schemes_are_win_score_dense_with_the_default_first():
    assert list(SCHEMES) == ["win", "score", "dense"]
    assert [check_scheme(name) for name in SCHEMES] == list(SCHEMES)


@pytest.mark.parametrize("name", ["", "Win", "margin", None, 0, ["win"]])
def test_unknown_scheme_gets_an_error_that_lists_the_known(name):
    with pytest.raises(ValueError, match=r"unknown reward scheme .* known: win, score, dense"):
        check_scheme(name)
    with pytest.raises(ValueError, match="known: win, score, dense"):
        final_rewards(name, [[1, 0]], [[1, 0]])


def test_win_pays_one_to_the_winner_and_shares_the_loss_equally():
    assert final_rewards("win", [[1, 0]], [[0, 0]]).tolist() == [[1, -1]]
    assert final_rewards("win", [[0, 1, 0]], [[0, 0, 0]]).tolist() == [[-0.5, 1, -0.5]]
    shared = final_rewards("win", [[0.5, 0, 0, 0.5]], [[0] * 4])
    np.testing.assert_allclose(shared, [[1 / 3, -1 / 3, -1 / 3, 1 / 3]])
    assert final_rewards("win", [[0.5, 0.5]], [[40, 40]]).tolist() == [[0, 0]]


def test_win_sums_to_zero_over_the_seats():
    shares = np.array([[1, 0, 0, 0], [0.5, 0.5, 0, 0], [1 / 3, 1 / 3, 0, 1 / 3], [0.25] * 4])
    np.testing.assert_allclose(final_rewards("win", shares, np.zeros((4, 4))).sum(1), 0, atol=1e-15)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_margins_are_own_score_less_the_best_other_over_twenty(players):
    scores = np.random.default_rng(players).integers(0, 6, (300, players))
    expected = [
        [(row[p] - max(row[:p] + row[p + 1 :])) / 20 for p in range(players)]
        for row in scores.tolist()
    ]
    assert margins(scores).tolist() == expected
    assert margins(scores.astype(np.int16)).tolist() == expected
    assert final_rewards("score", np.zeros((300, players)), scores).tolist() == expected


def test_margins_of_no_games_are_empty():
    assert margins(np.zeros((0, 3), np.int64)).shape == (0, 3)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_every_game_starts_with_a_margin_of_zero_so_dense_adds_up_to_score(players):
    for text in RULES:
        states = np.zeros(1, STATE)
        rules.reset(states, RuleSet.parse(text, players))
        assert not margins(rules.scores(states)).any(), text
    scores = [[31, 44, 7, 0][:players]]
    shares = [[0, 1, 0, 0][:players]]
    assert (final_rewards("dense", shares, scores) == final_rewards("score", shares, scores)).all()
