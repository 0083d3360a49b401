"""Batch: steps, restarts, final results, positions, errors."""

import copy
import pickle

import numpy as np
import pytest

from marrakech_env import rules
from marrakech_env.batch import Batch
from marrakech_env.notation import format_position
from marrakech_env.state import OVER

LAST_RUG = (
    "/".join(["." * 14] * 7) + " 33S 0l 30:1+0:0,30:0+0:- official"
)  # seat 0 lays the game's last rug


def random_actions(batch, rng):
    return (batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1)


@pytest.mark.parametrize("players", [2, 3, 4])
def test_masks_are_those_of_the_states_and_never_empty(players):
    batch, rng = Batch(40, players, seed=3), np.random.default_rng(3)
    for _ in range(300):
        assert (batch.action_mask == rules.action_mask(batch.states)).all()
        assert batch.action_mask.any(1).all()
        batch.step(random_actions(batch, rng))
    assert batch.episode.min() > 0


@pytest.mark.parametrize("players", [2, 3, 4])
def test_finished_games_report_once_and_start_anew(players):
    batch, rng = Batch(50, players, "official;rugs=4", seed=1), np.random.default_rng(1)
    finished = 0
    for _ in range(60):
        before = batch.episode.copy()
        batch.step(random_actions(batch, rng))
        done = batch.done
        finished += done.sum()
        assert (batch.episode == before + done).all()
        assert (batch.final_states["phase"][done] == OVER).all()
        ends = batch.final_states[done]
        if len(ends):
            assert (batch.final_scores[done] == rules.scores(ends)).all()
            assert (batch.final_shares[done] == rules.winner_shares(ends)).all()
            np.testing.assert_allclose(batch.final_shares[done].sum(1), 1)
        assert not batch.final_scores[~done].any()
        assert not batch.final_shares[~done].any()
    assert finished >= 50


def test_observations_are_those_of_the_player_to_move():
    from marrakech_env.observation import encode

    for form in ("planes", "flat", "features"):
        batch, rng = Batch(20, 3, seed=2, observation=form), np.random.default_rng(2)
        for _ in range(120):
            assert (batch.observation == encode(batch.states, form)).all()
            batch.step(random_actions(batch, rng))
    assert Batch(1).observation is None


def test_stepping_some_games_leaves_the_others_alone():
    some, every = Batch(10, seed=4), Batch(10, seed=4)
    games = np.array([2, 7])
    for _ in range(150):
        before = some.states.copy()
        actions = every.action_mask.argmax(1)
        every.step(actions)
        some.step_games(games, some.check_actions(actions[games], games))
        others = np.setdiff1d(np.arange(10), games)
        assert (some.states[others] == before[others]).all()
        assert (some.states[games] == every.states[games]).all()
        assert (some.done[games] == every.done[games]).all()
        assert not some.done[others].any()


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([0, 1, 3], "game 2: action 3 is not legal; legal actions: 0, 1, 2$"),
        ([0, -1, 1], "game 1: action -1 is not legal"),
        ([15, 1, 1], "game 0: action 15 is not legal"),
        ([0.0, 1.0, 1.0], "game 0: action 0.0 is not legal; legal actions: 0, 1, 2 .*float64"),
        ([1, 1, float("nan")], "whole numbers, not float64"),
        ([True, True, True], "whole numbers, not bool"),
        ([1, None, 1], "game 1: action None is not legal"),
        ([1, "1", 1], "is not legal"),
        ([1, 1], r"shape \(3,\), one a game, not int64 of shape \(2,\)"),
        ([[1], [1], [1]], r"of shape \(3, 1\); legal actions of game 0: 0, 1, 2"),
        (1, r"of shape \(\)"),
        (None, r"of shape \(\)"),
        (np.array([1, 1, 2**64 - 1], np.uint64), f"game 2: action {2**64 - 1} is not legal"),
    ],
)
def test_bad_actions_are_refused_and_nothing_has_changed(bad, message):
    batch = Batch(3)
    before = batch.states.copy()
    with pytest.raises(ValueError, match=message):
        batch.step(bad)
    assert (batch.states == before).all()


@pytest.mark.parametrize("dtype", [np.int8, np.uint8, np.int16, np.int32, np.uint64])
def test_any_integer_dtype_is_taken(dtype):
    batch = Batch(3)
    batch.step(np.ones(3, dtype))
    assert (batch.states["phase"] == 1).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"num_games": 0}, "num_games must be a whole number of at least 1, not 0"),
        ({"num_games": 2.5}, "num_games must be a whole number"),
        ({"num_games": 1, "first_game": -1}, "first_game"),
        ({"num_games": 1, "num_players": 5}, "num_players must be 2, 3 or 4, not 5"),
        ({"num_games": 1, "rules": "offical"}, "known: official, boardgamearena, comp1110"),
        ({"num_games": 1, "observation": "pixels"}, "planes.*flat.*features"),
        ({"num_games": 1, "seed": -3}, "seed"),
    ],
)
def test_bad_arguments_are_refused_with_what_is_allowed(arguments, message):
    with pytest.raises(ValueError, match=message):
        Batch(**arguments)


def test_a_position_is_set_with_mask_and_observation():
    batch = Batch(2, observation="flat")
    batch.set_position(1, LAST_RUG)
    assert format_position(batch.states[1]) == LAST_RUG
    assert batch.action_mask[1, 3:].all()
    assert not batch.action_mask[1, :3].any()
    batch.step([1, 4])
    assert batch.done.tolist() == [False, True]
    assert batch.final_scores[1].tolist() == [32, 30]
    assert batch.final_shares[1].tolist() == [1, 0]


@pytest.mark.parametrize(
    ("game", "text", "message"),
    [
        (2, LAST_RUG, r"game must be a whole number 0\.\.1, not 2"),
        (-1, LAST_RUG, "game must be a whole number"),
        (0, "nonsense", "BOARD|five fields|fields"),
        (0, LAST_RUG.replace("0l", "-").replace("1+0:0", "0+0:-"), "over"),
        (0, LAST_RUG.split(" ")[0] + " 33S 0s 30:15,30:15,30:15 official", "3 players"),
    ],
)
def test_a_bad_position_is_refused_and_nothing_has_changed(game, text, message):
    batch = Batch(2)
    before = batch.states.copy()
    with pytest.raises(ValueError, match=message):
        batch.set_position(game, text)
    assert (batch.states == before).all()


def test_reset_plays_the_next_episode_or_the_first_of_a_seed():
    batch = Batch(4, rules="official;facing=random", seed=9)
    first = batch.states.copy()
    batch.step([1] * 4)
    batch.reset()
    assert batch.episode.tolist() == [1] * 4
    batch.reset(seed=9)
    assert (batch.states == first).all()
    assert batch.episode.tolist() == [0] * 4


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda b: pickle.loads(pickle.dumps(b))])
def test_a_copy_in_mid_game_goes_on_alike(duplicate):
    batch, rng = Batch(5, 4, seed=6, observation="features"), np.random.default_rng(6)
    for _ in range(30):
        batch.step(random_actions(batch, rng))
    other = duplicate(batch)
    for _ in range(50):
        actions = random_actions(batch, rng)
        batch.step(actions)
        other.step(actions)
        assert (batch.states == other.states).all()
        assert (batch.observation == other.observation).all()
