"""Wrong calls over all borders: each gets a clear ValueError and changes nothing.

The calls come from a seed, so a failure names the case and can be played again.
"""

import contextlib
import copy
import random
from functools import partial

import numpy as np
import pytest
from borders import BORDERS, random_legal
from damage import STRANGE, accepts, damaged
from seated import Lowest
from whole_borders import MAKERS, WITH_OPPONENTS, contents, is_over, play, reset

from marrakech_env.aec import env, raw_env
from marrakech_env.batch import Batch
from marrakech_env.rewards import SCHEMES, check_scheme, final_rewards, margins
from marrakech_env.sb3 import MarrakechVecEnv
from marrakech_env.vector import MarrakechEnv, MarrakechVectorEnv

SHARE, LONG = 400, 4000
"""Calls of each of the five kinds: 2,000 in the default run, 20,000 in the long one."""

EMPTY = "/".join(["." * 14] * 7)


def actions(rng):
    """Actions: wrong types, shapes and numbers."""
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


def resets(rng):
    """Seeds and options of `reset`."""
    kind, border, _ = started(rng)
    start = f"{EMPTY} 33S 0s 30:9,30:9,30:9 official"
    for _ in range(20):
        seed = rng.choice((1, None, rng.choice(STRANGE)))
        text = rng.choice((start, damaged(start, rng), rng.choice(STRANGE)))
        given = rng.choice(({"position": text}, {text: 1} if isinstance(text, str) else {}, text))
        before = contents(border)
        if accepts(reset_with, border, seed, given):
            kind, border, _ = started(rng)
        else:
            assert contents(border) == before
        yield kind, seed, given


def reset_with(border, seed, options):
    if not isinstance(border, MarrakechVecEnv):
        border.reset(seed=seed, options=options)
        return
    try:
        border.seed(seed)
        border.set_options(options)
        border.reset()
    finally:
        border._reset_seeds()
        border._reset_options()


def started(rng):
    """A border in mid-game, as its kind, and a copy of it."""
    kind = rng.choice([kind for kind in MAKERS if kind != "SeatedBatch"])
    border = MAKERS[kind](rng.choice(("random", Lowest())))
    reset(border, rng.randrange(2**32))
    play(border, rng.randint(0, 6))
    return kind, border, copy.deepcopy(border)


def keywords(rng):
    """Keywords of the constructors."""
    aec = ("num_players", "rules", "observation", "reward", "render_mode")
    gym = (*aec, "opponents", "seat")
    known = {
        env: aec,
        raw_env: aec,
        MarrakechEnv: gym,
        MarrakechVectorEnv: ("num_envs", *gym),
        MarrakechVecEnv: ("num_envs", *gym),
        Batch: ("num_players", "rules", "seed", "first_game", "observation"),
    }
    for _ in range(20):
        make = rng.choice(list(known))
        given = {"num_envs": 3} if "num_envs" in known[make] else {}
        given |= {"num_games": 3} if make is Batch else {}
        names = rng.sample(known[make], rng.randint(1, 2))
        for name in names:
            strange = rng.choice(STRANGE)
            given[name] = rng.choice((strange, [strange] * 2, {"random": strange}, f"{strange}"))
        accepts(make, **given)
        yield make, given


def methods(rng):
    """All other methods, and the functions of rewards."""
    kind, border, twin = started(rng)
    for _ in range(20):
        strange = rng.choice(STRANGE)
        many = rng.choice(
            (strange, [strange] * 3, ["random", strange, "random"], {"random": strange})
        )
        if accepts(rng.choice(list(calls_of(kind, border, strange, many, rng)))):
            kind, border, twin = started(rng)
        else:
            assert contents(border) == contents(twin)
        yield kind, strange, many
    if not is_over(border):
        assert play(border, 1) == play(twin, 1)


def calls_of(kind, border, strange, many, rng):
    """Every method of a border, and every function of rewards, with strange arguments."""
    yield partial(check_scheme, strange)
    yield partial(margins, rng.choice((strange, many)))
    yield partial(final_rewards, rng.choice((strange, *SCHEMES)), strange, many)
    if kind in ("raw_env", "env"):
        for name in ("observe", "observation_space", "action_space"):
            yield partial(getattr(border, name), strange)
    if kind == "env":
        yield partial(border.agent_iter, strange)
    if kind in WITH_OPPONENTS:
        yield partial(border.set_opponents, many)
        yield partial(border.set_opponents, [many] * 3)
    if kind == "VecEnv":
        yield partial(border.get_attr, "player", strange)
        yield partial(border.env_method, "action_masks", indices=strange)
        yield partial(border.env_method, "set_opponents", many, indices=rng.choice((None, strange)))
        yield partial(border.env_is_wrapped, Lowest, strange)
        yield partial(border.set_attr, "note", 1, many)
        yield partial(border.seed, strange)
        yield partial(border.set_options, many)


def attributes(rng):
    """Attributes set from outside: the games do not depend on them, or `reset` makes them anew."""
    kind, border, twin = started(rng)
    data = [name for name in dir(border) if not name.startswith("_")]
    data = [name for name in data if not callable(getattr(border, name))]
    for _ in range(4):
        name, value = rng.choice([*data, "states", "batch"]), rng.choice(STRANGE)
        if name != "render_mode":
            with contextlib.suppress(Exception):
                setattr(border, name, value)
                border.step(0)
        yield kind, name, value
    reset(border, 5)
    reset(twin, 5)
    assert play(border, 6) == play(twin, 6)


KINDS = {kind.__name__: kind for kind in (actions, resets, keywords, methods, attributes)}


def check_kind(kind, calls):
    done, seed = 0, 0
    while done < calls:
        rng, last = random.Random(f"{kind} {seed}"), None
        try:
            for case in KINDS[kind](rng):
                last, done = case, done + 1
        except Exception as error:
            error.add_note(f"{kind}, seed {seed}, the call after {last!r}")
            raise
        seed += 1


@pytest.mark.parametrize("kind", KINDS)
def test_wrong_calls_get_a_clear_error_and_change_nothing(kind):
    check_kind(kind, SHARE)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
def test_the_same_of_twenty_thousand_calls(kind):
    check_kind(kind, LONG)
