"""The shipped agents: legal, repeatable, and right where the right decision is obvious."""

import json

import numpy as np
import pytest

from marrakech_agents.expectimax import WEIGHTS_FILE, ExpectimaxAgent
from marrakech_agents.heuristic.one_turn import NO_COLOUR, take
from marrakech_agents.heuristic.regions import REGION_MAP, map_regions
from marrakech_agents.training.fitting import ROW, targets
from marrakech_env import arena, rules
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.kernels.regions import REGIONS
from marrakech_env.notation import parse_position
from marrakech_env.state import LAY, OVER

NAMES = ["random", "greedy", "expectimax"]
RULES = ["official", "boardgamearena;steering=end", "comp1110", "official;money=6;facing=random"]
RULES += ["comp1110;money=3"]  # many a lone survivor plays on
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


@pytest.mark.parametrize("name", ["greedy", "expectimax"])
def test_a_rug_covers_a_rival_rather_than_its_owner(name):
    """The last rug: to Assam's left two squares of the rival, to his right two own ones."""
    row = "1-1-1-" + ".." + "0-0-0-"
    text = "/".join([EMPTY, EMPTY, EMPTY, row, EMPTY, EMPTY, EMPTY]) + " 33N 0l 30:1,30:0 comp1110"
    assert decide(name, text) == 3 + 3 * 3 + 1


@pytest.mark.parametrize("players", [2, 3, 4])
def test_regions_updated_after_a_rug_equal_a_new_survey(players):
    batch, rng = Batch(60, players, "official;money=8", seed=players), np.random.default_rng(3)
    listed = np.zeros(1, REGIONS)[0]
    updated, fresh = np.zeros(1, REGION_MAP), np.zeros(1, REGION_MAP)
    compared = 0
    for _ in range(120):
        actions = (batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1)
        for i in np.flatnonzero(batch.states["phase"] == LAY)[:6]:
            after = batch.states[i : i + 1].copy()
            map_regions(after[0], listed, updated[0])
            take(after[0], updated[0], int(actions[i]), NO_COLOUR)
            map_regions(after[0], listed, fresh[0])
            for field in REGION_MAP.names:
                np.testing.assert_array_equal(updated[field], fresh[field], field)
            compared += 1
        batch.step(actions)
    assert compared > 200


