"""The PettingZoo border: its own tests, observations, masks, rewards, and the end of a game."""

from __future__ import annotations

import copy
import warnings

import numpy as np
import pettingzoo
import pytest
from aec_play import (
    EMPTY,
    FORMS,
    PLAYERS,
    contents,
    legal_actions,
    play,
    received,
    running,
    started,
)
from gymnasium.spaces import Box, Discrete
from pettingzoo.test import api_test, render_test, seed_test
from pettingzoo.utils import wrappers

import marrakech_env
from marrakech_env import rules
from marrakech_env.aec import env, raw_env
from marrakech_env.observation import encode
from marrakech_env.rewards import SCHEMES, final_rewards, margins
from marrakech_env.state import LAY, OVER, STEER

DICT_WARNINGS = {
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be gymnasium.spaces.box or "
    "gymnasium.spaces.discrete",
}


# ------------------------------------------------------------------------- PettingZoo's own tests


@pytest.mark.parametrize("make", [env, raw_env])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("players", PLAYERS)
def test_pettingzoo_api_test_warns_of_dict_observations_only(players, form, make):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        api_test(make(players, observation=form), num_cycles=150)
    assert {str(warning.message) for warning in caught} == DICT_WARNINGS


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("players", PLAYERS)
def test_pettingzoo_seed_test_passes(players, form):
    seed_test(lambda: env(players, observation=form), num_cycles=150)


def test_pettingzoo_render_test_passes(capsys):
    render_test(env)


@pytest.mark.parametrize("make", [env, raw_env])
def test_pettingzoo_wrappers_can_be_stacked_on_top(make):
    wrapped = wrappers.OrderEnforcingWrapper(
        wrappers.AssertOutOfBoundsWrapper(wrappers.TerminateIllegalWrapper(make(3), -1))
    )
    wrapped.reset(seed=1)
    seen, _ = received(wrapped, np.random.default_rng(1))
    assert sum(seen) == pytest.approx(0)
    assert any(seen)


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="PettingZoo before 1.27 has no make")
def test_pettingzoo_make_finds_the_environment():
    made = pettingzoo.make("aec", "Marrakech-v0", num_players=3, observation="flat", reward="dense")
    assert isinstance(made, env)
    assert made.max_num_agents == 3
    assert made.observation_space("player_0")["observation"].dtype == np.float32


def test_the_package_hands_out_the_same_classes_everywhere():
    from marrakech_env import marrakech_v0

    assert marrakech_env.env is marrakech_v0.env is env
    assert marrakech_env.raw_env is marrakech_v0.raw_env is raw_env
    assert marrakech_env.marrakech_v0 is marrakech_v0
    assert set(marrakech_env.__all__) >= {"env", "raw_env", "marrakech_v0", "__version__"}
    assert set(dir(marrakech_env)) >= set(marrakech_env.__all__)
    with pytest.raises(AttributeError, match="no attribute 'gym_env'"):
        _ = marrakech_env.gym_env


def test_metadata_spaces_and_names():
    environment = started(env, num_players=4)
    assert environment.metadata["name"] == str(environment) == "marrakech_v0"
    assert environment.metadata["is_parallelizable"] is False
    assert environment.metadata["render_modes"] == ["human", "ansi", "rgb_array"]
    assert environment.possible_agents == [f"player_{seat}" for seat in range(4)]
    for agent in environment.agents:
        space = environment.observation_space(agent)
        assert space is environment.observation_space(agent)
        assert environment.action_space(agent) is environment.action_space(agent)
        assert environment.action_space(agent) == Discrete(15)
        assert space["action_mask"] == Box(0, 1, (15,), np.int8)
        assert space["observation"] == environment.state_space


# ------------------------------------------------------------------------- observations and masks


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("players", PLAYERS)
def test_every_agent_can_look_at_any_time_from_his_own_point_of_view(players, form):
    environment = started(num_players=players, observation=form, rules="official;money=8", seed=3)
    rng = np.random.default_rng(3)
    while True:
        for seat, agent in enumerate(environment.possible_agents):
            seen = environment.observe(agent)
            assert environment.observation_space(agent).contains(seen)
            assert (seen["observation"] == encode(environment.game_state, form, seat)[0]).all()
        assert environment.state_space.contains(environment.state())
        if not environment.agents:
            break
        environment.step(rng.choice(legal_actions(environment)) if running(environment) else None)


def test_state_is_what_player_0_sees_whoever_is_to_act():
    environment = started(num_players=3)
    play(environment, np.random.default_rng(0), 21)
    assert environment.agent_selection != "player_0"
    assert (environment.state() == environment.observe("player_0")["observation"]).all()


@pytest.mark.parametrize("players", PLAYERS)
def test_mask_is_the_same_in_observation_and_info_and_zero_off_turn(players):
    environment, rng = started(num_players=players, seed=5), np.random.default_rng(5)
    while running(environment):
        for agent in environment.agents:
            mask = environment.observe(agent)["action_mask"]
            assert mask.dtype == np.int8
            assert (mask == environment.infos[agent]["action_mask"]).all()
            if agent == environment.agent_selection:
                assert (mask == rules.action_mask(environment.game_state)[0]).all()
                assert mask.any()
            else:
                assert not mask.any()
        environment.step(rng.choice(legal_actions(environment)))


