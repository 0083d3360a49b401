"""Random legal play of this package beside that of others, on this machine, on one core.

    pip install open_spiel pgx "pettingzoo[classic]"      whichever of them shall be compared
    python benchmarks/peers.py

Each plays its own game, so the figures say what a learner waits for in that package, not which
code is better. Everything that a loop needs is inside the clock: drawing the actions, chance, and
starting finished games anew. The clock is that of the processor, all threads together, so that
other programs disturb little. Machines drift all the same, so the rows are measured in turn,
several times over, and the median is printed. What is not installed is left out, and the table
says so.
"""

from __future__ import annotations

import importlib
import os
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numba
import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table


@dataclass
class Config:
    """Measure random play of several packages side by side."""

    seconds: float = 1.0
    """Seconds of processor time for each measurement."""
    runs: int = 5
    """Measurements of each row; the median counts."""
    games: int = 1024
    """Games side by side, where a package plays many at once."""


@dataclass(frozen=True)
class Row:
    """One way to play.

    Attributes:
        package: Name of the distribution.
        game: What is played, and through which interface.
        module: What has to be importable.
        play: Called with the number of games; yields without end how many decisions it has just
            taken.
    """

    package: str
    game: str
    module: str
    play: Callable[[int], Iterator[int]]


@numba.njit
def draw(masks: Any, actions: Any) -> None:
    """A uniformly random legal action for each game, compiled as that of Pgx is."""
    for i in range(len(masks)):
        left = np.random.randint(masks[i].sum())  # noqa: NPY002 - all that Numba knows
        for action in range(masks.shape[1]):
            if masks[i, action]:
                if left == 0:
                    actions[i] = action
                left -= 1


def play_batch(games: int) -> Iterator[int]:
    """`Batch`: the caller plays every seat."""
    from marrakech_env.batch import Batch

    batch, actions = Batch(games), np.zeros(games, np.int64)
    while True:
        for _ in range(20):
            draw(batch.action_mask, actions)
            batch.step(actions)
        yield 20 * games


def play_vec_env(games: int) -> Iterator[int]:
    """The Stable-Baselines3 environment; the decisions of the opponent inside are not counted."""
    from marrakech_env.sb3 import MarrakechVecEnv

    env, actions = MarrakechVecEnv(games), np.zeros(games, np.int64)
    env.reset()
    while True:
        draw(env.action_masks(), actions)
        env.step(actions)
        yield games


def play_agents(env: Any) -> Iterator[int]:
    """The loop of the PettingZoo documentation."""
    rng = np.random.default_rng(0)
    env.reset(seed=0)
    while True:
        decisions = 0
        for _ in env.agent_iter():
            observation, _, terminated, truncated, _ = env.last()
            if terminated or truncated:
                env.step(None)
            else:
                legal = np.flatnonzero(observation["action_mask"])
                env.step(int(legal[rng.integers(len(legal))]))
                decisions += 1
        env.reset()
        yield decisions


def play_raw_env(games: int) -> Iterator[int]:
    """Our PettingZoo environment."""
    from marrakech_env import raw_env

    return play_agents(raw_env())


def play_connect_four(games: int) -> Iterator[int]:
    """PettingZoo's own game, without its wrappers."""
    return play_agents(importlib.import_module("pettingzoo.classic.connect_four_v3").raw_env())


def play_connect_four_wrapped(games: int) -> Iterator[int]:
    """PettingZoo's own game, as its documentation makes it."""
    return play_agents(importlib.import_module("pettingzoo.classic.connect_four_v3").env())


def play_open_spiel(name: str) -> Callable[[int], Iterator[int]]:
    """A game of OpenSpiel from Python; moves of chance are not counted."""

    def play(games: int) -> Iterator[int]:
        game = importlib.import_module("pyspiel").load_game(name)
        rng = np.random.default_rng(0)
        while True:
            state, decisions = game.new_initial_state(), 0
            while not state.is_terminal():
                if state.is_chance_node():
                    outcomes, chances = zip(*state.chance_outcomes(), strict=True)
                    state.apply_action(rng.choice(outcomes, p=chances))
                else:
                    legal = state.legal_actions()
                    state.apply_action(legal[rng.integers(len(legal))])
                    decisions += 1
            yield decisions

    return play


