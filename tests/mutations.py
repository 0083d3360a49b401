"""Deliberate faults: does the fast part of the tests catch every one?

    python tests/mutations.py                 every fault, about 10 minutes on a quiet core
    python tests/mutations.py arena rules     the faults of these areas only

The package and its tests are copied to a temporary folder. There each fault is put in alone, the
tests of its area run until the first failure, and the fault is taken out again. A fault that no
test notices is printed as SURVIVED: then a test is missing. `test_mutations.py` holds that every
fault still fits the source.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

AREAS = {
    "rules": "edge_cases course_positions tables rules spec",
    "observation": "observation",
    "features": "features",
    "arena": "rewards arena arena_statistics",
}
"""Area -> the tests that have to catch its faults, each set well under a minute."""

PATIENCE = 300.0
"""Seconds after which the tests of a fault count as hanging."""


@dataclass(frozen=True)
class Fault:
    """One deliberate fault.

    Attributes:
        area: Of `AREAS`.
        file: Where, below `marrakech_env`.
        old: Text that stands there exactly once.
        new: What takes its place.
        breaks: What is wrong then.
    """

    area: str
    file: str
    old: str
    new: str
    breaks: str


def faults(area: str, file: str, *rows: tuple[str, str, str]) -> list[Fault]:
    """Faults of one file from rows of what it breaks, old text, new text."""
    return [Fault(area, file, old, new, breaks) for breaks, old, new in rows]


FAULTS = [
    *faults(
        "rules",
        "game.py",
        (
            "regions wrap around the eastern edge",
            "if (c + 1) % BOARD_SIZE))",
            "if c + 1))",
        ),
        (
            "a rug of an eliminated player costs toll",
            "if creditor == player or state.eliminated[creditor]:",
            "if creditor == player:",
        ),
        (
            "own rugs are protected where the rules let them be covered, and not elsewhere",
            "if state.flags & COVER_OWN:",
            "if not state.flags & COVER_OWN:",
        ),
        (
            "a last survivor never plays on",
            "eliminated == state.num_players - 1 and not state.flags & PLAY_ON",
            "eliminated == state.num_players - 1",
        ),
        (
            "the game ends before the last rug",
            "return bool(is_alone or rugs == 0)",
            "return bool(is_alone or rugs <= 1)",
        ),
        (
            "the rug that is laid counts in the draw of the next one",
            "lower = np.int64(state.rugs[lower_colour]) - (top == lower_colour)",
            "lower = np.int64(state.rugs[lower_colour])",
        ),
        ("a coin is weighted by the rugs left", "return 1, 1", "return lower, upper"),
        (
            "alternating colours repeat",
            "return (0, 1) if top == lower_colour else (1, 0)",
            "return (1, 0) if top == lower_colour else (0, 1)",
        ),
        (
            "probabilities of the next colour do not add up to 1",
            "weight / (lower + upper)",
            "weight / max(lower, upper)",
        ),
        (
            "left and right are exchanged",
            "(np.int64(state.facing) + action + 3) & 3",
            "(np.int64(state.facing) - action + 5) & 3",
        ),
        (
            "a poor player pays more than he has",
            "paid = min(amount, np.int64(state.money[player]))",
            "paid = amount",
        ),
        (
            "paying the last dirham eliminates",
            "if paid < amount:",
            "if state.money[player] == 0:",
        ),
        (
            "the creditor gets nothing",
            "state.money[creditor] += paid",
            "state.money[creditor] += 0",
        ),
        (
            "every elimination is the first",
            "order += state.eliminated[other] > 0",
            "order += 0",
        ),
        (
            "a rug does not cover what lies below its second half",
            "state.colour_boards[other] &= ~rug",
            "state.colour_boards[other] &= ~north_west",
        ),
        (
            "a rug covered in its eastern half stays whole",
            "state.links_east &= ~(rug | rug >> _ONE)",
            "state.links_east &= ~rug",
        ),
        (
            "a rug covered in its southern half stays whole",
            "state.links_south &= ~(rug | rug >> _SEVEN)",
            "state.links_south &= ~rug",
        ),
        (
            "rugs never run out",
            "state.rugs[colour] -= state.rugs[colour] > 0",
            "state.rugs[colour] -= 0",
        ),
        (
            "a player without rugs gets the turn",
            "if rugs_left(state, player) > 0:  # the eliminated have none\n            break",
            "if not state.eliminated[player]:\n            break",
        ),
        (
            "the eliminated rank in the order in which they left",
            "return np.int64(state.eliminated[player])",
            "return -np.int64(state.eliminated[player])",
        ),
        (
            "the two tie breaks are exchanged",
            "if by_squares else np.int64(state.money[player])",
            "if not by_squares else np.int64(state.money[player])",
        ),
        (
            "a shared place is the worse one",
            "place += standing(state, other) > own",
            "place += standing(state, other) >= own",
        ),
        (
            "every winner of a shared win gets all of it",
            "return 1.0 / winners",
            "return 1.0",
        ),
    ),
    *faults(
        "rules",
        "rules.py",
        (
            "regions of one colour are added up in the tolls",
            "amount = game.popcount(patch)",
            "amount = game.popcount(left)",
        ),
        (
            "a start outcome of another player's colour is taken",
            "[colour, colour + 1] if upper else [colour]",
            "[0, 1, 2, 3] if upper else [colour]",
        ),
    ),
    *faults(
        "rules",
        "tables.py",
        ("placements are mirrored", "on = (out + turn - 1) % 4", "on = (out - turn + 1) % 4"),
        (
            "the western edge track turns the wrong way",
            "else (x, y ^ 1, EAST)  # WEST",
            "else (x, y ^ 1, SOUTH)  # WEST",
        ),
    ),
    *faults(
        "rules",
        "spec.py",
        (
            "the die has three threes",
            "DIE: Final = (1, 2, 2, 3, 3, 4)",
            "DIE: Final = (1, 2, 3, 3, 3, 4)",
        ),
    ),
    *faults(
        "observation",
        "observation/planes.py",
        (
            "the plane of Assam's axis shows which way he looks along it",
            "numbers[0] = state.facing & 1",
            "numbers[0] = state.facing >> 1",
        ),
        (
            "eliminations are shown by seat, not from the observer on",
            "numbers[eliminated + k] = state.eliminated[seat]",
            "numbers[eliminated + k] = state.eliminated[k]",
        ),
        (
            "the player to move is shown by seat, not from the observer on",
            "numbers[turn + k] = np.int64(seat) == mover",
            "numbers[turn + k] = k == mover",
        ),
        (
            "laying is shown as walking",
            "numbers[turn + players] = state.phase == LAY",
            "numbers[turn + players] = state.phase == WALK",
        ),
        (
            "Assam stands beside his square",
            "_ONE << np.uint64(state.assam)",
            "_ONE << np.uint64(state.assam + 1)",
        ),
        (
            "great riches wrap around",
            "np.uint8(min(numbers[k], MAX_PLANE_MONEY))",
            "np.uint8(numbers[k])",
        ),
    ),
    *faults(
        "observation",
        "tables.py",
        (
            "the board is turned the wrong way round",
            "np.rot90(cells, facing)",
            "np.rot90(cells, -facing)",
        ),
    ),
    *faults(
        "observation",
        "observation/perspective.py",
        (
            "the two colours of a player are shown by number, not the top rug's first",
            "return top ^ (slot & 1)",
            "return 2 * seat + (slot & 1)",
        ),
        (
            "the other players are shown in the wrong order",
            "seat = observer + k",
            "seat = observer + state.num_players - k",
        ),
    ),
    *faults(
        "features",
        "observation/feature_kernels.py",
        (
            "a lead is shown as a lag",
            "row[to.lead + k - 1] = own_score - score",
            "row[to.lead + k - 1] = score - own_score",
        ),
        (
            "paying the last dirham counts as ruin",
            "np.uint32(owed(work.tolls[cell]) > money)",
            "np.uint32(owed(work.tolls[cell]) >= money)",
        ),
        (
            "the window shows what lies inside as outside",
            "(_WINDOW == NOWHERE)",
            "(_WINDOW != NOWHERE)",
        ),
    ),
    *faults(
        "arena",
        "rewards.py",
        ("a loss costs less than -1/(P-1)", "- 1.0) / (players - 1)", "- 1.0) / players"),
    ),
    *faults(
        "arena",
        "arena/match.py",
        (
            "seats are not rotated",
            "(np.arange(players) - rotation) % players",
            "np.arange(players)",
        ),
        (
            "margins go to seats instead of slots",
            "_margins(batch.final_scores[ended])[:, seat_of_slot]",
            "_margins(batch.final_scores[ended])",
        ),
        (
            "a margin is measured from the worst of the others",
            ".max(axis=1) for player",
            ".min(axis=1) for player",
        ),
        (
            "an agent draws other numbers in each rotation",
            "[seed, first_deal, seat]",
            "[seed, first_deal, seat, rotation]",
        ),
        (
            "every round of deals has the dice of the first",
            "first_game=first_deal",
            "first_game=0",
        ),
    ),
    *faults(
        "arena",
        "arena/interval.py",
        (
            "intervals of margins are far too narrow",
            "float(observations.std(ddof=1)) / math.sqrt(deals)",
            "float(observations.std(ddof=1)) / deals",
        ),
        (
            "the games of a deal count as independent",
            "worth = deals * spread / variance if spread else float(deals * games)",
            "worth = float(deals * games)",
        ),
        ("Student's quantile is too large", "first = (z**3 + z) / 4", "first = (z**3 + z) / 2"),
    ),
    *faults(
        "arena",
        "arena/rating.py",
        ("ratings have another scale", "400 / math.log(10)", "400 / math.log(2)"),
        (
            "the spread of a rating ignores what deals have in common",
            "scatter = by_deal.T @ by_deal + np.diag((0.5 - average) ** 2)",
            "scatter = information",
        ),
    ),
    *faults(
        "arena",
        "arena/tournament.py",
        (
            "everybody gets the result of the first slot",
            "getattr(o, figure)[..., slot].mean(axis=1)",
            "getattr(o, figure)[..., 0].mean(axis=1)",
        ),
        (
            "one opponent sits among copies of the agent",
            "(agent,) + (opponent,) * (players - 1)",
            "(agent,) * (players - 1) + (opponent,)",
        ),
        (
            "the last round is as long as the others",
            "yield first, min(size, deals - first)",
            "yield first, size",
        ),
    ),
]

ROOM = 200
"""Comment signs behind each file of the arena, see `write`."""


def write(path: Path, text: str, size: int, time_ns: int) -> None:
    """Writes a source file with a given size and time of change.

    Compiled kernels are cached by name, time and size of all sources. The arena has no kernels, so
    its faults keep all three and need no compiler.
    """
    data = text.encode()
    path.write_bytes(data + b"#" * (size - len(data)))
    os.utime(path, ns=(time_ns, time_ns))


def copy_project(folder: Path) -> None:
    """Copies what the tests of the areas need, the arena with room behind its files."""
    for name in ("marrakech_env", "tests", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(ROOT / "agents", folder / "marrakech_agents")
    shutil.copy(ROOT / "pyproject.toml", folder)
    for path in (folder / "marrakech_env" / "arena").glob("*.py"):
        write(path, path.read_text() + "\n", path.stat().st_size + ROOM, path.stat().st_mtime_ns)


def verdict(folder: Path, area: str) -> str:
    """Runs the tests of an area: `passed`, `failed` or `hangs`."""
    files = [f"tests/test_{name}.py" for name in AREAS[area].split()]
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *files]
    environment = {**os.environ, "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    try:
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, timeout=PATIENCE
        )
    except subprocess.TimeoutExpired:
        return "hangs"
    if done.returncode not in (0, 1):  # pytest itself could not run
        raise RuntimeError(done.stdout.decode() + done.stderr.decode())
    return "failed" if done.returncode else "passed"


def main(areas: list[str]) -> int:
    """Tries the faults of some areas; the number of those that survived."""
    survivors = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        copy_project(folder)
        for area in areas:
            started = time.monotonic()
            if verdict(folder, area) != "passed":
                raise RuntimeError(f"the tests of {area} do not pass without a fault")
            print(f"{area}: pass without a fault, {time.monotonic() - started:.0f} s", flush=True)
            for fault in FAULTS:
                if fault.area != area:
                    continue
                path = folder / "marrakech_env" / fault.file
                whole, stat = path.read_text(), path.stat()
                text = whole.rstrip("#").replace(fault.old, fault.new)
                started = time.monotonic()
                if area == "arena" and "kernel" not in whole:
                    write(path, text, stat.st_size, stat.st_mtime_ns)
                else:
                    path.write_text(text)
                found = verdict(folder, area)
                write(path, whole, stat.st_size, stat.st_mtime_ns)
                caught = (
                    "SURVIVED" if found == "passed" else "caught" if found == "failed" else found
                )
                survivors += found != "failed"
                print(
                    f"  {caught:8} {time.monotonic() - started:4.0f} s  {fault.breaks}", flush=True
                )
    print(f"{survivors} faults survived")
    return survivors


if __name__ == "__main__":
    sys.exit(min(1, main(sys.argv[1:] or list(AREAS))))
