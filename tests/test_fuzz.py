"""Damaged inputs: each gets a clear error of a documented type, changes nothing and never hangs.

What is damaged is real: positions, moves and records of played games, rule sets, actions, options
and keywords of every environment, and the files of trained models. The damage comes from a seed,
so a failure names the case and can be played again.
"""

import hashlib
import json
import random

import numpy as np
import pytest
from borders import BORDERS, RULES, random_legal

from marrakech_agents import ppo, value
from marrakech_agents.common.tensors import from_bytes, to_bytes
from marrakech_agents.value_net.model import WEIGHT_NAMES
from marrakech_agents.value_net.network import NET
from marrakech_env import rules
from marrakech_env.aec import env, raw_env
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.notation import (
    GameRecord,
    format_game,
    format_position,
    legal_moves,
    parse_game,
    parse_move,
    parse_position,
    replay,
)
from marrakech_env.observation import FORMS
from marrakech_env.sb3 import MarrakechVecEnv
from marrakech_env.spec import OPTIONS, PRESETS, RuleSet, resolve_rules
from marrakech_env.vector import MarrakechEnv, MarrakechVectorEnv

SHARE = 300
"""Cases of each kind in the default run."""
LONG = 10_000
"""Cases of each kind in the long run: 100,000 of the ten kinds."""

EMPTY = "/".join(["." * 14] * 7)

# ------------------------------------------------------------------------------ damage and judge

LETTERS = " \n\r\t/:;,=+-.<>^v0123456789NESWxslwLSR#\0é٣²\ud800"
STRANGE = (
    None,
    True,
    -1,
    15,
    2**31,
    2**63,
    2**64,
    10**30,
    10**400,
    1.5,
    float("nan"),
    float("inf"),
    1j,
    "",
    "1",
    b"1",
    [],
    [1],
    [[1], [2, 3]],
    (),
    {},
    {"position": 1},
    set(),
    object(),
    int,
    np.array(1.0),
    np.array([1, 2]),
    np.array([], int),
    np.array([None]),
    np.array(["1"]),
    np.array([1], "datetime64[s]"),
    np.float32(1),
    np.bool_(True),
    np.uint64(2**64 - 1),
)
"""Values of types and sizes that nobody expects."""


def damaged(text, rng):
    """A text with one to three characters or pieces changed, left out, doubled or moved."""
    for _ in range(rng.randint(1, 3)):
        at, to = sorted(rng.randint(0, len(text)) for _ in range(2))
        piece = text[at:to]
        text = rng.choice(
            (
                text[:at] + rng.choice(LETTERS) + text[at + 1 :],
                text[:at] + rng.choice(LETTERS) + text[at:],
                text[:at] + text[at + 1 :],
                text[:at],
                text[:to] + piece + text[to:],
                text[:at] + piece[::-1] + text[to:],
                text[:at] + str(rng.choice((0, 7, 99, 1000, 10**6, 10**20))) + text[at + 1 :],
            )
        )
    return text


def accepts(call, *arguments, **named):
    """True where a call succeeds, False where it raises a clear ValueError; all else is raised."""
    try:
        call(*arguments, **named)
    except ValueError as error:
        if isinstance(error, UnicodeError) or not str(error).strip():
            raise AssertionError(f"no clear error: {error!r}") from error
        return False
    return True


# ----------------------------------------------------------------------------------- the kinds


def played(rng):
    """The record of a random game of a random rule set, and the states of its decisions."""
    players = rng.randint(2, 4)
    batch = Batch(1, players, RULES[players], seed=rng.randrange(2**32))
    numbers = np.random.default_rng(rng.randrange(2**32))
    start, moves, states = format_position(batch.states), [], []
    before = batch.states.copy()
    for _ in range(rng.randint(1, 60)):
        action = int(random_legal(batch.action_mask, numbers)[0])
        batch.step([action])
        outcomes = rules.chance_outcomes(before, action)[0].tolist()
        reached = batch.final_states if batch.done[0] else batch.states
        moves += [(action, o) for o in outcomes if after(before, action, o) == reached[0]][:1]
        states.append(before)
        before = batch.states.copy()
        if batch.done[0]:
            break
    return GameRecord(start, tuple(moves), ("a game",)), states


def after(states, action, outcome):
    following = states.copy()
    rules.step(following, [action], [outcome])
    return following[0]


def position_texts(rng):
    """Position texts, through `parse_position` and `Batch.set_position`."""
    _, states = played(rng)
    batch = Batch(2, int(states[0]["num_players"][0]))
    for state in states:
        text = damaged(format_position(state), rng)
        if accepts(parse_position, text):
            known = parse_position(text)
            assert (parse_position(format_position(known)) == known).all()
        before = batch.states.tobytes()
        if not accepts(batch.set_position, 1, text):
            assert batch.states.tobytes() == before
        yield text


def move_texts(rng):
    """Move texts, in the state that they were made for."""
    _, states = played(rng)
    for state in states:
        text = damaged(rng.choice(legal_moves(state)) + rng.choice(("", "1", "=1")), rng)
        before = state.tobytes()
        accepts(parse_move, state, text)
        assert state.tobytes() == before
        yield text


