"""Makes the sets of solved late positions, `marrakech_env/arena/endgames/*.tsv.gz`.

    python benchmarks/make_endgames.py                   all three sets
    python benchmarks/make_endgames.py --players 2

Games are played by greedy and expectimax in random seats; one decision in twenty is a random one.
A position is taken where a wanted number of turns is left, at most one from a game, and kept where
its actions are not all worth the same.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import tyro
from rich.progress import track

from marrakech_env import solver
from marrakech_env.agent import load_agent
from marrakech_env.arena.endgames import SAME
from marrakech_env.batch import Batch
from marrakech_env.notation import format_position
from marrakech_env.state import State

AGENTS = ("greedy", "expectimax")
RANDOM_SHARE = 0.05
GAMES = 256


@dataclass
class Config:
    """Make the sets of solved late positions."""

    players: tuple[int, ...] = (2, 3, 4)
    """Numbers of players."""
    two: int = 800
    """Positions with two turns left in all."""
    three: int = 300
    """Positions with three turns left in all."""
    seed: int = 0
    """Seed of games and choices."""
    folder: Path = field(
        default_factory=lambda: Path(__file__).parent.parent / "marrakech_env/arena/endgames"
    )
    """Where the files go."""


def late_positions(players: int, turns: int, seed: int) -> Iterator[State]:
    """Positions with so many turns left, one from a game, at a random decision of that turn."""
    batch = Batch(GAMES, players, seed=seed)
    rng = np.random.default_rng([seed, players, turns])
    agents = [load_agent(name, players) for name in AGENTS]
    seated = rng.integers(len(agents), size=(GAMES, players))
    to_lay = rng.random(GAMES) < 0.5
    taken = np.zeros(GAMES, np.bool_)
    while True:
        movers = seated[np.arange(GAMES), batch.states["player"]]
        chosen = np.stack([agent.act(batch.states, rng) for agent in agents])
        actions = chosen[movers, np.arange(GAMES)]
        random = (batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1)
        batch.step(np.where(rng.random(GAMES) < RANDOM_SHARE, random, actions))
        for game in np.flatnonzero(batch.done):
            seated[game] = rng.integers(len(agents), size=players)
            to_lay[game], taken[game] = rng.random() < 0.5, False
        late = batch.states["rugs"].sum(1) == turns
        wanted = late & ~taken & ((batch.states["phase"] == 1) == to_lay)
        taken |= wanted
        yield from batch.states[wanted].copy()


def solved_lines(players: int, turns: int, count: int, seed: int) -> list[str]:
    """Lines of the file, `count` of them."""
    lines: list[str] = []
    positions = late_positions(players, turns, seed)
    for _ in track(range(count), f"{players} players, {turns} turns left"):
        while True:
            state = next(positions)
            solution = solver.solve(state)
            shares = solution.shares[:, int(state["player"])]
            if np.ptp(shares) > SAME:
                break
        values = zip(solution.actions, shares, strict=True)
        words = " ".join(f"{action}:{share:.6f}" for action, share in values)
        lines.append(f"{format_position(state)}\t{words}")
    return lines


def main(config: Config) -> None:
    """Makes the files."""
    config.folder.mkdir(parents=True, exist_ok=True)
    for players in config.players:
        lines = []
        for turns, count in ((2, config.two), (3, config.three)):
            lines += solved_lines(players, turns, count, config.seed)
        text = "\n".join(lines) + "\n"
        path = config.folder / f"{players}-players.tsv.gz"
        path.write_bytes(gzip.compress(text.encode("ascii"), mtime=0))


if __name__ == "__main__":
    main(tyro.cli(Config))
