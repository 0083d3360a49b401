"""Soak: many decisions through `Batch`, with all invariants checked on a sample, in flat memory."""

from pathlib import Path

import numpy as np
import pytest
from borders import RULES, random_legal

from marrakech_env.batch import Batch
from marrakech_env.state import as_states

GAMES = 1024
STATUS = Path("/proc/self/statm")


def resident():
    """Memory of this process in bytes."""
    return int(STATUS.read_text().split()[1]) * 4096


def check_soak(players, decisions):
    batch, rng = Batch(GAMES, players, RULES[players], observation="flat"), np.random.default_rng(0)
    total = int(batch.states["money"][0].sum())
    steps = -(-decisions // GAMES)
    checkpoints = set(np.linspace(0, steps - 1, 20, dtype=int).tolist())
    memory = []
    for step in range(steps):
        batch.step(random_legal(batch.action_mask, rng))
        if step in checkpoints:
            picked = rng.choice(GAMES, 64, replace=False)
            as_states(batch.states[picked])
            as_states(batch.final_states[batch.done])
            assert (batch.states["money"].sum(1) == total).all()
            assert batch.action_mask.any(1).all()
            assert np.isfinite(batch.observation).all()
            memory.append(resident() if STATUS.exists() else 0)
    assert batch.episode.min() >= 1
    assert max(memory[2:]) - memory[1] < 4 * 2**20


@pytest.mark.parametrize("players", [2, 3, 4])
def test_invariants_hold_and_memory_stays_flat_in_play(players):
    check_soak(players, 200_000)


@pytest.mark.long
@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_same_over_ten_million_decisions(players):
    check_soak(players, 10**7)
