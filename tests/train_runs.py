"""Small runs of train.py, in this process and in others."""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import sys
from pathlib import Path

import pytest

for package in ("sb3_contrib", "tyro", "rich", "matplotlib", "tensorboard"):
    pytest.importorskip(package)

ROOT = Path(__file__).parents[1]
QUICK = "--evaluations 4 --evaluation-deals 2 --final-deals 4 --checkpoint-minutes 0.001".split()
SMALL = [
    *"--num-envs 16 --num-steps 32 --batch-size 128 --epochs 1".split(),
    *"--hidden 16 --summary 16 --value-hidden 16".split(),
    *QUICK,
]
VALUE = ["--algorithm", "value", *QUICK]
PATIENCE = 600
"""Seconds to wait for what takes a few, or a minute where kernels are compiled, if the machine is
idle."""


def command(folder: Path, *arguments: str) -> list[str]:
    """The words that start train.py in a process of its own."""
    return [sys.executable, str(ROOT / "train.py"), "--folder", str(folder), *arguments]


def train(*arguments: str) -> tuple[int, str, str]:
    """Run train.py in this process: exit code, output and messages."""
    from marrakech_agents.training.command import main

    output, messages = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(messages):
        try:
            code = main(arguments)
        except SystemExit as end:  # of tyro
            code = end.code
    return code, output.getvalue(), messages.getvalue()


def scripted(code: str, *arguments: str) -> list[str]:
    """The words that start train.py in a process of its own, after some code."""
    start = "\nfrom marrakech_agents.training.__main__ import run\nsys.exit(run())"
    return [sys.executable, "-c", code + start, *arguments]


def steps_of(folder: Path) -> list[int]:
    with open(folder / "metrics.csv", newline="") as file:
        return [int(row["steps"]) for row in csv.DictReader(file)]


def versions_of(folder: Path) -> list[int]:
    return sorted(int(version.name) for version in (folder / "past").iterdir())


def logged_steps(folder: Path, name: str) -> list[int]:
    """The steps of a curve as TensorBoard shows them."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    log = EventAccumulator(str(folder / "tensorboard")).Reload()
    return [event.step for event in log.Scalars(name)]


def sha256_of(folder: Path) -> str:
    return json.loads((folder / "model.json").read_text())["sha256"]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}
