"""Agents: the protocol, loading by name, path and `module:attr`, and what is said when it fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marrakech_env.agent import (
    Agent,
    FunctionAgent,
    ObservationAgent,
    agent_name,
    known_agents,
    load_agent,
    model_file,
)
from marrakech_env.batch import Batch
from marrakech_env.observation import encode
from marrakech_env.rules import action_mask

LOWEST = """
from marrakech_env import rules

def act(states, rng):
    return rules.action_mask(states).argmax(axis=1)
"""


def lowest(states: Any, rng: np.random.Generator) -> Any:
    return action_mask(states).argmax(axis=1)


class Highest:
    name = "the highest"

    def act(self, states: Any, rng: np.random.Generator) -> Any:
        return 14 - action_mask(states)[:, ::-1].argmax(axis=1)


class Wanting:
    def __init__(self, argument: int) -> None:
        self.argument = argument


def actions_of(agent: Agent, games: int = 5) -> list[int]:
    actions = agent.act(Batch(games, seed=3).states, np.random.default_rng(0))
    return list(np.asarray(actions))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """An empty current folder; what is imported meanwhile is forgotten afterwards."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [entry for entry in sys.path if entry])
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        if str(tmp_path) in (getattr(sys.modules[name], "__file__", None) or ""):
            del sys.modules[name]


@pytest.fixture
def offer(here: Path) -> Any:
    """A function that installs a package: `offer(distribution, group, name=value)`."""

    def install(distribution: str, group: str, **values: str) -> None:
        folder = here / f"{distribution}-1.dist-info"
        folder.mkdir()
        (folder / "METADATA").write_text(f"Name: {distribution}\nVersion: 1\n")
        lines = [f"[{group}]", *(f"{name} = {value}" for name, value in values.items())]
        (folder / "entry_points.txt").write_text("\n".join(lines))
        if str(here) not in sys.path:
            sys.path.insert(0, str(here))

    return install


# ------------------------------------------------------------------------------------- objects


def test_an_object_with_act_is_returned_as_it_is() -> None:
    agent = Highest()
    assert load_agent(agent) is agent
    assert isinstance(agent, Agent)


def test_a_function_becomes_an_agent() -> None:
    agent = load_agent(lowest)
    assert actions_of(agent) == [0] * 5
    assert agent_name(agent, lowest) == "lowest"


def test_a_class_is_called_without_arguments() -> None:
    assert actions_of(load_agent(Highest)) == [2] * 5
    with pytest.raises(ValueError, match=r"class Wanting without arguments raised TypeError"):
        load_agent(Wanting)


def test_what_cannot_act_is_refused() -> None:
    with pytest.raises(ValueError, match="'7' is a int; wanted: an object with `act`"):
        load_agent(7)


def test_names_are_the_text_or_the_attribute() -> None:
    assert agent_name(Highest(), "file.py:Highest") == "file.py:Highest"
    assert agent_name(Highest(), Path("file.py")) == "file.py"
    assert agent_name(Highest(), object()) == "the highest"
    assert FunctionAgent(lowest, "low").name == "low"


def test_an_agent_for_another_number_of_players_is_refused() -> None:
    agent = Highest()
    agent.num_players = 3
    assert load_agent(agent, num_players=3) is agent
    assert load_agent(agent) is agent
    with pytest.raises(ValueError, match="'the highest' is made for 3 players, not for 2"):
        load_agent(agent, num_players=2)


@pytest.mark.parametrize("form", ["planes", "flat", "features"])
def test_a_policy_gets_the_movers_observations_and_masks(form: str) -> None:
    states = Batch(6, 3, seed=1).states

    def policy(observations: Any, masks: Any, rng: np.random.Generator) -> Any:
        np.testing.assert_array_equal(observations, encode(states, form))
        np.testing.assert_array_equal(masks, action_mask(states))
        return masks.argmax(axis=1) + rng.integers(1, 2)

    agent = ObservationAgent(policy, form)
    assert agent.name == "policy"
    assert list(agent.act(states, np.random.default_rng(0))) == [1] * 6


def test_an_unknown_form_of_observation_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'pixels'.*planes, flat, features"):
        ObservationAgent(lambda observations, masks, rng: None, "pixels")


# --------------------------------------------------------------------------------------- names


def test_random_is_known_and_plays_legal_actions() -> None:
    assert {"random", "greedy", "expectimax"} <= set(known_agents())
    batch = Batch(64, 4, seed=2)
    agent, rng = load_agent("random"), np.random.default_rng(5)
    for _ in range(30):
        batch.step(agent.act(batch.states, rng))  # raises on an illegal action


def test_an_unknown_name_lists_the_known_ones_and_what_else_is_allowed() -> None:
    with pytest.raises(ValueError, match="unknown agent 'gready'") as error:
        load_agent("gready")
    for word in ("random", "greedy", "expectimax", "existing path", "FILE.py:attr", "module:attr"):
        assert word in str(error.value)


@pytest.mark.parametrize("spec", ["", ":", "a:", ":act", "a b:c"])
def test_malformed_names_are_unknown_agents(spec: str, here: Path) -> None:
    with pytest.raises(ValueError, match="unknown agent"):
        load_agent(spec)


