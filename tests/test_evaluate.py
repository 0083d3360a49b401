"""The command: `python evaluate.py`, `python -m marrakech_env.arena`."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from marrakech_env import arena
from marrakech_env.arena.cli import main
from marrakech_env.arena.report import CSV_FIELDS

ROOT = Path(__file__).resolve().parents[1]

NOISY = """
from marrakech_env import rules

def act(states, rng):
    mask = rules.action_mask(states)
    return (mask * rng.random(mask.shape)).argmax(axis=1)
"""
STOPPING = (
    NOISY.replace("def act", "def choose")
    + """
calls = 0

def act(states, rng):
    global calls
    calls += 1
    if calls > 260:
        raise KeyboardInterrupt
    return choose(states, rng)
"""
)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own current folder with two agents in it."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noisy.py").write_text(NOISY)
    (tmp_path / "stopping.py").write_text(STOPPING)
    return tmp_path


def run(*words: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *words], cwd=folder, capture_output=True, text=True, timeout=300
    )


# ------------------------------------------------------------------------------------ end to end


def test_the_command_measures_an_agent_of_ones_own(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["noisy.py:act", "random", "--games", "100", "--seed", "3"]
    outputs = ["--json", "out.json", "--csv", "out.csv", "--plot", "out.png"]
    assert main([*words, *outputs]) == 0
    printed = capsys.readouterr().out
    result = arena.play(["noisy.py:act", "random"], deals=50, seed=3)
    share, margin = result.pairings[0].win_share, result.pairings[0].margin
    assert re.search(
        rf"noisy\.py:act +random +{100 * share.value:.1f} +{100 * share.low:.1f} to "
        rf"{100 * share.high:.1f} +{re.escape(f'{margin.value:+.1f}')} .* 100 *\n",
        printed,
    )
    assert "even play: 50.0 %" in printed
    assert "ms/decision" in printed

    told = json.loads(Path("out.json").read_text())
    assert told["pairings"] == [
        {
            "agent": "noisy.py:act",
            "opponent": "random",
            "deals": 50,
            "games": 100,
            "win_share": {"value": share.value, "low": share.low, "high": share.high},
            "margin": {"value": margin.value, "low": margin.low, "high": margin.high},
            "luck_adjusted": None,
        }
    ]
    assert {key: told[key] for key in ("num_players", "rules", "seed", "complete", "even")} == {
        "num_players": 2,
        "rules": "official",
        "seed": 3,
        "complete": True,
        "even": 0.5,
    }
    assert [agent["name"] for agent in told["agents"]] == ["noisy.py:act", "random"]
    assert told["agents"][0]["decisions"] == result.agents[0].decisions
    assert told["agents"][0]["ms_per_decision"] > 0

    with Path("out.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == list(CSV_FIELDS)
    assert len(rows) == 1
    assert float(rows[0]["win_share"]) == share.value
    assert float(rows[0]["margin_high"]) == margin.high
    assert rows[0]["adjusted_win_share"] == rows[0]["variance_ratio"] == ""
    assert (rows[0]["opponent"], rows[0]["games"]) == ("random", "100")
    assert Path("out.png").read_bytes().startswith(b"\x89PNG")


def test_the_module_is_the_same_command(here: Path) -> None:
    words = ["noisy.py", "random", "noisy:act", "--games", "30", "--players", "3"]
    script = run(str(ROOT / "evaluate.py"), *words, "--json", "a.json", folder=here)
    module = run("-m", "marrakech_env.arena", *words, "--json", "b.json", folder=here)
    assert script.returncode == module.returncode == 0, script.stderr + module.stderr
    first, second = (json.loads(Path(name).read_text()) for name in ("a.json", "b.json"))
    for told in (first, second):
        for agent in told["agents"]:
            del agent["ms_per_decision"]
    assert first == second
    assert len(first["pairings"]) == 6
    assert first["agents"][0]["rating"]["low"] < first["agents"][0]["rating"]["high"]


def test_help_explains_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--help"]) == 0
    told = capsys.readouterr().out
    for option in ("--field", "--players", "--rules", "--games", "--tables", "--seed"):
        assert re.search(rf"{option} .*\w.*", told)
    assert "whole deals" in told
    assert "(default: 2000)" in told


def test_a_missing_package_names_the_extra(here: Path) -> None:
    (here / "tyro.py").write_text("raise ModuleNotFoundError('no tyro', name='tyro')\n")
    done = run("-m", "marrakech_env.arena", "random", "random", folder=here)
    assert done.returncode == 2
    assert "needs tyro: pip install 'marrakech-env[arena]'" in done.stderr
    assert "Traceback" not in done.stderr


def test_playing_from_python_needs_no_extra(here: Path) -> None:
    for name in ("tyro", "rich", "matplotlib", "scipy", "torch"):
        (here / f"{name}.py").write_text(f"raise ModuleNotFoundError('{name}')\n")
    code = "from marrakech_env import arena; print(arena.play(['random'] * 3, deals=2).even)"
    done = run("-c", code, folder=here)
    assert done.stdout == "0.5\n", done.stderr


# -------------------------------------------------------------------------------------- reports


def test_the_same_command_prints_the_same(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables = []
    for _ in range(2):
        assert main(["noisy.py", "random", "--games", "60", "--seed", "1"]) == 0
        tables.append(capsys.readouterr().out.split("ms/decision")[0])
    assert tables[0] == tables[1]
    assert main(["noisy.py", "random", "--games", "60", "--seed", "2"]) == 0
    assert capsys.readouterr().out.split("ms/decision")[0] != tables[0]


def test_games_are_rounded_up_to_whole_deals(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["random", "noisy.py", "--games", "9", "--players", "4", "--csv", "o.csv"]) == 0
    with Path("o.csv").open(newline="") as file:
        assert [(row["deals"], row["games"]) for row in csv.DictReader(file)] == [("3", "12")] * 2


def test_one_deal_is_reported_without_interval(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["random", "noisy.py", "--games", "1", "--json", "o.json", "--plot", "o.svg"]) == 0
    assert json.loads(Path("o.json").read_text())["pairings"][0]["win_share"]["low"] is None
    assert "nan" not in capsys.readouterr().out
    assert "<svg" in Path("o.svg").read_text()


def test_a_field_and_mixed_tables_are_reported(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["noisy.py", "--field", "random, random", "--players", "3", "--tables", "mixed"]
    assert main([*words, "--games", "30", "--rules", "official;money=20", "--plot", "o.png"]) == 0
    told = capsys.readouterr().out
    assert re.search(r"noisy\.py +mixed .* 30 *\n", told)
    assert "3 players, rules official;money=20, seed 0" in told
    assert re.search(r"random #2 +[+-]\d+ ", told)  # a rating


def test_names_are_printed_as_they_are(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Square brackets are no markup."""
    Path("run[red]").mkdir()
    Path("run[red]/a.py").write_text(NOISY)
    assert main(["run[red]/a.py", "random", "--games", "4"]) == 0
    assert "run[red]/a.py" in capsys.readouterr().out


