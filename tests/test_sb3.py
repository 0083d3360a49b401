"""The Stable-Baselines3 border, and what sb3-contrib's MaskablePPO does with it."""

import copy
import multiprocessing
import pickle
import warnings
from functools import partial

import numpy as np
import pytest

pytest.importorskip("stable_baselines3")
pytest.importorskip("sb3_contrib")

import torch
from forgiving import ForgivingEnv
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from sb3_contrib import MaskablePPO
from sb3_contrib.common.maskable.evaluation import evaluate_policy
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported
from stable_baselines3 import PPO
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecFrameStack,
    VecMonitor,
    VecNormalize,
)

from marrakech_env import rules
from marrakech_env.notation import format_position
from marrakech_env.sb3 import MarrakechVecEnv
from marrakech_env.vector import MarrakechEnv, MarrakechVectorEnv

EMPTY = "/".join(["." * 14] * 7)
POSITION = f"{EMPTY} 33S 0l 40:5+5:0,20:5+5:3 official"
SHORT = "official;rugs=4"
SMALL = {"policy_kwargs": {"net_arch": [16]}, "device": "cpu", "seed": 1}

torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def logs_in_a_folder_of_the_test(tmp_path, monkeypatch):
    monkeypatch.setenv("SB3_LOGDIR", str(tmp_path))


class Drawing:
    name = "drawing"

    def act(self, states, rng):
        return (rules.action_mask(states) * rng.random((len(states), 15))).argmax(1)


def legal(masks, rng):
    return (masks * rng.random(masks.shape)).argmax(-1)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("observation", ["flat", "features"])
@pytest.mark.parametrize("opponents", ["random", None])
def test_sb3_check_env_has_no_complaint(observation, opponents):
    check_env(ForgivingEnv(observation=observation, opponents=opponents))


@pytest.mark.parametrize("opponents", ["random", {"random": 1, Drawing(): 1}])
@pytest.mark.parametrize("reward", ["win", "score", "dense"])
def test_it_plays_the_games_of_the_vector_environment(opponents, reward):
    arguments = (7, 3, SHORT, "features", reward, opponents, "rotate")
    ours, vector = MarrakechVecEnv(*arguments), MarrakechVectorEnv(*arguments)
    assert set(ours.seed(11)) == {11}
    observations, (expected, _) = ours.reset(), vector.reset(seed=11)
    rng, ends = np.random.default_rng(11), 0
    for _ in range(60):
        np.testing.assert_array_equal(observations, expected)
        np.testing.assert_array_equal(ours.action_masks(), vector.action_masks())
        actions = legal(ours.action_masks(), rng)
        observations, rewards, dones, infos = ours.step(actions)
        expected, amounts, terminations, _, vector_infos = vector.step(actions)
        assert (observations.dtype, rewards.dtype, dones.dtype) == (np.float32, np.float32, bool)
        np.testing.assert_allclose(rewards, amounts, rtol=1e-6)
        np.testing.assert_array_equal(dones, terminations)
        for game, info in enumerate(infos):
            assert info["TimeLimit.truncated"] is False
            np.testing.assert_array_equal(info["action_mask"], ours.action_masks()[game])
            assert ("terminal_observation" in info) == dones[game]
            if dones[game]:
                ends += 1
                terminal = info["terminal_observation"]
                np.testing.assert_array_equal(terminal, vector_infos["final_obs"][game])
                for key, values in vector_infos["final_info"].items():
                    if not key.startswith("_") and key != "action_mask":
                        np.testing.assert_array_equal(info[key], values[game])
                assert (ours.reset_infos[game]["action_mask"] == info["action_mask"]).all()
    assert ends >= 10


@pytest.mark.parametrize("players", [2, 3, 4])
def test_self_play_tells_who_acts_and_the_rewards_of_all(players):
    env = MarrakechVecEnv(6, players, SHORT, reward="dense", opponents=None)
    env.seed(1)
    env.reset()
    assert [info["player"] for info in env.reset_infos] == [0] * 6
    rng, ends, totals = np.random.default_rng(1), 0, np.zeros((6, players))
    for _ in range(20 * players):
        movers = env.get_attr("player")
        _, rewards, dones, infos = env.step(legal(env.action_masks(), rng))
        for game, info in enumerate(infos):
            assert rewards[game] == np.float32(info["rewards"][movers[game]])
            totals[game] += info["rewards"]
            if dones[game]:
                scores = info["final_scores"]
                margin = [(scores[p] - max(np.delete(scores, p))) / 20 for p in range(players)]
                np.testing.assert_allclose(totals[game], margin, atol=1e-9)
                totals[game] = 0
                ends += 1
            else:
                assert info["player"] == env.get_attr("player")[game]
    assert ends >= 6


