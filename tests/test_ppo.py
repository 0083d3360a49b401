"""Trained models: saving, loading, playing, and what is refused."""

import json
import pickle

import numpy as np
import pytest

from marrakech_agents import ppo
from marrakech_agents.common import model_files as models
from marrakech_agents.policy_net import networks
from marrakech_env import arena
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.observation import FEATURES, encode, find_form


def head(players=2, observation="features", **changes):
    size = int(np.prod(find_form(observation).shape(players)))
    values = {
        "num_players": players,
        "rules": "official",
        "observation": observation,
        "observation_size": size,
        "network": "mlp",
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
    agent = ppo.PPOAgent(ppo.PPOModel.from_weights(described, weights(described.observation_size)))
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
    model = ppo.PPOModel.from_weights(described, layers)
    observations = np.random.default_rng(1).normal(size=(5, described.observation_size))
    hidden = np.tanh(observations @ layers["0.weight"].T + layers["0.bias"])
    np.testing.assert_allclose(
        model.logits(observations), hidden @ layers["1.weight"].T + layers["1.bias"], atol=1e-4
    )


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_parts_of_the_features_say_the_same_of_each_action(players):
    steerings, placements = networks.action_parts(players)
    every = [*steerings.ravel(), *placements.ravel()]
    assert len(set(every)) == len(every)
    assert set(every) < set(range(find_form("features").shape(players)[0]))
    legal = FEATURES.part("lay_legal", players)
    column = list(placements[0]).index(legal.start)
    assert placements[:, column].tolist() == list(range(legal.start, legal.stop))
    ahead = FEATURES.part("ahead", players)
    assert steerings[1, :4].tolist() == list(range(ahead.start + 4, ahead.start + 8))


@pytest.mark.parametrize("players", [2, 4])
@pytest.mark.parametrize("kind", ["scorer", "mlp"])
def test_the_exported_network_computes_what_was_trained(players, kind):
    torch = pytest.importorskip("torch")
    policies = pytest.importorskip("marrakech_agents.policy_net.torch_policies")
    from sb3_contrib import MaskablePPO

    from marrakech_env.sb3 import MarrakechVecEnv

    torch.manual_seed(0)
    env = MarrakechVecEnv(4, num_players=players)
    policy, sizes = "MlpPolicy", {"net_arch": [32, 32]}
    if kind == "scorer":
        policy = policies.ScorerPolicy
        sizes = {"num_players": players, "hidden": 16, "summary": 24, "value_hidden": 16}
    model = MaskablePPO(policy, env, policy_kwargs=sizes, device="cpu")
    for parameter in model.policy.parameters():
        torch.nn.init.normal_(parameter, std=0.2)
    name, exported = policies.export(model.policy)
    assert name == kind
    size = env.observation_space.shape[0]
    observations = np.random.default_rng(0).normal(size=(7, size)).astype(np.float32)
    with torch.no_grad():
        expected = model.policy.action_net(
            model.policy.mlp_extractor.forward_actor(torch.as_tensor(observations))
        )
    found = networks.network(kind, players, size, exported)(observations)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-3, atol=1e-4)


def test_weights_that_are_missing_or_too_many_are_refused():
    described = head()
    layers = weights(described.observation_size)
    with pytest.raises(ValueError, match="unknown kind of network 'cnn'; known: mlp, scorer"):
        ppo.PPOModel.from_weights(head(network="cnn"), layers)
    with pytest.raises(ValueError, match=r"lack 'state\.0\.weight'"):
        ppo.PPOModel.from_weights(head(network="scorer"), layers)
    with pytest.raises(ValueError, match=r"lack '0\.bias'"):
        ppo.PPOModel.from_weights(described, {k: v for k, v in layers.items() if k != "0.bias"})
    with pytest.raises(ValueError, match="a scorer reads the observation 'features'"):
        ppo.PPOModel.from_weights(head(observation="flat", network="scorer"), layers)


