"""Imports: a light door, arrows that go one way, and no dependency that was not declared."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SCRIPTS = ("train", "evaluate")

# A module may import from the rows above its own, and from its own row as long as no circle
# arises. Packages (kernels, observation, render, arena, play) count as one module.
LAYERS = (
    ("spec", "files", "ownership", "command_line"),
    ("compile",),
    ("tables",),
    ("state",),
    ("actions",),
    ("game",),
    ("kernels",),
    ("rules",),
    ("chance", "observation", "notation", "rewards", "solver"),
    ("batch_kernels",),
    ("batch",),
    ("agent",),
    ("render",),
    ("opponents",),
    ("seat_kernels",),
    ("seats",),
    ("aec", "vector", "sb3"),
    ("arena",),
    ("play",),
)
# These only re-export or start things, so they may import from everywhere.
DOORS = ("__init__", "__main__", "marrakech_v0")

# The agents by name stand above the rooms of `agents/`; each part lists what it may import.
AGENTS = ("random", "greedy", "expectimax", "ppo", "value", "champion")
AGENT_ARROWS = {
    "common": (),
    "heuristic": ("common",),
    "policy_net": ("common",),
    "value_net": ("common", "heuristic"),
}
AGENT_ARROWS |= dict.fromkeys(AGENTS, (*AGENT_ARROWS, *AGENTS))
AGENT_ARROWS["training"] = tuple(AGENT_ARROWS)

CORE_DEPENDENCIES = {"msgspec", "numpy", "numba", "gymnasium", "pettingzoo", "PIL"}
EXTRA_DEPENDENCIES = {
    "sb3": {"stable_baselines3"},
    "arena": {"matplotlib", "rich", "tyro"},
}

HEAVY = ("torch", "matplotlib", "stable_baselines3", "sb3_contrib", "rich", "tyro", "tkinter")


def module_name(path: Path) -> str:
    """`marrakech_env/arena/match.py` -> `marrakech_env.arena.match`; packages by their name."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    if parts[-1] == "__init__":
        parts = parts[:-1]
    return ".".join(("marrakech_agents", *parts[1:]) if parts[0] == "agents" else parts)


def source_files(*folders: str) -> list[Path]:
    return [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]


MODULES = {module_name(path): path for path in source_files("marrakech_env", "agents")}


def imported_names(name: str, path: Path) -> Iterator[str]:
    """Absolute names of all that a file imports, inside functions too.

    `from package import thing` counts as `package.thing` where that is a module of ours.
    """
    package = name.split(".") if path.name == "__init__.py" else name.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) + 1 - node.level] if node.level else []
            source = ".".join([*base, *filter(None, [node.module])])
            for alias in node.names:
                inner = f"{source}.{alias.name}"
                yield inner if inner in MODULES else source


def room(name: str) -> str:
    """The part of a module name that stands in `LAYERS`; the package itself is its `__init__`."""
    parts = name.split(".")
    return parts[1] if len(parts) > 1 else "__init__"


def layer(name: str) -> int:
    """The row of a module in `LAYERS`, below all of them where it has none."""
    return next((row for row, names in enumerate(LAYERS) if room(name) in names), len(LAYERS))


def environment_modules() -> dict[str, Path]:
    return {name: path for name, path in MODULES.items() if name.startswith("marrakech_env")}


def inner_modules(package: str) -> dict[str, Path]:
    """The modules of a package that are no doors."""
    modules = {name: path for name, path in MODULES.items() if name.startswith(package)}
    return {name: path for name, path in modules.items() if room(name) not in DOORS}


def arrows(package: str) -> Iterator[tuple[str, str]]:
    """Who imports whom, from one room or module of a package to another."""
    for name, path in inner_modules(package).items():
        for target in imported_names(name, path):
            if target.split(".")[0] == package and room(target) != room(name):
                yield name, target


def test_every_module_has_a_layer() -> None:
    known = {name for row in LAYERS for name in row}
    unknown = sorted(name for name in inner_modules("marrakech_env") if room(name) not in known)
    assert not unknown, f"give these a row in LAYERS of {Path(__file__).name}: {unknown}"


def test_imports_go_one_way() -> None:
    wrong = [
        f"{name} imports {target}"
        for name, target in arrows("marrakech_env")
        if room(target) in DOORS or layer(target) > layer(name)
    ]
    assert not wrong, "against the order of LAYERS: " + "; ".join(wrong)


def test_agents_and_their_rooms_import_one_way() -> None:
    parts = {room(name) for name in inner_modules("marrakech_agents")}
    assert parts == set(AGENT_ARROWS), "give every part of agents/ its arrows in AGENT_ARROWS"
    wrong = [
        f"{name} imports {target}"
        for name, target in arrows("marrakech_agents")
        if room(target) not in AGENT_ARROWS[room(name)]
    ]
    assert not wrong, "against AGENT_ARROWS: " + "; ".join(wrong)


@pytest.mark.parametrize("package", ["marrakech_env", "marrakech_agents"])
def test_imports_make_no_circle(package: str) -> None:
    graph = {
        name: {target for target in imported_names(name, path) if target in MODULES} - {package}
        for name, path in MODULES.items()
        if name.startswith(package)
    }
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail("a circle of imports: " + " -> ".join(error.args[1]))


def test_environment_knows_neither_agents_nor_scripts() -> None:
    forbidden = {"marrakech_agents", "agents", "tests", *SCRIPTS}
    wrong = [
        f"{name} imports {target}"
        for name, path in environment_modules().items()
        for target in imported_names(name, path)
        if target.split(".")[0] in forbidden
    ]
    assert not wrong, "; ".join(wrong)


def test_environment_needs_only_declared_packages() -> None:
    wrong = []
    for name, path in environment_modules().items():
        allowed = {"marrakech_env"} | CORE_DEPENDENCIES | EXTRA_DEPENDENCIES.get(room(name), set())
        for target in imported_names(name, path):
            top = target.split(".")[0]
            if top not in allowed and top not in sys.stdlib_module_names:
                wrong.append(f"{name} imports {top}")
    assert not wrong, "; ".join(wrong)


def test_nobody_imports_the_folder_agents() -> None:
    """Its import name is `marrakech_agents`; `agents` belongs to another package."""
    folders = ("marrakech_env", "agents", "tests", "examples", "benchmarks")
    files = source_files(*folders) + [ROOT / f"{name}.py" for name in SCRIPTS]
    wrong = [
        f"{path.relative_to(ROOT)} imports {target}"
        for path in files
        if path.exists()
        for target in imported_names(module_name(path), path)
        if target.split(".")[0] == "agents"
    ]
    assert not wrong, "; ".join(wrong)


def test_agents_import_each_other_relatively() -> None:
    wrong = [
        str(path.relative_to(ROOT))
        for path in source_files("agents")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom)
        and not node.level
        and (node.module or "").split(".")[0] == "marrakech_agents"
    ]
    assert not wrong, wrong


def test_import_is_light(tmp_path: Path) -> None:
    code = f"""
import sys
import marrakech_env
print([name for name in {HEAVY!r} if name in sys.modules])
"""
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
    assert not done.stderr
