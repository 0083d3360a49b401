"""Determinism: the games of a seed are the same however, wherever and beside whom they are played.

The policy here looks at a state alone, so that whatever differs comes from the environment.
`test_chance` holds the law of the streams itself.
"""

import concurrent.futures
import hashlib
import multiprocessing
import pickle
import random
import zlib
from collections import defaultdict

import numpy as np
import pytest
from borders import BORDERS, random_legal

from marrakech_env.batch import Batch
from marrakech_env.notation import format_position
from marrakech_env.state import STATE

RULES = "official;facing=random;money=9"
EPISODES = 2


def actions_of(states, masks):
    """A legal action for each game by its state alone."""
    noise = states.view(np.uint8).reshape(len(states), STATE.itemsize) @ np.arange(7, 87)
    return [np.flatnonzero(mask)[n % mask.sum()] for mask, n in zip(masks, noise)]


def games_of(players, first, count, order=None):
    """Digests of the first episodes of some games of seed 77, by game and episode.

    Args:
        players: P.
        first: The first game.
        count: How many games are played in one batch.
        order: A Generator that picks which games move at a time; None: all of them do.
    """
    batch = Batch(count, players, RULES, seed=77, first_game=first)
    digests = defaultdict(lambda: 0)
    everybody = np.arange(count)
    while (batch.episode < EPISODES).any():
        games = everybody if order is None else everybody[order.random(count) < 0.3]
        for i in games:
            key = (first + int(i), int(batch.episode[i]))
            digests[key] = zlib.crc32(batch.states[i].tobytes(), digests[key])
        batch.step_games(
            games, np.array(actions_of(batch.states[games], batch.action_mask[games]), np.int64)
        )
    return {key: digest for key, digest in digests.items() if key[1] < EPISODES}


@pytest.mark.parametrize("players", [2, 3, 4])
def test_games_do_not_depend_on_the_size_of_the_batch(players):
    together = games_of(players, 0, 12)
    assert len(set(together.values())) == 12 * EPISODES
    assert {k: v for i in range(12) for k, v in games_of(players, i, 1).items()} == together
    assert games_of(players, 0, 5) | games_of(players, 5, 7) == together


@pytest.mark.parametrize("players", [2, 3, 4])
def test_games_do_not_depend_on_the_order_in_which_they_finish(players):
    shuffled = games_of(players, 0, 12, np.random.default_rng(players))
    assert shuffled == games_of(players, 0, 12)


def test_games_do_not_depend_on_processes_and_their_threads(monkeypatch):
    halves = []
    for first, threads in ((0, "1"), (6, "2")):
        for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            monkeypatch.setenv(name, threads)
        context = multiprocessing.get_context("spawn")
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
            halves.append(pool.submit(games_of, 3, first, 6).result(timeout=300))
    assert halves[0] | halves[1] == games_of(3, 0, 12)


@pytest.mark.parametrize("border", BORDERS)
def test_the_global_random_states_are_left_alone(border):
    BORDERS[border](3, seed=0)  # rich, which SB3 imports, draws while it is imported
    np.random.seed(3)  # noqa: NPY002 - the global state is what this test is about
    random.seed(3)
    before = pickle.dumps((np.random.get_state(), random.getstate()))  # noqa: NPY002 - as above
    for seed in (None, 5):
        games, rng = BORDERS[border](3, seed=seed), np.random.default_rng(0)
        for _ in range(150):
            games.step(random_legal(games.masks(), rng))
    after = pickle.dumps((np.random.get_state(), random.getstate()))  # noqa: NPY002 - as above
    assert before == after


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("border", BORDERS)
def test_a_seed_plays_the_same_games_again(border, players):
    def record(seed):
        games, rng = BORDERS[border](players, seed=seed), np.random.default_rng(1)
        contents = []
        for _ in range(120):
            games.step(random_legal(games.masks(), rng))
            contents.append(games.contents())
        return contents

    assert record(8) == record(8) != record(9)


@pytest.mark.parametrize(
    ("players", "golden"),
    [(2, "05184c18bcb7d1a5"), (3, "77c0596d63e134be"), (4, "11624992223b3570")],
)
def test_the_games_of_a_seed_have_not_changed_silently(players, golden):
    """A change here breaks every published seed: it needs a new major version."""
    batch, digest = Batch(8, players, RULES, seed=2025), hashlib.sha256()
    while batch.episode.min() < 3:
        digest.update("\n".join(map(format_position, batch.states)).encode())
        batch.step(np.array(actions_of(batch.states, batch.action_mask)))
    assert digest.hexdigest()[:16] == golden
