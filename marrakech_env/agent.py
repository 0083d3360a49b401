"""What an agent is, and how a name, a path or `module:attr` becomes one.

Legend: `B` games, `P` players, `A` = 15 actions.

`load_agent` runs code: it imports the given `.py` file or module, or the package that offers a
name. Give it only what you would run yourself.
"""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import inspect
import json
import os
import reprlib
import sys
import threading
import traceback
import zlib
from collections.abc import Callable, Iterator
from importlib.metadata import EntryPoint, EntryPoints, entry_points
from pathlib import Path
from types import ModuleType
from typing import Any, Final, Protocol, TypeAlias, cast, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from marrakech_env.observation import encode, find_form
from marrakech_env.rules import action_mask
from marrakech_env.spec import check_num_players, whole_number
from marrakech_env.state import States

AGENT_GROUP: Final = "marrakech_env.agents"
"""Entry points NAME = an object with `act`, a class called without arguments, or a function."""
MODEL_GROUP: Final = "marrakech_env.models"
"""Entry points KIND = a function from the path of a trained model to an agent."""


@runtime_checkable
class Agent(Protocol):
    """What decides for a player.

    Some attributes are optional: `name`, the name in tables (without it, the text it is loaded
    by); `num_players`, the one number of players it can play with (without it, any); `version`, a
    whole number that grows when the agent plays differently (without it, 1); `num_parameters`, the
    number of its weights.
    """

    def act(self, states: States, rng: np.random.Generator) -> Any:
        """Decide in every game for the player to move.

        Args:
            states: STATE (B,), a copy of B at least 1 unfinished games with one `num_players`.
            rng: The only source of randomness that keeps runs repeatable.

        Returns:
            int (B,), a legal action 0..14 for each game.
        """
        ...


ActFunction: TypeAlias = Callable[[States, np.random.Generator], Any]
Policy: TypeAlias = Callable[[NDArray[Any], NDArray[np.bool_], np.random.Generator], Any]


class FunctionAgent:
    """An agent made of a function `act(states, rng)`."""

    def __init__(self, function: ActFunction, name: str | None = None) -> None:
        """Wrap a function; its own name is the display name where `name` is None.

        Raises:
            ValueError: It cannot be called.
        """
        self.name = name or _name_of(function)
        self._function = function

    def act(self, states: States, rng: np.random.Generator) -> Any:
        """Call the function."""
        return self._function(states, rng)


class ObservationAgent:
    """An agent made of a policy that takes observations instead of states."""

    def __init__(
        self, policy: Policy, observation: str = "features", name: str | None = None
    ) -> None:
        """Wrap a policy.

        Args:
            policy: Called with observations (B, ...) of the players to move, their action masks
                bool (B, 15) and a NumPy Generator; returns int (B,), legal actions.
            observation: `planes`, `flat` or `features`.
            name: Display name; the policy's own name where None.

        Raises:
            ValueError: An unknown form of observation, or a policy that cannot be called.
        """
        self.name = name or _name_of(policy)
        self._policy = policy
        self._observation = find_form(observation).name

    def act(self, states: States, rng: np.random.Generator) -> Any:
        """Encode the states and call the policy."""
        return self._policy(encode(states, self._observation), action_mask(states), rng)


def _name_of(function: Callable[..., Any]) -> str:
    if not callable(function):
        raise ValueError(f"wanted: a function, not {reprlib.repr(function)}")
    return str(getattr(function, "__name__", type(function).__name__))


def ask(agent: Agent, name: str, states: States, rng: np.random.Generator) -> NDArray[Any]:
    """Return the answer of an agent as a new array, which is not checked yet.

    Args:
        agent: The agent.
        name: What errors call it.
        states: STATE (B,), a copy for the agent.
        rng: What the agent draws from.

    Raises:
        RuntimeError: The agent called `sys.exit`.
        Exception: The agent's own error, with a note that names the agent.
    """
    with errors_of(name):
        # A copy: an agent may keep its array, and change it while the game goes on.
        return np.array(agent.act(states, rng))


