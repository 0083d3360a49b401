"""How fast the environments are: uniformly random legal play on one core, with restarts.

    python benchmarks/speed.py                            all rows, decisions a second
    python benchmarks/speed.py --yardstick ./yardstick    ratios to a C program as well

Machines drift, so each row is measured several times in turn with the others and the median is
printed. Actions are drawn outside the clock wherever the row is about `Batch.step` alone. The C
program, if given, is called as `yardstick PLAYERS RUNS SECONDS` and prints a table with the rows
"+mask bytes" and "+obs uint8" for 1, 64, 1024 and 8192 games, in million decisions a second.
"""

from __future__ import annotations

import json
import re
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import tyro
from rich.console import Console
from rich.progress import track
from rich.table import Table

import marrakech_env
from marrakech_env.batch import Batch

YARDSTICK_GAMES = (1, 64, 1024, 8192)


@dataclass
class Config:
    """Measure how fast the environments are."""

    players: int = 4
    """Number of players."""
    seconds: float = 0.3
    """Seconds of each measurement."""
    runs: int = 5
    """Measurements of each row; the median counts."""
    yardstick: Path | None = None
    """A compiled C program to compare with."""
    json: Path | None = None
    """File to write the figures to."""


@dataclass(frozen=True)
class Row:
    """One kind of work.

    Attributes:
        name: What is done.
        measure: Called with seconds; returns decisions a second.
        yardstick: Row and number of games of the C program that it compares with.
    """

    name: str
    measure: Callable[[float], float]
    yardstick: tuple[str, int] | None = None


def random_actions(mask: np.ndarray[Any, Any], rng: np.random.Generator) -> np.ndarray[Any, Any]:
    """A uniformly random legal action for each game."""
    return np.asarray((mask * rng.random(mask.shape, np.float32)).argmax(1))


def batch_step(games: int, players: int, observation: str | None) -> Callable[[float], float]:
    """`Batch.step` alone, actions drawn outside the clock."""
    batch, rng = Batch(games, players, observation=observation), np.random.default_rng(0)
    for _ in range(100):
        batch.step(random_actions(batch.action_mask, rng))

    def measure(seconds: float) -> float:
        spent, steps = 0.0, 0
        while spent < seconds:
            actions = random_actions(batch.action_mask, rng)
            started = time.perf_counter()
            batch.step(actions)
            spent += time.perf_counter() - started
            steps += 1
        return steps * games / spent

    return measure


def vector_env(players: int, opponents: str, games: int = 1024) -> Callable[[float], float]:
    """`MarrakechVectorEnv.step` alone, in decisions of the learner."""
    env = gymnasium.make_vec("Marrakech-v0", games, num_players=players, opponents=opponents)
    rng = np.random.default_rng(0)
    masks = env.reset(seed=0)[1]["action_mask"]

    def measure(seconds: float) -> float:
        nonlocal masks
        spent, steps = 0.0, 0
        while spent < seconds:
            actions = random_actions(masks, rng)
            started = time.perf_counter()
            masks = env.step(actions)[4]["action_mask"]
            spent += time.perf_counter() - started
            steps += 1
        return steps * games / spent

    return measure


def single_env(players: int) -> Callable[[float], float]:
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


def aec(make: Callable[..., Any], players: int) -> Callable[[float], float]:
    """The AEC loop: agent_iter, last, a uniform legal action, step."""
    env, rng = make(num_players=players), np.random.default_rng(0)

    def measure(seconds: float) -> float:
        steps, started = 0, time.perf_counter()
        while time.perf_counter() - started < seconds:
            env.reset(seed=steps)
            for _ in env.agent_iter():
                observation, _, over, _, _ = env.last()
                if over:
                    env.step(None)
                    continue
                legal = np.flatnonzero(observation["action_mask"])
                env.step(legal[int(rng.random() * len(legal))])
                steps += 1
        return steps / (time.perf_counter() - started)

    return measure


def first_step(_: float) -> float:
    """One over the seconds of a new process that imports the package and takes one step."""
    code = "import marrakech_env.batch as b; b.Batch(1).step([1])"
    started = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return 1 / (time.perf_counter() - started)


def rows(players: int) -> list[Row]:
    """All kinds of work."""
    mask, planes = "+mask bytes", "+obs uint8"
    found = [
        Row(f"Batch.step, {n} games", batch_step(n, players, None), (mask, n) if n < 9000 else None)
        for n in (64, 1024, 8192, 65536)
    ]
    return [
        *found,
        Row("... with planes, 1024", batch_step(1024, players, "planes"), (planes, 1024)),
        Row("... with flat, 1024", batch_step(1024, players, "flat")),
        Row("... with features, 1024", batch_step(1024, players, "features")),
        Row("VectorEnv, 1024, random inside", vector_env(players, "random")),
        Row("VectorEnv, 1024, greedy inside", vector_env(players, "greedy")),
        Row("single Env", single_env(players)),
        Row("raw_env, AEC loop", aec(marrakech_env.raw_env, players)),
        Row("env, AEC loop", aec(marrakech_env.env, players)),
        Row("import and first step, a second", first_step),
    ]


def run_yardstick(path: Path, config: Config) -> dict[tuple[str, int], float]:
    """Decisions a second of the C program, by row and number of games."""
    command = [str(path.resolve()), str(config.players), "1", str(config.seconds)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        match = re.match(r"(\+?[a-z][a-z0-9+ ]*?)\s{2,}([\d.\s]+)", line)
        if match:
            for games, value in zip(YARDSTICK_GAMES, match[2].split(), strict=False):
                found[match[1].strip(), games] = float(value) * 1e6
    return found


def main(config: Config) -> None:
    """Measures and prints the table."""
    console = Console()
    work = rows(config.players)
    measured: dict[str, list[float]] = {row.name: [] for row in work}
    ruler: dict[tuple[str, int], list[float]] = {}
    for _ in track(range(config.runs), "measuring", console=Console(stderr=True)):
        if config.yardstick is not None:
            for key, value in run_yardstick(config.yardstick, config).items():
                ruler.setdefault(key, []).append(value)
        for row in work:
            measured[row.name].append(row.measure(config.seconds))
    table = Table(title=f"{config.players} players, decisions a second, median of {config.runs}")
    for title in ("work", "decisions/s", "ratio to C"):
        table.add_column(title, justify="left" if title == "work" else "right")
    figures = {}
    for row in work:
        speed = statistics.median(measured[row.name])
        base = statistics.median(ruler.get(row.yardstick, [0.0])) if row.yardstick else 0.0
        figures[row.name] = {"per_second": speed, "ratio": speed / base if base else None}
        cell = f"{speed:,.0f}" if speed > 100 else f"{speed:.2f}"
        table.add_row(row.name, cell, f"{speed / base:.2f}" if base else "")
    console.print(table)
    if config.json is not None:
        config.json.write_text(json.dumps(figures, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(tyro.cli(Config))
