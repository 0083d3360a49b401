"""The searches `expectimax2` and `mcts`: legal, repeatable, exact where they claim to be."""

import numpy as np
import pytest

from marrakech_agents.evaluation import value
from marrakech_agents.expectimax import ExpectimaxAgent
from marrakech_agents.expectimax2 import Effort, Expectimax2Agent
from marrakech_agents.mcts import MctsAgent
from marrakech_agents.patches import PATCHES, ROLL_CHANCE, survey
from marrakech_agents.turn import make_scratch
from marrakech_env import arena, game
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.rules import chance_outcomes
from marrakech_env.solver import solve
from marrakech_env.state import LAY, OVER

RULES = ["official", "boardgamearena;steering=end", "comp1110;money=3"]
QUICK = {
    "expectimax2": Expectimax2Agent(effort=Effort(2, 0.2, 0.05, 1, 0.0)),
    "mcts": MctsAgent(playouts=5),
}
WIDE = Effort(12, np.inf, np.inf, 12, np.inf)


def states_on_the_way(players, rules, games, seed, wanted):
    """States of games played at random that fit a condition: (N,)."""
    batch, rng, found = Batch(games, players, rules, seed=seed), np.random.default_rng(seed), []
    for _ in range(110):
        batch.step((batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1))
        found.append(batch.states[wanted(batch.states)].copy())
    return np.concatenate(found)


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("rules", RULES)
def test_every_decision_is_legal_and_that_of_the_game_alone(name, players, rules):
    agent, rng = QUICK[name], np.random.default_rng(1)
    batch = Batch(4, players, rules, seed=players)
    before = rng.bit_generator.state
    for step in range(110):
        actions = agent.act(batch.states, rng)
        if step % 10 == 0:
            assert actions[1] == agent.act(batch.states[1:2], rng)[0]
        batch.step(actions)  # refuses illegal ones
    assert rng.bit_generator.state == before


def test_the_names_lead_to_them():
    assert isinstance(load_agent("expectimax2"), Expectimax2Agent)
    assert isinstance(load_agent("mcts"), MctsAgent)


def slow_two_turns(state, action, player, tables):
    """What an action is worth to a player after it and the whole turn of who moves then."""
    board, sheet = np.zeros(1, PATCHES)[0], make_scratch()[2][0]

    def stepped(before, action, outcome):
        after = np.array([before])
        game.step(after[0], int(action), int(outcome))
        return after[0]

    def worth(after, seat):
        survey(after, board)
        return value(after, board, seat, *tables, sheet)

    def legal(before):
        return [k for k in range(15) if game.legal_actions(before) >> k & 1]

    def rest_of_turn(before, walker):
        """The position after the walker's best rug."""
        if before["phase"] != LAY or before["player"] != walker:
            return before
        return max((stepped(before, k, -1) for k in legal(before)), key=lambda s: worth(s, walker))

    total = 0.0
    for outcome, chance in zip(*chance_outcomes(state, action)):
        before = stepped(state, action, outcome)
        if before["phase"] == OVER:
            total += chance * worth(before, player)
            continue
        walker = before["player"]
        walks = [
            [rest_of_turn(stepped(before, steering, roll), walker) for roll in range(1, 5)]
            for steering in legal(before)
        ]
        ends = max(walks, key=lambda row: ROLL_CHANCE @ [worth(end, walker) for end in row])
        total += chance * (ROLL_CHANCE @ [worth(end, player) for end in ends])
    return total


@pytest.mark.parametrize(("players", "money"), [(2, 30), (3, 30), (4, 4)])
def test_placements_are_valued_after_the_whole_turn_of_the_next_player(players, money):
    tables = ExpectimaxAgent().weights_for(players)
    agent = Expectimax2Agent(effort=WIDE)
    picked = states_on_the_way(
        players, f"official;money={money}", 3, 5, lambda states: states["phase"] == LAY
    )
    for state in picked[[20, 60]]:
        for row in agent.analyse(state)[::3]:
            expected = slow_two_turns(state, row.action, int(state["player"]), tables)
            assert row.worth == pytest.approx(expected, abs=1e-9)


def test_a_playout_replaces_an_estimate_by_the_value_after_the_next_turn():
    """With one colour there is no chance after a rug, so one playout values one placement anew."""
    tables, agent = ExpectimaxAgent().weights_for(3), MctsAgent(playouts=1)
    picked = states_on_the_way(3, "official", 3, 6, lambda states: states["phase"] == LAY)
    for state in picked[[10, 50]]:
        best = max(ExpectimaxAgent().analyse(state), key=lambda row: row.worth).action
        found = {row.action: row.worth for row in agent.analyse(state)}
        expected = slow_two_turns(state, best, int(state["player"]), tables)
        assert found[best] == pytest.approx(expected, abs=1e-9)
        assert max(found.values()) == found[best]


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("players", [2, 3])
def test_the_last_two_turns_are_played_as_the_solver_does(name, players):
    picked = states_on_the_way(
        players, "official;rugs=6", 4, 7, lambda states: states["rugs"].sum(axis=1) <= 2
    )
    actions = QUICK[name].act(picked, np.random.default_rng(0))
    for state, action in zip(picked[:12], actions):
        assert action == solve(state).best


def test_analysis_agrees_with_the_decision():
    for agent in QUICK.values():
        picked = states_on_the_way(2, "official", 2, 8, lambda states: states["phase"] != OVER)[
            ::15
        ]
        for state, action in zip(picked, agent.act(picked, np.random.default_rng(0))):
            rows = agent.analyse(state)
            legal = [k for k in range(15) if game.legal_actions(state) >> k & 1]
            assert rows[0].action == action
            assert sorted(row.action for row in rows) == legal


@pytest.mark.parametrize("kind", [ExpectimaxAgent, Expectimax2Agent, MctsAgent])
def test_a_temperature_draws_from_the_softmax_of_the_worths(kind):
    agent = kind(temperature=0.05)
    state = states_on_the_way(2, "official", 1, 9, lambda states: states["phase"] == LAY)[7:8]
    rows = agent.analyse(state)
    values = np.zeros((1, 15))
    for row in rows:
        values[0, row.action] = np.exp((row.worth - rows[0].worth) / 0.05)
    draws = agent.act(np.repeat(state, 400), np.random.default_rng(1))
    again = agent.act(np.repeat(state, 400), np.random.default_rng(1))
    assert (draws == again).all()
    shares = np.bincount(draws, minlength=15) / 400
    np.testing.assert_allclose(shares, values[0] / values.sum(), atol=0.1)
    assert len(set(draws.tolist())) > 1


def test_bad_settings_are_refused():
    for kind in (ExpectimaxAgent, Expectimax2Agent, MctsAgent):
        with pytest.raises(ValueError, match=r"temperature must be at least 0, not -0\.1"):
            kind(temperature=-0.1)
    with pytest.raises(ValueError, match="playouts must be at least 1, not 0"):
        MctsAgent(playouts=0)
    with pytest.raises(ValueError, match="exploration must be at least 0, not nan"):
        MctsAgent(exploration=float("nan"))


@pytest.mark.long
@pytest.mark.parametrize("name", ["expectimax2", "mcts"])
def test_searching_beats_greedy(name):
    result = arena.play([name], field=["greedy"], deals=40, seed=3)
    assert result.pairings[0].win_share.value > 0.6