@contextlib.contextmanager
def errors_of(name: str) -> Iterator[None]:
    """Name an agent in the errors of its code, and make an error of `sys.exit`."""
    try:
        yield
    except SystemExit as error:
        raise RuntimeError(
            f"agent {name!r} called sys.exit({error.code!r}); it must return a result"
        ) from error
    except Exception as error:
        error.add_note(f"raised by the agent {name!r}")
        raise


# ------------------------------------------------------------------------------------- loading


def load_agent(spec: str | os.PathLike[str] | object, num_players: int | None = None) -> Agent:
    """Turn what `opponents=` and the command lines accept into an agent.

    A file that has not changed is run once, however often and from however many threads its agents
    are loaded.

    Args:
        spec: One of

            * an object with `act`, returned as it is, a class of such objects (called without
              arguments), or a function `act(states, rng)`;
            * a name from the entry point group `marrakech_env.agents`;
            * an existing path: a `.py` file with `act` or `agent` in it, also `FILE.py:attr`, or
              a trained model (see `model_file`);
            * `module:attr`, looked up from the current folder too; `attr` is anything of the
              first kind.

            A name goes before a path; `./NAME` is the path. A text may end in `@N`: then the
            agent must have version N.
        num_players: Where given, an agent that is made for another number of players is refused.

    Raises:
        ValueError: Nothing is found there, or it is no agent, or loading it fails, or one of its
            attributes is wrong; the message names the agent and lists what is allowed.
    """
    if num_players is not None:
        check_num_players(num_players)
    try:
        agent = _find_agent(spec)
    except OSError as error:
        raise ValueError(f"agent {str(spec)!r}: {error.strerror or error}; {_allowed()}") from error
    wanted = agent_number(agent, "num_players", spec)
    if num_players is not None and wanted is not None and wanted != num_players:
        raise ValueError(
            f"agent {agent_name(agent, spec)!r} is made for {wanted} players, not for {num_players}"
        )
    return agent


def known_agents() -> list[str]:
    """The names that `load_agent` knows in this installation, sorted."""
    return sorted(entry_points(group=AGENT_GROUP).names)


def agent_name(agent: object, spec: object) -> str:
    """Return the name of an agent in a table.

    Args:
        agent: The agent.
        spec: What it was loaded from. A text is the best name, because two models of one kind
            share their attribute `name`.

    Raises:
        ValueError: Reading the attribute `name` raises an error.
    """
    if isinstance(spec, str | os.PathLike):
        return os.fspath(spec)
    return str(_read(agent, "name", type(agent).__name__, type(agent).__name__))


def agent_number(agent: object, attribute: str, spec: object = None) -> int | None:
    """Return a whole number that an agent may have as an attribute, None where it has none.

    Args:
        agent: The agent.
        attribute: `num_players` or `num_parameters`.
        spec: What the agent was loaded from.

    Raises:
        ValueError: The attribute is something else; names the agent.
    """
    given = _read(agent, attribute, None, agent_name(agent, spec))
    return None if given is None else _checked_number(agent, attribute, given, spec)


def agent_version(agent: object, spec: object = None) -> int:
    """Return the version of an agent, 1 where it names none; see `agent_number`."""
    given = _read(agent, "version", 1, agent_name(agent, spec))
    return _checked_number(agent, "version", given, spec)


def _checked_number(agent: object, attribute: str, given: object, spec: object) -> int:
    number = whole_number(given)
    if number is None or number < 0:
        raise ValueError(
            f"agent {agent_name(agent, spec)!r}: its attribute {attribute} must be a whole number "
            f"from 0 on, or be left out, not {given!r}"
        )
    return number


