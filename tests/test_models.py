"""Model files: written whole, read back, and what is refused."""

import json
from dataclasses import dataclass

import numpy as np
import pytest

from marrakech_agents.common import model_files as models
from marrakech_env.files import write_atomically


@dataclass(frozen=True)
class Head:
    num_players: int
    weight: float
    trained_by: str


HEAD = Head(3, 0.5, "a test")


def numbers(seed=0):
    rng = np.random.default_rng(seed)
    return {"b": rng.random((2, 3), np.float32), "a": rng.random(5, np.float32)}


def pair(head, weights):
    return head, weights


def load(path, kind="toy", make=pair):
    return models.load(path, kind, Head, make)


@pytest.mark.parametrize("name", ["model", "value-2"])
def test_a_saved_model_is_read_back(tmp_path, name):
    models.save(tmp_path, "toy", HEAD, numbers(), name)
    head, weights = load(tmp_path / f"{name}.json")
    assert head == HEAD
    assert weights.keys() == numbers().keys()
    for key, tensor in numbers().items():
        np.testing.assert_array_equal(weights[key], tensor)
    if name == "model":
        assert load(tmp_path)[0] == HEAD


def test_a_model_is_called_by_its_folder_or_by_its_own_name(tmp_path):
    assert models.display_name(tmp_path, "toy") == tmp_path.name
    assert models.display_name(tmp_path / "model.json", "toy") == tmp_path.name
    assert models.display_name(tmp_path / "value-2.json", "toy") == "value-2"
    assert models.display_name("model.json", "toy") == "toy"


def test_saving_again_replaces_this_model_and_no_other(tmp_path):
    models.save(tmp_path, "toy", HEAD, numbers(), "model-2")
    for seed in range(3):
        models.save(tmp_path, "toy", HEAD, numbers(seed))
    assert len(list(tmp_path.iterdir())) == 4
    load(tmp_path)
    load(tmp_path / "model-2.json")


def test_a_save_that_fails_leaves_the_old_model(tmp_path, monkeypatch):
    models.save(tmp_path, "toy", HEAD, numbers(0))

    def full(path, data):
        if path.suffix == ".json":
            raise OSError(28, "No space left")
        write_atomically(path, data)

    monkeypatch.setattr(models, "write_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        models.save(tmp_path, "toy", HEAD, numbers(1))
    np.testing.assert_array_equal(load(tmp_path)[1]["a"], numbers(0)["a"])


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    write_atomically(path, b"old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "pickle"}, "does not describe a model of kind 'toy'"),
        ({"format": 99}, "its format is 99; known: 1"),
        ({"sha256": "0"}, "damaged: their SHA-256 differs"),
        ({"weights": "../stolen.safetensors"}, "must lie beside it"),
        ({"weights": "gone.safetensors"}, "gone"),
        ({"num_players": "two"}, r"Expected `int`, got `str` - at `\$.num_players`"),
        ({"num_players": True}, r"Expected `int`, got `bool` - at `\$.num_players`"),
        ({"num_players": None}, r"Expected `int`, got `null` - at `\$.num_players`"),
        ({"weight": float("nan")}, "malformed"),
        ({"trained_by": 3}, r"Expected `str`, got `int` - at `\$.trained_by`"),
    ],
)
def test_a_description_that_makes_no_sense_is_refused_with_its_name(tmp_path, change, message):
    models.save(tmp_path, "toy", HEAD, numbers())
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=rf"{tmp_path.name}.*cannot be loaded: .*{message}"):
        load(tmp_path)


@pytest.mark.parametrize("damage", ["cut json", "list", "no json", "changed weights"])
def test_damaged_files_are_refused_with_their_name(tmp_path, damage):
    models.save(tmp_path, "toy", HEAD, numbers())
    description = tmp_path / "model.json"
    (weights,) = tmp_path.glob("*.safetensors")
    if damage == "cut json":
        description.write_text(description.read_text()[:40])
    elif damage == "list":
        description.write_text("[1]")
    elif damage == "no json":
        description.unlink()
    else:
        weights.write_bytes(weights.read_bytes()[:-1] + b"\0")
    with pytest.raises(ValueError, match=rf"{tmp_path.name}.*cannot be loaded"):
        load(tmp_path)


def test_a_model_that_its_agent_refuses_is_refused_with_its_name(tmp_path):
    def refuse(head, weights):
        raise ValueError(f"nobody plays with {head.num_players}")

    models.save(tmp_path, "toy", HEAD, numbers())
    with pytest.raises(
        ValueError, match=rf"{tmp_path.name}.*cannot be loaded: nobody plays with 3"
    ):
        load(tmp_path, make=refuse)
