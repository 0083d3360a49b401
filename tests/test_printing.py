"""The board on a stdout that cannot show it: another encoding, closed, full, a broken pipe."""

import errno
import io
import os
import subprocess
import sys

import pytest

from marrakech_env.aec import env, raw_env
from marrakech_env.command_line import printable
from marrakech_env.render.ansi import render_ansi
from marrakech_env.sb3 import MarrakechVecEnv
from marrakech_env.vector import MarrakechEnv, MarrakechVectorEnv

SHOWS = {
    "raw_env": lambda: raw_env(render_mode="human").reset(seed=1),
    "env": lambda: env(render_mode="human").reset(seed=1),
    "Env": lambda: MarrakechEnv(render_mode="human").reset(seed=1),
    "VectorEnv": lambda: shown(MarrakechVectorEnv(1, render_mode="human")),
    "VecEnv": lambda: shown(MarrakechVecEnv(1, render_mode="human")),
}
ENCODINGS = ["ascii", "cp437", "cp1252", "latin-1", "utf-8"]


def shown(environment):
    environment.reset()
    environment.render()


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("kind", SHOWS)
def test_a_board_is_printed_in_any_encoding(kind, encoding, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding, write_through=True))
    SHOWS[kind]()
    text = raw.getvalue().decode(encoding)
    assert "Player 0" in text
    assert "30 dirhams + 0 squares = 30" in text
    has_boxes = encoding in ("utf-8", "cp437")
    assert ("┬" if has_boxes else "+-----+-----+") in text
    assert "?" not in text


def test_the_plain_form_keeps_every_line_and_column():
    ascii_terminal = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    environment = raw_env(3)
    environment.reset(seed=1)
    for _ in range(30):
        environment.step(int(environment.last()[0]["action_mask"].argmax()))
        text = render_ansi(environment.game_state)
        plain = printable(text, ascii_terminal)
        assert plain.isascii()
        assert [len(line) for line in plain.split("\n")] == [len(x) for x in text.split("\n")]


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_a_process_of_any_encoding_plays_on(encoding, tmp_path):
    code = """
import marrakech_env
environment = marrakech_env.env(render_mode="human")
environment.reset(seed=0)
environment.step(1)
"""
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=tmp_path,
        env={**os.environ, "PYTHONIOENCODING": encoding},
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.decode(encoding).count("Player 0 to") == 2


class Broken(io.StringIO):
    """A stdout that takes nothing."""

    def __init__(self, error):
        super().__init__()
        self.error = error

    def write(self, text):
        raise self.error


ERRORS = [
    BrokenPipeError(errno.EPIPE, "Broken pipe"),
    OSError(errno.ENOSPC, "No space left on device"),
    ValueError("I/O operation on closed file."),
]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
@pytest.mark.parametrize("kind", SHOWS)
def test_a_board_that_cannot_be_printed_is_a_warning(kind, error, monkeypatch):
    monkeypatch.setattr(sys, "stdout", Broken(error))
    with pytest.warns(UserWarning, match=f"the board cannot be printed: .*{error.args[-1]}"):
        SHOWS[kind]()


@pytest.mark.parametrize("close", ["sys.{}.close()", "sys.{} = None", "os.close(sys.{}.fileno())"])
def test_without_stdout_and_stderr_the_game_goes_on(close, tmp_path):
    code = f"""
import os, sys, marrakech_env
environment = marrakech_env.env(render_mode="human")
{close.format("stdout")}
{close.format("stderr")}
for _ in range(3):
    environment.reset(seed=0)
    environment.step(1)
open("done", "w").close()
"""
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, check=False)
    assert (tmp_path / "done").exists()