def test_other_packages_add_agents(offer: Any, here: Path) -> None:
    (here / "theirs.py").write_text(LOWEST)
    offer("theirs", "marrakech_env.agents", simple="theirs:act")
    assert "simple" in known_agents()
    assert actions_of(load_agent("simple")) == [0] * 5


def test_a_broken_entry_point_is_named(offer: Any, here: Path) -> None:
    offer("theirs", "marrakech_env.agents", broken="nothing_there:act")
    with pytest.raises(ValueError, match=r"entry point 'broken' \(nothing_there:act\).*No module"):
        load_agent("broken")


def test_a_name_that_two_packages_offer_is_refused(offer: Any, here: Path) -> None:
    offer("ours", "marrakech_env.agents", twice="ours:act")
    offer("theirs", "marrakech_env.agents", twice="theirs:act")
    with pytest.raises(ValueError, match="'twice' is offered by several packages: ours:act, their"):
        load_agent("twice")


def test_a_name_goes_before_a_path(here: Path) -> None:
    Path("random").mkdir()
    assert type(load_agent("random")).__name__ == "RandomAgent"
    with pytest.raises(ValueError, match="no trained model"):
        load_agent("./random")


# --------------------------------------------------------------------------------------- files


def test_a_file_is_searched_for_act_and_agent(here: Path) -> None:
    Path("function.py").write_text(LOWEST)
    Path("neither.py").write_text("policy = 1\n")
    spec = str(here / "function.py")
    assert actions_of(load_agent(spec)) == actions_of(load_agent(Path(spec))) == [0] * 5
    with pytest.raises(ValueError, match=r"'neither\.py': the file has neither `act` nor `agent`"):
        load_agent("neither.py")


@pytest.mark.parametrize("spec", ["runs/nobody", "./nobody", "nobody/", "runs/nobody@2"])
def test_what_looks_like_a_path_is_told_to_be_missing(here: Path, spec: str) -> None:
    with pytest.raises(ValueError, match=r"nobody/?': there is no such file or folder in "):
        load_agent(spec)


def test_a_file_with_an_object_named_agent(here: Path) -> None:
    Path("mine.py").write_text(
        LOWEST.replace("def act(", "def choose(")
        + "class Player:\n    def act(self, states, rng):\n        return choose(states, rng)\n"
        + "agent = Player()\n"
    )
    assert actions_of(load_agent("mine.py")) == [0] * 5
    assert actions_of(load_agent("mine.py:agent")) == [0] * 5
    assert actions_of(load_agent("mine.py:Player")) == [0] * 5
    assert actions_of(load_agent("mine.py:agent.act")) == [0] * 5
    assert actions_of(load_agent("mine.py:choose")) == [0] * 5
    with pytest.raises(ValueError, match=r"has no 'plyer'; it has: .*Player.*agent.*choose"):
        load_agent("mine.py:plyer")


def test_a_file_imports_the_files_beside_it(here: Path) -> None:
    Path("folder").mkdir()
    Path("folder/helper_of_it.py").write_text(LOWEST)
    Path("folder/mine.py").write_text("from helper_of_it import act\n")
    assert actions_of(load_agent("folder/mine.py")) == [0] * 5


def test_files_of_one_name_are_different_agents(here: Path) -> None:
    for folder, number in (("one", 1), ("two", 2)):
        Path(folder).mkdir()
        Path(folder, "mine.py").write_text(
            f"def act(states, rng):\n    return [{number}] * len(states)\n"
        )
    first, second = load_agent("one/mine.py"), load_agent("two/mine.py")
    assert actions_of(first) == [1] * 5
    assert actions_of(second) == [2] * 5


def test_an_error_in_a_file_is_told_with_its_place(here: Path) -> None:
    Path("broken.py").write_text("number = 1\nnumber / 0\n")
    with pytest.raises(ValueError, match=r"ZeroDivisionError: division by zero \(.*broken.py:2\)"):
        load_agent("broken.py")
    Path("syntax.py").write_text("def act(:\n")
    with pytest.raises(ValueError, match=r"'syntax.py:act': running .* raised SyntaxError"):
        load_agent("syntax.py:act")


# ------------------------------------------------------------------------------------- modules


def test_module_and_attribute_are_looked_up_from_the_current_folder(here: Path) -> None:
    Path("in_this_folder.py").write_text(LOWEST)
    assert actions_of(load_agent("in_this_folder:act")) == [0] * 5


def test_the_current_folder_hides_no_installed_module(here: Path) -> None:
    """A module of the standard library, which no test has imported before."""
    Path("colorsys.py").write_text("raise RuntimeError\n")
    sys.modules.pop("colorsys", None)
    assert load_agent("colorsys:rgb_to_hsv") is not None


def test_a_module_that_is_missing_or_raises_is_named(here: Path) -> None:
    with pytest.raises(ValueError, match=r"'not_there' raised ModuleNotFoundError: .*not_there'$"):
        load_agent("not_there:act")
    Path("raises_at_import.py").write_text("raise RuntimeError('no luck')\n")
    with pytest.raises(ValueError, match=r"'raises_at_import' raised RuntimeError: no luck"):
        load_agent("raises_at_import:act")


