"""Whatever ends the command early or breaks its output: what was measured is written."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from marrakech_env.arena.cli import main

ROOT = Path(__file__).resolve().parents[1]
FAILING = """
import os, signal, sys
from marrakech_env import rules

calls = 0

def act(states, rng):
    global calls
    calls += 1
    if calls > {calls}:
        {fails}
    mask = rules.action_mask(states)
    return (mask * rng.random(mask.shape)).argmax(axis=1)
"""
TERMINATE = "os.kill(os.getpid(), signal.SIGTERM)"
HANG_UP = "os.kill(os.getpid(), signal.SIGHUP)"


def failing(how: str, name: str = "failing.py", calls: int = 260) -> str:
    """The file of an agent that fails after some calls."""
    Path(name).write_text(FAILING.format(fails=how, calls=calls))
    return name


def written(path: str = "o.json") -> Any:
    return json.loads(Path(path).read_text())


def check_partial() -> None:
    assert not written()["complete"]
    assert 0 < written()["pairings"][0]["deals"] < 1000


# -------------------------------------------------------------------------------------- signals


@pytest.mark.parametrize(("how", "code"), [(TERMINATE, 143), (HANG_UP, 129)])
def test_a_signal_keeps_what_is_measured(
    how: str, code: int, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([failing(how), "random", "--json", "o.json", "--csv", "o.csv"]) == code
    check_partial()
    with Path("o.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == 1
    captured = capsys.readouterr()
    assert "stopped early" in captured.out
    assert captured.err.endswith(f"stopped by {'SIGTERM' if code == 143 else 'SIGHUP'}\n")


def test_a_signal_in_late_positions_keeps_the_agents_that_are_done(here: Path) -> None:
    agent = failing(TERMINATE, calls=0)
    assert main(["--endgames", "random", agent, "greedy", "--json", "o.json"]) == 143
    assert [row["agent"] for row in written()] == ["random"] * 2


def test_a_signal_before_the_play_says_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("slow.py").write_text(f"import os, signal\n{TERMINATE}\n")
    assert main(["random", "slow.py", "--json", "o.json"]) == 143
    assert capsys.readouterr().err.endswith("stopped by SIGTERM\n")
    assert not Path("o.json").exists()


def test_a_signal_while_files_are_written_costs_none_of_them(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    really_sync = os.fsync

    def sync(number: int) -> None:
        os.kill(os.getpid(), signal.SIGTERM)
        really_sync(number)

    monkeypatch.setattr("os.fsync", sync)
    words = ["random", "random", "--games", "4", "--json", "o.json", "--csv", "o.csv"]
    assert main(words) == 143
    assert written()["complete"]
    assert Path("o.csv").exists()


# --------------------------------------------------------------------------------------- agents


@pytest.mark.parametrize("how", ["sys.exit(0)", "raise SystemExit", "exit()"])
def test_an_agent_that_exits_is_an_error_of_that_agent(
    how: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(RuntimeError, match=r"agent 'failing\.py' called sys\.exit\("):
        main([failing(how), "random", "--json", "o.json"])
    check_partial()
    assert "stopped early" in capsys.readouterr().out
    with pytest.raises(RuntimeError, match=r"agent 'failing\.py' called sys\.exit\("):
        main(["--endgames", "random", failing(how, calls=0), "--json", "e.json"])
    assert [row["agent"] for row in written("e.json")] == ["random"] * 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import sys\nsys.exit(0)\n", "agent.py raised SystemExit: 0"),
        (
            "class agent:\n    @property\n    def act(self):\n        raise SystemExit\n",
            "reading its attribute act raised SystemExit",
        ),
        (
            "class agent:\n    @property\n    def act(self):\n        raise KeyError('no act')\n",
            "reading its attribute act raised KeyError: 'no act'",
        ),
        (
            "class agent:\n    @property\n    def version(self):\n        raise SystemExit\n"
            "    def act(self, states, rng):\n        pass\n",
            "reading its attribute version raised SystemExit",
        ),
    ],
)
def test_an_agent_that_exits_or_fails_while_it_is_loaded_is_named(
    text: str, message: str, here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    Path("agent.py").write_text(text)
    mode = ["--leaderboard"] if "version" in text else ["random"]
    assert main([*mode, "agent.py"]) == 2
    told = capsys.readouterr().err
    assert told.startswith("error: agent 'agent.py")
    assert message in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def evaluate(self, states):\n        raise SystemExit", "called sys.exit"),
        ("def evaluate(self, states):\n        return None", "cannot unpack non-iterable None"),
        ("@property\n    def evaluate(self):\n        raise RuntimeError('no')", "no"),
    ],
)
def test_a_baseline_that_fails_is_named(text: str, message: str, here: Path) -> None:
    head = "class agent:\n    name = 'judge'\n    def act(self, states, rng):\n        pass\n"
    Path("judge.py").write_text(f"{head}    {text}\n")
    words = ["random", "random", "--luck-adjusted", "--baseline", "judge.py"]
    with pytest.raises((RuntimeError, TypeError), match=message) as error:
        main(words)
    named = [str(error.value), *getattr(error.value, "__notes__", [])]
    assert any("'judge'" in line or "'agent'" in line for line in named)


# --------------------------------------------------------------------------------------- output


def test_a_full_disk_behind_the_output_keeps_the_files(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("this system has no /dev/full")
    with open("/dev/full", "w") as output:
        monkeypatch.setattr("sys.stdout", output)
        assert main(["random", "random", "--games", "4", "--json", "o.json"]) == 1
    assert written()["complete"]
    assert "standard output was not written: No space left" in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["ascii", "koi8-r"])
def test_a_leaderboard_is_written_whatever_the_terminal_can_print(
    encoding: str,
    here: Path,
    one_round: None,
    no_late_positions: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding, write_through=True))
    assert main(["--leaderboard", "--budget", "9", "--out", "."]) == 0
    assert written("leaderboard.json")["complete"]
    page = Path("leaderboard.md").read_text(encoding="utf-8")
    assert "±" in page
    printed = raw.getvalue().decode(encoding)
    assert printed == f"{page.replace('±', '+-')}\nwritten: leaderboard.md and leaderboard.json\n"


def test_a_process_whose_reader_leaves_writes_its_files_without_a_traceback(here: Path) -> None:
    """The one process of its kind: at its end, Python writes what is still in the buffers."""
    script = [sys.executable, str(ROOT / "evaluate.py")]
    words = ["random", "random", "--games", "4", "--json", "o.json"]
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    for arguments, code in ((words, 0), (["--help"], 0)):
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as output:
            done = subprocess.run(
                [*script, *arguments],
                stdout=output,
                stderr=subprocess.PIPE,
                text=True,
                env=environment,
                timeout=300,
            )
        assert (done.returncode, done.stderr) == (code, "")
    assert written()["complete"]


# ---------------------------------------------------------------------------------------- files


def test_a_name_that_is_not_utf_8_is_written_everywhere(
    here: Path,
    one_round: None,
    no_late_positions: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = os.fsdecode(b"bad\xff.py")
    try:
        failing("pass", name)
    except OSError:
        pytest.skip("this file system takes no such name")
    outputs = ["--json", "o.json", "--csv", os.fsdecode(b"o\xff.csv"), "--plot", "o.png"]
    assert main([name, "random", "--games", "4", *outputs]) == 0
    assert written()["pairings"][0]["agent"] == "bad\\udcff.py"
    table = Path(os.fsdecode(b"o\xff.csv")).read_text(encoding="utf-8")
    assert table.splitlines()[1].startswith("bad\\udcff.py,random,")
    assert Path("o.png").exists()
    assert main([name, "random", "--csv", os.fsdecode(b"no\xff/o.csv")]) == 2
    assert main([os.fsdecode(b"none\xff"), "random"]) == 2
    captured = capsys.readouterr()
    assert "bad\\udcff.py" in captured.out
    assert "--csv no\\udcff/o.csv cannot be written: No such file" in captured.err
    assert "none\\udcff" in captured.err


def test_a_picture_that_cannot_be_drawn_costs_no_other_file(
    here: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [failing("pass", "a$b$^c.py"), "random", "--games", "4", "--plot"]
    assert main([*words, "o.png"]) == 0

    def too_large(*arguments: object, **options: object) -> None:
        raise ValueError("Image size is too large")

    monkeypatch.setattr("matplotlib.figure.Figure.savefig", too_large)
    assert main([*words, "p.png", "--json", "o.json"]) == 1
    assert written()["complete"]
    captured = capsys.readouterr()
    assert captured.out.count("even play") == 2
    assert captured.err == "error: p.png was not written: Image size is too large\n"


def test_the_standard_output_can_be_an_output(
    here: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """Behind it is a file: the JSON and the table follow each other there."""
    if not Path("/dev/stdout").exists():
        pytest.skip("this system has no /dev/stdout")
    assert main(["random", "random", "--games", "4", "--json", "/dev/stdout"]) == 0
    printed = capfd.readouterr().out
    told, rest = json.JSONDecoder().raw_decode(printed)
    assert told["complete"]
    assert "even play" in printed[rest:]


def test_a_pipe_without_reader_is_told_and_costs_no_other_file(
    here: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    os.mkfifo("pipe")
    words = ["random", "random", "--games", "4", "--json", "pipe", "--csv", "o.csv"]
    assert main(words) == 1
    assert Path("o.csv").exists()
    captured = capsys.readouterr()
    assert "even play" in captured.out
    assert captured.err == "error: pipe was not written: no process reads from this pipe\n"