def play_pgx(name: str) -> Callable[[int], Iterator[int]]:
    """A game of Pgx, compiled by JAX for the processor."""

    def play(games: int) -> Iterator[int]:
        jax = importlib.import_module("jax")
        pgx = importlib.import_module("pgx")
        env = pgx.make(name)
        step_one = importlib.import_module("pgx.experimental.wrappers").auto_reset(
            env.step, env.init
        )

        def step(state: Any, key: Any) -> tuple[Any, Any]:
            key, for_actions, for_steps = jax.random.split(key, 3)
            logits = jax.numpy.where(state.legal_action_mask, 0.0, -jax.numpy.inf)
            actions = jax.random.categorical(for_actions, logits, axis=-1)
            return jax.vmap(step_one)(state, actions, jax.random.split(for_steps, games)), key

        step = jax.jit(step)
        key = jax.random.PRNGKey(0)
        state = jax.jit(jax.vmap(env.init))(jax.random.split(key, games))
        while True:
            state, key = step(state, key)
            state.current_player.block_until_ready()
            yield games

    return play


ROWS = (
    Row("marrakech-env", "Marrakech, Batch", "marrakech_env", play_batch),
    Row("marrakech-env", "Marrakech, VecEnv for SB3", "stable_baselines3", play_vec_env),
    Row("marrakech-env", "Marrakech, raw_env", "marrakech_env", play_raw_env),
    Row("pgx", "backgammon, jitted and vmapped", "pgx", play_pgx("backgammon")),
    Row("pgx", "connect four, jitted and vmapped", "pgx", play_pgx("connect_four")),
    Row("open_spiel", "backgammon, one state", "pyspiel", play_open_spiel("backgammon")),
    Row("open_spiel", "connect four, one state", "pyspiel", play_open_spiel("connect_four")),
    Row("pettingzoo", "connect four, raw_env", "pettingzoo.classic", play_connect_four),
    Row("pettingzoo", "connect four, env", "pettingzoo.classic", play_connect_four_wrapped),
)


def started(row: Row, games: int) -> Iterator[int] | Exception:
    """A row that has played its first decisions, so that all is compiled; or why it cannot."""
    try:
        importlib.import_module(row.module)
        player = row.play(games)
        next(player)
    except (ImportError, AttributeError) as error:  # PettingZoo's answer to a missing game
        return error
    return player


def measured(player: Iterator[int], seconds: float) -> float:
    """Decisions in a second of the processor."""
    begin, decisions = time.process_time(), 0
    while (spent := time.process_time() - begin) < seconds:
        decisions += next(player)
    return decisions / spent


def version_of(package: str) -> str:
    """The installed version of a package."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def main(config: Config) -> None:
    """Measures all rows in turn and prints the table."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})  # one core for everybody
    players = {row: started(row, config.games) for row in ROWS}
    found: dict[Row, list[float]] = {row: [] for row in ROWS}
    for _ in track(range(config.runs), "measuring", transient=True):
        for row, player in players.items():
            if not isinstance(player, Exception):
                found[row].append(measured(player, config.seconds))
    table = Table(title="Random legal play, each package its own game")
    for column in ("package", "version", "game and interface"):
        table.add_column(column)
    table.add_column("decisions a second of one core", justify="right")
    for row, player in players.items():
        speed = (
            f"left out: {player}"
            if isinstance(player, Exception)
            else f"{statistics.median(found[row]):,.0f}"
        )
        table.add_row(row.package, version_of(row.package), row.game, speed)
    console = Console()
    console.print(table)
    console.print(f"{config.games} games side by side in Batch, VecEnv and Pgx, one elsewhere.")


if __name__ == "__main__":
    main(tyro.cli(Config))
