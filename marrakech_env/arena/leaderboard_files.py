"""The leaderboard as a page and as JSON, and the ladder that is read from the JSON.

Legend: `P` players.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec

from marrakech_env.arena.interval import Estimate
from marrakech_env.arena.leaderboard import PLAYER_COUNTS, RULES, Ladder
from marrakech_env.arena.report import as_text, json_values, readable
from marrakech_env.arena.result import Row, Standings, share_matrix

Kind = Literal["marrakech-env leaderboard"]
KIND: Final[Kind] = "marrakech-env leaderboard"
PACKAGES: Final = ("marrakech-env", "numpy", "numba")
MOST_POINTS: Final = 10_000
"""Highest rating on a ladder; a float still holds its odds."""

NOTES: Final = """\
- **rating**: 400 points more are odds of 10 to 1 in a two-player game; {scale}.
- **win share**: of one agent against each other agent; with 3 and 4 players it sits alone among
  copies of the other. The mean counts every opponent alike. Even play is {evens}.
- **luck-adjusted**: the win share without the luck of the dice, as `{baseline}` sees it: the same
  on average, known better.
- **regret**: what its decisions lose, in percentage points of the win share, in solved positions 2
  and 3 turns before the end of the game.
- **ms**: milliseconds a decision, many decided at once on one core. **weights**: learned or given
  numbers, for all numbers of players.

The rows are in the order of the luck-adjusted win share, which is known better than the rating. All
intervals (±) are 95 %, by deal; `docs/evaluation.md` says how they are made."""

DOUBLES: Final = (
    "An agent that is measured and held fixed as well has `#2` behind its name where it is fixed."
)

ADDING: Final = """\
An agent gets its row where it is named in the command: `python evaluate.py my_agent.py:act
--leaderboard`; a trained model by its path. One that a package offers as an entry point of the
group `marrakech_env.agents` plays always. A name carries the version of the agent (its attribute
`version`, 1 without one), which must grow whenever the agent plays differently.

