"""Fixtures of the leaderboard, for its own tests and those of its command; Ctrl-C for all tests."""

from __future__ import annotations

import signal
from pathlib import Path

import pytest
from leaderboard_agents import FOR_TWO, NOISY

from marrakech_env.arena import leaderboard

# A shell or nohup starts background jobs that ignore these, and the tests of signals need them.
if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if hasattr(signal, "SIGHUP") and signal.getsignal(signal.SIGHUP) == signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


@pytest.fixture
def no_late_positions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaderboard, "play_endgames", lambda *arguments: ())


@pytest.fixture
def one_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaderboards end after one round of each line-up instead of after some time."""
    monkeypatch.setattr(leaderboard, "MOST_DEALS", 4)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An own current folder with agents in it; by name only the quick agents are known."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "noisy.py").write_text(NOISY)
    (tmp_path / "two.py").write_text(FOR_TWO)
    monkeypatch.setattr(leaderboard, "known_agents", lambda: ["greedy", "random"])
    return tmp_path
