"""The Gymnasium border: the single environment and the native vector environment."""

import copy
import pickle

import gymnasium
import numpy as np
import pytest
from forgiving import ForgivingEnv
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import AutoresetMode
from gymnasium.wrappers.vector import DictInfoToList, RecordEpisodeStatistics

import marrakech_env
from marrakech_env import rules
from marrakech_env.notation import format_position
from marrakech_env.observation import FORMS, encode
from marrakech_env.seats import SeatedBatch
from marrakech_env.state import OVER
from marrakech_env.vector import MarrakechEnv, MarrakechVectorEnv

EMPTY = "/".join(["." * 14] * 7)
POSITION = f"{EMPTY} 33S 0l 40:5+5:0,20:5+5:3 official"
SHORT = "official;rugs=4"


class Drawing:
    name = "drawing"

    def act(self, states, rng):
        return (rules.action_mask(states) * rng.random((len(states), 15))).argmax(1)


def legal(mask, rng):
    """A random legal action of each row of a mask, or the one of a single mask."""
    return (mask * rng.random(mask.shape)).argmax(-1)


def assert_equal_infos(info, other):
    assert info.keys() == other.keys()
    for key, value in info.items():
        if isinstance(value, dict):
            assert_equal_infos(value, other[key])
        elif isinstance(value, np.ndarray) and value.dtype == object:
            assert other[key].dtype == object
            for a, b in zip(value, other[key], strict=True):
                np.testing.assert_array_equal(a, b)
        else:
            np.testing.assert_array_equal(value, other[key])
            assert np.asarray(value).dtype == np.asarray(other[key]).dtype


# ----------------------------------------------------------------------------------- contracts


