"""The options of the arena's command line."""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final, Literal

import tyro

from marrakech_env.arena.luck import DEFAULT_BASELINE

File = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]

GAMES, ENDGAMES, LEADERBOARD = "games", "--endgames", "--leaderboard"
USES: Final = {
    GAMES: "field players rules games tables luck_adjusted baseline json csv plot",
    ENDGAMES: "players json",
    LEADERBOARD: "baseline budget out against",
}
"""The options of each use of the command; `agents` and `seed` belong to all."""


@dataclass
class Config:
    """Measure agents against each other and print how strong they are.

    With two players every two agents meet. With three or four, one agent sits among copies of
    another, for every ordered pair. A deal is played once for every seat rotation, with the same
    dice and rug colours.
    """

    agents: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="AGENT...")]
    """Agents to measure: a name (random, greedy, expectimax, ...), the path of a trained model, a
    file my_agent.py with `act` in it, my_agent.py:NAME or module:NAME. Files and modules are
    run."""
    field: str = ""
    """Opponents, joined by commas. The agents then meet these and not each other."""
    players: int = 2
    """Number of players: 2, 3 or 4."""
    rules: str = "official"
    """A preset (official, boardgamearena, comp1110), also with options: official;money=20."""
    games: int = 2000
    """Games for each pairing, rounded up to whole deals of as many games as players."""
    tables: Literal["copies", "mixed"] = "copies"
    """copies: one agent among copies of its opponent. mixed: all agents at a table differ, in
    every combination, and an agent's result is its mean over all its tables."""
    seed: int = 0
    """Seed of the dice and of the agents: the same command prints the same win shares."""
    luck_adjusted: bool = False
    """Also report win shares and margins without the luck of the dice: the same on average, with
    much smaller intervals."""
    baseline: str = DEFAULT_BASELINE
    """What measures that luck: any agent with a method `evaluate`."""
    endgames: bool = False
    """Instead of games, let the agents decide in late positions whose true values are known."""
    leaderboard: bool = False
    """Measure all agents that are known by name, and the given ones, with 2, 3 and 4 players.
    Writes leaderboard.md and leaderboard.json."""
    budget: float = 60
    """Minutes for the leaderboard: first the late positions of all agents, then games. Compiling
    before the first game does not count."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Folder of the leaderboard: docs where that exists, else the current folder."""
    against: File = None
    """An earlier leaderboard.json, whose ratings are held fixed. The given agents are rated
    against its entries. Writes leaderboard-against.md and .json."""
    json: File = None
    """File to write the result to as JSON."""
    csv: File = None
    """File to write one line for each pairing to."""
    plot: File = None
    """File to draw the win shares to, for example result.png."""


def checked_use(config: Config) -> str:
    """Return what the command does; ValueError where an option does not belong to that."""
    if config.endgames and config.leaderboard:
        raise ValueError("--endgames and --leaderboard are two commands; give one of them")
    use = ENDGAMES if config.endgames else LEADERBOARD if config.leaderboard else GAMES
    usual = Config(())
    for option in vars(config):
        homes = [home for home, options in USES.items() if option in options.split()]
        if homes and use not in homes and getattr(config, option) != getattr(usual, option):
            advice = f"leave it out with {use}" if use != GAMES else f"add {homes[0]}"
            raise ValueError(
                f"--{option.replace('_', '-')} is about {' and '.join(homes)}; {advice}"
            )
    if not config.agents and use != LEADERBOARD:
        example = "greedy expectimax" if use == GAMES else f"{use} greedy expectimax"
        raise ValueError(f"no agents given; try: {example} (--help tells more)")
    return use


def leaderboard_command(config: Config) -> str:
    """The command that makes the same leaderboard."""
    words = ["python", "evaluate.py", *config.agents, "--leaderboard"]
    usual = Config(())
    for option in ("budget", "against", "baseline", "seed"):
        if (value := getattr(config, option)) != getattr(usual, option) or option == "budget":
            words += [f"--{option}", f"{value:g}" if option == "budget" else str(value)]
    return shlex.join(words)