def record_texts(rng):
    """Texts of games."""
    text = format_game(played(rng)[0])
    for _ in range(20):
        spoilt = damaged(text, rng)
        if accepts(parse_game, spoilt):
            assert parse_game(format_game(parse_game(spoilt))) == parse_game(spoilt)
        yield spoilt


def play_through(record):
    """Plays a record to its end."""
    for _ in replay(record):
        pass


def records(rng):
    """Game records with wrong moves in them."""
    record, _ = played(rng)
    for _ in range(20):
        moves = list(record.moves)
        at = rng.randrange(len(moves))
        strange = [rng.choice((*range(-2, 17), *STRANGE)) for _ in range(2)]
        moves[at] = (strange[0], moves[at][1]) if rng.random() < 0.5 else (moves[at][0], strange[1])
        spoilt = GameRecord(rng.choice((record.start, damaged(record.start, rng))), tuple(moves))
        accepts(play_through, spoilt)
        accepts(format_game, spoilt)
        yield spoilt


def rules_texts(rng):
    """RULES texts and options."""
    players = rng.randint(2, 4)
    text = str(RuleSet.parse(rng.choice(list(RULES.values())), players))
    for _ in range(20):
        spoilt = damaged(text, rng)
        if accepts(RuleSet.parse, spoilt, players):
            known = RuleSet.parse(spoilt, players)
            assert RuleSet.parse(str(known), players) == known
        option, given = rng.choice(list(OPTIONS)), rng.choice(STRANGE)
        preset, count = rng.choice((*PRESETS, given)), rng.choice((2, 3, 4, rng.choice(STRANGE)))
        accepts(RuleSet.preset, preset, count, **{option: given})
        accepts(resolve_rules, rng.choice((spoilt, given)), count)
        yield spoilt, option, given, preset, count


def actions(rng):
    """Actions of every environment: wrong types, shapes and numbers."""
    border = rng.choice(list(BORDERS))
    games = BORDERS[border](rng.randint(2, 4), seed=rng.randrange(2**32))
    numbers = np.random.default_rng(rng.randrange(2**32))
    for _ in range(20):
        legal = random_legal(games.masks(), numbers)
        strange = rng.choice(STRANGE)
        shapes = [strange, [strange] * len(legal), [*legal[1:].tolist(), strange], legal[1:]]
        given = rng.choice(shapes if len(legal) > 1 else [strange, [strange]])
        before = games.contents()
        if not accepts(games.games.step, given):
            assert games.contents() == before
        else:
            games = BORDERS[border](rng.randint(2, 4), seed=1)
        yield border, given


def options(rng):
    """Seeds and options of `reset` in every environment."""
    players = rng.randint(2, 4)
    make = rng.choice((env, raw_env, MarrakechEnv, many, sb3))
    environment = make(num_players=players)
    environment.reset()
    start = f"{EMPTY} 33S 0s {','.join(['30:9'] * players)} official;colours=single"
    for _ in range(20):
        seed = rng.choice((1, None, rng.choice(STRANGE)))
        text = rng.choice((start, damaged(start, rng), rng.choice(STRANGE)))
        given = rng.choice(({"position": text}, {text: 1} if isinstance(text, str) else {}, text))
        before = contents(environment)
        if not accepts(reset, environment, seed, given):
            assert contents(environment) == before
        else:
            environment.reset()
        yield make, seed, given


def many(**keywords):
    return MarrakechVectorEnv(3, **keywords)


def sb3(**keywords):
    return MarrakechVecEnv(3, **keywords)


def reset(environment, seed, given):
    if isinstance(environment, MarrakechVecEnv):
        try:
            environment.seed(seed)
            environment.set_options(given)
            environment.reset()
        finally:
            environment._reset_seeds()
            environment._reset_options()
    else:
        environment.reset(seed=seed, options=given)


def contents(environment):
    if isinstance(environment, raw_env):
        return environment._states.tobytes(), environment._clocks.tobytes()
    batch = environment._seats.batch
    return batch.states.tobytes(), batch._arrays.clocks.tobytes()


def keywords(rng):
    """Keywords of every environment."""
    names = ("num_players", "rules", "observation", "reward", "render_mode", "opponents", "seat")
    batch_names = ("num_games", "num_players", "rules", "seed", "first_game", "observation")
    for _ in range(20):
        make = rng.choice((env, raw_env, MarrakechEnv, many, sb3, Batch))
        known = names[:5] if make in (env, raw_env) else batch_names if make is Batch else names
        given = {"num_games": 2} if make is Batch else {}
        for name in rng.sample(known, rng.randint(1, 2)):
            given[name] = rng.choice(STRANGE)
        if not isinstance(given.get("num_games"), int) or given["num_games"] < 100:
            accepts(make, **given)
        yield make, given


# ---------------------------------------------------------------------------------- model files


