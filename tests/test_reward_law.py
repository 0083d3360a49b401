"""The reward law: what a seat receives in a game adds up to what the final scores are worth.

Seen from outside, through the environments that learners use (`test_aec` has the same of the
PettingZoo environments, `test_seats` of the games with opponents inside).
"""

import numpy as np
import pytest
from borders import random_legal

from marrakech_env.sb3 import MarrakechVecEnv
from marrakech_env.vector import MarrakechEnv, MarrakechVectorEnv

RULES = "official;money=12"  # little money, so that many games hold eliminations


def worth(scheme, scores, shares):
    """What every seat has to receive, from the final scores and shares of the win."""
    players = len(scores)
    if scheme == "win":
        return [(players * share - 1) / (players - 1) for share in shares]
    return [(own - max(np.delete(scores, seat))) / 20 for seat, own in enumerate(scores)]


def single_steps(arguments, rng):
    """Steps of the single environment: game, seat that acted, its reward, end, info."""
    env = MarrakechEnv(**arguments)
    _, info = env.reset(seed=1)
    while True:
        player = info["player"]
        _, reward, over, _, info = env.step(random_legal(info["action_mask"], rng))
        yield 0, player, reward, over, info
        if over:
            _, info = env.reset()


def vector_steps(arguments, rng):
    """The same of the vector environment, one after the other for its games."""
    env = MarrakechVectorEnv(10, **arguments)
    _, infos = env.reset(seed=1)
    while True:
        players = infos["player"]
        _, rewards, overs, _, infos = env.step(random_legal(infos["action_mask"], rng))
        for game in range(10):
            told = infos["final_info"] if overs[game] else infos
            info = {key: rows[game] for key, rows in told.items() if key != "final_info"}
            yield game, players[game], rewards[game], overs[game], info


def sb3_steps(arguments, rng):
    """The same of the Stable-Baselines3 environment."""
    env = MarrakechVecEnv(10, **arguments)
    env.seed(1)
    env.reset()
    while True:
        players = env.game_states["player"]
        _, rewards, overs, infos = env.step(random_legal(env.action_masks(), rng))
        yield from zip(range(10), players, rewards, overs, infos)


STEPS = {"Env": single_steps, "VectorEnv": vector_steps, "VecEnv": sb3_steps}


def check_reward_law(border, scheme, players, opponents, games):
    arguments = {
        "num_players": players,
        "rules": RULES,
        "reward": scheme,
        "opponents": opponents,
        "seat": "rotate",
        "observation": "flat",
    }
    sums, finished, unequal = np.zeros((10, players)), 0, 0
    for game, player, reward, over, info in STEPS[border](arguments, np.random.default_rng(1)):
        if opponents is None:  # every seat is told what it received, and the mover's is the reward
            sums[game] += info["rewards"]
            assert reward == pytest.approx(info["rewards"][player], abs=1e-6)
        else:
            sums[game, player] += reward
        if over:
            expected = np.array(worth(scheme, info["final_scores"], info["final_shares"]))
            seats = range(players) if opponents is None else [player]
            np.testing.assert_allclose(sums[game, seats], expected[seats], atol=1e-5)
            if scheme != "dense":
                np.testing.assert_allclose(info["rewards"], expected, atol=1e-9)
            unequal += len(set(expected)) > 1
            sums[game] = 0
            finished += 1
            if finished == games:
                break
    assert unequal > games / 2


@pytest.mark.parametrize("opponents", ["random", None])
@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("scheme", ["win", "score", "dense"])
@pytest.mark.parametrize("border", STEPS)
def test_rewards_of_a_game_add_up_to_what_its_final_scores_are_worth(
    border, scheme, players, opponents
):
    check_reward_law(border, scheme, players, opponents, 30)


@pytest.mark.long
@pytest.mark.parametrize("opponents", ["random", None])
@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("scheme", ["win", "score", "dense"])
@pytest.mark.parametrize("border", STEPS)
def test_the_same_over_500_games(border, scheme, players, opponents):
    check_reward_law(border, scheme, players, opponents, 500)