def model_file(path: str | os.PathLike[str]) -> Path:
    """Return the file that says what kind of trained model lies at a path.

    A trained model is described by a JSON file that holds an object with a field `kind`, and
    `kind` is the name of its loader in the entry point group `marrakech_env.models`. In a folder
    that file is `model.json`; beside a file of weights it is the file of that name with `.json`.
    The loader is called with the path of this file.

    Raises:
        ValueError: There is no such file.
    """
    found = Path(path)
    description = found / "model.json" if found.is_dir() else found.with_suffix(".json")
    if not description.is_file():
        raise ValueError(f"{os.fspath(path)!r} is no trained model: there is no {description}")
    return description


def _find_agent(spec: object) -> Agent:
    if isinstance(spec, os.PathLike):
        spec = os.fspath(spec)
    if not isinstance(spec, str):
        return _as_agent(spec, reprlib.repr(spec))  # short, and fit for any object
    offered = entry_points(group=AGENT_GROUP, name=spec)
    if offered:
        return _as_agent(_load_entry(_only(offered, "agent", spec)), spec)
    if spec and Path(spec).exists():
        return _agent_at(Path(spec), spec)
    base, at, version = spec.rpartition("@")
    if at and base and version.isdecimal():
        return _of_version(int(version), _find_agent(base), base)
    target, colon, attribute = spec.rpartition(":")
    if colon and attribute:
        if target.endswith(".py"):
            if Path(target).is_file():
                return _as_agent(_attribute(_run_file(Path(target), spec), attribute, spec), spec)
        elif all(part.isidentifier() for part in target.split(".")):
            return _as_agent(_attribute(_import(target, spec), attribute, spec), spec)
    if target.endswith(".py") or spec.endswith(".py"):
        missing = target if target.endswith(".py") else spec
        raise ValueError(f"agent {spec!r}: there is no file {missing} in {Path.cwd()}")
    if os.sep in spec or "/" in spec:
        raise ValueError(f"agent {spec!r}: there is no such file or folder in {Path.cwd()}")
    raise ValueError(f"unknown agent {spec!r}; {_allowed()}")


def _allowed() -> str:
    """What a text may be."""
    return (
        f"known names: {', '.join(known_agents()) or 'none'}; also allowed: an existing path (a "
        ".py file with `act` or `agent` in it, FILE.py:attr, or a trained model) and module:attr"
    )


def _of_version(wanted: int, agent: Agent, spec: str) -> Agent:
    found = agent_version(agent, spec)
    if found != wanted:
        raise ValueError(
            f"agent '{spec}@{wanted}' is not installed; {spec!r} has version {found} here"
        )
    return agent


def _agent_at(path: Path, spec: str) -> Agent:
    """The agent of an existing path."""
    if path.suffix == ".py" and path.is_file():
        module = _run_file(path, spec)
        for attribute in ("act", "agent"):
            if hasattr(module, attribute):
                return _as_agent(getattr(module, attribute), spec)
        raise ValueError(f"agent {spec!r}: the file has neither `act` nor `agent`")
    return _load_model(model_file(path), spec)


def _load_model(description: Path, spec: str) -> Agent:
    """The agent of a trained model, made by the loader of its kind."""
    try:
        content = json.loads(description.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"agent {spec!r}: {description} cannot be read: {error}") from error
    kind = content.get("kind") if isinstance(content, dict) else None
    kinds = entry_points(group=MODEL_GROUP)
    if not isinstance(kind, str) or kind not in kinds.names:
        raise ValueError(
            f"agent {spec!r}: {description} names the kind of model {kind!r}; "
            f"known: {', '.join(sorted(kinds.names)) or 'none'}"
        )
    loader = _load_entry(_only(kinds.select(name=kind), "kind of model", kind))
    with _named(f"agent {spec!r}: loading {description}", passing=ValueError):
        return _as_agent(loader(description), spec)


