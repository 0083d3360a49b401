"""What every command shares: printing that ends nothing, signals, exit codes."""

from __future__ import annotations

import io
import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from marrakech_env.command_line import (
    INTERRUPTED,
    UNWRITTEN,
    check_stopped,
    held_signals,
    printable,
    run_command,
)


def output_in(encoding: str, monkeypatch: pytest.MonkeyPatch) -> io.BytesIO:
    """A standard output of another encoding."""
    raw = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(raw, encoding, write_through=True))
    return raw


def kill(name: str) -> Callable[[], int]:
    """A main function that gets a signal and would go on."""

    def main() -> int:
        os.kill(os.getpid(), getattr(signal, name))
        return 0

    return main


# ------------------------------------------------------------------------------------- printing


@pytest.mark.parametrize("encoding", ["ascii", "cp1252", "cp437", "latin-1", "koi8-r"])
def test_what_an_encoding_lacks_is_printed_in_plain_forms(
    encoding: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = output_in(encoding, monkeypatch)
    assert run_command(lambda: print("é±…─│╭▶ 漢 \udcff") or 0) == 0
    plain = {"é": "e", "±": "+-", "…": "...", "─": "-", "│": "|", "╭": "+", "▶": ">"}
    wanted = "".join(
        character if character.encode(encoding, "ignore") else form
        for character, form in plain.items()
    )
    assert raw.getvalue().decode(encoding) == f"{wanted} \\u6f22 \\udcff\n"


def test_a_text_that_can_be_printed_stays_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "± … é 漢 ╭"
    for encoding in ("utf-8", "utf-16"):
        raw = output_in(encoding, monkeypatch)
        assert printable(text) == text
        assert run_command(lambda: print(text) or 0) == 0
        assert raw.getvalue().decode(encoding) == text + "\n"
    assert printable(text, io.StringIO()) == text  # it has no encoding


def test_a_reader_who_leaves_ends_the_printing_only(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    done = []

    def main() -> int:
        for _ in range(3):
            print("x" * 100_000)
        done.append(True)
        return 7

    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as output:
        monkeypatch.setattr("sys.stdout", output)
        assert run_command(main) == 7
    assert done == [True]
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize(("code", "wanted"), [(0, UNWRITTEN), (2, 2)])
def test_a_full_disk_behind_the_output_is_told_in_the_end(
    code: int, wanted: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with open("/dev/full", "w") as output:
        monkeypatch.setattr("sys.stdout", output)
        assert run_command(lambda: print("one line") or code) == wanted
    told = "error: the standard output was not written: No space left on device\n"
    assert capsys.readouterr().err == told


def test_a_process_without_output_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    monkeypatch.setattr("sys.stderr", None)
    assert run_command(lambda: print("nothing") or print("n", file=sys.stderr) or 0) == 0
    assert sys.stdout is None


# -------------------------------------------------------------------------------------- signals


@pytest.mark.parametrize(
    ("name", "code"), [("SIGTERM", 143), ("SIGHUP", 129), ("SIGINT", INTERRUPTED)]
)
def test_a_signal_ends_a_command_as_ctrl_c_does(
    name: str, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)]
    assert run_command(kill(name)) == code
    told = name if name != "SIGINT" else "Ctrl-C"
    assert capsys.readouterr().err == f"stopped by {told}\n"
    assert [signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGHUP)] == before


def test_a_second_signal_does_not_disturb_the_writing() -> None:
    written = []

    def main() -> int:
        try:
            kill("SIGTERM")()
        except KeyboardInterrupt:
            kill("SIGTERM")()
            kill("SIGHUP")()
            written.append(True)
            raise
        return 0

    assert run_command(main) == 143
    assert written == [True]


def test_a_signal_waits_while_results_are_written() -> None:
    written = []

    def main() -> int:
        with held_signals():
            kill("SIGTERM")()
            written.append(True)
        check_stopped()
        return 0

    assert run_command(main) == 143
    assert written == [True]


def test_a_signal_that_a_library_drops_ends_the_command_all_the_same(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """As in a callback of the compiler, after which it fails or goes on."""

    class Dropping:
        def __del__(self) -> None:
            kill("SIGTERM")()

    def failing() -> int:
        Dropping()
        raise RuntimeError("no compiled object")

    def going_on() -> int:
        Dropping()
        check_stopped()
        return 0

    for main in (failing, going_on):
        assert run_command(main) == 143
        assert capsys.readouterr().err == "stopped by SIGTERM\n"
    check_stopped()  # nothing is left of it
    with pytest.raises(RuntimeError):
        run_command(lambda: (_ for _ in ()).throw(RuntimeError("its own")))


def test_signals_that_are_ignored_stay_ignored() -> None:
    """As under nohup."""
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        assert run_command(kill("SIGHUP")) == 0
    finally:
        signal.signal(signal.SIGHUP, before)


def test_a_command_runs_in_any_thread() -> None:
    codes: list[int] = []
    thread = threading.Thread(target=lambda: codes.append(run_command(lambda: 5)))
    thread.start()
    thread.join()
    assert codes == [5]


@pytest.mark.parametrize(("argument", "code"), [(None, 0), (3, 3), ("bad words", 1)])
def test_leaving_early_gives_its_exit_code(
    argument: object, code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run_command(lambda: sys.exit(argument)) == code
    assert capsys.readouterr().err == ("bad words\n" if code == 1 else "")
