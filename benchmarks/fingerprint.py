"""Print one hash for each thing that the code computes, to compare two versions of the package.

    python benchmarks/fingerprint.py > before.txt      in one checkout
    python benchmarks/fingerprint.py > after.txt       in the other; then: diff before.txt after.txt

Covers actions, analyses and value estimates of every shipped agent, all observations, tolls and
masks on positions of random play, whole games of every agent, and one short training.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from marrakech_env import rules
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.notation import format_position
from marrakech_env.observation import encode

AGENTS = ("random", "greedy", "expectimax", "ppo", "value", "champion")
PRESETS = ("official", "boardgamearena;steering=end", "comp1110;money=6")
ROOT = Path(__file__).resolve().parents[1]


def digest(*parts: Any) -> str:
    """A short hash of arrays and values."""
    sha = hashlib.sha256()
    for part in parts:
        if isinstance(part, np.ndarray):
            sha.update(f"{part.dtype} {part.shape}".encode())
            sha.update(np.ascontiguousarray(part).tobytes())
        else:
            sha.update(repr(part).encode())
    return sha.hexdigest()[:16]


def positions(players: int, preset: str, count: int) -> Any:
    """STATE (count,): positions of random play, spread over the whole game."""
    batch, rng = Batch(20, players, preset, seed=11), np.random.default_rng(5)
    found: list[Any] = []
    while sum(map(len, found)) < 20 * count:
        batch.step((batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1))
        found.append(batch.states.copy())
    return np.concatenate(found)[:: len(found) * 20 // count][:count].copy()


def rows(agent: Any, state: Any) -> list[tuple[Any, ...]]:
    """What `analyse` says, without names."""
    table = agent.analyse(state)
    return [(r.action, getattr(r, "q", getattr(r, "worth", None)), r.margin, r.win) for r in table]


def of_positions(players: int, preset: str, count: int) -> Iterator[tuple[str, str]]:
    """Hashes of everything that depends on a position alone."""
    states = positions(players, preset, count)
    yield "positions", digest([format_position(state) for state in states])
    yield "masks", digest(rules.action_mask(states))
    yield "tolls", digest(rules.tolls(states))
    for form in ("planes", "flat", "features"):
        yield form, digest(*(encode(states, form, seat) for seat in range(players)))
    for name in AGENTS:
        agent = load_agent(name)
        yield f"{name} actions", digest(agent.act(states, np.random.default_rng(3)))
        if hasattr(agent, "analyse"):
            few = states[:: 10 if name == "champion" else 1]
            yield f"{name} analyse", digest([rows(agent, state) for state in few])
        if hasattr(agent, "evaluate"):
            yield f"{name} evaluate", digest(*agent.evaluate(states))


def of_games(players: int, games: int) -> Iterator[tuple[str, str]]:
    """Hashes of whole games in which an agent plays all seats."""
    for name in AGENTS:
        agent, rng = load_agent(name), np.random.default_rng(1)
        batch = Batch(max(2, games // 20 if name == "champion" else games), players, seed=2)
        sha = []
        over = np.zeros(batch.num_games, bool)
        while not over.all():
            actions = agent.act(batch.states, rng)
            batch.step(actions)
            sha.append(digest(actions, batch.done, batch.final_scores))
            over |= batch.done
        yield f"{name} games", digest(sha)


def of_training(games: int) -> Iterator[tuple[str, str]]:
    """The weights after a training of the value network."""
    with tempfile.TemporaryDirectory() as folder:
        options = f"--algorithm value --games {games} --evaluations 0 --final-deals 1 --name x"
        command = [sys.executable, "train.py", *options.split(), "--folder", folder]
        subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
        model = json.loads((Path(folder) / "x" / "model.json").read_text())
        yield f"training of {games} games", model["sha256"]


def main() -> None:
    """Prints the hashes."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--positions", type=int, default=300, help="for each player count and preset"
    )
    parser.add_argument("--games", type=int, default=200, help="for each agent and player count")
    options = parser.parse_args()
    for players in (2, 3, 4):
        for preset in PRESETS:
            for name, value in of_positions(players, preset, options.positions):
                print(players, preset, name, value, flush=True)
        for name, value in of_games(players, options.games):
            print(players, name, value, flush=True)
    for name, value in of_training(64):
        print(name, value)


if __name__ == "__main__":
    main()
