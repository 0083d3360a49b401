"""How fast and how large the environments are: uniformly random legal play, automatic reset.

    python benchmarks/speed.py                            everything but the ratios to C
    python benchmarks/speed.py --yardstick ./yardstick    ratios to a C program as well

Machines drift, so the rows are measured in turn, several times, and the median counts. Actions are
drawn outside the clock wherever a row is about steps alone. The C program, if given, is called as
`yardstick PLAYERS RUNS SECONDS` and prints a table with the rows "+mask bytes" and "+obs uint8" for
1, 64, 1024 and 8192 games, in million decisions a second. `workloads` holds what is measured.
"""

from __future__ import annotations

import json
import os
import platform
import re
import statistics
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numba
import numpy as np
import tyro
import workloads as work
from rich.console import Console
from rich.progress import track
from rich.table import Table

import marrakech_env
from marrakech_env.state import STATE

YARDSTICK_GAMES = (1, 64, 1024, 8192)
BATCHES = (64, 1024, 8192, 65536)


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
    only: str = ""
    """Measure the rows alone whose name contains this text."""
    json: Path | None = None
    """File to write the figures to."""


@dataclass(frozen=True)
class Source:
    """Something that is measured.

    Attributes:
        make: Makes the workload for a number of players.
        runs: How often it is measured at most.
    """

    make: Callable[[int], work.Measurement]
    runs: int = 1000


SOURCES: dict[str, Source] = {
    **{f"batch {n}": Source(partial(work.batch_step, n)) for n in BATCHES},
    "batch of 2 players": Source(lambda _: work.batch_step(1024, 2)),
    "batch of 4 players": Source(lambda _: work.batch_step(1024, 4)),
    "planes": Source(lambda players: work.batch_step(1024, players, "planes")),
    "flat": Source(lambda players: work.batch_step(1024, players, "flat")),
    "features": Source(lambda players: work.batch_step(1024, players, "features")),
    "random inside": Source(lambda players: work.vector_env(players, "random")),
    "greedy inside": Source(lambda players: work.vector_env(players, "greedy")),
    "training": Source(lambda _: work.training_share(2), runs=3),
    "trivial": Source(lambda players: work.aec(work.TrivialEnv(players))),
    "raw_env": Source(lambda players: work.aec(marrakech_env.raw_env(num_players=players))),
    "raw_env beside it": Source(
        lambda players: work.aec_ratio(
            marrakech_env.raw_env(num_players=players), work.TrivialEnv(players)
        )
    ),
    "env": Source(lambda players: work.aec(marrakech_env.env(num_players=players))),
    "single": Source(work.single_env),
    "processes": Source(work.two_processes, runs=3),
    "cached": Source(lambda _: work.first_step(cold=False)),
    "cold": Source(lambda _: work.first_step(cold=True), runs=1),
    "resident": Source(lambda _: work.resident, runs=1),
}

Figures = dict[str, float]
"""Of the sources by name, medians; of the C program by "+row games", the best."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: What is done.
        needs: The sources it is worked out from.
        value: The figure.
        form: How to print it.
        at_least: The figure wanted; in rows that count costs, at most so much.
        aim: The figure aimed at.
        yardstick: Row of the C program; then figures wanted are ratios to it.
        costs: Whether less is better.
    """

    name: str
    needs: tuple[str, ...]
    value: Callable[[Figures], float]
    form: str = "{:,.0f}/s"
    at_least: float | None = None
    aim: float | None = None
    yardstick: str | None = None
    costs: bool = False

    def wanted(self) -> tuple[str, str]:
        """The columns of figures wanted."""
        form = "{:.2f} x C" if self.yardstick else self.form
        least, aim = ("" if v is None else form.format(v) for v in (self.at_least, self.aim))
        return least, aim

    def verdict(self, value: float, ratio: float | None) -> str:
        """Which of the figures wanted is reached."""
        found = ratio if self.yardstick else value
        if found is None or self.at_least is None or self.aim is None:
            return ""
        sign = -1 if self.costs else 1
        if sign * found >= sign * self.aim:
            return "aim"
        return "yes" if sign * found >= sign * self.at_least else "BELOW"


def one(name: str, source: str, form: str = "{:,.0f}/s", *wanted: float, **more: Any) -> Row:
    """A row that shows one source."""
    return Row(name, (source,), lambda f: f[source], form, *wanted, **more)


def quotient(name: str, over: str, under: str, *wanted: float) -> Row:
    """A row that shows a ratio of two sources."""
    return Row(name, (over, under), lambda f: f[over] / f[under], "{:.2f}", *wanted)


def flatness(figures: Figures) -> float:
    """Greatest over least cost of a decision, by number of games."""
    speeds = [figures[f"batch {games}"] for games in BATCHES]
    return max(speeds) / min(speeds)


