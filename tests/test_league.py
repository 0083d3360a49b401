"""The league of the PPO learner: who is met how often, and what the learner won."""

import numpy as np
import pytest

pytest.importorskip("torch")

from marrakech_agents import ppo
from marrakech_agents.training import league
from marrakech_agents.training.league import League, read_mixture
from marrakech_env.observation import find_form

MIXTURE = {"random": 1.0, "greedy": 4.0, "expectimax": 3.0}


def fed(a_league, shares, games=4000):
    """The league after so many games against each member, with these shares on average."""
    for name, share in shares.items():
        for game in range(games):
            a_league.record(name, float((game * 0.6180339887) % 1 < share))
    return a_league


def version(folder, seed):
    """A past version of the learner: an untrained network."""
    size = find_form("features").shape(2)[0]
    rng = np.random.default_rng(seed)
    layer = {"0.weight": rng.normal(0, 0.1, (15, size)), "0.bias": np.zeros(15)}
    head = ppo.ModelHead(2, "official", "features", size, "mlp", seed, "a test")
    folder.mkdir(parents=True)
    ppo.save(folder, head, {name: values.astype(np.float32) for name, values in layer.items()})
    return folder


def test_before_the_first_game_and_without_hardness_the_given_weights_hold():
    given = {"random": 1 / 8, "greedy": 4 / 8, "expectimax": 3 / 8}
    assert League(MIXTURE, 2, 2.0, 6).weights() == pytest.approx(given)
    easy = fed(League(MIXTURE, 2, 0.0, 6), {"random": 1.0, "greedy": 0.6, "expectimax": 0.1})
    assert easy.weights() == pytest.approx(given)


def test_a_member_is_met_more_often_the_less_the_learner_wins_and_nobody_is_forgotten():
    shares = {"random": 1.0, "greedy": 0.6, "expectimax": 0.3}
    a_league = fed(League(MIXTURE, 2, 2.0, 6), shares)
    assert a_league.shares() == pytest.approx(shares, abs=0.05)
    weights = a_league.weights()
    assert sum(weights.values()) == pytest.approx(1)
    assert weights["random"] == pytest.approx(league.FLOOR / 8, abs=0.002)
    found = a_league.shares()
    hard = {name: (1 - found[name]) ** 2 for name in shares}
    mean = sum(MIXTURE[name] * hard[name] for name in shares) / 8
    for name in shares:
        factor = league.FLOOR + (1 - league.FLOOR) * hard[name] / mean
        assert weights[name] == pytest.approx(MIXTURE[name] / 8 * factor)


@pytest.mark.parametrize("players", [3, 4])
def test_even_shares_of_more_players_leave_the_weights_as_they_are(players):
    mixture = {"greedy": 1.0, "expectimax": 1.0}
    even = fed(League(mixture, players, 2.0, 6), dict.fromkeys(mixture, 1 / players))
    assert even.weights()["greedy"] == pytest.approx(0.5, abs=0.01)
    # A strength of three against each opponent: 3/4 of the games of two.
    share = 3 / (3 + players - 1)
    strong = fed(League(mixture, players, 2.0, 6), {"greedy": share, "expectimax": 1 / players})
    hard = np.array([0.25**2, 0.5**2])
    expected = league.FLOOR / 2 + (1 - league.FLOOR) * hard / hard.sum()
    assert list(strong.weights().values()) == pytest.approx(expected, abs=0.02)


def test_an_old_result_fades():
    a_league = fed(League(MIXTURE, 2, 2.0, 6), {"greedy": 0.0})
    fed(a_league, {"greedy": 1.0}, games=3 * league.MEMORY)
    assert a_league.shares()["greedy"] > 0.9


def test_past_versions_come_and_go_and_share_their_weight(tmp_path):
    a_league = League({"greedy": 1.0, "past": 3.0}, 2, 2.0, past_versions=2)
    assert a_league.weights() == {"greedy": 1.0}
    versions = [version(tmp_path / f"{steps:010d}", steps) for steps in (1, 2, 3)]
    a_league.meet(versions[:1])
    assert a_league.weights() == {"greedy": 0.25, "past/0000000001": 0.75}
    a_league.record("past/0000000001", 1.0)
    a_league.meet(versions)
    assert set(a_league.shares()) == {"greedy", "past/0000000002", "past/0000000003"}
    assert a_league.weights()["past/0000000003"] == pytest.approx(3 / 8)
    a_league.record("past/0000000001", 1.0)  # a game that began before
    assert a_league.state() == {}
    assert len(a_league.table().splitlines()) == 3


def test_greedy_stands_in_until_there_is_a_past_version(tmp_path):
    a_league = League({"past": 1.0}, 2, 2.0, past_versions=2)
    assert a_league.weights() == {"greedy": 1.0}
    a_league.meet([version(tmp_path / "0000000005", 5)])
    assert a_league.weights() == {"past/0000000005": 1.0}


def test_a_restored_league_goes_on_as_before(tmp_path):
    past = [version(tmp_path / "0000000005", 5)]
    mixture = {**MIXTURE, "past": 1.0}
    one, other = League(mixture, 2, 2.0, 6), League(mixture, 2, 2.0, 6)
    one.meet(past)
    fed(one, {"greedy": 0.7, "past/0000000005": 0.4}, games=50)
    other.restore(one.state())
    other.meet(past)
    for each in (one, other):
        each.record("greedy", 1.0)
    assert one.weights() == other.weights()
    assert one.shares() == other.shares()


@pytest.mark.parametrize("players", [2, 3])
def test_the_learner_tells_the_league_of_every_game_that_ends(players):
    """By the rewards of the games, which tell the same."""
    pytest.importorskip("sb3_contrib")
    from stable_baselines3.common.logger import Logger

    from marrakech_agents.training.ppo_learner import PPOLearner, PPOSettings

    settings = PPOSettings(
        opponents="random,greedy", reward="win", num_envs=8, num_steps=200, epochs=1, hidden=8
    )
    learner = PPOLearner(players, "official;rugs=4", 3, settings)
    learner.prepare(Logger(None, []))
    seen = []
    really_record = learner.league.record
    learner.league.record = lambda name, share: seen.append(share) or really_record(name, share)
    learner.advance(0.0, ())
    rewards = learner.model.rollout_buffer.rewards
    assert len(seen) > 50
    assert sum((players * share - 1) / (players - 1) for share in seen) == pytest.approx(
        rewards.sum(), abs=1e-3
    )
    games = {name: games for name, (games, _) in learner.league.state().items()}
    assert set(games) == {"random", "greedy"}
    state = learner.state()
    again = PPOLearner(players, "official;rugs=4", 3, settings)
    again.restore(state)
    assert again.league.shares() == learner.league.shares()


def test_a_mixture_is_read_from_text():
    assert read_mixture("greedy,past:2.5") == {"greedy": 1.0, "past": 2.5}
