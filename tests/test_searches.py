"""The search of `champion`: legal, repeatable, exact where they say so."""

import dataclasses

import numpy as np
import pytest

from marrakech_agents.champion import EXPLORATION, ChampionAgent
from marrakech_agents.common.model_files import WEIGHTS
from marrakech_agents.expectimax import ExpectimaxAgent
from marrakech_agents.ppo import PPOAgent
from marrakech_agents.value import ONE_TURN, Effort, ValueAgent, load_model
from marrakech_agents.value_net.one_turn import new_evaluator
from marrakech_agents.value_net.tree import NO_NODE, new_tree, search
from marrakech_env import arena, game
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.solver import solve
from marrakech_env.state import LAY, OVER

RULES = ["official", "boardgamearena;steering=end", "comp1110;money=3"]
QUICK = {
    "champion": ChampionAgent(playouts=5),
}
KINDS = [ExpectimaxAgent, ChampionAgent]


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
    assert isinstance(load_agent("champion"), ChampionAgent)
    assert load_agent("champion").version == 3


@pytest.mark.parametrize("money", [30, 4])
def test_a_playout_replaces_an_estimate_by_the_value_after_the_next_turn(money):
    """With one colour there is no chance after a rug, so one playout values one placement anew."""
    one_turn, agent = ValueAgent(effort=ONE_TURN), ChampionAgent(playouts=1)
    margin_weight = load_model(WEIGHTS / "value-3.json").head.margin_weight
    picked = states_on_the_way(
        3, f"official;money={money}", 3, 6, lambda states: states["phase"] == LAY
    )
    for state in picked[[10, 40]]:
        best = one_turn.analyse(state)[0].action
        found = {row.action: row.worth for row in agent.analyse(state)}
        after = state.reshape(1).copy()
        game.step(after[0], best, -1)
        shares, margins = (table[0, state["player"]] for table in one_turn.evaluate(after))
        assert found[best] == pytest.approx(shares + margin_weight * margins, abs=1e-9)
        assert max(found.values()) == found[best]


@pytest.mark.parametrize("players", [2, 3])
def test_positions_in_the_tree_are_worth_what_was_tried_there(players):
    """The best action with two players, the mean by playouts with more."""
    playouts, evaluator = 60, new_evaluator(load_model(WEIGHTS / f"value-{players}.json").net)
    picked = states_on_the_way(players, "official", 1, 4, lambda states: states["phase"] == LAY)
    tree = new_tree(playouts, EXPLORATION, evaluator)
    search(picked[8:9], np.arange(1), playouts, tree, np.zeros((1, 15)))
    inner = [node for node in tree.nodes[: playouts + 1] if node["playouts"] > 0]
    assert len(inner) > 10
    assert any((node["visits"] > 0).sum() > 1 for node in inner[1:])
    for node in inner:
        by_action = np.einsum("k,aks->as", node["chance"], node["shares"])
        best = np.where(node["visits"] > 0, node["worth"], -np.inf).argmax()
        mean = node["visits"] @ by_action / node["playouts"]
        np.testing.assert_allclose(node["value"], by_action[best] if players == 2 else mean)
        for action, outcome in np.argwhere(node["child"] != NO_NODE):
            below = tree.nodes[node["child"][action, outcome]]
            np.testing.assert_array_equal(node["shares"][action, outcome], below["value"])


@pytest.mark.parametrize("name", ["champion"])
def test_moving_everybody_one_seat_on_changes_nothing(name):
    order = np.array([2, 0, 1, 3])
    picked = states_on_the_way(
        3, "official;money=12", 3, 6, lambda states: states["rugs"].sum(axis=1) > 3
    )
    for state in picked[30::40]:
        moved = state.reshape(1).copy()
        for field in ("colour_boards", "rugs", "money", "eliminated"):
            moved[field][0] = state[field][order]
        moved["next_colour"][0, :3] = [0, 1, 2]
        moved["player"] = (state["player"] + 1) % 3
        rows = {row.action: row.worth for row in QUICK[name].analyse(state)}
        assert {r.action: r.worth for r in QUICK[name].analyse(moved)} == pytest.approx(
            rows, abs=2e-3
        )