To measure an agent against this leaderboard as it stands, so that its rating can be compared with
others measured so:
`python evaluate.py my_agent.py:act --leaderboard --against docs/leaderboard.json`.
The ratings of the entries are then held fixed."""


def _versions() -> dict[str, str]:
    versions = {"python": platform.python_version()}
    for package in PACKAGES:
        try:
            versions[package] = version(package)
        except PackageNotFoundError:  # code that runs from its folder
            versions[package] = "not installed"
    return versions


def _machine() -> str:
    processor = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(errors="replace").splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}"


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")


@dataclass(frozen=True)
class Circumstances:
    """How a leaderboard was made.

    Attributes:
        command: The command that makes it.
        minutes: The budget.
        seed: Seed of dice and agents.
        baseline: What measured luck.
        complete: False where it was stopped early.
        date: When it was ready, in UTC.
        machine: Processor, number of its cores, system.
        versions: The versions of Python and packages, by name.
    """

    command: str
    minutes: float
    seed: int
    baseline: str
    complete: bool
    date: str = field(default_factory=_now)
    machine: str = field(default_factory=_machine)
    versions: Mapping[str, str] = field(default_factory=_versions)


class _Rating(msgspec.Struct):
    value: Annotated[float, msgspec.Meta(ge=-MOST_POINTS, le=MOST_POINTS)]


class _Entry(msgspec.Struct):
    name: Annotated[str, msgspec.Meta(min_length=1)]
    rating: _Rating


class _Board(msgspec.Struct):
    agents: Annotated[list[_Entry], msgspec.Meta(min_length=1)]


class _Leaderboard(msgspec.Struct):
    """What a ladder is read from; the file holds more."""

    kind: Kind
    players: Annotated[dict[Literal["2", "3", "4"], _Board], msgspec.Meta(min_length=1)]


def read_ladder(path: Path) -> Ladder:
    """Return the ratings of a leaderboard that was written as JSON.

    Raises:
        ValueError: The file cannot be read, is no leaderboard, or has entries without a rating;
            names the file and what is wrong.
    """
    try:
        board = msgspec.json.decode(path.read_bytes(), type=_Leaderboard)
        ladder: dict[int, dict[str, float]] = {}
        for players, standings in board.players.items():
            ratings = {entry.name: entry.rating.value for entry in standings.agents}
            if len(ratings) < len(standings.agents):
                raise ValueError(f"with {players} players, a name occurs twice")
            ladder[int(players)] = ratings
        return ladder
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{path} is no leaderboard with ratings: {error}; wanted: the file leaderboard.json "
            "beside the page"
        ) from error


# ------------------------------------------------------------------------------------------ JSON


def as_json(
    standings: Sequence[Standings], made: Circumstances, ladder: Ladder | None = None
) -> str:
    """Return everything as JSON: shares 0..1, points, milliseconds; null where nothing is known.

    Args:
        standings: For each number of players.
        made: How they were made.
        ladder: The fixed ratings, if any.
    """
    data = {
        "kind": KIND,
        **asdict(made),
        "rules": RULES,
        "ladder": ladder,
        "players": {
            board.num_players: {
                "agents": [_row_as_dict(row) for row in board.rows],
                "pairings": board.pairings,
                "left_out": board.left_out,
            }
            for board in standings
        },
    }
    return as_text(data)


def _row_as_dict(row: Row) -> dict[str, Any]:
    endgames = {
        result.turns: {
            "regret": result.regret,
            "optimal": result.optimal,
            "positions": result.positions,
        }
        for result in row.endgames
    }
    return {**json_values(row), "endgames": json_values(endgames)}


# ------------------------------------------------------------------------------------- Markdown


def as_markdown(
    standings: Sequence[Standings], made: Circumstances, ladder: Ladder | None = None
) -> str:
    """Return the page; see `as_json` for the arguments."""
    versions = ", ".join(f"{name} {number}" for name, number in made.versions.items())
    minutes = f"{made.minutes:g} minute{'' if made.minutes == 1 else 's'}"
    minutes += "" if made.complete else ", stopped early"
    evens = ", ".join(f"{100 / players:.1f} %" for players in PLAYER_COUNTS)
    scale = "the average is 0" if ladder is None else "those it is measured against are fixed"
    parts = [
        "# Leaderboard",
        f"Made by `{made.command}` on {made.date}: {minutes}, rules {RULES}, seed {made.seed}.\n"
        f"Machine: {made.machine}. Versions: {versions}.",
        NOTES.format(scale=scale, evens=evens, baseline=made.baseline),
    ]
    for board in standings:
        parts.append(f"## {board.num_players} players")
        if board.rows:
            parts += _tables(board, None if ladder is None else ladder[board.num_players])
        reasons = [f"`{name}`: {reason}" for name, reason in board.left_out.items()]
        if reasons:
            parts.append(f"Left out: {'; '.join(reasons)}.")
    return readable("\n\n".join([*parts, "## Adding a row", ADDING]) + "\n")


def _tables(board: Standings, fixed: Mapping[str, float] | None) -> list[str]:
    """The parts of the page about one number of players; `fixed` are the ladder's ratings."""
    parts = []
    if fixed is not None:
        ratings = [f"`{name}` {rating:+.0f}" for name, rating in fixed.items()]
        parts.append(f"Held fixed: {', '.join(ratings)}.")
        if any(row.name in fixed for row in board.rows):
            parts.append(DOUBLES)
    parts.append(_main_table(board))
    copies = "" if board.num_players == 2 else f"{board.num_players - 1} copies of "
    for title, adjusted in (("Win share", False), ("Luck-adjusted win share", True)):
        parts.append(f"{title} in %, of the row against {copies}the column:")
        parts.append(_matrix(board, adjusted))
    return parts


def _main_table(board: Standings) -> str:
    turns = sorted({result.turns for row in board.rows for result in row.endgames})
    head = ["agent", "rating", "win share %", "luck-adjusted %"]
    head += [f"regret, {number} turns" for number in turns] + ["ms", "weights"]
    lines = []
    for row in board.rows:
        regrets = {result.turns: result.regret for result in row.endgames}
        lines.append(
            [
                f"`{row.name}`",
                _told(row.rating, "+.0f"),
                _told(row.win_share, ".1f", 100),
                _told(row.luck_adjusted, ".1f", 100),
                *(_told(regrets.get(number), ".2f", 100) for number in turns),
                "-" if row.ms_per_decision is None else f"{row.ms_per_decision:.2g}",
                "-" if row.num_parameters is None else f"{row.num_parameters:,}",
            ]
        )
    return _table(head, lines)


def _matrix(board: Standings, adjusted: bool) -> str:
    cells = share_matrix(board.pairings, board.num_players, adjusted)
    lines = [
        [
            f"`{row.name}`",
            *(_told(cells.get((row.name, opponent)), ".1f", 100) for opponent in board.opponents),
        ]
        for row in board.rows
    ]
    return _table(["", *(f"`{name}`" for name in board.opponents)], lines)


def _told(estimate: Estimate | None, form: str, scale: float = 1) -> str:
    """A number and half the width of its interval."""
    if estimate is None:
        return "-"
    half = scale * (estimate.high - estimate.low) / 2
    return f"{scale * estimate.value:{form}} ± {half:{form.lstrip('+')}}"


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown with aligned columns, the first one to the left."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    rows = []
    for cells in (head, rule, *lines):
        padded = [cells[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        rows.append(f"| {' | '.join(padded)} |")
    return "\n".join(rows)
