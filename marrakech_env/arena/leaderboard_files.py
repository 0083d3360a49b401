"""The leaderboard as a page for people and as JSON for programs, and ladders read from that.

Legend: `P` players.
"""

from __future__ import annotations

import json
import os
import platform
import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final

from marrakech_env.arena.interval import Estimate
from marrakech_env.arena.leaderboard import PLAYER_COUNTS, RULES, Ladder
from marrakech_env.arena.report import estimate_as_dict, pairing_as_dict
from marrakech_env.arena.result import Row, Standings, share_matrix

KIND: Final = "marrakech-env leaderboard"
PACKAGES: Final = ("marrakech-env", "numpy", "numba")
MOST_POINTS: Final = 10_000
"""Of a rating on a ladder: far beyond every real one, and odds that a float still holds."""
JSON_NAMES: Final[dict[type, str]] = {dict: "an object", list: "a list", str: "a text"}

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


@dataclass(frozen=True)
class Circumstances:
    """How a leaderboard was made.

    Attributes:
        command: What was typed.
        date: When it was ready, in UTC.
        machine: Processor, number of its cores, system.
        versions: Of Python and packages, by name.
        minutes: The budget.
        seed: Of dice and agents.
        baseline: What luck was measured by.
        complete: False where it was stopped early.
    """

    command: str
    date: str
    machine: str
    versions: Mapping[str, str]
    minutes: float
    seed: int
    baseline: str
    complete: bool


def circumstances(
    command: str, minutes: float, seed: int, baseline: str, complete: bool
) -> Circumstances:
    """The circumstances of this process, now."""
    versions = {"python": platform.python_version()} | {name: version(name) for name in PACKAGES}
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return Circumstances(command, date, _machine(), versions, minutes, seed, baseline, complete)


def read_ladder(path: Path) -> Ladder:
    """The ratings of a leaderboard that was written as JSON.

    Raises:
        ValueError: It cannot be read, is no leaderboard, or has entries without rating; names the
            file and what is wrong.
    """
    try:
        return _ladder(_json(path.read_bytes()))
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror or error}") from error
    except ValueError as error:
        raise ValueError(f"{path} is no leaderboard with ratings: {error}") from error


def _json(content: bytes) -> Any:
    try:
        return json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"it is no JSON, and the file leaderboard.json beside the page is wanted ({error})"
        ) from error


def _ladder(data: Any) -> Ladder:
    """The ratings in the content of a leaderboard.

    Raises:
        ValueError: Says what is wrong.
    """
    kind = _part(data, dict, "it").get("kind")
    if kind != KIND:
        raise ValueError(f"its kind is {reprlib.repr(kind)}, not {KIND!r}")
    counts = {str(players): players for players in PLAYER_COUNTS}
    ladder: dict[int, dict[str, float]] = {}
    for players, standings in _part(data.get("players"), dict, "players").items():
        if players not in counts:
            raise ValueError(f"players has {reprlib.repr(players)}; known: {', '.join(counts)}")
        where = f"with {players} players"
        ratings = ladder[counts[players]] = {}
        agents = _part(standings, dict, where).get("agents")
        for row in _part(agents, list, f"{where}, agents"):
            name = _part(_part(row, dict, f"{where}, an agent").get("name"), str, f"{where}, name")
            if name in ratings or not name:
                raise ValueError(f"{where}, the name {reprlib.repr(name)} is empty or occurs twice")
            who = f"{where}, the rating of {reprlib.repr(name)}"
            points = _part(row.get("rating"), dict, who).get("value")
            if type(points) not in (int, float) or not abs(points) <= MOST_POINTS:
                raise ValueError(
                    f"{who} must be a number within ±{MOST_POINTS:,}, not {reprlib.repr(points)}"
                )
            ratings[name] = float(points)
    return ladder


def _part(value: Any, kind: type, what: str) -> Any:
    """A part of the JSON, checked to be of a kind, and not to be an empty list or object."""
    if not isinstance(value, kind):
        raise ValueError(f"{what} must be {JSON_NAMES[kind]}, not {reprlib.repr(value)}")
    if kind is not str and not value:
        raise ValueError(f"{what} must not be empty")
    return value


# ------------------------------------------------------------------------------------------ JSON


def as_json(
    standings: Sequence[Standings], made: Circumstances, ladder: Ladder | None = None
) -> str:
    """Everything as JSON: shares 0..1, points, milliseconds; null where nothing is known.

    Args:
        standings: For each number of players.
        made: How they came about.
        ladder: The fixed ratings, if any.
    """
    data = {
        "kind": KIND,
        **asdict(made),
        "rules": RULES,
        "ladder": ladder,
        "players": {
            str(board.num_players): {
                "agents": [_row_as_dict(row) for row in board.rows],
                "pairings": [pairing_as_dict(pairing) for pairing in board.pairings],
                "left_out": board.left_out,
            }
            for board in standings
        },
    }
    return json.dumps(data, indent=2) + "\n"


def _row_as_dict(row: Row) -> dict[str, Any]:
    return {
        "name": row.name,
        "rating": _known(row.rating),
        "win_share": _known(row.win_share),
        "luck_adjusted": _known(row.luck_adjusted),
        "endgames": {
            str(result.turns): {
                "regret": _known(result.regret),
                "optimal": _known(result.optimal),
                "positions": result.positions,
            }
            for result in row.endgames
        },
        "ms_per_decision": row.ms_per_decision,
        "num_parameters": row.num_parameters,
    }


def _known(estimate: Estimate | None) -> dict[str, float | None] | None:
    return None if estimate is None else estimate_as_dict(estimate)


# ------------------------------------------------------------------------------------- Markdown


def as_markdown(
    standings: Sequence[Standings], made: Circumstances, ladder: Ladder | None = None
) -> str:
    """The page; see `as_json` for the arguments."""
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
    return "\n\n".join([*parts, "## Adding a row", ADDING]) + "\n"


def _tables(board: Standings, fixed: Mapping[str, float] | None) -> list[str]:
    """The parts of the page about one number of players, with the ratings that are held fixed."""
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
    """A number with half the width of its interval."""
    if estimate is None:
        return "-"
    half = scale * (estimate.high - estimate.low) / 2
    return f"{scale * estimate.value:{form}} ± {half:{form.lstrip('+')}}"


def _table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """A table in Markdown that can be read as it is, the first column to the left."""
    widths = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
    rule = ["-" * widths[0], *("-" * (width - 1) + ":" for width in widths[1:])]
    rows = []
    for cells in (head, rule, *lines):
        padded = [cells[0].ljust(widths[0])]
        padded += [cell.rjust(width) for cell, width in zip(cells[1:], widths[1:], strict=True)]
        rows.append(f"| {' | '.join(padded)} |")
    return "\n".join(rows)


def _machine() -> str:
    processor = platform.processor() or platform.machine()
    try:
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                processor = line.partition(":")[2].strip()
                break
    except OSError:
        pass
    return f"{processor}, {os.cpu_count()} cores, {platform.system()}"