def test_last_returns_the_very_object_in_infos_and_steps_leave_it_as_it_was():
    environment, rng = started(num_players=2), np.random.default_rng(0)
    for _ in range(30):
        agent = environment.agent_selection
        observation, *_, info = environment.last()
        assert info is environment.infos[agent]
        before = copy.deepcopy((observation, info))
        environment.step(rng.choice(legal_actions(environment)))
        assert all((observation[key] == before[0][key]).all() for key in observation)
        assert (info["action_mask"] == before[1]["action_mask"]).all()


@pytest.mark.parametrize("make", [env, raw_env])
def test_an_action_is_accepted_exactly_where_the_mask_is_one(make):
    rng = np.random.default_rng(8)
    for players in PLAYERS:
        environment = started(make, num_players=players, seed=8)
        while running(environment):
            mask = environment.last()[0]["action_mask"]
            before = contents(environment)
            for action in np.flatnonzero(mask == 0):
                with pytest.raises(ValueError, match="not legal"):
                    environment.step(action)
            assert contents(environment) == before
            environment.step(rng.choice(np.flatnonzero(mask)))


def test_spoiling_a_mask_does_not_make_an_action_legal():
    environment = started()
    environment.last()[0]["action_mask"][:] = 1
    with pytest.raises(ValueError, match="legal actions: 0, 1, 2"):
        environment.step(7)


def test_one_agent_acts_twice_in_a_row_with_disjoint_legal_actions():
    environment, rng = started(num_players=3), np.random.default_rng(4)
    for _ in range(20):
        agent, phase = environment.agent_selection, environment.game_state["phase"][0]
        steering = set(legal_actions(environment))
        assert phase == STEER
        environment.step(rng.choice(list(steering)))
        assert environment.agent_selection == agent
        assert environment.game_state["phase"][0] == LAY
        laying = set(legal_actions(environment))
        assert laying
        assert not laying & steering
        environment.step(rng.choice(list(laying)))


def test_the_variant_that_steers_last_plays_to_its_end():
    environment = started(env, num_players=2, rules="boardgamearena;steering=end")
    assert list(legal_actions(environment)) == [1]
    play(environment, np.random.default_rng(0))
    assert not running(environment)


# ---------------------------------------------------------------------------------------- the end


@pytest.mark.parametrize("make", [env, raw_env])
def test_all_agents_terminate_together_and_are_drained_in_seat_order(make):
    environment = started(make, num_players=4)
    play(environment, np.random.default_rng(0))
    assert environment.game_state["phase"][0] == OVER
    assert set(environment.terminations.values()) == {True}
    assert set(environment.truncations.values()) == {False}
    drained = []
    for agent in environment.agent_iter():
        assert environment.last()[2:4] == (True, False)
        drained.append(agent)
        environment.step(None)
    assert drained == environment.possible_agents
    assert environment.agents == []
    assert environment.num_agents == 0
    kept = environment.rewards, environment.terminations, environment.truncations
    assert (*kept, environment.infos) == ({}, {}, {}, {})


@pytest.mark.parametrize("make", [env, raw_env])
def test_a_step_after_the_end_raises(make):
    environment = started(make)
    play(environment, np.random.default_rng(0))
    for _ in range(2):
        environment.step(None)
    for action in (None, 0):
        with pytest.raises(ValueError, match=r"step after the end.*reset\(\)"):
            environment.step(action)
    environment.reset()
    environment.step(1)


@pytest.mark.parametrize("action", [0, 1, -1, 15, np.int64(1), 1.0, "None", False])
def test_a_terminated_agent_takes_none_and_nothing_else(action):
    environment = started(env)
    play(environment, np.random.default_rng(0))
    for agent in environment.possible_agents:
        with pytest.raises(ValueError, match=rf"game 0: action .*{agent} takes None only"):
            environment.step(action)
        assert agent in environment.agents
        environment.step(None)


def test_masks_of_terminated_agents_are_zero():
    environment = started(num_players=3)
    play(environment, np.random.default_rng(0))
    while environment.agents:
        for agent in environment.agents:
            mask = environment.observe(agent)["action_mask"]
            assert not mask.any()
            assert mask is environment.infos[agent]["action_mask"]
        environment.step(None)


def test_a_drained_agent_can_still_look():
    environment = started()
    play(environment, np.random.default_rng(0))
    environment.step(None)
    seen = environment.observe("player_0")
    assert not seen["action_mask"].any()
    assert (seen["observation"] == encode(environment.game_state, "planes", 0)[0]).all()


def games_with_a_bankruptcy(players, seat, rule_set="official;money=4"):
    """Environments right after the seat was eliminated while the game goes on."""
    rng = np.random.default_rng(10 * players + seat)
    environment = raw_env(players, rule_set)
    environment.reset(seed=players)
    found = 0
    while found < 5:
        environment.step(rng.choice(legal_actions(environment)))
        if not running(environment):
            environment.reset()
        elif environment.game_state["eliminated"][0, seat]:
            found += 1
            yield environment
            environment.reset()