@pytest.fixture
def forgiving_id():
    gymnasium.register("Forgiving-v0", ForgivingEnv)
    yield "Forgiving-v0"
    del gymnasium.registry["Forgiving-v0"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("observation", ["flat", "features"])
@pytest.mark.parametrize("players", [2, 4])
@pytest.mark.parametrize("opponents", ["random", None])
def test_gymnasium_check_env_has_no_complaint(forgiving_id, observation, players, opponents):
    env = gymnasium.make(
        forgiving_id, observation=observation, num_players=players, opponents=opponents
    )
    check_env(env.unwrapped)


def test_ids_exist_after_the_import_of_the_package():
    assert marrakech_env.__version__
    env = gymnasium.make("Marrakech-v0")
    assert isinstance(env.unwrapped, MarrakechEnv)
    vector = gymnasium.make_vec("Marrakech-v0", num_envs=3)
    assert isinstance(vector, MarrakechVectorEnv)
    assert vector.num_envs == 3
    assert vector.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP


def test_keywords_reach_the_games_through_make():
    keywords = {
        "num_players": 3,
        "rules": "official;money=50",
        "observation": "planes",
        "reward": "score",
        "opponents": {"random": 1, Drawing(): 2},
        "seat": "rotate",
        "render_mode": "ansi",
    }
    env = gymnasium.make("Marrakech-v0", **keywords)
    vector = gymnasium.make_vec("Marrakech-v0", num_envs=2, **keywords)
    env.reset(seed=1)
    vector.reset(seed=1)
    assert "official;money=50" in format_position(env.unwrapped.game_state)
    assert env.observation_space == vector.single_observation_space
    assert env.observation_space == FORMS["planes"].space(3)
    assert isinstance(env.render(), str)
    assert len(vector.render()) == 2


def test_mask_is_found_through_the_wrappers_of_make():
    env = gymnasium.make("Marrakech-v0")
    _, info = env.reset(seed=1)
    masks = env.get_wrapper_attr("action_masks")()
    assert masks.dtype == np.bool_
    assert info["action_mask"].dtype == np.int8
    assert (masks == info["action_mask"]).all()
    assert env.action_space.sample(info["action_mask"]) in (0, 1, 2)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("players", [2, 3, 4])
def test_observations_are_those_of_the_learner_and_inside_the_space(form, players):
    env = MarrakechVectorEnv(12, players, SHORT, form, opponents="random", seat="rotate")
    observations, infos = env.reset(seed=2)
    rng = np.random.default_rng(2)
    for _ in range(40):
        assert observations in env.observation_space
        states = env.game_states
        np.testing.assert_array_equal(observations, encode(states, form))
        assert (infos["player"] == states["player"]).all()
        assert (infos["action_mask"] == rules.action_mask(states)).all()
        assert (env.action_masks() == infos["action_mask"]).all()
        acted = infos["player"]
        observations, _, terminations, _, infos = env.step(legal(env.action_masks(), rng))
        for game in np.flatnonzero(terminations):
            final = infos["final_obs"][game]
            assert final in env.single_observation_space
            end = env._seats.batch.final_states[game : game + 1]
            assert end["phase"][0] == OVER
            np.testing.assert_array_equal(final, encode(end, form, int(acted[game]))[0])
            assert infos["final_info"]["player"][game] == acted[game]


@pytest.mark.parametrize("players", [2, 3])
@pytest.mark.parametrize("seat", [0, "rotate"])
def test_infos_are_built_as_gymnasium_builds_them(players, seat):
    """Native against `SyncVectorEnv` over the single environment, with one game (of one seed)."""
    keywords = {"num_players": players, "rules": SHORT, "reward": "dense", "seat": seat}
    native = gymnasium.make_vec("Marrakech-v0", num_envs=1, **keywords)
    sync = gymnasium.make_vec(
        "Marrakech-v0",
        num_envs=1,
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        **keywords,
    )
    rng = np.random.default_rng(1)
    for seed in (1, None):
        ours, theirs = native.reset(seed=seed), sync.reset(seed=seed)
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert_equal_infos(ours[1], theirs[1])
        ends = 0
        for _ in range(60):
            actions = legal(ours[-1]["action_mask"], rng)
            ours, theirs = native.step(actions), sync.step(actions)
            for a, b in zip(ours[:4], theirs[:4]):
                np.testing.assert_array_equal(a, b)
                assert a.dtype == b.dtype
            assert_equal_infos(ours[4], theirs[4])
            ends += ours[2].sum()
        assert ends > 5


@pytest.mark.parametrize("reward", ["win", "score", "dense"])
@pytest.mark.parametrize("opponents", ["random", None])
def test_vector_environment_is_as_many_single_ones(reward, opponents):
    arguments = (3, SHORT, "features", reward, opponents, "rotate")
    vector = MarrakechVectorEnv(5, *arguments)
    singles = [MarrakechEnv(*arguments) for _ in range(5)]
    for i, env in enumerate(singles):  # a single environment plays game 0; let these play game i
        env._seats = SeatedBatch(1, *arguments, first_game=i, autoreset=False)
    observations, infos = vector.reset(seed=7)
    results = [env.reset(seed=7) for env in singles]
    rng, ends = np.random.default_rng(7), 0
    for _ in range(90):
        for i, (observation, info) in enumerate(results):
            np.testing.assert_array_equal(observation, observations[i])
            np.testing.assert_array_equal(info["action_mask"], infos["action_mask"][i])
            assert info["player"] == infos["player"][i]
        actions = legal(vector.action_masks(), rng)
        observations, rewards, terminations, truncations, infos = vector.step(actions)
        assert not truncations.any()
        for i, env in enumerate(singles):
            observation, amount, terminated, truncated, info = env.step(actions[i])
            assert (amount, terminated, truncated) == (rewards[i], terminations[i], False)
            if terminated:
                ends += 1
                np.testing.assert_array_equal(observation, infos["final_obs"][i])
                for key, value in info.items():
                    np.testing.assert_array_equal(value, infos["final_info"][key][i])
                observation, info = env.reset()
            results[i] = observation, info
    assert ends >= 10


# ------------------------------------------------------------------------------------- one game


def test_learner_receives_the_negative_return_when_an_opponents_move_ends_the_game():
    env = MarrakechEnv(rules="official;colours=single")
    text = f"{EMPTY} 33S 0l 10:1,50:1 official;colours=single"
    _, info = env.reset(seed=3, options={"position": text})
    _, reward, terminated, truncated, info = env.step(int(info["action_mask"].argmax()))
    assert (reward, terminated, truncated) == (-1.0, True, False)
    assert info["rewards"].tolist() == [-1.0, 1.0]
    assert info["final_shares"].tolist() == [0.0, 1.0]
    assert info["final_ranks"].tolist() == [2, 1]
    assert info["final_scores"][0] < info["final_scores"][1]
    assert info["opponents"] == (None, "random")
    assert info["player"] == 0
    assert not info["action_mask"].any()


@pytest.mark.parametrize("players", [2, 3, 4])
def test_self_play_rewards_the_seat_that_acted_and_tells_those_of_all(players):
    env = MarrakechEnv(players, SHORT, reward="dense", opponents=None)
    rng = np.random.default_rng(1)
    for episode in range(10):
        _, info = env.reset(seed=1 if episode == 0 else None)
        total, terminated = np.zeros(players), False
        while not terminated:
            actor = info["player"]
            _, reward, terminated, _, info = env.step(legal(env.action_masks(), rng))
            assert reward == info["rewards"][actor]
            total += info["rewards"]
        best_of_others = [max(np.delete(info["final_scores"], p)) for p in range(players)]
        np.testing.assert_allclose(total, (info["final_scores"] - best_of_others) / 20, atol=1e-9)
        assert info["opponents"] == (None,) * players


def test_the_same_player_decides_twice_in_a_row_and_the_phases_share_no_action():
    env = MarrakechEnv()
    _, info = env.reset(seed=1)
    steering = info["action_mask"]
    _, _, _, _, info = env.step(1)
    assert not (steering & info["action_mask"]).any()
    assert steering.nonzero()[0].tolist() == [0, 1, 2]
    assert info["player"] == 0


def test_reset_with_a_seed_starts_episode_0_and_without_one_the_next():
    env = MarrakechEnv(opponents=Drawing(), seat=1)
    rng = np.random.default_rng(1)

    def episode(seed):
        observations, terminated = [env.reset(seed=seed)[0]], False
        while not terminated:
            observation, _, terminated, _, _ = env.step(env.action_masks().argmax())
            observations.append(observation)
        return np.array(observations)

    first, second = episode(3), episode(None)
    env.reset()
    for _ in range(rng.integers(5, 9)):
        env.step(env.action_masks().argmax())
    np.testing.assert_array_equal(first, episode(3))
    np.testing.assert_array_equal(second, episode(None))
    assert first.shape != second.shape or (first != second).any()


def test_np_random_is_what_opponents_draw_from():
    env = MarrakechEnv(opponents=Drawing(), seat=1)
    env.reset(seed=5)
    assert env.np_random_seed == 5
    env.reset(seed=np.array(5))
    assert env.np_random_seed == 5
    used, fresh = env.np_random.bit_generator.state, np.random.default_rng(5).bit_generator.state
    assert used != fresh
    env.reset(seed=5)
    assert env.np_random.bit_generator.state == used


def test_a_first_reset_without_a_seed_takes_one_from_the_system():
    envs = [MarrakechEnv(opponents=None) for _ in range(2)]
    dice = []
    for env in envs:
        env.reset()
        for _ in range(30):
            env.step(env.action_masks().argmax())
        dice.append(format_position(env.game_state))
    assert dice[0] != dice[1]


def test_position_option_starts_there_and_unknown_options_are_ignored():
    env, vector = MarrakechEnv(), MarrakechVectorEnv(3)
    env.reset(seed=1, options={"position": POSITION, "colour": "mauve"})
    assert format_position(env.game_state) == POSITION
    vector.reset(seed=1, options={"position": POSITION, "colour": "mauve"})
    assert [format_position(state) for state in vector.game_states] == [POSITION] * 3
    vector.reset()
    assert POSITION not in [format_position(state) for state in vector.game_states]
    with pytest.raises(ValueError, match="has 3 players"):
        env.reset(options={"position": f"{EMPTY} 33S 0s 30:9,30:9,30:9 official"})


@pytest.mark.parametrize(
    "action", [3, -1, 15, 2**70, 1.0, np.nan, True, None, "1", [1], np.ones(1), np.array([1, 1])]
)
def test_an_illegal_action_raises_and_changes_nothing(action):
    env = MarrakechEnv()
    env.reset(seed=1)
    before = env.game_state
    with pytest.raises(ValueError, match=r"game 0|legal actions of game 0") as caught:
        env.step(action)
    assert "0, 1, 2" in str(caught.value)
    assert (env.game_state == before).all()
    env.step(0)


@pytest.mark.parametrize(
    "action", [1, np.int64(1), np.uint8(1), np.array(1), np.array([1]), np.array([[1]])]
)
def test_whole_numbers_of_every_type_are_actions(action):
    env = MarrakechEnv()
    env.reset(seed=1)
    env.step(action)


def test_vector_step_refuses_wrong_actions_and_changes_nothing():
    env = MarrakechVectorEnv(3)
    env.reset(seed=1)
    before = env.game_states
    for actions in (
        np.array([0, 9, 0]),
        np.zeros(2, int),
        np.zeros(3),
        None,
        np.zeros((3, 1), int),
    ):
        with pytest.raises(ValueError, match="legal actions"):
            env.step(actions)
        assert (env.game_states == before).all()
    with pytest.raises(ValueError, match=r"game 1: action 9 is not legal; legal actions: 0, 1, 2"):
        env.step(np.array([0, 9, 0]))


def test_step_wants_a_running_game():
    env, vector = MarrakechEnv(rules=SHORT), MarrakechVectorEnv(2)
    for early in (lambda: env.step(0), lambda: vector.step(np.zeros(2, int))):
        with pytest.raises(ResetNeeded, match="reset"):
            early()
    env.reset(seed=1)
    terminated = False
    while not terminated:
        terminated = env.step(env.action_masks().argmax())[2]
    with pytest.raises(ResetNeeded, match="reset"):
        env.step(0)
    env.reset()
    env.step(0)


def test_a_closed_environment_says_so():
    env, vector = MarrakechEnv(), MarrakechVectorEnv(2)
    for each in (env, vector):
        each.reset(seed=1)
        each.close()
        each.close()
        with pytest.raises(ClosedEnvironmentError, match="closed"):
            each.reset()
    with pytest.raises(ClosedEnvironmentError, match="closed"):
        env.step(0)
    with pytest.raises(ClosedEnvironmentError, match="closed"):
        vector.step(np.zeros(2, int))


@pytest.mark.parametrize("make", [MarrakechEnv, lambda **k: MarrakechVectorEnv(2, **k)])
@pytest.mark.parametrize(
    ("keywords", "message"),
    [
        ({"num_players": 5}, "2, 3 or 4"),
        ({"rules": "chess"}, "official, boardgamearena, comp1110"),
        ({"observation": "pixels"}, "planes, flat, features"),
        ({"reward": "gold"}, "win, score, dense"),
        ({"opponents": "nobody at all"}, "unknown agent"),
        ({"seat": 2}, r"0\.\.1 or 'rotate'"),
        ({"render_mode": "film"}, "human, ansi, rgb_array"),
    ],
)
def test_bad_arguments_are_named_with_what_is_allowed(make, keywords, message):
    with pytest.raises(ValueError, match=message):
        make(**keywords)


def test_number_of_environments_is_checked():
    for given in (0, -1, 1.5, True, None, "8"):
        with pytest.raises(ValueError, match=f"num_envs must .* at least 1, not {given!r}$"):
            MarrakechVectorEnv(given)
    for given in (2**40, 10**30):
        with pytest.raises(ValueError, match=rf"num_envs must .* 1\.\.1048576, not {given}$"):
            MarrakechVectorEnv(given)


# ------------------------------------------------------------------------- data, copies, company


def test_nothing_returned_is_written_to_again():
    env = MarrakechVectorEnv(8, 2, SHORT, opponents=None)
    rng = np.random.default_rng(1)
    kept = [env.reset(seed=1)]
    copies = copy.deepcopy(kept)
    for _ in range(40):
        kept.append(env.step(legal(env.action_masks(), rng)))
        copies.append(copy.deepcopy(kept[-1]))
    for a, b in zip(kept, copies):
        assert_equal_infos(
            {str(i): x for i, x in enumerate(a)}, {str(i): x for i, x in enumerate(b)}
        )


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
@pytest.mark.parametrize("many", [False, True])
def test_copies_in_mid_game_take_identical_steps(duplicate, many):
    keywords = {"num_players": 3, "opponents": {Drawing(): 1, "random": 1}, "seat": "rotate"}
    env = MarrakechVectorEnv(4, **keywords) if many else MarrakechEnv(**keywords)
    rng = np.random.default_rng(1)
    env.reset(seed=1)
    for _ in range(13):
        env.step(legal(env.action_masks(), rng))
    twin = duplicate(env)
    for _ in range(50):
        actions = legal(env.action_masks(), rng)
        ours, theirs = env.step(actions), twin.step(actions)
        for a, b in zip(ours[:4], theirs[:4]):
            np.testing.assert_array_equal(a, b)
        assert_equal_infos(ours[4], theirs[4])
        if not many and ours[2]:
            env.reset()
            twin.reset()
    assert twin.np_random is twin._seats.rng  # one stream, not two copies of it
    assert twin.np_random is not env.np_random


def test_two_copies_of_a_state_meet_different_chance():
    env = MarrakechEnv()
    env.reset(seed=1)
    one, other = env.game_state, env.game_state
    rules.step(one, [1], [1])
    rules.step(other, [1], [3])
    assert format_position(one) != format_position(other)
    assert env.game_state["phase"][0] == 0


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize("mode", ["ansi", "rgb_array", "human"])
def test_every_render_mode_shows_the_game_without_a_display(many, mode, capsys):
    env = MarrakechVectorEnv(2, render_mode=mode) if many else MarrakechEnv(render_mode=mode)
    env.reset(seed=1)
    env.step(np.ones(2, int) if many else 1)
    capsys.readouterr()
    shown = env.render()
    if mode == "human":
        assert shown is None
        assert capsys.readouterr().out
        return
    pictures = shown if many else (shown,)
    assert len(pictures) == (2 if many else 1)
    for picture in pictures:
        if mode == "ansi":
            assert "\n" in picture
        else:
            assert picture.dtype == np.uint8
            assert picture.shape[2] == 3


def test_human_mode_prints_at_every_step_of_the_single_environment(capsys):
    env = MarrakechEnv(render_mode="human")
    env.reset(seed=1)
    first = capsys.readouterr().out
    env.step(1)
    assert first
    assert capsys.readouterr().out not in ("", first)


def test_render_without_a_mode_warns():
    env = MarrakechEnv()
    env.reset(seed=1)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_wrappers_of_vector_environments_understand_it():
    env = RecordEpisodeStatistics(MarrakechVectorEnv(6, 2, SHORT))
    env = DictInfoToList(env)
    _, infos = env.reset(seed=1)
    rng, returns = np.random.default_rng(1), []
    for _ in range(40):
        actions = [legal(info["action_mask"], rng) for info in infos]
        _, rewards, terminations, _, infos = env.step(np.array(actions))
        for game in np.flatnonzero(terminations):
            assert infos[game]["episode"]["r"] == rewards[game]
            assert infos[game]["final_info"]["rewards"][0] == rewards[game]
            returns.append(rewards[game])
    assert len(returns) > 20


@pytest.mark.parametrize("context", ["fork", "spawn", "forkserver"])
def test_single_environments_run_in_processes_of_their_own(context):
    if context not in __import__("multiprocessing").get_all_start_methods():
        pytest.skip(f"this system has no {context}")
    arguments = {"num_envs": 2, "rules": SHORT}
    async_env = gymnasium.make_vec(
        "marrakech_env:Marrakech-v0",
        vectorization_mode="async",
        vector_kwargs={"context": context, "autoreset_mode": AutoresetMode.SAME_STEP},
        **arguments,
    )
    sync = gymnasium.make_vec(
        "marrakech_env:Marrakech-v0",
        vectorization_mode="sync",
        vector_kwargs={"autoreset_mode": AutoresetMode.SAME_STEP},
        **arguments,
    )
    rng = np.random.default_rng(1)
    try:
        ours, theirs = async_env.reset(seed=1), sync.reset(seed=1)
        for _ in range(20):
            np.testing.assert_array_equal(ours[0], theirs[0])
            actions = legal(ours[-1]["action_mask"], rng)
            ours, theirs = async_env.step(actions), sync.step(actions)
    finally:
        async_env.close()


def test_opponents_can_be_changed_while_training():
    env, vector = MarrakechEnv(rules=SHORT), MarrakechVectorEnv(2, rules=SHORT)
    for each in (env, vector):
        each.reset(seed=1)
        each.set_opponents({Drawing(): 1})
        with pytest.raises(ValueError, match="unknown agent"):
            each.set_opponents("nobody at all")
    names, terminated = [], False
    for _ in range(2):
        while not terminated:
            _, _, terminated, _, info = env.step(env.action_masks().argmax())
        names.append(info["opponents"][1])
        env.reset()
        terminated = False
    assert names == ["random", "drawing"]