def test_masks_are_reached_in_each_way_that_learners_look_for_them():
    env = VecMonitor(MarrakechVecEnv(4))
    env.reset()
    assert is_masking_supported(env)
    assert env.has_attr("action_masks")
    masks = env.venv.action_masks()
    assert masks.shape == (4, 15)
    assert masks.dtype == bool
    np.testing.assert_array_equal(get_action_masks(env), masks)
    np.testing.assert_array_equal(env.env_method("action_masks", indices=[2, 0]), masks[[2, 0]])
    np.testing.assert_array_equal(env.env_method("action_masks", indices=3), masks[[3]])
    np.testing.assert_array_equal([method() for method in env.get_attr("action_masks")], masks)


def test_attributes_of_single_environments():
    env = MarrakechVecEnv(3, 4, render_mode="ansi")
    env.reset()
    assert env.get_attr("render_mode") == ["ansi"] * 3
    assert env.get_attr("player", indices=1) == [0]
    assert not env.has_attr("no_such_thing")
    with pytest.raises(AttributeError, match="no_such_thing"):
        env.get_attr("no_such_thing")
    with pytest.raises(AttributeError, match="reset"):  # it would reset all games, not one
        env.env_method("reset")
    env.set_attr("note", "mine", indices=[1])
    assert env.get_attr("note", indices=[1]) == ["mine"]
    assert not env.has_attr("note")
    assert env.env_is_wrapped(DummyVecEnv) == [False] * 3
    assert all("\n" in text for text in env.env_method("render"))


def test_infos_belong_to_the_caller():
    env = MarrakechVecEnv(5)
    env.reset()
    _, _, _, infos = env.step(np.ones(5, int))
    infos[0]["mine"] = 1
    infos[0]["action_mask"][:] = 0
    assert "mine" not in infos[1]
    assert env.action_masks().any(1).all()
    _, _, _, later = env.step(env.action_masks().argmax(1))
    assert "mine" not in later[0]


def test_nothing_returned_is_written_to_again():
    env = MarrakechVecEnv(5, 2, SHORT)
    kept = [env.reset()]
    copies = copy.deepcopy(kept)
    for _ in range(20):
        observations, rewards, dones, _ = env.step(env.action_masks().argmax(1))
        kept += [observations, rewards, dones]
        copies += copy.deepcopy(kept[-3:])
    for a, b in zip(kept, copies):
        np.testing.assert_array_equal(a, b)


def test_seeds_and_options_count_for_one_reset():
    env = MarrakechVecEnv(3)
    state = np.random.default_rng(0).bit_generator.state
    env.seed(4)
    first = env.reset()
    env.seed(4)
    env.set_options([{"position": POSITION}, {}, {"unknown": 1}])
    second = env.reset()
    assert format_position(env.game_states[0]) == POSITION
    np.testing.assert_array_equal(first[1:], second[1:])
    env.reset()
    assert format_position(env.game_states[0]) != POSITION
    env.set_options({"position": POSITION})
    env.reset()
    assert {format_position(state) for state in env.game_states} == {POSITION}
    for bad in (-1, 1.5):
        with pytest.raises(ValueError, match="seed"):
            env.seed(bad)
    assert np.random.default_rng(0).bit_generator.state == state


def test_a_bad_position_among_the_options_is_refused_at_once():
    env = MarrakechVecEnv(2)
    env.seed(1)
    env.set_options({"position": POSITION})
    over = POSITION.replace(POSITION.split()[2], "-")
    for bad in ("nonsense", 7, over):
        with pytest.raises(ValueError, match=r"position|BOARD|over|TURN"):
            env.set_options([{}, {"position": bad}])
    env.reset()  # with the options that were good
    assert {format_position(state) for state in env.game_states} == {POSITION}


def test_a_seed_from_the_system_leaves_numpys_global_generator_alone():
    legacy = np.random.mtrand._rand
    before = legacy.get_state()[1].copy()
    env = MarrakechVecEnv(2)
    assert env.seed() != env.seed()
    env.reset()
    assert (legacy.get_state()[1] == before).all()


def test_rewards_reach_monitor_and_normalise_and_frames():
    env = VecFrameStack(VecNormalize(VecMonitor(MarrakechVecEnv(4, 2, SHORT))), 2)
    env.reset()
    rng, returns = np.random.default_rng(1), []
    for _ in range(80):
        _, _, dones, infos = env.step(legal(get_action_masks(env), rng))
        for game in np.flatnonzero(dones):
            assert infos[game]["episode"]["l"] <= 8  # four turns of two decisions each
            returns.append(float(infos[game]["episode"]["r"]))
            assert infos[game]["episode"]["r"] == infos[game]["rewards"][0]
    assert {-1.0, 1.0} <= set(returns) <= {-1.0, 0.0, 1.0}


def test_errors_of_order_and_of_actions():
    env = MarrakechVecEnv(2)
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(np.zeros(2, int))
    env.reset()
    before = env.game_states
    with pytest.raises(ValueError, match=r"game 1: action 9 is not legal; legal actions: 0, 1, 2"):
        env.step(np.array([0, 9]))
    assert (env.game_states == before).all()
    env.step(np.zeros(2, int))
    env.close()
    env.close()
    for call in (env.reset, lambda: env.step(np.zeros(2, int))):
        with pytest.raises(ClosedEnvironmentError, match="closed"):
            call()