def ppo_model(folder):
    size = int(np.prod(FORMS["flat"].shape(2)))
    head = ppo.ModelHead(2, "official", "flat", size, "mlp", 1, "a test")
    layers = {
        "0.weight": np.ones((2, size)),
        "0.bias": np.ones(2),
        "1.weight": np.ones((15, 2)),
        "1.bias": np.ones(15),
    }
    ppo.save(folder, head, {name: a.astype(np.float32) for name, a in layers.items()})
    return ppo.load


def value_model(folder):
    head = value.ValueHead(2, "official", 0, 0, 0.0, "none", 0.01, "a test")
    weights = {name: np.ones(NET[name].shape, np.float32) for name in WEIGHT_NAMES}
    value.save(folder, value.ValueModel.from_weights(head, weights))
    return value.load


def model_descriptions(rng, folder):
    """JSON files of models of both kinds: damaged text, and strange values of their fields."""
    load = rng.choice((ppo_model, value_model))(folder)
    description = folder / "model.json"
    content = json.loads(description.read_text())
    for _ in range(20):
        if rng.random() < 0.5:
            description.write_bytes(
                damaged(json.dumps(content), rng).encode("utf-8", "surrogatepass")
            )
        else:
            strange = rng.choice((*JSON_VALUES, *(v for v in STRANGE if is_json(v))))
            description.write_text(
                json.dumps({**content, rng.choice(list(content)): strange})
                if rng.random() < 0.9
                else rng.choice(("[" * 100_000, '{"kind":' * 50_000, "1" * 5000, ""))
            )
        accepts(load, description)
        accepts(load_agent, str(folder))
        yield description.read_bytes()[:2000]


JSON_VALUES = ("..", ".", "/dev/zero", "model.json", "a" * 5000, "\0", "\ud800", 2, 3, 1e308, [[]])


def is_json(value):
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return True


def model_weights(rng, folder):
    """Weights of models of both kinds, with a SHA-256 that fits the damage."""
    load = rng.choice((ppo_model, value_model))(folder)
    description = folder / "model.json"
    content = json.loads(description.read_text())
    weights = folder / content["weights"]
    data = weights.read_bytes()
    length = int.from_bytes(data[:8], "little")
    header, numbers = json.loads(data[8 : 8 + length]), data[8 + length :]
    for _ in range(20):
        spoilt = spoil_tensors(data, header, numbers, rng)
        weights.write_bytes(spoilt)
        content["sha256"] = hashlib.sha256(spoilt).hexdigest()
        description.write_text(json.dumps(content))
        accepts(load, description)
        if accepts(from_bytes, spoilt):
            tensors = from_bytes(spoilt)
            assert all(t.dtype == np.float32 for t in tensors.values())
            assert from_bytes(to_bytes(tensors)).keys() == tensors.keys()
        yield spoilt[:2000]


SHAPES = ([], [-1], [-1, -4], [2.0], [True], [[2]], "2", 2, None, [2**70], [2**40] * 2, [0, 2**62])


def spoil_tensors(data, header, numbers, rng):
    """A safetensors file with a damaged header, damaged entries, or bytes changed or cut off."""
    way = rng.randrange(4)
    if way == 0:
        at = rng.randrange(len(data))
        return data[:at] + bytes([rng.randrange(256)]) + data[at + 1 : rng.choice((None, at + 9))]
    if way == 1:
        text = damaged(json.dumps(header), rng).encode("utf-8", "surrogatepass")
    elif way == 2:
        text = rng.choice(
            (b"[" * 100_000, b"[]", b"1" * 5000, b"null", b"", b"\xff\xfe", b'{"a":1}')
        )
    else:
        changed = json.loads(json.dumps(header))
        entry = changed[rng.choice(list(changed))]
        name = rng.choice(list(entry))
        strange = rng.choice((*SHAPES, *(v for v in STRANGE if is_json(v))))
        if name == "data_offsets" and rng.random() < 0.7:
            entry[name][rng.randrange(2)] = rng.choice((0, 0.0, 8.0, strange))
        else:
            entry[name] = rng.choice((strange, ["F32"], [0, 0.0], [float(entry["shape"][0])]))
        text = json.dumps(changed).encode()
    return len(text).to_bytes(8, "little") + text + numbers


KINDS = {
    function.__name__: function
    for function in (
        position_texts,
        move_texts,
        record_texts,
        records,
        rules_texts,
        actions,
        options,
        keywords,
        model_descriptions,
        model_weights,
    )
}


def check_kind(kind, cases, tmp_path):
    done, seed = 0, 0
    while done < cases:
        rng = random.Random(f"{kind} {seed}")
        folder = (tmp_path,) if kind.startswith("model") else ()
        last = None
        try:
            for case in KINDS[kind](rng, *folder):
                last, done = case, done + 1
        except Exception as error:
            error.add_note(f"{kind}, seed {seed}, the case after {last!r}")
            raise
        seed += 1


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_input_gets_a_clear_error_and_changes_nothing(kind, tmp_path):
    check_kind(kind, SHARE, tmp_path)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_of_a_hundred_thousand_inputs(kind, tmp_path):
    check_kind(kind, LONG, tmp_path)
