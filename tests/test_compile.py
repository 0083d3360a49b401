"""The cache of compiled kernels: fresh when any source changes, harmless when damaged."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import marrakech_env
from marrakech_env import compile

PLAY = "from marrakech_env import rules; from marrakech_env.state import STATE; import numpy; "
PLAY += "from marrakech_env.spec import RuleSet; s = numpy.zeros(1, STATE); "
PLAY += "rules.reset(s, RuleSet.preset('official')); print(rules.action_mask(s).sum())"

COUNT = """
from marrakech_env import compile
save, saved = compile._PackageCache.save_overload, []
def counted(self, sig, data):
    saved.append(sig)
    save(self, sig, data)
compile._PackageCache.save_overload = counted
"""


@pytest.fixture
def package(tmp_path):
    """A copy of the package's sources without compiled kernels, to be imported from tmp_path."""
    shutil.copytree(
        Path(marrakech_env.__file__).parent,
        tmp_path / "marrakech_env",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return tmp_path


def start(folder, code=PLAY, **environment):
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        stdout=subprocess.PIPE,
        text=True,
    )


def run(folder, code=PLAY, **environment):
    process = start(folder, code, **environment)
    out, _ = process.communicate()
    assert process.returncode == 0
    return out.strip()


def kernels(folder):
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.nbc")}


def test_kernels_are_cached_and_made_anew_when_another_file_changed(package):
    cache = package / "cache"
    environment = {"NUMBA_CACHE_DIR": str(cache)}
    assert run(package, **environment) == "3"
    first = kernels(cache)
    assert first
    assert run(package, **environment) == "3"
    assert kernels(cache) == first
    table = package / "marrakech_env" / "tables.py"
    table.write_text(table.read_text() + "\n# changed\n")
    assert run(package, **environment) == "3"
    changed = {path for path, when in kernels(cache).items() if first.get(path) != when}
    assert any("fill_action_mask" in path.name for path in changed)


def test_a_damaged_cache_is_compiled_over(package):
    cache = package / "cache"
    environment = {"NUMBA_CACHE_DIR": str(cache)}
    run(package, **environment)
    for path in cache.rglob("*.nb[ci]"):
        path.write_bytes(b"damaged")
    assert run(package, **environment) == "3"


def test_of_many_processes_with_an_empty_cache_one_compiles_each_kernel(package):
    code = COUNT + PLAY + "; print(len(saved))"
    alone = run(package, code, NUMBA_CACHE_DIR=str(package / "alone"))
    processes = [start(package, code, NUMBA_CACHE_DIR=str(package / "shared")) for _ in range(4)]
    printed = [process.communicate()[0].split() for process in processes]
    assert [legal for legal, _ in printed] == ["3"] * 4
    assert sum(int(compiled) for _, compiled in printed) == int(alone.split()[1])


def test_a_process_that_died_while_compiling_holds_nobody_up(package):
    cache = package / "cache"
    killed = "import os; compile._PackageCache.save_overload = lambda *_: os._exit(0)\n"
    process = start(package, COUNT + killed + PLAY, NUMBA_CACHE_DIR=str(cache))
    process.communicate()
    assert not kernels(cache)
    assert list(cache.rglob("*.lock"))
    assert run(package, NUMBA_CACHE_DIR=str(cache)) == "3"


def test_an_install_that_cannot_be_written_is_cached_in_the_users_folder(package, monkeypatch):
    (package / "marrakech_env" / "__pycache__").write_text("in the way of a folder")
    environment = {"XDG_CACHE_HOME": str(package / "home"), "HOME": str(package / "home")}
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    assert run(package, **environment) == "3"
    assert kernels(package / "home")


def test_switched_off_compiling_is_told_at_the_first_import_of_a_kernel() -> None:
    code = "import marrakech_env.batch"
    run = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "NUMBA_DISABLE_JIT": "1"},
        capture_output=True,
        text=True,
    )
    assert run.returncode == 1
    assert "unset NUMBA_DISABLE_JIT" in run.stderr


def test_long_compiling_is_told_again_and_again(monkeypatch, capsys):
    monkeypatch.setattr(compile, "PATIENCE", 0.01)
    monkeypatch.setattr(compile, "REPEAT", 0.01)
    clock = compile._CompileClock()
    clock.start()
    deadline = time.monotonic() + 60
    told = ""
    while told.count("compiling kernels") < 3 and time.monotonic() < deadline:
        time.sleep(0.01)
        told += capsys.readouterr().err
    clock.stop()
    assert told.count("compiling kernels") >= 3
    assert "s so far" in told


def test_nothing_is_told_when_the_compiling_has_ended_meanwhile(capsys):
    compile._CompileClock()._tell()  # as the thread of a timer that could not be stopped in time
    assert capsys.readouterr().err == ""