@pytest.mark.parametrize(
    ("players", "seat"), [(players, seat) for players in (3, 4) for seat in range(players)]
)
def test_a_bankrupt_seat_is_never_selected_again_and_terminates_with_the_others(players, seat):
    rng = np.random.default_rng(seat)
    for environment in games_with_a_bankruptcy(players, seat):
        bankrupt = environment.possible_agents[seat]
        while running(environment):
            assert environment.agent_selection != bankrupt
            assert environment.agents == environment.possible_agents
            assert not environment.terminations[bankrupt]
            assert legal_actions(environment).size
            environment.step(rng.choice(legal_actions(environment)))
        assert environment.terminations[bankrupt]
        assert environment.rewards[bankrupt] == pytest.approx(-1 / (players - 1))


@pytest.mark.parametrize("seat", [0, 1])
def test_a_bankruptcy_ends_a_game_of_two(seat):
    for seed in range(1000):
        environment = started(rules="official;money=1", seed=seed)
        play(environment, np.random.default_rng(seed))
        if environment.game_state["eliminated"][0, seat]:
            break
    assert environment.rewards == {f"player_{seat}": -1.0, f"player_{1 - seat}": 1.0}


def test_a_last_survivor_plays_on_alone_where_the_rules_say_so():
    text = f"{EMPTY} 33S 0s 5:2,x1:0 comp1110"
    environment = raw_env(2, "comp1110")
    environment.reset(seed=0, options={"position": text})
    selected = []
    while running(environment):
        selected.append(environment.agent_selection)
        environment.step(legal_actions(environment)[0])
    assert selected == ["player_0"] * 4
    assert environment.rewards == {"player_0": 1.0, "player_1": -1.0}


# ---------------------------------------------------------------------------------------- rewards


def check_reward_law(players, scheme, games):
    environment, rng = env(players, "official;money=12", reward=scheme), np.random.default_rng(7)
    environment.reset(seed=players)
    unequal = 0
    for _ in range(games):
        seen, paid = received(environment, rng)
        final = environment.game_state
        shares, scores = rules.winner_shares(final), rules.scores(final)
        if scheme == "win":
            expected = (players * shares[0] - 1) / (players - 1)
        else:
            expected = margins(scores)[0]
        np.testing.assert_allclose(seen, expected, atol=1e-12)
        np.testing.assert_allclose(paid, expected, atol=1e-12)
        np.testing.assert_allclose(final_rewards(scheme, shares, scores)[0], expected)
        unequal += len(set(seen)) > 1
        environment.reset()
    assert unequal > games / 2


@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("players", PLAYERS)
def test_what_each_agent_receives_adds_up_to_the_value_of_the_final_scores(players, scheme):
    check_reward_law(players, scheme, 60)


@pytest.mark.long
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("players", PLAYERS)
def test_the_same_over_500_games(players, scheme):
    check_reward_law(players, scheme, 500)


@pytest.mark.parametrize("scheme", ["win", "score"])
def test_nothing_is_due_before_the_end_and_then_every_seat_is_paid(scheme):
    environment, rng = started(num_players=4, reward=scheme), np.random.default_rng(2)
    while running(environment):
        assert environment.rewards == dict.fromkeys(environment.possible_agents, 0)
        environment.step(rng.choice(legal_actions(environment)))
    assert set(environment.rewards) == set(environment.possible_agents)
    assert all(environment.rewards.values())


def test_dense_pays_every_seat_the_change_of_its_margin_after_every_step():
    environment, rng = started(num_players=3, reward="dense"), np.random.default_rng(2)
    before = margins(rules.scores(environment.game_state))[0]
    while running(environment):
        environment.step(rng.choice(legal_actions(environment)))
        after = margins(rules.scores(environment.game_state))[0]
        assert list(environment.rewards.values()) == list(after - before)
        before = after


def test_dense_from_a_position_pays_what_changes_from_there():
    text = f"{EMPTY} 33S 0l 40:1+0:0,30:0+0:- official"
    environment = raw_env(reward="dense")
    environment.reset(options={"position": text})
    assert environment.last()[1] == 0
    environment.step(legal_actions(environment)[0])
    assert environment.rewards == {"player_0": pytest.approx(0.1), "player_1": pytest.approx(-0.1)}


def test_the_learner_receives_the_negative_return_when_an_opponents_move_ends_the_game():
    text = f"{EMPTY} 33S 1l 30:0+0:-,35:0+1:3 official"
    environment = env()
    environment.reset(options={"position": text})
    environment.step(legal_actions(environment)[0])  # player_1 lays the last rug
    assert environment.agent_selection == "player_0"
    _, reward, terminated, _, _ = environment.last()
    assert (reward, terminated) == (-1.0, True)
    environment.step(None)
    assert environment.last()[1:3] == (1.0, True)
