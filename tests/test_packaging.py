"""The wheel and the sdist: what is in them, and that they work where nothing else of ours is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {"marrakech_env": "marrakech_env", "agents": "marrakech_agents"}
NOT_SOURCE = {"__pycache__", ".DS_Store"}

# Runs with the installed package only. The first argument is the folder it must come from.
PLAY_A_GAME = """
import sys
from importlib.metadata import entry_points
from pathlib import Path

home = Path(sys.argv[1]).resolve()

import marrakech_env

heavy = {"torch", "matplotlib", "stable_baselines3", "sb3_contrib", "rich", "tyro", "tkinter"}
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
assert home in Path(marrakech_env.__file__).resolve().parents, marrakech_env.__file__

import numpy as np
from marrakech_env.batch import Batch

batch = Batch(2, seed=1)
for _ in range(1000):
    batch.step(batch.action_mask.argmax(1))
    if batch.done.any():
        break
game = np.flatnonzero(batch.done)[0]
assert batch.final_shares[game].sum() == 1, batch.final_shares

agents = {agent.name: agent for agent in entry_points(group="marrakech_env.agents")}
for name in ("random", "greedy", "expectimax", "ppo", "value", "champion"):
    agent_class = agents[name].load()
    assert home in Path(sys.modules[agent_class.__module__].__file__).resolve().parents
    assert callable(agent_class().act)
assert not heavy & sys.modules.keys(), heavy & sys.modules.keys()
print("played")
"""


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a command without a display and without the paths of this process; returns stdout."""
    left_out = ("DISPLAY", "WAYLAND_DISPLAY", "PYTHONPATH")
    environment = {name: value for name, value in os.environ.items() if name not in left_out}
    words = [str(word) for word in command]
    done = subprocess.run(
        words, cwd=cwd, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{' '.join(words)}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def distributions(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist, and the wheel built from it, out of a copy: building litters its folder."""
    folder = tmp_path_factory.mktemp("distributions")
    source, output = folder / "source", folder / "output"
    left_out = shutil.ignore_patterns(*NOT_SOURCE, ".*", "*.egg-info", "runs", "build", "dist")
    shutil.copytree(ROOT, source, ignore=left_out)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", output, source, cwd=folder)
    (sdist,), (wheel,) = output.glob("*.tar.gz"), output.glob("*.whl")
    return sdist, wheel


def source_tree() -> dict[str, bytes]:
    """Every file that the wheel should hold, by its installed name."""
    tree = {}
    for folder, package in PACKAGES.items():
        for path in (ROOT / folder).rglob("*"):
            name = path.relative_to(ROOT / folder)
            if path.is_file() and not NOT_SOURCE.intersection(name.parts):
                tree[f"{package}/{name.as_posix()}"] = path.read_bytes()
    return tree


def test_wheel_holds_the_source_tree(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[1]) as wheel:
        found = {name: wheel.read(name) for name in wheel.namelist() if ".dist-info/" not in name}
    expected = source_tree()
    assert sorted(found) == sorted(expected)
    assert [name for name in expected if found[name] != expected[name]] == []
    assert {f"{package}/py.typed" for package in PACKAGES.values()} <= found.keys()


def test_sdist_holds_what_a_user_of_the_source_needs(distributions: tuple[Path, Path]) -> None:
    with tarfile.open(distributions[0]) as sdist:
        names = {name.partition("/")[2] for name in sdist.getnames()}
    needed = {"README.md", "LICENSE", "CHANGELOG.md", "constraints.txt", "tests/test_packaging.py"}
    assert needed <= names
    assert not [name for name in names if "__pycache__" in name or name.startswith("runs")]


def test_wheel_claims_only_its_own_import_names(distributions: tuple[Path, Path]) -> None:
    with zipfile.ZipFile(distributions[1]) as wheel:
        top_level = {name.split("/")[0] for name in wheel.namelist()}
    top_level = {name for name in top_level if not name.endswith(".dist-info")}
    assert top_level == {"marrakech_env", "marrakech_agents"}


def test_wheel_plays_a_game(distributions: tuple[Path, Path], tmp_path: Path) -> None:
    """Third-party packages come from this environment, ours from the wheel and nowhere else.

    `-I -S` leaves out the current folder, PYTHONPATH and every .pth file, and with those an
    editable installation; the packages of this environment are then put behind the wheel's.
    """
    home = tmp_path / "home"
    install = ("install", "--quiet", "--no-deps", "--no-index", "--target")
    run(sys.executable, "-m", "pip", *install, home, distributions[1], cwd=tmp_path)
    third_party = list(dict.fromkeys(sysconfig.get_path(key) for key in ("purelib", "platlib")))
    code = f"import sys; sys.path += {[str(home), *third_party]!r}\n{PLAY_A_GAME}"
    assert run(sys.executable, "-I", "-S", "-c", code, home, cwd=tmp_path) == "played\n"


@pytest.mark.long
@pytest.mark.parametrize("kind", ["sdist", "wheel"])
def test_empty_environment_plays_a_game(
    kind: str, distributions: tuple[Path, Path], tmp_path: Path
) -> None:
    """With a network: the core dependencies alone are enough."""
    venv = tmp_path / "venv"
    run(sys.executable, "-m", "venv", venv, cwd=tmp_path)
    python = venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    distribution = distributions[("sdist", "wheel").index(kind)]
    constraints = ROOT / "constraints.txt"
    run(python, "-m", "pip", "install", "--quiet", "-c", constraints, distribution, cwd=tmp_path)
    installed = run(python, "-m", "pip", "list", "--format=freeze", cwd=tmp_path).lower()
    assert "torch" not in installed
    assert "matplotlib" not in installed
    assert run(python, "-I", "-c", PLAY_A_GAME, venv, cwd=tmp_path) == "played\n"
