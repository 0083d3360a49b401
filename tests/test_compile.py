"""The cache of compiled kernels: fresh when any source changes, harmless when damaged."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import marrakech_env

PLAY = "from marrakech_env import rules; from marrakech_env.state import STATE; import numpy; "
PLAY += "from marrakech_env.spec import RuleSet; s = numpy.zeros(1, STATE); "
PLAY += "rules.reset(s, RuleSet.preset('official')); print(rules.action_mask(s).sum())"


@pytest.fixture
def package(tmp_path):
    """A copy of the package's sources without compiled kernels, to be imported from tmp_path."""
    shutil.copytree(
        Path(marrakech_env.__file__).parent,
        tmp_path / "marrakech_env",
        ignore=shutil.ignore_patterns("__pycache__"),
    )
    return tmp_path


def run(folder, code=PLAY, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(folder), **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


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