def _as_agent(found: Any, spec: str) -> Agent:
    """An agent from an object with `act`, a class of such objects, or a function."""
    if inspect.isclass(found):
        with _named(f"agent {spec!r}: calling the class {found.__name__} without arguments"):
            found = found()
    if callable(_read(found, "act", None, spec)):
        return cast(Agent, found)
    if callable(found):
        return FunctionAgent(found)
    raise ValueError(
        f"agent {spec!r} is a {type(found).__name__}; wanted: an object with `act`, a class of "
        "such objects, or a function act(states, rng)"
    )


def _only(offered: EntryPoints, what: str, name: str) -> EntryPoint:
    """The one entry point of a name, or a ValueError where packages offer different ones."""
    values = sorted({entry.value for entry in offered})
    if len(values) > 1:
        raise ValueError(f"the {what} {name!r} is offered by several packages: {', '.join(values)}")
    return next(iter(offered))


def _load_entry(entry: EntryPoint) -> Any:
    with _named(f"loading the entry point {entry.name!r} ({entry.value}) of {entry.group}"):
        return entry.load()


def _import(name: str, spec: str) -> ModuleType:
    _make_importable(Path.cwd())
    with _named(f"agent {spec!r}: importing the module {name!r}"):
        return importlib.import_module(name)


_file_locks: Final[dict[str, threading.RLock]] = {}
"""By name of a module that is a file: who holds its lock runs the file."""
_path_lock: Final = threading.Lock()


def _run_file(path: Path, spec: str) -> ModuleType:
    """The module of a file, which can import the files beside it; run where it is new."""
    path = path.resolve()
    _make_importable(path.parent)
    # Files of one name in two folders are two modules.
    name = f"{path.stem}_{zlib.crc32(os.fsencode(path)):08x}"
    with _file_locks.setdefault(name, threading.RLock()):
        stat = path.stat()
        stamp = (stat.st_mtime_ns, stat.st_size)
        known = sys.modules.get(name)
        if known is not None and vars(known).get("__stamp__") == stamp:
            return known
        module_spec = importlib.util.spec_from_file_location(name, path)
        assert module_spec is not None
        assert module_spec.loader is not None
        module = importlib.util.module_from_spec(module_spec)
        vars(module)["__stamp__"] = stamp
        sys.modules[name] = module
        try:
            with _named(f"agent {spec!r}: running {path}"):
                module_spec.loader.exec_module(module)
        except BaseException:
            sys.modules.pop(name, None)
            raise
        return module


def _make_importable(folder: Path) -> None:
    """Let modules of a folder be found, after all others, so that they hide none."""
    with _path_lock:
        if str(folder) not in sys.path and not (folder == Path.cwd() and "" in sys.path):
            sys.path.append(str(folder))


def _attribute(module: ModuleType, path: str, spec: str) -> Any:
    found: Any = module
    missing = object()
    for name in path.split("."):
        found = _read(found, name, missing, spec)
        if found is missing:
            known = ", ".join(sorted(n for n in vars(module) if not n.startswith("_")))
            raise ValueError(
                f"agent {spec!r}: {module.__name__!r} has no {path!r}; it has: {known or 'nothing'}"
            )
    return found


def _read(found: object, attribute: str, default: object, spec: str) -> Any:
    """An attribute of somebody else's object; a property may raise anything."""
    with _named(f"agent {spec!r}: reading its attribute {attribute}"):
        return getattr(found, attribute, default)


@contextlib.contextmanager
def _named(work: str, passing: type[Exception] | tuple[()] = ()) -> Iterator[None]:
    """Turn an error of somebody else's code into a ValueError that says what raised it, where."""
    try:
        yield
    except passing:
        raise
    except (Exception, SystemExit) as error:
        places = [
            f" ({frame.filename}:{frame.lineno})"
            for frame in traceback.extract_tb(error.__traceback__)
            if frame.filename not in (__file__, importlib.__file__)
            and not frame.filename.startswith("<frozen")
        ]
        place = places[-1] if places else ""
        raise ValueError(f"{work} raised {type(error).__name__}: {error}{place}") from error