@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"num_envs": 0}, "at least 1, not 0"),
        ({"num_players": 1}, "2, 3 or 4"),
        ({"observation": "pixels"}, "planes, flat, features"),
        ({"reward": "gold"}, "win, score, dense"),
        ({"opponents": ["random"]}, "each of the 2 seats"),
        ({"seat": "left"}, "rotate"),
        ({"render_mode": "film"}, "human, ansi, rgb_array"),
    ],
)
def test_bad_arguments_are_named_with_what_is_allowed(keywords, message):
    with pytest.raises(ValueError, match=message):
        MarrakechVecEnv(**{"num_envs": 2, **keywords})


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_copies_in_mid_game_take_identical_steps(duplicate):
    env = MarrakechVecEnv(3, 3, SHORT, opponents={Drawing(): 1, "random": 1}, seat="rotate")
    rng = np.random.default_rng(1)
    env.reset()
    for _ in range(13):
        env.step(legal(env.action_masks(), rng))
    twin = duplicate(env)
    assert twin._games[0]._whole is twin
    for _ in range(50):
        actions = legal(env.action_masks(), rng)
        for a, b in zip(env.step(actions)[:3], twin.step(actions)[:3]):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mode", ["ansi", "rgb_array", "human"])
def test_every_render_mode_works_without_a_display(mode, capsys):
    env = MarrakechVecEnv(2, render_mode=mode)
    env.reset()
    shown = env.render()
    if mode == "rgb_array":
        assert shown.dtype == np.uint8
        assert shown.shape[2] == 3
    assert bool(capsys.readouterr().out) == (mode == "human")


def test_opponents_can_be_changed_through_wrappers():
    env = VecMonitor(MarrakechVecEnv(4, 2, SHORT))
    env.reset()
    env.set_opponents(Drawing())
    names = set()
    for _ in range(20):
        _, _, dones, infos = env.step(env.action_masks().argmax(1))
        names |= {infos[game]["opponents"] for game in np.flatnonzero(dones)}
    assert names == {(None, "random"), (None, "drawing")}


# ------------------------------------------------------------------------------------- learners


@pytest.mark.parametrize("opponents", ["random", None])
@pytest.mark.parametrize("observation", ["features", "planes"])
def test_maskable_ppo_learns_and_is_evaluated(opponents, observation):
    env = VecMonitor(MarrakechVecEnv(8, observation=observation, opponents=opponents))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MaskablePPO("MlpPolicy", env, n_steps=32, batch_size=64, n_epochs=1, **SMALL)
        model.learn(512)
        mean, _ = evaluate_policy(model, env, n_eval_episodes=8)
    assert -1 <= mean <= 1
    action, _ = model.predict(env.reset(), action_masks=get_action_masks(env))
    env.step(action)


def test_maskable_ppo_over_the_whole_action_space():
    env = MarrakechVecEnv(64, 2, opponents="random", seat="rotate")
    model = MaskablePPO("MlpPolicy", env, n_steps=80, batch_size=2560, n_epochs=1, **SMALL)
    seen = set()

    def note(local, _):
        seen.update(local["actions"].ravel().tolist())
        return True

    model.learn(20_000, callback=note)
    assert model.num_timesteps >= 20_000
    assert seen == set(range(15))


@pytest.mark.parametrize("many", [True, False])
def test_evaluation_without_masks_raises_instead_of_playing_on(many):
    env = MarrakechVecEnv(4) if many else MarrakechEnv()
    model = MaskablePPO("MlpPolicy", env, n_steps=8, batch_size=8, **SMALL)
    with pytest.raises(ValueError, match="is not legal"):
        evaluate_policy(model, env, n_eval_episodes=50, use_masking=False, warn=False)


def test_a_plain_algorithm_gets_the_error_at_its_first_illegal_action():
    model = PPO("MlpPolicy", MarrakechVecEnv(4), n_steps=8, batch_size=8, **SMALL)
    with pytest.raises(ValueError, match=r"game \d: action \d+ is not legal; legal actions:"):
        model.learn(200)


@pytest.mark.parametrize("start", [None, "fork", "spawn", "forkserver"])
def test_wrappers_over_single_environments_find_the_masks(start):
    if start not in (None, *multiprocessing.get_all_start_methods()):
        pytest.skip(f"this system has no {start}")
    makers = [partial(MarrakechEnv, rules=SHORT)] * 2  # a lambda would import this file there
    env = SubprocVecEnv(makers, start) if start else DummyVecEnv(makers)
    try:
        env.seed(1)
        env.reset()
        assert is_masking_supported(env)
        rng, ends = np.random.default_rng(1), 0
        for _ in range(30):
            masks = get_action_masks(env)
            assert masks.any(1).all()
            _, _, dones, infos = env.step(legal(masks, rng))
            ends += dones.sum()
            assert all("terminal_observation" in infos[game] for game in np.flatnonzero(dones))
        assert ends >= 6
        model = MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=32, n_epochs=1, **SMALL)
        model.learn(32)
    finally:
        env.close()
