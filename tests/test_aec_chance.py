"""The PettingZoo border: seeds, positions to start from, and copies of environments."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from aec_play import EMPTY, FORMS, PLAYERS, contents, legal_actions, play, running, started

from marrakech_env import rules
from marrakech_env.aec import env, raw_env
from marrakech_env.batch import Batch
from marrakech_env.notation import format_position, parse_position
from marrakech_env.state import STATE

# --------------------------------------------------------------------------- chance and positions


@pytest.mark.parametrize("players", PLAYERS)
def test_reset_with_a_seed_plays_game_0_of_it_and_later_resets_its_next_episodes(players):
    environment, rng = raw_env(players, "official;rugs=6;facing=random"), np.random.default_rng(1)
    batch = Batch(1, players, "official;rugs=6;facing=random", seed=99)
    environment.reset(seed=99)
    for _ in range(4):
        while True:
            assert environment.position == format_position(batch.states[0])
            action = rng.choice(legal_actions(environment))
            environment.step(action)
            batch.step([action])
            if batch.done[0]:
                break
        assert environment.position == format_position(batch.final_states[0])
        environment.reset()


def test_first_reset_without_a_seed_takes_one_from_the_system():
    starts = set()
    for _ in range(8):
        environment = raw_env(4)
        environment.reset()
        for _ in range(4):
            environment.step(legal_actions(environment)[0])
        starts.add(environment.position)
    assert len(starts) > 1


def test_a_seed_given_again_plays_the_same_game_again():
    environment = raw_env()
    lines = []
    for _ in range(2):
        environment.reset(seed=12)
        play(environment, np.random.default_rng(0))
        lines.append(environment.position)
        environment.reset()
    assert lines[0] == lines[1]


@pytest.mark.parametrize("seed", [-1, 2**64, 1.5, "7", [1]])
def test_a_bad_seed_is_refused_and_the_running_game_goes_on(seed):
    environment = started(seed=4)
    environment.step(1)
    before = contents(environment)
    with pytest.raises(ValueError, match="seed"):
        environment.reset(seed=seed)
    assert contents(environment) == before


def test_nothing_that_an_agent_receives_holds_a_seed_or_a_clock():
    environment, rng = started(env, num_players=3, seed=123456789), np.random.default_rng(0)
    while running(environment):
        observation, *_, info = environment.last()
        assert set(observation) == {"observation", "action_mask"}
        assert set(info) == {"action_mask"}
        environment.step(rng.choice(legal_actions(environment)))
    assert environment.game_state.dtype == STATE


def test_game_state_is_a_copy_to_plan_on():
    environment = started()
    planned = environment.game_state
    assert planned.shape == (1,)
    before = environment.position
    ends = set()
    for steps in (1, 2, 3, 4):
        branch = planned.copy()
        rules.step(branch, [1], [steps])
        ends.add(format_position(branch))
    assert len(ends) == 4
    rules.step(planned, [1], [1])
    assert environment.position == before != format_position(planned)


def test_position_option_starts_from_a_position():
    text = f"{EMPTY} 21E 2l 7:3,x1:0,12:1,60:4 official;money=20"
    environment = env(4)
    environment.reset(seed=1, options={"position": text})
    assert environment.position == text
    assert environment.agent_selection == "player_2"
    assert legal_actions(environment).min() >= 3
    play(environment, np.random.default_rng(0))
    assert not running(environment)
    environment.reset()
    assert environment.position.endswith("33S 0s 30:12,30:12,30:12,30:12 official")


@pytest.mark.parametrize(
    ("position", "message"),
    [
        (f"{EMPTY} 33S 0s 30:12,30:12,30:12 official", "3 players.*2"),
        (f"{EMPTY} 33S - 30:0+0:-,30:0+0:- official", "over"),
        (f"{EMPTY} 33S 0s 30:12+12:2,30:12+12:3 official", "PLAYERS"),
        ("nonsense", "BOARD"),
        (7, "position text"),
        ("", "fields"),
    ],
)
def test_a_bad_position_option_is_refused_and_the_running_game_goes_on(position, message):
    environment = started(seed=4)
    environment.step(1)
    before = contents(environment)
    with pytest.raises(ValueError, match=message):
        environment.reset(seed=9, options={"position": position})
    assert contents(environment) == before


@pytest.mark.parametrize("options", [["position"], "position", 3])
def test_options_that_are_no_dict_are_refused(options):
    with pytest.raises(ValueError, match="options must be a dict"):
        env().reset(options=options)


def test_positions_round_trip_through_the_environment():
    environment, rng = started(num_players=3), np.random.default_rng(1)
    other = raw_env(3)
    while running(environment):
        other.reset(options={"position": environment.position})
        assert (other.game_state == environment.game_state).all()
        assert other.agent_selection == environment.agent_selection
        assert (parse_position(other.position) == environment.game_state).all()
        environment.step(rng.choice(legal_actions(environment)))


def test_unknown_options_are_ignored():
    environment = env()
    environment.reset(seed=0, options={"options": 1, "position": None})
    assert environment.position == started(seed=0).position


# ----------------------------------------------------------------------------------------- copies


@pytest.mark.parametrize("make", [env, raw_env])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("copied", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize("decisions", [0, 20, 21])
def test_a_copy_in_mid_game_goes_on_with_identical_steps(make, form, copied, decisions):
    environment = started(make, num_players=3, observation=form, reward="dense", seed=6)
    play(environment, np.random.default_rng(6), decisions)
    twin = copied(environment)
    rng = np.random.default_rng(60)
    for _ in range(50):
        assert twin.agent_selection == environment.agent_selection
        one, two = environment.last(), twin.last()
        assert one[1:4] == two[1:4]
        assert all((one[0][key] == two[0][key]).all() for key in one[0])
        assert (one[4]["action_mask"] == two[4]["action_mask"]).all()
        action = rng.choice(legal_actions(environment))
        environment.step(action)
        twin.step(action)
        assert twin.position == environment.position
        assert twin.rewards == environment.rewards
    before = twin.position
    environment.step(legal_actions(environment)[0])
    assert twin.position == before


def test_a_copy_shares_the_compiled_encoder_and_takes_no_code_along():
    environment = started()
    for twin in (copy.deepcopy(environment), pickle.loads(pickle.dumps(environment))):
        assert twin._form is environment._form
    assert b"numba" not in pickle.dumps(environment)


@pytest.mark.parametrize("make", [env, raw_env])
def test_an_environment_that_was_never_reset_can_be_copied(make):
    twin = pickle.loads(pickle.dumps(copy.deepcopy(make(4))))
    twin.reset(seed=3)
    assert twin.position == started(num_players=4, seed=3).position
