"""What `speed` measures: each function makes a workload and returns how to measure it once.

A measurement takes the seconds to spend and returns a rate or another number. Steps are timed one
by one, and those that took over four times as long as the fastest tenth are left out: there another
process had the core.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable
from typing import Any

import gymnasium
import numpy as np
from gymnasium.spaces import Dict, Discrete, MultiBinary
from numpy.typing import NDArray
from pettingzoo import AECEnv

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.batch import Batch

Measurement = Callable[[float], float]

GAME_LENGTH = 96
"""Decisions of an average game of 4 players."""


def undisturbed(durations: Iterable[float]) -> float:
    """Mean of the durations without those of over four times the lowest decile."""
    found = sorted(durations)
    limit = 4 * found[len(found) // 10]
    return statistics.fmean(duration for duration in found if duration <= limit)


def random_actions(mask: NDArray[Any], rng: np.random.Generator) -> NDArray[np.int64]:
    """A uniformly random legal action for each game."""
    return np.asarray((mask * rng.random(mask.shape, np.float32)).argmax(1))


def timed_steps(games: int, seconds: float, step: Callable[[], float]) -> float:
    """Decisions a second of steps of so many games; `step` returns the seconds that it took."""
    durations = [step()]
    until = time.perf_counter() + seconds
    while time.perf_counter() < until:
        durations.append(step())
    return games / undisturbed(durations)


def batch_step(games: int, players: int, observation: str | None = None) -> Measurement:
    """`Batch.step` alone, actions drawn outside the clock, games at all stages."""
    batch, rng = Batch(games, players, observation=observation), np.random.default_rng(0)
    late = rng.integers(GAME_LENGTH, size=games)
    for step in range(GAME_LENGTH):  # else all games would steer and lay in step
        some = np.flatnonzero(late > step)
        if len(some):
            batch.step_games(some, random_actions(batch.action_mask[some], rng))

    def step_once() -> float:
        actions = random_actions(batch.action_mask, rng)
        started = time.perf_counter()
        batch.step(actions)
        return time.perf_counter() - started

    return lambda seconds: timed_steps(games, seconds, step_once)


def vector_env(players: int, opponents: str, games: int = 1024) -> Measurement:
    """`MarrakechVectorEnv.step` alone, in decisions of the learner."""
    env = gymnasium.make_vec("Marrakech-v0", games, num_players=players, opponents=opponents)
    rng = np.random.default_rng(0)
    masks = env.reset(seed=0)[1]["action_mask"]

    def step_once() -> float:
        nonlocal masks
        actions = random_actions(masks, rng)
        started = time.perf_counter()
        masks = env.step(actions)[4]["action_mask"]
        return time.perf_counter() - started

    for _ in range(GAME_LENGTH // players):
        step_once()
    return lambda seconds: timed_steps(games, seconds, step_once)


def single_env(players: int) -> Measurement:
    """The single Gymnasium environment, the draw of the action included."""
    env = gymnasium.make("Marrakech-v0", num_players=players, disable_env_checker=True)
    rng = np.random.default_rng(0)

    def measure(seconds: float) -> float:
        steps, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            _, info = env.reset(seed=steps)
            over = False
            while not over:
                legal = np.flatnonzero(info["action_mask"])
                _, _, over, _, info = env.step(legal[int(rng.random() * len(legal))])
                steps += 1
        return steps / (time.perf_counter() - started)

    return measure


def play_aec(env: Any, seed: int, rng: np.random.Generator) -> int:
    """One game in the AEC loop: agent_iter, last, a uniform legal action by flatnonzero, step.

    Returns:
        How many decisions it had.
    """
    steps = 0
    env.reset(seed=seed)
    for _ in env.agent_iter():
        observation, _, over, _, _ = env.last()
        if over:
            env.step(None)
            continue
        legal = np.flatnonzero(observation["action_mask"])
        env.step(legal[int(rng.random() * len(legal))])
        steps += 1
    return steps


def aec(env: Any) -> Measurement:
    """The AEC loop, in decisions a second."""
    rng = np.random.default_rng(0)

    def measure(seconds: float) -> float:
        steps, games, started = 0, 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            steps += play_aec(env, games, rng)
            games += 1
        return steps / (time.perf_counter() - started)

    return measure


def aec_ratio(env: Any, other: Any) -> Measurement:
    """How many times the decisions of another environment one takes in the AEC loop.

    They play in turn, a game each, and the median game counts: a machine may change its pace by
    half from one second to the next, and then two measurements do not belong together.
    """
    rng = np.random.default_rng(0)

    def timed(played: Any, seed: int) -> float:
        started = time.perf_counter()
        steps = play_aec(played, seed, rng)
        return (time.perf_counter() - started) / steps

    def measure(seconds: float) -> float:
        ratios: list[float] = []
        until = time.perf_counter() + 2 * seconds
        while not ratios or time.perf_counter() < until:
            seed = len(ratios)
            ratios.append(timed(other, seed) / timed(env, seed))
        return statistics.median(ratios)

    return measure


class TrivialEnv(AECEnv[str, dict[str, NDArray[np.int8]], int]):
    """An AEC environment without rules: a constant observation, turns that go round."""

    metadata: dict[str, Any] = {"name": "trivial"}  # noqa: RUF012 - as PettingZoo declares it

    def __init__(self, players: int) -> None:
        """Makes the agents."""
        self.possible_agents = [f"player_{seat}" for seat in range(players)]
        space = Dict({"observation": MultiBinary(49), "action_mask": MultiBinary(NUM_ACTIONS)})
        self.observation_spaces = dict.fromkeys(self.possible_agents, space)
        self.action_spaces = dict.fromkeys(self.possible_agents, Discrete(NUM_ACTIONS))
        self._seen = {
            "observation": np.zeros(49, np.int8),
            "action_mask": np.ones(NUM_ACTIONS, np.int8),
        }

    def reset(self, seed: int | None = None, options: dict[str, Any] | None = None) -> None:
        """Starts a game."""
        self.agents = self.possible_agents[:]
        self.rewards = dict.fromkeys(self.agents, 0.0)
        self._cumulative_rewards = dict.fromkeys(self.agents, 0.0)
        self.terminations = dict.fromkeys(self.agents, False)
        self.truncations = dict.fromkeys(self.agents, False)
        self.infos = {agent: {} for agent in self.agents}
        self.agent_selection = self.agents[0]
        self._steps = 0

    def observe(self, agent: str) -> dict[str, NDArray[np.int8]]:
        """The constant observation."""
        return self._seen

    def step(self, action: int | None) -> None:
        """Passes the turn on."""
        agent = self.agent_selection
        if self.terminations[agent]:
            self._was_dead_step(action)
            return
        self._cumulative_rewards[agent] = 0.0
        self._steps += 1
        self.agent_selection = self.agents[self._steps % len(self.agents)]
        if self._steps == GAME_LENGTH:
            self.terminations = dict.fromkeys(self.agents, True)
        self._accumulate_rewards()


def training_share(players: int) -> Measurement:
    """The share of the wall time of training by `train.py`'s defaults that its SB3 VecEnv takes."""
    from stable_baselines3.common.logger import Logger

    from marrakech_agents.training.ppo_learner import PPOLearner, PPOSettings
    from marrakech_env.sb3 import MarrakechVecEnv

    learner = PPOLearner(players, "official", 0, PPOSettings())
    learner.prepare(Logger(None, []))
    learner.advance(0.0, ())
    plain = {name: getattr(MarrakechVecEnv, name) for name in ("step_wait", "action_masks")}

    def measure(_: float) -> float:
        inside = 0.0

        def timed(method: Callable[..., Any]) -> Callable[..., Any]:
            def call(*args: Any, **keywords: Any) -> Any:
                nonlocal inside
                started = time.perf_counter()
                result = method(*args, **keywords)
                inside += time.perf_counter() - started
                return result

            return call

        try:
            for name, method in plain.items():
                setattr(MarrakechVecEnv, name, timed(method))
            started = time.perf_counter()
            learner.advance(0.0, ())
            return inside / (time.perf_counter() - started)
        finally:
            for name, method in plain.items():
                setattr(MarrakechVecEnv, name, method)

    return measure


