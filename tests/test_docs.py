"""The pages say what the code does: their tables agree with it and their Python blocks run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from marrakech_env.spec import BOARD_SIZE, DEFAULT_RUGS, FACINGS, OPTIONS, PRESETS, RuleSet
from marrakech_env.tables import WALK

ROOT = Path(__file__).resolve().parents[1]
RULES = (ROOT / "docs" / "rules.md").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def table_below(heading: str) -> list[list[str]]:
    """The cells of the first table of docs/rules.md below a line, without its header."""
    lines = RULES[RULES.index(f"\n{heading}\n") :].splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("| --- "))
    rows = []
    for line in lines[start + 1 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def test_edge_table_is_the_walk_table() -> None:
    last = BOARD_SIZE - 1
    exits = {"N": lambda i: (i, 0), "E": lambda i: (last, i), "S": lambda i: (i, last)}
    exits["W"] = lambda i: (0, i)
    rows = table_below("### Rule 5: walk")
    assert len(rows) == len(FACINGS)
    for facing, (_, *entries) in enumerate(rows):
        for i, entry in enumerate(entries):
            x, y = exits[FACINGS[facing]](i)
            after = int(WALK[1, 4 * (BOARD_SIZE * y + x) + facing])
            new_y, new_x = divmod(after // 4, BOARD_SIZE)
            assert f"{new_x}{new_y}{FACINGS[after % 4]}" == entry


def test_option_table_lists_every_option_in_order() -> None:
    rows = table_below("## Options and presets")
    assert [name.strip("`") for name, *_ in rows] == list(OPTIONS)
    for name, values, *_ in rows:
        allowed = OPTIONS[name.strip("`")]
        if isinstance(allowed, range):
            assert f"{allowed[0]}..{allowed[-1]}" in values
        else:
            assert re.findall(r"`(\w+)`", values) == [str(value) for value in allowed]
    assert " / ".join(map(str, DEFAULT_RUGS.values())) in rows[0][1]


def test_preset_table_lists_every_preset() -> None:
    presets = {name: dict(options) for name, options in PRESETS.items()}
    rows = table_below("A **preset** is a named combination:")
    assert [name.strip("`") for name, _ in rows] == list(presets)
    for name, text in rows:
        given = re.findall(r"`(\w+=\w+)`", text)
        assert given == [f"{option}={value}" for option, value in presets[name.strip("`")].items()]
        for rules in re.findall(r"`(\w+;[\w=;]+)`", text):
            assert str(RuleSet.parse(rules)) == rules


def test_edge_cases_are_thirty() -> None:
    cases = RULES[RULES.index("\n## Edge cases\n") :]
    numbers = [int(number) for number in re.findall(r"^(\d+)\. ", cases, flags=re.MULTILINE)]
    assert numbers == list(range(1, 31))


def python_blocks() -> list[tuple[str, str]]:
    """Every Python block of every page, with the page and the line where it starts."""
    blocks = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in re.finditer(r"^```python\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL):
            line = text[: match.start()].count("\n") + 1
            blocks.append((f"{page.relative_to(ROOT).as_posix()}:{line}", match[1]))
    return blocks


BLOCKS = python_blocks()


@pytest.mark.parametrize(("place", "code"), BLOCKS, ids=[place for place, _ in BLOCKS])
def test_python_block_runs(
    place: str, code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(code, place, "exec"), {"__name__": "__main__"})


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    targets = [target.partition("#")[0] for target in re.findall(r"\]\(([^)\s]+)\)", text)]
    files = [target for target in targets if target and "://" not in target]
    assert [target for target in files if not (page.parent / target).exists()] == []


def test_ci_finds_the_test_command_of_the_readme() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    commands = re.findall(r"^python3 -m venv .*$", readme, flags=re.MULTILINE)
    assert [command.split(" && ")[-1].split()[0] for command in commands] == ["python", "pytest"]
    assert all("-c constraints.txt" in command for command in commands)
