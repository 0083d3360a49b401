"""Agents, environments and matches that several threads share: the same decisions as alone."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from marrakech_env import arena
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.vector import MarrakechVectorEnv

AGENTS = ("random", "greedy", "expectimax", "ppo", "value", "champion")
THREADS = 4


def positions(players: int, count: int) -> np.ndarray:
    """STATE (count,): positions of random play."""
    batch, rng = Batch(32, players, seed=players), np.random.default_rng(1)
    found: list[np.ndarray] = []
    for _ in range(40 * players):
        batch.step((batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1))
        found.append(batch.states.copy())
    states = np.concatenate(found)
    return states[:: len(states) // count][:count].copy()


def decisions(agent, states: np.ndarray) -> list[int]:
    """The decisions in small batches, so that calls of several threads overlap."""
    rng = np.random.default_rng(3)
    parts = [agent.act(states[i : i + 10], rng) for i in range(0, len(states), 10)]
    return np.concatenate(parts).tolist()


def compare(name: str, players: int, count: int) -> None:
    agent, states = load_agent(name), positions(players, count)
    alone = decisions(agent, states)
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(lambda _: decisions(agent, states), range(THREADS)))
    assert together == [alone] * THREADS


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("name", AGENTS)
def test_four_threads_share_an_agent(name: str, players: int) -> None:
    compare(name, players, 40 if name == "champion" else 200)


@pytest.mark.long
@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("name", AGENTS)
def test_four_threads_share_an_agent_for_a_thousand_decisions(name: str, players: int) -> None:
    compare(name, players, 1000)


@pytest.mark.parametrize("name", ["greedy", "expectimax", "value"])
def test_two_environments_in_two_threads_share_an_opponent(name: str) -> None:
    opponent = load_agent(name)

    def play(seed: int) -> list[float]:
        envs = MarrakechVectorEnv(8, opponents=opponent)
        _, info = envs.reset(seed=seed)
        rng, rewards = np.random.default_rng(seed), []
        for _ in range(60):
            mask = info["action_mask"]
            _, reward, _, _, info = envs.step((mask * rng.random(mask.shape)).argmax(1))
            rewards += reward.tolist()
        return rewards

    alone = [play(seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(play, (1, 2))) == alone


def test_two_matches_in_two_threads_share_their_agents() -> None:
    agents = [load_agent("expectimax"), load_agent("value")]

    def play(seed: int) -> tuple[float, float]:
        pairing = arena.play(agents, deals=5, seed=seed).pairings[0]
        return pairing.win_share.value, pairing.margin.value

    alone = [play(seed) for seed in (1, 2)]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(play, (1, 2))) == alone