def test_ctrl_c_reports_what_is_known(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["stopping.py", "random", "--games", "2000"]
    assert main([*words, "--json", "o.json", "--plot", "o.png"]) == 130
    told = json.loads(Path("o.json").read_text())
    assert not told["complete"]
    assert 0 < told["pairings"][0]["deals"] < 1000
    printed = capsys.readouterr().out
    assert "stopped early" in printed
    assert re.search(rf"stopping\.py +random .* {told['pairings'][0]['games']} *\n", printed)
    assert Path("o.png").exists()


def test_ctrl_c_before_the_first_deal_says_so(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("stopping.py").write_text(STOPPING.replace("260", "10"))
    assert main(["stopping.py", "random", "--json", "o.json", "--csv", "o.csv"]) == 130
    assert "No deal was played to the end." in capsys.readouterr().out
    assert json.loads(Path("o.json").read_text())["pairings"] == []


# -------------------------------------------------------------------------------------- refusal


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "no agents given; try: greedy expectimax"),
        (["random"], "two agents, or one and a field"),
        (
            ["random", "nobody"],
            "unknown agent 'nobody'; known names: champion, expectimax, greedy",
        ),
        (["random", "random", "--games", "0"], "games must be at least 1, not 0"),
        (["random", "random", "--games", "9" * 400], "deals must be a whole number of 1 to 10,000"),
        (["random", "random", "--players", "5"], "num_players must be 2, 3 or 4, not 5"),
        (["random", "random", "--players", "0"], "num_players must be 2, 3 or 4, not 0"),
        (["random", "random", "--rules", "chess"], "unknown preset 'chess'; known: official"),
        (["random", "random", "--seed", "-1"], "a seed lies in"),
        (["random", "--field", "random,"], "unknown agent ''"),
        (["random", "random", "--json", "no/folder.json"], "--json no/folder.json cannot be writ"),
        (["random", "random", "--csv", "."], "--csv . cannot be written"),
        (["random", "random", "--csv", "o", "--json", "o"], "--json, --csv must be different"),
        (["random", "random", "--plot", "picture.txt"], "picture.txt has no suffix of a picture"),
        (["random", "random", "--plot", "picture"], "picture has no suffix of a picture"),
        (["random", "raises.py"], "RuntimeError: no luck"),
    ],
)
def test_bad_input_is_told_in_one_line_before_playing(
    words: list[str], message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (here / "raises.py").write_text("raise RuntimeError('no luck')\n")
    before = sorted(os.listdir(here))
    assert main(words) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err
    assert captured.err.startswith("error: ")
    assert captured.err.count("\n") == 1
    assert sorted(name for name in os.listdir(here) if name != "__pycache__") == before


WRONG = ("", "0", "-1", "9" * 400, "1e400", "nan", "x", ";", ",", "..", "none/of/these", "a" * 300)


@pytest.mark.parametrize(
    "option",
    "field players rules games tables seed baseline budget out".split()
    + "against json csv plot luck-adjusted jobs".split(),
)
def test_no_value_of_an_option_ends_in_a_traceback(
    option: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    use = {"games": [], "budget": ["--leaderboard"]}.get(option, ["--games", "2"])
    if option in ("out", "against"):
        use = ["--leaderboard", "--budget", "0"]
    for value in WRONG:
        code = main(["random", "random@1", *use, f"--{option}", value])
        told = capsys.readouterr()
        # Some are right: the rules '', or a file called 0.
        assert (code == 2 and told.err) or (code == 0 and "even play" in told.out)


def test_an_existing_output_survives_bad_input(here: Path) -> None:
    Path("old.json").write_text("old")
    assert main(["random", "nobody", "--json", "old.json"]) == 2
    assert Path("old.json").read_text() == "old"


def test_a_link_to_an_output_stays_one(here: Path) -> None:
    Path("link.json").symlink_to("target.json")
    assert main(["random", "nobody", "--json", "link.json"]) == 2
    assert Path("link.json").is_symlink()
    assert not Path("target.json").exists()
    assert main(["random", "noisy.py", "--games", "4", "--json", "link.json"]) == 0
    assert Path("link.json").is_symlink()
    assert json.loads(Path("target.json").read_text())["complete"]


@pytest.mark.parametrize(
    ("fails", "code"), [("raise ValueError('tired')", None), ("return [99] * len(states)", 2)]
)
def test_what_was_measured_before_an_agent_failed_is_reported(
    fails: str, code: int | None, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("failing.py").write_text(STOPPING.replace("raise KeyboardInterrupt", fails))
    words = ["failing.py", "random", "--games", "2000", "--json", "o.json"]
    if code is None:
        with pytest.raises(ValueError, match="tired"):
            main(words)
    else:
        assert main(words) == code
    told = json.loads(Path("o.json").read_text())
    assert not told["complete"]
    assert 0 < told["pairings"][0]["deals"] < 1000
    captured = capsys.readouterr()
    assert "stopped early" in captured.out
    assert code is None or captured.err.startswith("error: agent 'failing.py'")


def test_late_positions_before_an_agent_failed_are_reported(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("wrong.py").write_text("def act(states, rng):\n    return [99] * len(states)\n")
    assert main(["--endgames", "random", "wrong.py", "--json", "o.json"]) == 2
    assert [row["agent"] for row in json.loads(Path("o.json").read_text())] == ["random"] * 2
    captured = capsys.readouterr()
    assert "random" in captured.out
    assert captured.err.startswith(
        "error: agent 'wrong.py' (late positions): game 0: action 99 is not"
    )


def test_an_illegal_action_is_told_in_one_line(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("wrong.py").write_text("def act(states, rng):\n    return [99] * len(states)\n")
    assert main(["random", "wrong.py"]) == 2
    told = capsys.readouterr().err
    assert told.startswith(
        "error: agent 'wrong.py' (game 0 is deal 0 of seed 0): game 0: action 99"
    )
    assert told.endswith("legal actions: 0, 1, 2\n")


def test_an_error_inside_an_agent_shows_where_it_arose(here: Path) -> None:
    Path("failing.py").write_text("def act(states, rng):\n    return states['colour']\n")
    with pytest.raises(ValueError, match="no field of name colour") as error:
        main(["random", "failing.py"])
    assert error.value.__notes__ == ["raised by the agent 'failing.py'"]


def test_a_disk_that_fills_up_is_told_after_the_table(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    assert main(["random", "noisy.py", "--games", "4", "--json", "/dev/full"]) == 1
    captured = capsys.readouterr()
    assert "even play" in captured.out
    assert captured.err == "error: /dev/full was not written: No space left on device\n"


def test_a_disk_that_fills_up_leaves_the_old_files(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    files = ["o.json", "o.csv", "o.png"]
    for file in files:
        Path(file).write_text("old")
    monkeypatch.setattr("os.fsync", full)
    outputs = ["--json", "o.json", "--csv", "o.csv", "--plot", "o.png"]
    assert main(["random", "noisy.py", "--games", "4", *outputs]) == 1
    told = capsys.readouterr().err
    for file in files:
        assert f"error: {file} was not written: No space left on device\n" in told
        assert Path(file).read_text() == "old"
    assert sorted(path.name for path in here.glob("*o.*")) == sorted(files)
