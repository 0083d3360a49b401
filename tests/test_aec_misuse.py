"""The PettingZoo border: the errors of misuse, the order of calls, and rendering."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from aec_play import legal_actions, running, started
from gymnasium.error import ClosedEnvironmentError
from pettingzoo.utils import wrappers

from marrakech_env.aec import env, raw_env

# ----------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("make", [env, raw_env])
@pytest.mark.parametrize(
    "action",
    [
        *(None, -1, 3, 15, 2**70, -(2**70), 1.0, np.float32(1), float("nan"), float("inf")),
        *(True, np.True_, "1", [1], (1,), np.array([1, 1]), np.array([True]), np.array([1.0]), {}),
    ],
)
def test_an_illegal_action_gets_an_error_with_game_action_and_legal_ones(action, make):
    environment = started(make, seed=2)
    before, mask = environment.position, environment.last()[0]["action_mask"].copy()
    with pytest.raises(
        ValueError, match=r"game 0: action .+ legal; legal actions: 0, 1, 2$"
    ) as hit:
        environment.step(action)
    assert (str(action) if type(action) is int else repr(action)) in str(hit.value)
    assert environment.position == before
    assert environment.agent_selection == "player_0"
    assert (environment.last()[0]["action_mask"] == mask).all()


@pytest.mark.parametrize(
    "action",
    [
        *(1, np.int8(1), np.uint8(1), np.int32(1), np.int64(1), np.uint64(1)),
        *(np.array(1), np.array([1]), np.array([[1]])),
    ],
)
def test_every_kind_of_whole_number_is_an_action(action):
    environment, twin = started(env), started(env)
    environment.step(action)
    twin.step(1)
    assert environment.position == twin.position


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"num_players": 1}, "num_players must be 2, 3 or 4, not 1"),
        ({"num_players": 5}, "num_players must be 2, 3 or 4, not 5"),
        ({"rules": "offical"}, "unknown preset 'offical'; known: official, boardgamearena"),
        ({"observation": "pixels"}, "'pixels'; known: planes, flat, features"),
        ({"reward": "sparse"}, "'sparse'; known: win, score, dense"),
        ({"render_mode": "svg"}, "'svg'; known: None, human, ansi, rgb_array"),
    ],
)
@pytest.mark.parametrize("make", [env, raw_env])
def test_an_unknown_keyword_value_gets_an_error_that_lists_the_known(make, keywords, message):
    with pytest.raises(ValueError, match=message):
        make(**keywords)


CALLS = {
    "step": lambda e: e.step(0),
    "observe": lambda e: e.observe("player_0"),
    "render": lambda e: e.render(),
    "state": lambda e: e.state(),
    "agent_iter": lambda e: e.agent_iter(),
    "last": lambda e: e.last(),
    "rewards": lambda e: e.rewards,
    "terminations": lambda e: e.terminations,
    "truncations": lambda e: e.truncations,
    "infos": lambda e: e.infos,
    "agent_selection": lambda e: e.agent_selection,
    "num_agents": lambda e: e.num_agents,
    "agents": lambda e: e.agents,
    "possible_agents": lambda e: e.possible_agents,
    "max_num_agents": lambda e: e.max_num_agents,
    "observation_space": lambda e: e.observation_space("player_0"),
    "close": lambda e: e.close(),
    "missing": lambda e: e.no_such_attribute,
}


def outcome(call, environment):
    """The type of error of a call, with its text where it is about the order of calls."""
    try:
        call(environment)
    except Exception as error:
        text = str(error) if "reset" in str(error) else ""
        return type(error), text
    return None


@pytest.mark.parametrize("name", CALLS)
def test_before_reset_env_gives_the_errors_of_pettingzoos_order_wrapper(name):
    wrapped = wrappers.OrderEnforcingWrapper(raw_env())
    assert outcome(CALLS[name], env()) == outcome(CALLS[name], wrapped)


def test_agent_iter_without_a_step_gives_the_error_of_pettingzoos_order_wrapper():
    errors = []
    for environment in (env(), wrappers.OrderEnforcingWrapper(raw_env())):
        environment.reset(seed=0)
        loop = iter(environment.agent_iter())
        assert next(loop) == "player_0"
        with pytest.raises(AssertionError) as hit:
            next(loop)
        errors.append(str(hit.value))
        environment.reset()
        loop = iter(environment.agent_iter(max_iter=2))
        next(loop)
        environment.step(1)
        assert next(loop) == "player_0"
        with pytest.raises(StopIteration):
            next(loop)
        environment.step(legal_actions(environment)[0])
        for _ in environment.agent_iter():
            environment.step(legal_actions(environment)[0] if running(environment) else None)
        assert environment.agents == []
    assert errors[0] == errors[1]


def test_raw_env_leaves_the_order_of_calls_to_the_caller():
    environment = started(raw_env)
    loop = iter(environment.agent_iter())
    assert [next(loop), next(loop)] == ["player_0", "player_0"]
    with pytest.raises(AssertionError, match="reset"):
        raw_env().step(0)


@pytest.mark.parametrize("make", [env, raw_env])
def test_a_closed_environment_says_so(make):
    environment = started(make)
    environment.close()
    environment.close()
    for call in (environment.reset, lambda: environment.step(0)):
        with pytest.raises(ClosedEnvironmentError, match="closed environment"):
            call()
    with pytest.raises(AttributeError, match="agents cannot be accessed after close"):
        _ = environment.agents
    with pytest.raises((ClosedEnvironmentError, AttributeError), match="close"):
        environment.observe("player_0")


# ----------------------------------------------------------------------------------------- render


def test_ansi_returns_the_board_as_text(capsys):
    environment = started(env, render_mode="ansi")
    before = environment.render()
    environment.step(1)
    assert isinstance(before, str)
    assert before != environment.render()
    assert capsys.readouterr().out == ""


def test_human_prints_the_ansi_board_after_every_change_and_returns_none(capsys):
    environment, silent = env(render_mode="human"), env(render_mode="ansi")
    for change in (lambda e: e.reset(seed=1), lambda e: e.step(1)):
        change(environment)
        change(silent)
        assert capsys.readouterr().out == silent.render() + "\n"
    assert environment.render() is None
    assert capsys.readouterr().out == silent.render() + "\n"


def test_rgb_array_is_an_image():
    picture = started(env, render_mode="rgb_array").render()
    assert picture.dtype == np.uint8
    assert picture.ndim == 3
    assert picture.shape[2] == 3
    assert len(np.unique(picture)) > 5


def test_render_without_a_mode_warns_and_shows_nothing(capsys):
    environment = started(env)
    with pytest.warns(UserWarning, match="render mode"):
        assert environment.render() is None
    assert capsys.readouterr().out == ""


def test_every_render_mode_works_without_a_display(tmp_path):
    code = """
import marrakech_env
for mode in ("human", "ansi", "rgb_array"):
    environment = marrakech_env.env(render_mode=mode)
    environment.reset(seed=0)
    environment.step(1)
    environment.render()
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={"PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