PER_SECOND = "{:,.0f}/s"
MASK, PLANES = "+mask bytes", "+obs uint8"
ROWS: tuple[Row, ...] = (
    one("Batch.step, 64 games", "batch 64", PER_SECOND, 0.35, 0.5, yardstick=f"{MASK} 64"),
    one("... 1024 games", "batch 1024", PER_SECOND, 0.65, 0.9, yardstick=f"{MASK} 1024"),
    one("... 8192 games", "batch 8192", PER_SECOND, 0.65, 0.9, yardstick=f"{MASK} 8192"),
    one("... 65536 games", "batch 65536"),
    Row(
        "cost of a decision, greatest over least of these",
        tuple(f"batch {games}" for games in BATCHES),
        flatness,
        "{:.2f}",
        1.5,
        1.2,
        costs=True,
    ),
    quotient("2 players against 4, 1024 games", "batch of 2 players", "batch of 4 players", 0.9, 1),
    quotient("two processes against one, 1024 games each", "processes", "unit", 1.8, 1.95),
    one("Batch.step with planes, 1024", "planes", PER_SECOND, 0.5, 0.8, yardstick=f"{PLANES} 1024"),
    one("... with flat, 1024", "flat"),
    one("... with features, 1024", "features", PER_SECOND, 1e6, 3e6),
    one("VectorEnv, 1024, random inside", "random inside", PER_SECOND, 1e6, 1.5e6),
    one("VectorEnv, 1024, greedy inside", "greedy inside", PER_SECOND, 4e5, 6e5),
    one("share of the VecEnv in training", "training", "{:.1%}", 0.1, 0.05, costs=True),
    one("trivial raw AEC environment", "trivial"),
    one("raw_env, AEC loop, ratio to it", "raw_env beside it", "{:.2f}", 0.45, 0.6),
    one("raw_env, AEC loop", "raw_env"),
    one("env, AEC loop", "env", PER_SECOND, 4e4, 6e4),
    one("single Env", "single", PER_SECOND, 4e4, 8e4),
    one("import and first step, cached", "cached", "{:.2f} s", 1.2, 0.8, costs=True),
    one("import and first step, cold", "cold", "{:.1f} s", 8, 5, costs=True),
    Row("a record of states", (), lambda _: STATE.itemsize, "{:.0f} bytes", 96, 80, costs=True),
    one("resident after import", "resident", "{:.0f} MB", 130, 100, costs=True),
)


def run_yardstick(path: Path, config: Config) -> Figures:
    """Decisions a second of the C program."""
    command = [str(path.resolve()), str(config.players), "1", str(config.seconds)]
    text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    found = {}
    for line in text.splitlines():
        match = re.match(r"(\+?[a-z][a-z0-9+ ]*?)\s{2,}([\d.\s]+)", line)
        if match:
            for games, value in zip(YARDSTICK_GAMES, match[2].split(), strict=False):
                found[f"{match[1].strip()} {games}"] = float(value) * 1e6
    return found


def measure(rows: list[Row], config: Config) -> Figures:
    """All that these rows need, measured in turn."""
    needed = {source for row in rows for source in row.needs} - {"unit"}
    workloads = {name: SOURCES[name].make(config.players) for name in SOURCES if name in needed}
    found: dict[str, list[float]] = {}
    best: Figures = {"unit": 1.0}
    for run in track(range(config.runs), "measuring", console=Console(stderr=True)):
        if config.yardstick is not None:
            # It knows no disturbed steps to leave out, so its best run counts.
            for name, value in run_yardstick(config.yardstick, config).items():
                best[name] = max(value, best.get(name, 0.0))
        for name, workload in workloads.items():
            if run < SOURCES[name].runs:
                found.setdefault(name, []).append(workload(config.seconds))
    return {name: statistics.median(values) for name, values in found.items()} | best


def main(config: Config) -> None:
    """Measures and prints the table."""
    rows = [row for row in ROWS if config.only in row.name]
    figures = measure(rows, config)
    table = Table(title=f"{config.players} players, median of {config.runs}")
    for title in ("work", "measured", "ratio to C", "at least", "aim", "reached"):
        table.add_column(title, justify="left" if title == "work" else "right")
    result = {}
    for row in rows:
        value = float(row.value(figures))
        base = figures.get(row.yardstick) if row.yardstick else None
        ratio = value / base if base else None
        result[row.name] = {"value": value, "ratio": ratio}
        table.add_row(
            row.name,
            row.form.format(value),
            "" if ratio is None else f"{ratio:.2f}",
            *row.wanted(),
            row.verdict(value, ratio),
        )
    console = Console(width=None if sys.stdout.isatty() else 120)  # a log folds no names
    console.print(table)
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}"
    console.print(
        f"{date.today()}, {platform.machine()}, {os.cpu_count()} cores, {versions}, "
        f"Numba {numba.__version__}, marrakech-env {marrakech_env.__version__}; "
        f"`{' '.join(['python', *sys.argv])}`; in rows that count costs, at most so much"
    )
    if config.json is not None:
        config.json.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(tyro.cli(Config))
