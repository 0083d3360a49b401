"""The command of the leaderboard: the files, what is refused, and that nothing may be lost."""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest
from leaderboard_agents import NOISY

from marrakech_env import arena
from marrakech_env.arena import leaderboard
from marrakech_env.arena.cli import main
from marrakech_env.arena.leaderboard import Leaderboard, Table
from marrakech_env.arena.leaderboard_files import read_ladder


def a_ladder(name: Any = "random@1", rating: Any = 12, players: str = "2") -> dict[str, Any]:
    """The content of a leaderboard with one entry, as far as ladders look at it."""
    agents = [{"name": name, "rating": {"value": rating}}]
    return {"kind": "marrakech-env leaderboard", "players": {players: {"agents": agents}}}


# ---------------------------------------------------------------------------------- the command


def test_the_command_writes_page_and_json_and_is_measured_against_them(
    here: Path, one_round: None, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "docs").mkdir()
    words = ["noisy.py", "two.py", "--leaderboard", "--seed", "1", "--budget", "9"]
    assert main(words) == 0
    page = Path("docs/leaderboard.md").read_text()
    written = "written: docs/leaderboard.md and docs/leaderboard.json"
    assert capsys.readouterr().out == f"{page}\n{written}\n"
    command = "python evaluate.py noisy.py two.py --leaderboard --budget 9 --seed 1"
    assert f"Made by `{command}` on 20" in page
    assert re.search(r"\| `greedy@1` +\| +\+\d+ ± \d+ \|", page)
    assert re.search(r"\| `noisy.py@3` +\|.* 1,234 \|", page)
    assert "Left out: `two.py@1`: only for two." in page
    assert "regret, 3 turns" in page
    assert page.count("Luck-adjusted win share in %") == 3
    told = json.loads(Path("docs/leaderboard.json").read_text())
    assert told["command"] == command
    assert told["complete"] is True
    assert told["seed"] == 1
    assert set(told["versions"]) == {"python", "marrakech-env", "numpy", "numba"}
    assert list(told["players"]) == ["2", "3", "4"]
    greedy = next(row for row in told["players"]["4"]["agents"] if row["name"] == "greedy@1")
    assert greedy["rating"]["low"] < greedy["rating"]["value"] < greedy["rating"]["high"]
    assert greedy["endgames"]["2"]["positions"] > 500
    assert greedy["luck_adjusted"]["value"] > 0.5
    assert told["players"]["3"]["pairings"][0]["luck_adjusted"]["win_share"]["value"] is not None

    ladder = ["--against", "docs/leaderboard.json", "--budget", "9", "--out", "."]
    assert main(["noisy.py", "--leaderboard", *ladder]) == 0
    page = Path("leaderboard-against.md").read_text()
    written = "written: leaderboard-against.md and leaderboard-against.json"
    assert capsys.readouterr().out == f"{page}\n{written}\n"
    assert "`noisy.py@3 #2`" in page  # it stands on the ladder as well
    fixed = round(greedy["rating"]["value"])
    assert f"`greedy@1` {fixed:+d}" in page.split("## 4 players")[1]
    rated = json.loads(Path("leaderboard-against.json").read_text())
    assert [row["name"] for row in rated["players"]["2"]["agents"]] == ["noisy.py@3"]
    assert rated["ladder"]["4"]["greedy@1"] == greedy["rating"]["value"]

    told["players"]["2"]["agents"][0]["name"] = "greedy@7"
    Path("other.json").write_text(json.dumps(told))
    capsys.readouterr()
    assert main(["noisy.py", "--leaderboard", "--against", "other.json"]) == 2
    assert "'greedy@7' is not installed; 'greedy' has version 1 here" in capsys.readouterr().err


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_writes_what_is_known(
    number: int,
    code: int,
    here: Path,
    no_late_positions: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    play, rounds = Table.play, itertools.count()

    def stopping(table: Table, on_end: Any) -> None:
        if next(rounds) == 5:
            os.kill(os.getpid(), number)
        play(table, on_end)

    monkeypatch.setattr(Table, "play", stopping)
    assert main(["--leaderboard", "--budget", "9"]) == code
    told = json.loads(Path("leaderboard.json").read_text())
    assert told["complete"] is False
    assert sum(len(board["pairings"]) for board in told["players"].values()) == 5
    assert "9 minutes, stopped early" in Path("leaderboard.md").read_text()
    assert "nan" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--leaderboard", "--endgames"], "two commands; give one of them"),
        (["--leaderboard", "--games", "7"], "--games is about games; leave it out with --leaderb"),
        (["--leaderboard", "--players", "3"], "--players is about games and --endgames; leave it"),
        (["--leaderboard", "--luck-adjusted"], "--luck-adjusted is about games; leave it out"),
        (["--leaderboard", "--json", "o.json"], "--json is about games and --endgames"),
        (["--endgames", "greedy", "--budget", "1"], "--budget is about --leaderboard; leave it"),
        (["random", "random", "--budget", "1"], "--budget is about --leaderboard; add --leader"),
        (["random", "random", "--out", "."], "--out is about --leaderboard; add --leaderboard"),
        (["random", "--against", "o.json"], "--against is about --leaderboard; add --leaderboard"),
        (["--leaderboard", "--budget", "0"], "--budget must be a number of minutes above 0"),
        (["--leaderboard", "--budget", "nan"], "--budget must be a number of minutes above 0"),
        (["--leaderboard", "--out", "no/folder"], "--out no/folder/leaderboard.md cannot be writ"),
        (["--leaderboard", "nobody"], "unknown agent 'nobody'"),
        (["--leaderboard", "greedy@9"], "'greedy@9' is not installed"),
        (["--leaderboard", "--baseline", "greedy"], "'greedy' cannot be the baseline of luck"),
        (["--leaderboard", "--against", "no.json"], "no.json cannot be read: No such file"),
        (["--leaderboard", "--against", "bad.json"], "bad.json is no leaderboard with ratings"),
        (["--leaderboard", "--against", "good.json"], "no agent given that could be rated"),
        (
            ["sulky.py", "--leaderboard"],
            "agent 'sulky.py@1' can be rated with no number of players, with 2: not today; with 3",
        ),
        (
            ["sulky.py", "--leaderboard", "--against", "good.json"],
            "agent 'sulky.py@1' can be rated with no number of players, with 2: not today; with 3",
        ),
        (
            ["two.py", "--leaderboard", "--against", "good.json"],
            "with 2: the ladder has no entries; with 3: only for two; with 4: only for two",
        ),
        (["many.py", "--leaderboard"], "'many.py@1': its attribute num_parameters must be a whole"),
    ],
)
def test_bad_input_is_told_in_one_line_before_playing(
    words: list[str], message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("bad.json").write_text('{"kind": "something else"}')
    Path("good.json").write_text(json.dumps(a_ladder(players="3")))
    Path("sulky.py").write_text("def act(states, rng):\n    raise ValueError('not\\ntoday')\n")
    Path("many.py").write_text(NOISY.replace("1234", "'many'").replace("version = 3", ""))
    assert main(words) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert message in told.err
    assert told.err.count("\n") == 1
    assert not list(here.glob("leaderboard*"))


def test_an_agent_that_cheats_is_told_and_not_left_out(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("wrong.py").write_text("def act(states, rng):\n    return [99] * len(states)\n")
    assert main(["wrong.py", "--leaderboard"]) == 2
    assert "agent 'wrong.py@1'" in capsys.readouterr().err


# ------------------------------------------------------------------------- nothing may be lost


def test_the_number_of_weights_may_be_of_numpy(
    here: Path, one_round: None, no_late_positions: None
) -> None:
    text = NOISY.replace("1234", "np.int64(1234)")
    Path("noisy.py").write_text("import numpy as np\n" + text)
    assert main(["noisy.py", "--leaderboard", "--budget", "9"]) == 0
    rows = json.loads(Path("leaderboard.json").read_text())["players"]["2"]["agents"]
    assert {row["name"]: row["num_parameters"] for row in rows}["noisy.py@3"] == 1234


@pytest.mark.parametrize(
    ("fails", "code"), [("raise ValueError('tired')", None), ("return [99] * len(states)", 2)]
)
def test_what_was_measured_before_an_agent_failed_is_written(
    fails: str,
    code: int | None,
    here: Path,
    no_late_positions: None,
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("failing.py").write_text(
        f"{NOISY}\ncalls = 0\n\ndef act(states, rng):\n    global calls\n    calls += 1\n"
        f"    if calls > 400:\n        {fails}\n    return Noisy().act(states, rng)\n"
    )
    words = ["failing.py", "--leaderboard", "--budget", "9"]
    if code is None:
        with pytest.raises(ValueError, match="tired") as error:
            main(words)
        assert error.value.__notes__ == ["raised by the agent 'failing.py@1'"]
    else:
        assert main(words) == code
        assert "error: agent 'failing.py@1'" in capsys.readouterr().err
    assert "9 minutes, stopped early" in Path("leaderboard.md").read_text()
    told = json.loads(Path("leaderboard.json").read_text())
    assert told["complete"] is False
    assert any(board["pairings"] for board in told["players"].values())


def test_a_budget_without_a_game_leaves_the_old_page(
    here: Path, no_late_positions: None, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("leaderboard.md").write_text("old")
    assert main(["--leaderboard", "--budget", "0.00001"]) == 1
    told = capsys.readouterr()
    assert told.out == ""
    assert re.fullmatch(
        r"error: no game was played and nothing written; \d+ seconds went into compiling, .* late "
        r"positions of all agents; give more minutes than --budget 1e-05\n",
        told.err,
    )
    assert Path("leaderboard.md").read_text() == "old"
    assert not Path("leaderboard.json").exists()


def test_what_is_compiled_first_does_not_count_for_the_budget(
    here: Path, one_round: None, no_late_positions: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that hardly moves, but for the first decisions."""
    now = 0.0

    def clock() -> float:
        nonlocal now
        now += 1e-6
        return now

    def warm_up(*arguments: Any) -> None:
        nonlocal now
        now += 100

    monkeypatch.setattr(arena.Tournament, "warm_up", warm_up)
    monkeypatch.setattr(leaderboard, "perf_counter", clock)
    board, seen = Leaderboard(), []
    board.run(1, lambda seconds, doing: seen.append(seconds))
    assert now > 300
    assert max(seen) < 1
    assert all(standings.pairings for standings in board.standings())


def test_a_full_disk_leaves_the_old_files_and_is_told_by_name(
    here: Path,
    one_round: None,
    no_late_positions: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    files = [Path("leaderboard.md"), Path("leaderboard.json")]
    for file in files:
        file.write_text("old")
    monkeypatch.setattr("os.fsync", full)
    assert main(["--leaderboard", "--budget", "1"]) == 1
    told = capsys.readouterr()
    assert ": 1 minute, rules official" in told.out
    assert "written:" not in told.out
    for file in files:
        assert f"error: {file} was not written: No space left on device\n" in told.err
        assert file.read_text() == "old"
    assert {path.name for path in here.glob("*leaderboard*")} == {str(file) for file in files}


def test_the_page_says_who_is_left_out_and_who_stands_twice(
    here: Path, one_round: None, no_late_positions: None
) -> None:
    ladder = a_ladder()
    ladder["players"]["4"] = ladder["players"]["2"]
    Path("ladder.json").write_text(json.dumps(ladder))
    words = ["two.py", "random", "--leaderboard", "--against", "ladder.json", "--budget", "9"]
    assert main(words) == 0
    page = Path("leaderboard-against.md").read_text()
    two, three, four = page.split(" players\n\n")[1:]
    assert "| `random@1 #2` |" in two
    assert "has `#2` behind its name where it is fixed" in two
    assert "Left out" not in two
    left_out = "Left out: `two.py@1`: only for two"
    assert three.startswith(f"{left_out}; `random@1`: the ladder has no entries.\n")
    assert f"{left_out}.\n" in four
    left_out = json.loads(Path("leaderboard-against.json").read_text())["players"]["3"]["left_out"]
    assert left_out == {"two.py@1": "only for two", "random@1": "the ladder has no entries"}


def changed(**parts: Any) -> str:
    return json.dumps(a_ladder() | parts)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *(
            (json.dumps(a_ladder(rating=points)), rf"{told} - at `\$\.players.*\.rating\.value`")
            for points, told in (
                ("12", "Expected `float`, got `str`"),
                (True, "Expected `float`, got `bool`"),
                (None, "Expected `float`, got `null`"),
                (10**400, "Number out of range"),
                (1e9, "Expected `float` <= 10000.0"),
                (-1e9, "Expected `float` >= -10000.0"),
            )
        ),
        *((json.dumps(a_ladder(rating=points)), "malformed") for points in (math.nan, -math.inf)),
        (json.dumps(a_ladder(name=5)), r"Expected `str`, got `int` - at .*agents\[0\]\.name"),
        (json.dumps(a_ladder(name="")), r"Expected `str` of length >= 1 - at .*agents\[0\]\.name"),
        (json.dumps(a_ladder(players="7")), r"Invalid enum value '7' - at `key` in `\$\.players"),
        (changed(players={}), r"Expected `object` of length >= 1 - at `\$\.players`"),
        (changed(players=[]), r"Expected `object`, got `array` - at `\$\.players`"),
        (changed(players={"2": 1}), r"Expected `object`, got `int` - at `\$\.players"),
        (changed(players={"2": {"agents": []}}), r"Expected `array` of length >= 1 - at .*agents"),
        (changed(players={"2": {"agents": {}}}), "Expected `array`, got `object` - at .*agents"),
        (changed(players={"2": {"agents": [1]}}), "Expected `object`, got `int` - at .*agents"),
        (
            changed(players={"2": {"agents": [{"name": "a", "rating": None}]}}),
            r"Expected `object`, got `null` - at .*agents\[0\]\.rating`",
        ),
        (
            changed(players={"2": {"agents": 2 * a_ladder()["players"]["2"]["agents"]}}),
            "with 2 players, a name occurs twice",
        ),
        (changed(kind="chess"), r"Invalid enum value 'chess' - at `\$\.kind`"),
        ("{}", "Object missing required field `kind`"),
        ("[1]", "Expected `object`, got `array`"),
        ("# Leaderboard", "JSON is malformed"),
        ("", "Input data was truncated"),
        ("\ufeff{}", "JSON is malformed"),
        ("[" * 100_000, "Expected `object`, got `array`"),
        ('{"x":' + "[" * 100_000, "maximum recursion depth exceeded"),
        ("1" * 5000, "Number out of range"),
    ],
)
def test_a_ladder_that_is_none_is_refused_by_name(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "ladder.json"
    path.write_text(json.dumps(a_ladder()))
    assert read_ladder(path) == {2: {"random@1": 12.0}}
    path.write_text(text, encoding="utf-8")
    with pytest.raises(
        ValueError,
        match=rf"ladder\.json is no leaderboard with ratings: .*{message}.*; wanted: the "
        r"file leaderboard\.json beside the page$",
    ) as error:
        read_ladder(path)
    assert len(str(error.value)) < 300 + len(str(path))