def test_a_module_is_no_agent_without_its_attribute(here: Path) -> None:
    Path("with_number.py").write_text("number = 3\n")
    with pytest.raises(ValueError, match=r"has no 'act'; it has: number"):
        load_agent("with_number:act")
    with pytest.raises(ValueError, match="'with_number:number' is a int"):
        load_agent("with_number:number")


# -------------------------------------------------------------------------------------- models

LOADER = """
import json
from marrakech_env import rules

def load(description):
    level = json.loads(description.read_text())["level"]
    if level < 0:
        raise ValueError(f"{description}: the level must not be negative")
    def act(states, rng):
        return rules.action_mask(states).argmax(axis=1) + level
    return act
"""


def write_model(path: Path, **content: object) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content))


def test_a_model_is_found_by_folder_description_or_weights(offer: Any, here: Path) -> None:
    (here / "level_loader.py").write_text(LOADER)
    offer("levels", "marrakech_env.models", level="level_loader:load")
    write_model(Path("run/model.json"), kind="level", level=1)
    write_model(Path("weights/best.json"), kind="level", level=2)
    Path("weights/best.safetensors").write_bytes(b"")
    assert actions_of(load_agent("run")) == [1] * 5
    assert actions_of(load_agent("run/model.json")) == [1] * 5
    assert actions_of(load_agent("weights/best.safetensors")) == [2] * 5
    assert model_file("weights/best.safetensors") == Path("weights/best.json")


def test_an_unknown_kind_of_model_lists_the_known_ones(offer: Any, here: Path) -> None:
    (here / "level_loader.py").write_text(LOADER)
    offer("levels", "marrakech_env.models", level="level_loader:load")
    write_model(Path("run/model.json"), kind="cube")
    with pytest.raises(ValueError, match=r"'run': .*kind of model 'cube'; known: .*level"):
        load_agent("run")


@pytest.mark.parametrize("text", ["", "[1]", "{}", '{"kind": 3}', "{", "\x00"])
def test_a_damaged_description_is_named(text: str, here: Path) -> None:
    Path("model.json").write_text(text)
    with pytest.raises(ValueError, match=r"agent '\.': model\.json"):
        load_agent(".")


def test_what_the_loader_says_of_a_bad_model_is_passed_on(offer: Any, here: Path) -> None:
    (here / "level_loader.py").write_text(LOADER)
    offer("levels", "marrakech_env.models", level="level_loader:load")
    write_model(Path("run/model.json"), kind="level", level=-1)
    with pytest.raises(ValueError, match=r"model\.json: the level must not be negative"):
        load_agent("run")


def test_a_file_without_description_is_no_model(here: Path) -> None:
    Path("notes.txt").write_text("hello")
    with pytest.raises(
        ValueError, match=r"'notes.txt' is no trained model: there is no notes.json"
    ):
        load_agent("notes.txt")


@pytest.mark.parametrize("spec", ["no such file.py", "missing.py:act"])
def test_a_missing_file_is_named_with_the_folder_it_was_looked_for_in(spec):
    with pytest.raises(ValueError, match=f"there is no file {spec.split(':')[0]} in "):
        load_agent(spec)


@pytest.mark.parametrize("given", ["2", 2.0, True, -1, np.float64(2)])
def test_a_number_of_players_that_is_no_whole_number_is_refused(given: Any) -> None:
    agent = Highest()
    agent.num_players = given
    with pytest.raises(ValueError, match="'the highest': its attribute num_players must be") as no:
        load_agent(agent, 2)
    assert str(no.value).endswith(f"from 0 on, or be left out, not {given!r}")
    agent.num_players = np.int64(2)
    assert load_agent(agent, 2) is agent
    with pytest.raises(ValueError, match="num_players must be 2, 3 or 4, not '2'"):
        load_agent(agent, "2")


@pytest.mark.parametrize("given", ["None", "'new'", "1.7", "True", "-1"])
def test_a_version_that_is_no_whole_number_is_refused(given: str, here: Path) -> None:
    Path("mine.py").write_text(
        f"{LOWEST}\nclass agent:\n    version = {given}\n    act = staticmethod(act)\n"
    )
    with pytest.raises(ValueError, match=r"'mine.py:agent': its attribute version must") as no:
        load_agent("mine.py:agent@1")
    assert str(no.value).endswith(f", not {given}")


@pytest.mark.parametrize("spec", ["x" * 300, "x" * 300 + ".py:act", "x" * 300 + "/y"])
def test_a_name_that_is_too_long_for_a_path_is_refused(spec: str) -> None:
    with pytest.raises(ValueError, match=f"agent '{spec}': .*known names: .*also allowed"):
        load_agent(spec)


def test_a_path_without_permission_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def forbidden(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "exists", forbidden)
    with pytest.raises(ValueError, match=r"'\./mine.py': Permission denied; known names"):
        load_agent("./mine.py")
    with pytest.raises(ValueError, match=r"'mine.py': Permission denied; known names"):
        load_agent(Path("mine.py"))