def test_temperature_draws_from_the_softmax_of_the_legal_logits():
    described = head()
    layers = weights(described.observation_size)
    batch = Batch(4000)
    draws = ppo.PPOAgent(ppo.PPOModel.from_weights(described, layers), temperature=1.0).act(
        batch.states, np.random.default_rng(2)
    )
    same_start = (batch.states["next_colour"] == batch.states["next_colour"][0]).all(1)
    observation = encode(batch.states[:1], "features")
    logits = ppo.PPOModel.from_weights(described, layers).logits(observation)[0, :3]
    expected = np.exp(logits) / np.exp(logits).sum()
    seen = np.bincount(draws[same_start], minlength=3) / same_start.sum()
    np.testing.assert_allclose(seen, expected, atol=0.06)
    assert set(draws) <= {0, 1, 2}


def test_the_analysis_tells_probabilities_of_legal_actions_best_first(tmp_path):
    agent = ppo.load(model(tmp_path))
    batch, rng = Batch(30, seed=4), np.random.default_rng(0)
    for _ in range(3):
        actions = agent.act(batch.states, rng)
        for i in range(30):
            rows = agent.analyse(batch.states[i])
            assert rows[0].action == actions[i]
            assert (
                sorted(row.action for row in rows) == np.flatnonzero(batch.action_mask[i]).tolist()
            )
            assert sum(np.exp(row.worth) for row in rows) == pytest.approx(1)
        batch.step(actions)


def test_the_shipped_agent_plays_with_every_number_of_players():
    shipped = load_agent("ppo")
    for players in (2, 3, 4):
        (pairing,) = arena.play([shipped], players, deals=40, field=["random"]).pairings
        assert pairing.win_share.low > 1 / players
    sizes = [file.stat().st_size for file in models.WEIGHTS.iterdir()]
    assert sum(sizes) < 2e6


def test_a_model_for_another_number_of_players_is_refused(tmp_path):
    model(tmp_path, players=2)
    with pytest.raises(ValueError, match="made for 2 players, not for 4"):
        load_agent(str(tmp_path), num_players=4)
    with pytest.raises(ValueError, match="made for 2 players, not for 3"):
        ppo.load(tmp_path).act(Batch(1, 3).states, np.random.default_rng(0))


def test_a_model_of_another_observation_is_refused(tmp_path):
    with pytest.raises(ValueError, match="reads 7 numbers of the observation 'features'"):
        ppo.PPOModel.from_weights(head(observation_size=7), weights(7))
    with pytest.raises(ValueError, match=r"layer '0' has weights \(16, 9\); wanted: \(16, \d+\)"):
        ppo.PPOModel.from_weights(head(), weights(9))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "pickle"}, "names the kind of model 'pickle'"),
        ({"sha256": "0"}, "damaged"),
        ({"observation_size": "many"}, "'observation_size' must be of type int"),
        ({"num_players": 7}, "num_players must be 2, 3 or 4"),
        ({"rules": "offical"}, "unknown preset 'offical'"),
        ({"observation": "smell"}, "smell"),
    ],
)
def test_a_damaged_model_is_refused_with_its_name(tmp_path, change, message):
    path = model(tmp_path) / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=rf"{tmp_path.name}.*{message}"):
        load_agent(str(tmp_path))


def test_weights_that_are_not_finite_are_refused():
    described = head()
    layers = weights(described.observation_size)
    layers["0.bias"][3] = np.nan
    with pytest.raises(ValueError, match=r"'0\.bias' hold numbers that are not finite"):
        ppo.PPOModel.from_weights(described, layers)


def test_an_empty_batch_gets_no_actions():
    assert ppo.PPOAgent().act(Batch(1, 2).states[:0], np.random.default_rng(0)).shape == (0,)


@pytest.mark.filterwarnings("error")
def test_the_analysis_of_a_finished_game_is_empty():
    batch = Batch(1, 2, "official;rugs=2", seed=0)
    while not batch.done.any():
        batch.step(batch.action_mask.argmax(1))
    assert ppo.PPOAgent().analyse(batch.final_states[0]) == []


def test_a_pickled_agent_plays_as_before():
    states = Batch(5, 3, seed=1).states
    agent = ppo.PPOAgent()
    twin = pickle.loads(pickle.dumps(agent))
    rng = np.random.default_rng(0)
    np.testing.assert_array_equal(twin.act(states, rng), agent.act(states, rng))
    assert twin.num_parameters == agent.num_parameters
