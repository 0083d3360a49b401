"""Models from strangers: their files are refused, or played legally, and never hang."""

import hashlib
import json
import os

import numpy as np
import pytest

from marrakech_agents import ppo, value
from marrakech_agents.expectimax import WEIGHTS_FILE, ExpectimaxAgent
from marrakech_agents.policy_net.networks import action_parts
from marrakech_agents.value_net.model import WEIGHT_NAMES
from marrakech_agents.value_net.network import NET
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.observation import find_form


def value_weights():
    return {name: np.ones(NET[name].shape, np.float32) for name in WEIGHT_NAMES}


def ppo_weights():
    size = int(np.prod(find_form("features").shape(2)))
    shapes = {"0.weight": (4, size), "0.bias": (4,), "1.weight": (15, 4), "1.bias": (15,)}
    return {name: np.ones(shape, np.float32) for name, shape in shapes.items()}


def save_value(folder):
    head = value.ValueHead(2, "official", 0, 0, 0.0, "none", 0.01, "a test")
    value.save(folder, value.ValueModel.from_weights(head, value_weights()))
    return value.load, value_weights()


def save_ppo(folder):
    weights = ppo_weights()
    size = weights["0.weight"].shape[1]
    ppo.save(folder, ppo.ModelHead(2, "official", "features", size, "mlp", 1, "a test"), weights)
    return ppo.load, weights


KINDS = {"value": save_value, "ppo": save_ppo}


def describe(folder, **changes):
    path = folder / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def put_weights(folder, data):
    """Weights with a SHA-256 that fits them."""
    (folder / "w.safetensors").write_bytes(data)
    describe(folder, weights="w.safetensors", sha256=hashlib.sha256(data).hexdigest())


def file_of(header, numbers):
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + numbers


def plain_file(weights, change=None):
    """A safetensors file, written by hand, with a changed header or numbers."""
    header, numbers = {}, b""
    for name, tensor in weights.items():
        data = tensor.tobytes()
        header[name] = {
            "dtype": "F32",
            "shape": list(tensor.shape),
            "data_offsets": [len(numbers), len(numbers) + len(data)],
        }
        numbers += data
    if change is not None:
        numbers = change(header, numbers) or numbers
    return file_of(header, numbers)


def overlapping(header, numbers):
    header["extra"] = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def many_overlapping(header, numbers):
    for k in range(300):
        header[f"extra{k}"] = {"dtype": "F32", "shape": [100], "data_offsets": [0, 400]}


def with_a_gap(header, numbers):
    end = len(numbers) + 8
    header["extra"] = {"dtype": "F32", "shape": [1], "data_offsets": [end, end + 4]}
    return numbers + bytes(12)


def with_a_tail(header, numbers):
    return numbers + bytes(4)


def of_many_dimensions(header, numbers):
    first = next(iter(header.values()))
    first["shape"] = first["shape"] + [1] * 300_000


def of_some_dimensions(header, numbers):
    first = next(iter(header.values()))
    first["shape"] = first["shape"] + [1] * 300


def of_many_tensors(header, numbers):
    for k in range(100_000):
        header[f"{k}.extra"] = {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}


def of_another_type(header, numbers):
    first = next(iter(header.values()))
    first["dtype"] = "I32"


def of_half_bytes(header, numbers):
    end = len(numbers)
    header["extra"] = {"dtype": "BF16", "shape": [2], "data_offsets": [end, end + 4]}
    return numbers + bytes(4)


CHANGES = (
    overlapping,
    many_overlapping,
    with_a_gap,
    with_a_tail,
    of_many_dimensions,
    of_some_dimensions,
    of_many_tensors,
    of_another_type,
    of_half_bytes,
)


@pytest.mark.parametrize("kind", KINDS)
def test_a_plain_file_of_weights_is_read(tmp_path, kind):
    load, weights = KINDS[kind](tmp_path)
    put_weights(tmp_path, plain_file(weights))
    load(tmp_path)
    (tmp_path / "w.safetensors").rename(tmp_path / "elsewhere")
    (tmp_path / "w.safetensors").symlink_to(tmp_path / "elsewhere")
    load(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("change", CHANGES)
def test_weights_whose_header_makes_no_sense_are_refused(tmp_path, kind, change):
    load, weights = KINDS[kind](tmp_path)
    put_weights(tmp_path, plain_file(weights, change))
    with pytest.raises(ValueError, match=r"cannot be loaded: the (header of the )?weights"):
        load(tmp_path)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, 1e7, -3e38])
def test_weights_that_are_too_large_are_refused(tmp_path, kind, number):
    load, weights = KINDS[kind](tmp_path)
    for name in weights:
        changed = {**weights, name: weights[name].copy()}
        changed[name].flat[-1] = number
        put_weights(tmp_path, plain_file(changed))
        with pytest.raises(ValueError, match=rf"'{name}' hold numbers beyond \+-1e\+06"):
            load(tmp_path)


def make_no_file(path, what):
    path.unlink(missing_ok=True)
    if what == "pipe":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    elif what == "endless":
        path.symlink_to("/dev/zero")
    else:
        path.symlink_to("/dev/stdin")


NO_FILES = ["pipe", "folder", "endless", "input"]
posix = pytest.mark.skipif(os.name != "posix", reason="pipes and devices of POSIX")


@posix
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("what", NO_FILES)
def test_weights_that_are_no_ordinary_file_are_refused_at_once(tmp_path, kind, what):
    load, _ = KINDS[kind](tmp_path)
    make_no_file(tmp_path / "w.safetensors", what)
    describe(tmp_path, weights="w.safetensors")
    with pytest.raises(ValueError, match=r"w\.safetensors' is no ordinary file"):
        load(tmp_path)