def _play_alone(job: tuple[float, int]) -> float:
    """Decisions a second of one process."""
    seconds, players = job
    batch, rng, steps = Batch(1024, players), np.random.default_rng(0), 0
    actions = random_actions(batch.action_mask, rng)
    batch.step(actions)
    started = time.perf_counter()
    while time.perf_counter() - started < seconds:
        batch.step(random_actions(batch.action_mask, rng))
        steps += 1
    return steps * batch.num_games / (time.perf_counter() - started)


def two_processes(players: int) -> Measurement:
    """How many times the work of one process two do, each with 1024 games of its own."""
    context = multiprocessing.get_context("spawn")

    def measure(seconds: float) -> float:
        with context.Pool(2) as pool:
            pool.map(_play_alone, [(0.1, players)] * 2, chunksize=1)  # both have loaded kernels
            one = pool.map(_play_alone, [(2 * seconds, players)])
            two = pool.map(_play_alone, [(2 * seconds, players)] * 2, chunksize=1)
        return sum(two) / sum(one)

    return measure


def first_step(cold: bool) -> Measurement:
    """Seconds of a new process that imports the package and takes one step."""

    def measure(_: float) -> float:
        code = "import marrakech_env.batch as b; b.Batch(1).step([1])"
        with tempfile.TemporaryDirectory() as empty:
            cache = {"NUMBA_CACHE_DIR": empty} if cold else {}
            started = time.perf_counter()
            subprocess.run(
                [sys.executable, "-c", code],
                check=True,
                env={**os.environ, **cache},
                stderr=subprocess.DEVNULL,
            )
            return time.perf_counter() - started

    return measure


def resident(_: float) -> float:
    """Megabytes of memory of a new process after `import marrakech_env.batch`; on Linux only."""
    code = "import marrakech_env.batch; print(open('/proc/self/status').read())"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("VmRSS:"))
    return int(line.split()[1]) * 1024 / 1e6
