"""The shipped agents: legal, repeatable, and right where the right decision is obvious."""

import numpy as np
import pytest

from marrakech_env import arena
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.notation import parse_position
from marrakech_env.state import LAY

NAMES = ["random", "greedy", "expectimax"]
RULES = ["official", "boardgamearena;steering=end", "comp1110", "official;money=6;facing=random"]
EMPTY = "." * 14


def decide(name, text):
    return int(load_agent(name).act(parse_position(text), np.random.default_rng(0))[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("rules", RULES)
def test_every_decision_is_legal_in_every_phase_and_rule_set(name, players, rules):
    agent, rng = load_agent(name), np.random.default_rng(1)
    batch = Batch(24, players, rules, seed=players)
    for _ in range(110):
        batch.step(agent.act(batch.states, rng))
    assert batch.episode.min() >= 0


@pytest.mark.parametrize("name", NAMES)
def test_a_decision_is_fixed_by_states_and_random_numbers(name):
    batch = Batch(50, 3, seed=4)
    mover = np.random.default_rng(0)
    for _ in range(25):
        batch.step((batch.action_mask * mover.random(batch.action_mask.shape)).argmax(1))
        first = load_agent(name).act(batch.states, np.random.default_rng(7))
        assert (first == load_agent(name).act(batch.states, np.random.default_rng(7))).all()


@pytest.mark.parametrize("name", ["greedy", "expectimax"])
def test_a_batch_is_decided_as_its_games_alone(name):
    agent, rng = load_agent(name), np.random.default_rng(0)
    batch = Batch(20, 2, seed=5)
    for _ in range(40):
        together = agent.act(batch.states, rng)
        alone = [agent.act(batch.states[i : i + 1], rng)[0] for i in range(20)]
        assert together.tolist() == alone
        batch.step(together)


def test_random_draws_every_legal_action_equally_often():
    batch = Batch(9000, seed=1)
    agent, rng = load_agent("random"), np.random.default_rng(2)
    steerings = np.bincount(agent.act(batch.states, rng), minlength=15)
    assert steerings[3:].sum() == 0
    np.testing.assert_allclose(steerings[:3] / 9000, 1 / 3, atol=0.03)


@pytest.mark.parametrize("name", ["greedy", "expectimax"])
def test_assam_is_steered_away_from_a_ruinous_toll(name):
    """Every roll straight on ends on the rival's region of 18, left and right are empty."""
    own, rival = "0>0<0>0<0>0<..", "1>1<1>1<1>1<.."
    board = "/".join([own, own, own, EMPTY, rival, rival, rival])
    assert decide(name, f"{board} 33S 0s 3:12,3:12 comp1110") in (0, 2)


@pytest.mark.parametrize("name", ["greedy", "expectimax"])
def test_the_last_rug_takes_the_most_squares(name):
    """Assam looks north. Only to his left lie two squares of the rival; all else is his own."""
    own = "0-" * 7
    rival = "0-1-1-" + "0-" * 4
    text = "/".join([own, own, own, rival, own, own, own]) + " 33N 0l 30:1,30:0 comp1110"
    assert decide(name, text) == 3 + 3 * 3 + 1


def test_expectimax_beats_greedy_and_greedy_beats_random():
    result = arena.play(["expectimax", "greedy", "random"], deals=100, seed=3)
    shares = {(p.agent, p.opponent): p.win_share.value for p in result.pairings}
    assert shares["expectimax", "greedy"] > 0.6
    assert shares["greedy", "random"] > 0.97


def test_analysis_agrees_with_the_decision():
    agent, batch = load_agent("expectimax"), Batch(10, 4, seed=2)
    for _ in range(20):
        actions = agent.act(batch.states, np.random.default_rng(0))
        for game in range(10):
            rows = dict(agent.analyse(batch.states[game]))
            assert sorted(rows) == np.flatnonzero(batch.action_mask[game]).tolist()
            assert actions[game] == max(rows, key=lambda action: (rows[action], -action))
        batch.step(actions)
    assert (batch.states["phase"] != LAY).any()