@posix
@pytest.mark.parametrize("what", NO_FILES)
def test_a_description_that_is_no_ordinary_file_is_refused_at_once(tmp_path, what):
    path = tmp_path / "some.json"
    make_no_file(path, what)
    for load in (value.load, ppo.load, ExpectimaxAgent):
        with pytest.raises(ValueError, match=r"no ordinary file|model\.json"):
            load(path)
    with pytest.raises(ValueError, match=r"some\.json"):
        load_agent(str(path))


@pytest.mark.parametrize("kind", KINDS)
def test_files_that_are_too_long_are_refused(tmp_path, kind):
    load, _ = KINDS[kind](tmp_path)
    describe(tmp_path, trained_by="a" * 2**20)
    with pytest.raises(ValueError, match=r"model\.json' has more than 1,048,576 bytes"):
        load(tmp_path)
    with pytest.raises(ValueError, match=r"has more than 1,048,576 bytes"):
        load_agent(str(tmp_path))
    KINDS[kind](tmp_path)
    with (tmp_path / "w.safetensors").open("wb") as file:
        file.truncate(2**28 + 1)
    describe(tmp_path, weights="w.safetensors")
    with pytest.raises(ValueError, match=r"w\.safetensors' has more than 268,435,456 bytes"):
        load(tmp_path)


def plays_legally(agent):
    batch = Batch(20, 2, seed=1)
    for _ in range(8):
        actions = agent.act(batch.states, np.random.default_rng(0))
        assert batch.action_mask[np.arange(20), actions].all()
        rows = agent.analyse(batch.states[0])
        assert [row.action for row in rows if np.isfinite(row.q)] == [r.action for r in rows]
        assert len(rows) == batch.action_mask[0].sum()
        batch.step(actions)


def scorer_weights(signs):
    """The largest weights: five layers of them overflow."""
    steerings, placements = action_parts(2)
    size, units = int(np.prod(find_form("features").shape(2))), 64
    shapes = {"state.0": (units, size), "state.1": (units, units), "direct": (15, units)}
    for head, inputs in (("steer", steerings.shape[1]), ("lay", placements.shape[1])):
        shapes |= {f"{head}.own": (units, inputs), f"{head}.0": (units, units)}
        shapes |= {f"{head}.1": (1, units), f"{head}.state": (units, units)}
    rng, weights = np.random.default_rng(0), {}
    for name, shape in shapes.items():
        weights[f"{name}.weight"] = rng.choice([-1, 1], shape)
        if signs == "in the end negative":
            weights[f"{name}.weight"][:] = -1 if name in ("steer.1", "lay.1", "direct") else 1
        if not name.endswith(".state"):
            weights[f"{name}.bias"] = weights[f"{name}.weight"][:, 0]
    return size, {name: 1e6 * array.astype(np.float32) for name, array in weights.items()}


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("signs", ["random", "in the end negative"])
def test_a_policy_whose_numbers_overflow_plays_legally(tmp_path, signs, temperature):
    size, weights = scorer_weights(signs)
    head = ppo.ModelHead(2, "official", "features", size, "scorer", 1, "a test")
    ppo.save(tmp_path, head, weights)
    plays_legally(ppo.load(tmp_path, temperature))


# ------------------------------------------------------------------------------- expectimax


def fits(tmp_path, change):
    data = json.loads(WEIGHTS_FILE.read_text())
    change(data)
    path = tmp_path / "weights.json"
    path.write_text(json.dumps(data))
    return path


def fill(data, number):
    for entry in data["players"].values():
        entry["weights"] = np.full(np.shape(entry["weights"]), number).tolist()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), 1e300, -1e7])
def test_weights_of_expectimax_that_are_too_large_are_refused(tmp_path, number):
    for change in (
        lambda data: fill(data, number),
        lambda data: data["players"]["2"].update(spread=[number, 1.0]),
        lambda data: data["players"]["2"].update(spread=[1.0, number]),
    ):
        with pytest.raises(ValueError, match="holds no weights for expectimax"):
            ExpectimaxAgent(fits(tmp_path, change))


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("spread", [[5e-324, 0.0], [1e6, 1e6]])
def test_the_largest_weights_of_expectimax_play_legally(tmp_path, sign, spread):
    def change(data):
        fill(data, sign * 1e6)
        data["players"]["2"]["spread"] = spread

    plays_legally(ExpectimaxAgent(fits(tmp_path, change)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"facts": [' + "[" * 100_000, "Expected `str`|recursion"),
        ('{"facts": [], "players": {"2": ' + "1" * 5000 + "}}", "out of range"),
        ("[" * 100_000, "Expected `object`"),
        ('{"facts": [], "players": []}', "Expected `object`"),
        (" " * 2**20 + "{}", "has more than 1,048,576 bytes"),
    ],
)
def test_a_strange_file_of_expectimax_is_refused(tmp_path, text, message):
    path = tmp_path / "weights.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        ExpectimaxAgent(path)


@pytest.mark.parametrize("knots", [[2**70, 2**71], [-1, 4], [1], [2, 1], [1, 1.5], ["1", "2"], 3])
def test_strange_knots_of_expectimax_are_refused(tmp_path, knots):
    def change(data):
        data["players"]["2"]["knots"] = knots

    with pytest.raises(ValueError, match=r"holds no weights for expectimax: .*knots"):
        ExpectimaxAgent(fits(tmp_path, change))