def test_weights_for_other_facts_are_refused(tmp_path):
    data = json.loads(WEIGHTS_FILE.read_text())
    data["facts"] = data["facts"][1:]
    (tmp_path / "weights.json").write_text(json.dumps(data))
    with pytest.raises(
        ValueError, match=r"weights\.json holds no weights .*: they are for the facts"
    ):
        ExpectimaxAgent(tmp_path / "weights.json")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("spread", [-1.0, 4.0]),
        ("spread", None),
        ("knots", [3]),
        ("knots", [48, 1]),
        ("weights", [[float("nan")]]),
        ("weights", "x"),
    ],
)
def test_weights_that_make_no_sense_are_refused(tmp_path, key, value):
    data = json.loads(WEIGHTS_FILE.read_text())
    data["players"]["2"][key] = value
    (tmp_path / "weights.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match=r"weights\.json holds no weights for expectimax"):
        ExpectimaxAgent(tmp_path / "weights.json")


@pytest.mark.parametrize("text", ["[]", "{}", "x", '{"facts": 1}', "[" * 100_000])
def test_a_file_that_holds_no_weights_is_named(tmp_path, text):
    (tmp_path / "weights.json").write_text(text)
    with pytest.raises(ValueError, match=r"weights\.json holds no weights for expectimax"):
        ExpectimaxAgent(tmp_path / "weights.json")


def test_a_missing_number_of_players_is_named(tmp_path):
    data = json.loads(WEIGHTS_FILE.read_text())
    del data["players"]["3"]
    (tmp_path / "weights.json").write_text(json.dumps(data))
    with pytest.raises(ValueError, match="no weights for 3 players; there are some for: 2, 4"):
        ExpectimaxAgent(tmp_path / "weights.json").act(Batch(2, 3).states, np.random.default_rng(0))


def test_targets_of_the_fit_are_final_scores_less_the_luck_to_come():
    """Two positions of one game: the luck is what was predicted second minus the first backup."""
    rows = np.zeros(3, ROW)
    rows["since"][:, 2:] = -1
    rows["game"] = 0, 0, 1
    rows["predicted"][:, 0] = 50, 48, 40
    rows["backup"][:, 0] = 51, 45, 41
    assert targets(rows, 1.0)[:, 0].tolist() == [51 + (45 - 48), 45, 41]
    assert targets(rows, 0.5)[:, 0].tolist() == [51 + 0.5 * (45 - 48), 45, 41]
    assert np.isnan(targets(rows, 1.0)[:, 2:]).all()


def test_expectimax_beats_greedy_and_greedy_beats_random():
    result = arena.play(["expectimax", "greedy", "random"], deals=100, seed=3)
    shares = {(p.agent, p.opponent): p.win_share.value for p in result.pairings}
    assert shares["expectimax", "greedy"] > 0.6
    assert shares["greedy", "random"] > 0.97


def test_analysis_agrees_with_the_decision():
    agent, batch = load_agent("expectimax"), Batch(10, 4, seed=2)
    for _ in range(20):
        actions = agent.act(batch.states, np.random.default_rng(0))
        for i in range(10):
            rows = agent.analyse(batch.states[i])
            assert (
                sorted(row.action for row in rows) == np.flatnonzero(batch.action_mask[i]).tolist()
            )
            assert actions[i] == rows[0].action
            assert rows == sorted(rows, key=lambda row: (-row.q, row.action))
        batch.step(actions)
    assert (batch.states["phase"] != LAY).any()


def positions_after(state, action):
    """The position after an action for each outcome of chance, and the probabilities."""
    outcomes, chances = rules.chance_outcomes(state, action)
    after = np.repeat(np.array([state]), len(outcomes))
    rules.step(after, np.full(len(after), action), outcomes)
    return after, chances


def values(agent, states, seat):
    """Value of positions to a seat: the share of the win and 0.003 for each dirham of margin."""
    shares, margins = agent.evaluate(states)
    return shares[:, seat] + 0.003 * margins[:, seat]


def values_after_reply(agent, after, seat):
    """Value of one position to a seat after the opponent's turn, for each of their steerings."""
    if after["phase"] == OVER:
        return values(agent, np.array([after]), seat)
    found = []
    for steering in range(3):
        total = 0.0
        for walked, chance in zip(*positions_after(after, steering), strict=True):
            ends = np.array([walked])
            if walked["phase"] == LAY:
                legal = np.flatnonzero(rules.action_mask(walked)[0]).tolist()
                ends = np.concatenate([positions_after(walked, k)[0][:1] for k in legal])
            best = values(agent, ends, 1 - seat).argmax()
            total += chance * values(agent, ends, seat)[best]
        found.append(total)
    return np.array(found)


def test_with_two_players_the_best_two_placements_are_valued_after_the_reply():
    agent, batch = ExpectimaxAgent(), Batch(4, seed=6)
    changed = 0
    for _ in range(40):
        actions = agent.act(batch.states, np.random.default_rng(0))
        for state, action in zip(batch.states, actions, strict=True):
            if state["phase"] != LAY:
                continue
            seat, found = int(state["player"]), {r.action: r.q for r in agent.analyse(state)}
            nexts = {k: positions_after(state, k) for k in found}
            one_turn = {k: values(agent, nexts[k][0][:1], seat)[0] for k in found}
            order = sorted(found, key=lambda k: (-one_turn[k], k))
            best, rest = order[:2], [found[k] for k in order[2:]]
            for placement in best:
                # The colour of the own rug after this one is the likelier one.
                after = nexts[placement][0][nexts[placement][1].argmax()]
                expected = values_after_reply(agent, after, seat)
                assert np.abs(expected - found[placement]).min() < 1e-9
            assert action in best
            assert rest == sorted(rest, reverse=True)
            assert max(rest, default=-np.inf) <= min(found[k] for k in best)
            changed += action != order[0]
        batch.step(actions)
    assert changed > 5
