"""Trained models: saving, loading, playing, and what is refused."""

import json

import numpy as np
import pytest

from marrakech_agents import ppo
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.observation import find_form

pytest.importorskip("safetensors")


def head(players=2, observation="features", **changes):
    size = int(np.prod(find_form(observation).shape(players)))
    values = {
        "num_players": players,
        "rules": "official",
        "observation": observation,
        "observation_size": size,
        "steps": 1,
        "trained_by": "a test",
    }
    return ppo.ModelHead(**{**values, **changes})


def weights(size, hidden=16, seed=0):
    rng = np.random.default_rng(seed)
    shapes = [(hidden, size), (15, hidden)]
    named = {}
    for index, shape in enumerate(shapes):
        named[f"{index}.weight"] = rng.normal(0, 0.1, shape).astype(np.float32)
        named[f"{index}.bias"] = rng.normal(0, 0.1, shape[0]).astype(np.float32)
    return named


def model(folder, players=2, observation="features"):
    described = head(players, observation)
    ppo.save(folder, described, weights(described.observation_size))
    return folder


@pytest.mark.parametrize("observation", ["features", "flat", "planes"])
def test_a_saved_model_plays_as_before(tmp_path, observation):
    described = head(3, observation)
    agent = ppo.PPOAgent(described, weights(described.observation_size))
    ppo.save(tmp_path, described, weights(described.observation_size))
    loaded = load_agent(str(tmp_path), num_players=3)
    batch, rng = Batch(20, 3, seed=1), np.random.default_rng(0)
    for _ in range(80):
        actions = agent.act(batch.states, rng)
        assert (actions == loaded.act(batch.states, rng)).all()
        batch.step(actions)


def test_the_network_is_dense_layers_with_tanh_between(tmp_path):
    described = head()
    layers = weights(described.observation_size)
    agent = ppo.PPOAgent(described, layers)
    observations = np.random.default_rng(1).normal(size=(5, described.observation_size))
    hidden = np.tanh(observations @ layers["0.weight"].T + layers["0.bias"])
    np.testing.assert_allclose(
        agent.logits(observations), hidden @ layers["1.weight"].T + layers["1.bias"], atol=1e-4
    )


def test_temperature_draws_from_the_softmax_of_the_legal_logits():
    described = head()
    layers = weights(described.observation_size)
    batch = Batch(4000)
    draws = ppo.PPOAgent(described, layers, temperature=1.0).act(
        batch.states, np.random.default_rng(2)
    )
    same_start = (batch.states["next_colour"] == batch.states["next_colour"][0]).all(1)
    from marrakech_env.observation import encode

    logits = ppo.PPOAgent(described, layers).logits(encode(batch.states[:1], "features"))[0, :3]
    expected = np.exp(logits) / np.exp(logits).sum()
    seen = np.bincount(draws[same_start], minlength=3) / same_start.sum()
    np.testing.assert_allclose(seen, expected, atol=0.06)
    assert set(draws) <= {0, 1, 2}


def test_a_model_for_another_number_of_players_is_refused(tmp_path):
    model(tmp_path, players=2)
    with pytest.raises(ValueError, match="made for 2 players, not for 4"):
        load_agent(str(tmp_path), num_players=4)
    with pytest.raises(ValueError, match="made for 2 players, not for 3"):
        ppo.load(tmp_path).act(Batch(1, 3).states, np.random.default_rng(0))


def test_a_model_of_another_observation_is_refused(tmp_path):
    with pytest.raises(ValueError, match="reads 7 numbers of the observation 'features'"):
        ppo.PPOAgent(head(observation_size=7), weights(7))
    with pytest.raises(ValueError, match=r"layer 0 has weights of shape \(16, 9\)"):
        ppo.PPOAgent(head(), weights(9))


def damaged(folder, part):
    """Damages one part of a model and returns the folder."""
    description = folder / "model.json"
    content = json.loads(description.read_text())
    file = folder / content["weights"]
    if part == "cut json":
        description.write_text(description.read_text()[:40])
    elif part == "no weights":
        file.unlink()
    elif part == "changed weights":
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.write_bytes(bytes(data))
    elif part == "outside":
        description.write_text(json.dumps({**content, "weights": "../stolen"}))
    elif part == "list":
        description.write_text("[1]")
    elif part == "kind":
        description.write_text(json.dumps({**content, "kind": "pickle"}))
    elif part == "format":
        description.write_text(json.dumps({**content, "format": 99}))
    elif part == "field":
        description.write_text(json.dumps({**content, "num_players": "two"}))
    elif part == "players":
        description.write_text(json.dumps({**content, "num_players": 7}))
    elif part == "rules":
        description.write_text(json.dumps({**content, "rules": "offical"}))
    elif part == "no json":
        description.unlink()
    return folder


@pytest.mark.parametrize(
    "part",
    [
        "cut json",
        "no weights",
        "changed weights",
        "outside",
        "list",
        "kind",
        "format",
        "field",
        "players",
        "rules",
        "no json",
    ],
)
def test_a_damaged_model_is_refused_with_its_name(tmp_path, part):
    damaged(model(tmp_path), part)
    with pytest.raises(ValueError, match=tmp_path.name):
        load_agent(str(tmp_path))


def test_weights_that_are_not_finite_are_refused():
    described = head()
    layers = weights(described.observation_size)
    layers["0.bias"][3] = np.nan
    with pytest.raises(ValueError, match="layer 0 holds numbers that are not finite"):
        ppo.PPOAgent(described, layers)


def test_saving_again_replaces_the_model_and_leaves_nothing_behind(tmp_path):
    described = head()
    for seed in range(3):
        ppo.save(tmp_path, described, weights(described.observation_size, seed=seed))
    assert len(list(tmp_path.iterdir())) == 2
    ppo.load(tmp_path)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "file"
    ppo.write_atomically(path, b"old")
    monkeypatch.setattr("os.fsync", lambda _: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(OSError, match="No space left"):
        ppo.write_atomically(path, b"new")
    assert path.read_bytes() == b"old"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]
