"""Agents whose code misbehaves: `sys.exit`, attributes that raise, odd answers; loading files."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from seated import Lowest, Scripted
from whole_borders import MAKERS, WITH_OPPONENTS, play, reset

from marrakech_env.agent import (
    FunctionAgent,
    ObservationAgent,
    agent_name,
    agent_number,
    agent_version,
    load_agent,
)
from marrakech_env.vector import MarrakechEnv


class Raising:
    """An agent whose attributes raise an error."""

    def __init__(self, error, *names):
        self._error, self._names = error, names

    def __getattribute__(self, name):
        if not name.startswith("_") and name in self._names:
            raise self._error
        return object.__getattribute__(self, name)

    def act(self, states, rng):
        return Lowest().act(states, rng)


ERRORS = [ValueError("no"), SystemExit(0), OSError("disk"), RecursionError("deep")]


@pytest.mark.parametrize("error", ERRORS, ids=repr)
def test_an_attribute_that_raises_is_an_error_of_the_agent(error):
    reads = {
        "act": lambda agent: load_agent(agent),
        "name": lambda agent: agent_name(agent, agent),
        "version": lambda agent: agent_version(agent, "mine"),
        "num_players": lambda agent: load_agent(agent, 2),
        "num_parameters": lambda agent: agent_number(agent, "num_parameters", "mine"),
    }
    for attribute, read in reads.items():
        told = f"agent .*: reading its attribute {attribute} raised {type(error).__name__}"
        with pytest.raises(ValueError, match=told):
            read(Raising(error, attribute))


def test_an_act_that_raises_later_is_named_by_the_border():
    agent = Raising(RuntimeError("late"))
    border = MarrakechEnv(opponents=agent, seat=1)
    agent._names = ("act",)
    with pytest.raises(RuntimeError, match="late") as raised:
        border.reset(seed=1)
    assert raised.value.__notes__ == ["raised by the agent 'Raising'"]


@pytest.mark.parametrize("code", [None, 0, 3, "bye"])
@pytest.mark.parametrize("kind", WITH_OPPONENTS)
def test_an_opponent_that_calls_sys_exit_is_an_error_that_names_it(kind, code):
    border = MAKERS[kind](Scripted(lambda states: sys.exit(code), "quitter"))
    with pytest.raises(RuntimeError, match=rf"agent 'quitter' called sys.exit\({code!r}\)"):
        reset(border, seed=1)


def test_a_process_does_not_end_well_when_an_opponent_calls_sys_exit(tmp_path):
    code = """
import sys
from marrakech_env.vector import MarrakechEnv

def quitter(states, rng):
    sys.exit(0)

MarrakechEnv(opponents=quitter, seat=1).reset(seed=1)
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "RuntimeError: agent 'quitter' called sys.exit(0)" in done.stderr


class Torn:
    """An answer that cannot become an array."""

    def __array__(self, *_, **__):
        raise TypeError("on another device")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda states: Torn(), "on another device"),
        (lambda states: [[0], [0, 1]], "inhomogeneous|sequence"),
        (lambda states: {}, "opponent 'odd': actions must be integers"),
        (lambda states: "0" * len(states), "opponent 'odd': actions must be integers"),
        (lambda states: np.full(len(states), 2**63, np.uint64), "action 9223372036854775808 is"),
        (lambda states: [2**70] * len(states), "is not legal"),
    ],
)
def test_an_odd_answer_is_named(answer, message):
    border = MAKERS["VectorEnv"](Scripted(answer, "odd"))
    with pytest.raises((ValueError, TypeError), match=message) as raised:
        border.reset(seed=1)
    assert "'odd'" in str(raised.value) + str(getattr(raised.value, "__notes__", ""))


@pytest.mark.parametrize("wrong", [3, None, "act", [1]])
def test_what_cannot_be_called_is_no_function(wrong):
    for make in (FunctionAgent, ObservationAgent):
        with pytest.raises(ValueError, match="wanted: a function"):
            make(wrong)


class Unshown(Lowest):
    name = "unshown"

    def __repr__(self):
        raise RuntimeError("no repr")


def test_an_agent_without_a_repr_plays_and_can_be_complained_of():
    agent = Unshown()
    border = MAKERS["VectorEnv"]({agent: 1})
    reset(border, seed=1)
    play(border, 3)
    for wrong in ({agent: -1}, {agent: 0}, [agent]):
        with pytest.raises(ValueError, match=r"weight|each of the 3 seats"):
            border.set_opponents(wrong)


# ------------------------------------------------------------------------------------- loading


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.mark.parametrize(
    "text", ["import sys; sys.exit(0)", "raise SystemExit", "class agent:\n  act = property(exit)"]
)
def test_a_file_that_ends_the_process_is_refused(here, text):
    Path("mine.py").write_text(text)
    for spec in ("mine.py", "mine.py:agent", "mine:agent"):
        with pytest.raises(ValueError, match=rf"agent '{spec}'.*SystemExit"):
            load_agent(spec)


SLOW = """
import time
from pathlib import Path
time.sleep(0.2)
with Path("runs.txt").open("a") as runs:
    runs.write("run\\n")
class Agent:
    def act(self, states, rng):
        return [1] * len(states)
agent = Agent()
"""


def in_threads(work, threads=8):
    """The results or errors of work in several threads that start at once."""
    results, start = [], threading.Barrier(threads)

    def run():
        start.wait()
        try:
            results.append(work())
        except Exception as error:
            results.append(error)

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return results


def test_a_file_is_run_once_however_many_threads_load_it(here):
    Path("folder").mkdir()
    Path("folder/mine.py").write_text(SLOW)
    found = in_threads(lambda: load_agent("folder/mine.py"))
    assert len({id(agent) for agent in found}) == 1
    assert Path("runs.txt").read_text() == "run\n"
    assert sys.path.count(str(here / "folder")) == 1
    assert sys.modules[type(found[0]).__module__].agent is found[0]


def test_a_file_that_fails_fails_in_every_thread_and_may_be_mended(here):
    Path("mine.py").write_text("import time\ntime.sleep(0.1)\nraise ValueError('not yet')\n")
    for error in in_threads(lambda: load_agent("mine.py")):
        assert isinstance(error, ValueError)
        assert "ValueError: not yet" in str(error)
    Path("mine.py").write_text("agent = lambda states, rng: [1] * len(states)\n")
    assert load_agent("mine.py").act([0], None) == [1]


def test_a_file_that_changed_is_run_again(here):
    for number in range(3):
        Path("mine.py").write_text(f"def act(states, rng):\n    return {'1' * (number + 1)}\n")
        time.sleep(0.01)
        assert load_agent("mine.py").act(None, None) == int("1" * (number + 1))


def test_a_file_that_loads_itself_is_refused_instead_of_hanging(here):
    Path("mine.py").write_text("import marrakech_env\nmarrakech_env.load_agent('mine.py')\n")
    with pytest.raises(ValueError, match="the file has neither `act` nor `agent`"):
        load_agent("mine.py")