def test_more_playouts_change_what_actions_are_worth():
    picked = states_on_the_way(2, "official", 2, 3, lambda states: states["phase"] == LAY)[20:24]
    few, many = (ChampionAgent(playouts=n).action_values(picked) for n in (1, 30))
    assert (few != many).any(axis=1).all()
    assert (ChampionAgent(playouts=30).action_values(picked[::-1])[::-1] == many).all()


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("players", [2, 3])
def test_the_last_two_turns_are_played_as_the_solver_does(name, players):
    picked = states_on_the_way(
        players, "official;rugs=6", 4, 7, lambda states: states["rugs"].sum(axis=1) <= 2
    )
    actions = QUICK[name].act(picked, np.random.default_rng(0))
    for state, action in zip(picked[:12], actions):
        assert action == solve(state).best


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_champion_plays_the_last_three_turns_as_the_solver_does(players):
    picked = states_on_the_way(
        players,
        "official;rugs=6",
        4,
        7,
        lambda states: (states["rugs"].sum(axis=1) == 3) & (states["phase"] == LAY),
    )[:6]
    actions = QUICK["champion"].act(picked, np.random.default_rng(0))
    assert len(picked) == 6
    for state, action in zip(picked, actions):
        assert action == solve(state).best


def test_finished_games_in_a_batch_are_left_alone():
    batch = Batch(2, seed=1)
    states = batch.states.copy()
    states["phase"][0] = OVER
    for agent in QUICK.values():
        values = agent.action_values(states)
        assert (values[0] == -np.inf).all()
        assert (values[1] == agent.action_values(states[1:])[0]).all()


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


@pytest.mark.parametrize("kind", KINDS)
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


@pytest.mark.parametrize("bad", [-0.1, float("nan"), float("inf"), 1e308, "1", None, True, [0.1]])
def test_bad_temperatures_are_refused(bad):
    for kind in (*KINDS, ValueAgent, PPOAgent):
        with pytest.raises(ValueError, match=r"temperature must be a number, 0\.\.1e\+06, not "):
            kind(temperature=bad)


def test_the_highest_temperature_still_plays_legal_actions():
    batch = Batch(40, 2, seed=4)
    for kind in (ExpectimaxAgent, ValueAgent, PPOAgent):
        for _ in range(4):
            actions = kind(temperature=1e6).act(batch.states, np.random.default_rng(0))
            assert batch.action_mask[np.arange(40), actions].all()
            batch.step(actions)


@pytest.mark.parametrize("bad", [-1, float("nan"), "x", None])
def test_bad_efforts_are_refused(bad):
    names = [field.name for field in dataclasses.fields(Effort)]
    for name in names:
        with pytest.raises(ValueError, match=f"{name} must be a "):
            Effort(**dict.fromkeys(names, 1) | {name: bad})


def test_without_limits_the_second_turn_is_searched_for_legal_actions_alone():
    everything = ValueAgent(effort=Effort(100, np.inf, 100, np.inf))
    batch = Batch(6, 2, seed=2)
    for _ in range(6):
        worths = everything.action_values(batch.states)
        np.testing.assert_array_equal(worths > -np.inf, batch.action_mask)
        batch.step(worths.argmax(1))


def test_bad_settings_are_refused():
    for kind in (ChampionAgent,):
        for bad in (0, 2.5, np.inf, "9", 2**63):
            with pytest.raises(ValueError, match="playouts must be a whole number, at least 1, no"):
                kind(playouts=bad)
        for bad in (float("nan"), -1, "x", np.inf):
            with pytest.raises(ValueError, match=r"exploration must be a number, 0\.\.1e\+06, not"):
                kind(exploration=bad)
    with pytest.raises(ValueError, match="agent 'champion' is made for 2 players, not for 3"):
        ChampionAgent(load_model(WEIGHTS / "value-2.json")).action_values(Batch(1, 3).states)


@pytest.mark.long
@pytest.mark.parametrize("name", QUICK)
def test_searching_beats_greedy(name):
    result = arena.play([name], field=["greedy"], deals=40, seed=3)
    assert result.pairings[0].win_share.value > 0.6
