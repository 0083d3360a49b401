"""The value agent: what it sees, one turn of lookahead, model files."""

import json
import subprocess
import sys

import numpy as np
import pytest
from positions import RULES, half_turned, mirrored, random_states

from marrakech_agents import value
from marrakech_agents.common.endgame import is_late
from marrakech_agents.value_net.model import WEIGHT_NAMES
from marrakech_agents.value_net.network import MAX_MARGIN, NET
from marrakech_agents.value_net.one_turn import new_evaluator, new_workspaces, value_between
from marrakech_env import notation, rules, solver
from marrakech_env.batch import Batch
from marrakech_env.state import LAY, OVER, STEER, STEER_AT_END

MARGIN_WEIGHT = 0.02
DIE = {1: 1 / 6, 2: 1 / 3, 3: 1 / 3, 4: 1 / 6}


FLAT = value.ONE_TURN
ALL = value.Effort(placements=12, placement_gap=9.0, steerings=3, steering_gap=9.0)


def a_head(players=2, margin_weight=MARGIN_WEIGHT):
    return value.ValueHead(players, "official", 0, 0, 0.0, "", margin_weight, "a test")


def random_model(players=2, seed=0, margin_weight=MARGIN_WEIGHT):
    """Weights that make every input matter."""
    rng = np.random.default_rng(seed)
    weights = {
        name: rng.normal(0, 0.1, NET[name].shape).astype(np.float32) for name in WEIGHT_NAMES
    }
    head = a_head(players, margin_weight)
    return value.ValueModel.from_weights(head, weights)


def agent(players=2, effort=FLAT, **arguments):
    return value.ValueAgent(random_model(players), effort=effort, **arguments)


def unfinished(rule_text, players, seed, phase=None):
    """Positions in which the agent estimates: not over, and not so late that it solves them."""
    states = random_states(rule_text, players, 12, seed)
    keep = states["phase"] != OVER if phase is None else states["phase"] == phase
    return states[keep & ~is_late(states)]


def worth_after_turn(state, mover, laid, draw, model):
    """Worth, margin and win of a position between two turns for the seat that had the last one."""
    workspace = new_workspaces()[:1]
    work = workspace["work"]
    value_between(state[0], mover, laid, draw, work[0], workspace[0], new_evaluator(model.net)[0])
    if state["eliminated"][0, mover]:
        return -MARGIN_WEIGHT * MAX_MARGIN, -MAX_MARGIN, 0.0
    slot = work["slot_of_seat"][0, mover]
    margin, win = (
        float(workspace["sums"]["margin"][0, slot]),
        float(workspace["sums"]["win"][0, slot]),
    )
    return win + MARGIN_WEIGHT * margin, margin, win


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_placement_is_worth_what_the_position_after_it_is(players):
    model = random_model(players)
    looker = value.ValueAgent(model, effort=FLAT)
    seen = 0
    for number, text in enumerate(RULES):
        for state in unfinished(text, players, number, LAY)[::5]:
            if state["flags"] & STEER_AT_END:
                continue
            mover, laid = int(state["player"]), int(state["next_colour"][state["player"]])
            for row in looker.analyse(state):
                outcomes, chances = rules.chance_outcomes(state, row.action)
                draw = float(chances[list(outcomes).index(laid)]) if laid in outcomes else 0.0
                if len(outcomes) == 1 and outcomes[0] == -1:
                    draw = 1.0
                after = state.reshape(1).copy()
                rules.step(after, [row.action], [outcomes[0]])
                # Which colour is drawn next must not matter, only how likely it is.
                expected = worth_after_turn(after, mover, laid, draw, model)
                assert (row.worth, row.margin, row.win) == pytest.approx(expected, abs=2e-3)
                seen += 1
    assert seen > 300


@pytest.mark.parametrize("players", [2, 3, 4])
def test_a_steering_is_worth_the_mean_over_the_die_of_the_best_placement(players):
    looker = agent(players)
    eliminations = 0
    for number, text in enumerate(RULES):
        for state in unfinished(text, players, number, STEER)[::9]:
            if state["flags"] & STEER_AT_END:
                continue
            for row in looker.analyse(state):
                expected = 0.0
                for steps, chance in DIE.items():
                    after = state.reshape(1).copy()
                    rules.step(after, [row.action], [steps])
                    if after["phase"][0] == LAY:
                        expected += chance * looker.analyse(after)[0].worth
                    else:
                        assert after["eliminated"][0, state["player"]]
                        expected -= chance * MARGIN_WEIGHT * MAX_MARGIN
                        eliminations += 1
                assert row.worth == pytest.approx(expected, abs=2e-3)
    assert eliminations > 0


def test_a_late_steering_is_worth_the_position_that_it_leads_to():
    model = random_model()
    looker = value.ValueAgent(model, effort=FLAT)
    states = unfinished("official;colours=single;steering=end;money=9", 2, 1, STEER)
    for state in states[:20]:
        rows = looker.analyse(state)
        assert len(rows) == 3
        for row in rows:
            after = state.reshape(1).copy()
            rules.step(after, [row.action], [-1])
            expected = worth_after_turn(after, int(state["player"]), -1, 1.0, model)
            assert row.worth == pytest.approx(expected[0], abs=2e-3)


def test_where_the_mover_steers_last_a_placement_is_worth_its_best_steering():
    looker = agent()
    states = unfinished("official;colours=single;steering=end;money=9", 2, 2, LAY)
    compared = 0
    for state in states[:20]:
        for row in looker.analyse(state):
            after = state.reshape(1).copy()
            rules.step(after, [row.action], [-1])
            if after["phase"][0] == STEER:
                assert row.worth == pytest.approx(looker.analyse(after)[0].worth, abs=2e-3)
                compared += 1
    assert compared > 20


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_last_rug_is_valued_by_the_rules(players):
    looker = agent(players)
    finished = 0
    for text in ("official;rugs=6", "official;rugs=6;tie_break=squares;money=12"):
        states = random_states(text, players, 12, 3)
        for state in states[states["phase"] == LAY]:
            for row in looker.analyse(state):
                after = state.reshape(1).copy()
                rules.step(after, [row.action], rules.chance_outcomes(state, row.action)[0][:1])
                if after["phase"][0] == OVER:
                    mover, scores = int(state["player"]), rules.scores(after)[0]
                    others = [
                        s
                        for p, s in enumerate(scores)
                        if p != mover and not after["eliminated"][0, p]
                    ]
                    assert row.win == pytest.approx(rules.winner_shares(after)[0, mover])
                    margin = scores[mover] - max(others) if others else MAX_MARGIN
                    assert row.margin == pytest.approx(margin)
                    finished += 1
    assert finished >= 10


MIRRORED_ACTIONS = [2, 1, 0] + [
    3 + 3 * (-side % 4) + 2 - turn for side in range(4) for turn in range(3)
]


@pytest.mark.parametrize("players", [2, 4])
def test_turned_and_mirrored_positions_are_worth_the_same(players):
    looker = agent(players)
    for number, text in enumerate(RULES):
        for state in unfinished(text, players, 20 + number)[::40]:
            position = notation.format_position(state)
            rows = {row.action: row.worth for row in looker.analyse(state)}
            turned = looker.analyse(notation.parse_position(half_turned(position)))
            assert {row.action: row.worth for row in turned} == pytest.approx(rows, abs=2e-3)
            flipped = looker.analyse(notation.parse_position(mirrored(position)))
            assert {MIRRORED_ACTIONS[row.action]: row.worth for row in flipped} == pytest.approx(
                rows, abs=2e-3
            )


def test_renaming_the_two_colours_of_a_player_changes_nothing():
    looker = agent()
    swap = np.array([1, 0, 2, 3])
    for state in unfinished("official", 2, 5)[::20]:
        renamed = state.reshape(1).copy()
        renamed["colour_boards"] = state["colour_boards"][swap]
        renamed["rugs"] = state["rugs"][swap]
        if state["next_colour"][0] >= 0:
            renamed["next_colour"][0, 0] = 1 - state["next_colour"][0]
        rows = {row.action: row.worth for row in looker.analyse(state)}
        assert {r.action: r.worth for r in looker.analyse(renamed)} == pytest.approx(rows, abs=2e-3)


def test_moving_everybody_one_seat_on_changes_nothing():
    looker = agent(3)
    order = np.array([2, 0, 1, 3])
    for state in unfinished("official;money=12", 3, 6)[::20]:
        moved = state.reshape(1).copy()
        for name in ("colour_boards", "rugs", "money", "eliminated"):
            moved[name][0] = state[name][order]
        moved["next_colour"][0, :3] = [0, 1, 2]
        moved["player"] = (state["player"] + 1) % 3
        rows = {row.action: row.worth for row in looker.analyse(state)}
        assert {r.action: r.worth for r in looker.analyse(moved)} == pytest.approx(rows, abs=2e-3)


def win_after_reply(state, action, model):
    """The mover's win after a placement and the other player's best turn, by one-turn lookahead."""
    colours, chances = rules.chance_outcomes(state, action)
    after = state.reshape(1).copy()
    rules.step(after, [action], [colours[np.argmax(chances)]])  # the lower one of equals
    if after["phase"][0] == OVER:
        return rules.winner_shares(after)[0, state["player"]]
    flat = value.ValueAgent(model, effort=FLAT)
    return 1 - flat.evaluate(after)[0][0, 1 - state["player"]]


@pytest.mark.parametrize("text", ["official", "official;rugs=4", "comp1110;play_on=0;money=9"])
def test_close_placements_are_judged_after_the_reply(text):
    model = random_model(margin_weight=0.0)
    looker = value.ValueAgent(model, effort=ALL)
    for state in unfinished(text, 2, 4, LAY)[:40:4]:
        for row in looker.analyse(state):
            assert row.win == pytest.approx(win_after_reply(state, row.action, model), abs=2e-3)


def test_close_steerings_are_judged_after_the_reply():
    model = random_model(margin_weight=0.0)
    flat = value.ValueAgent(model, effort=FLAT)
    looker = value.ValueAgent(model, effort=ALL)
    for state in unfinished("official;money=9", 2, 4, STEER)[::25]:
        for row in looker.analyse(state):
            expected = 0.0
            for steps, chance in DIE.items():
                after = state.reshape(1).copy()
                rules.step(after, [row.action], [steps])
                if after["phase"][0] == LAY:
                    best = flat.analyse(after)[0].action
                    expected += chance * win_after_reply(after[0], best, model)
            assert row.win == pytest.approx(expected, abs=2e-3)


def test_actions_that_are_far_behind_keep_their_distance():
    model = random_model()
    flat = value.ValueAgent(model, effort=FLAT)
    looker = value.ValueAgent(model, effort=value.Effort(2, 9.0, 1, 0.0))
    changed = 0
    for state in unfinished("official", 2, 8, LAY)[:40]:
        before, after = flat.analyse(state), looker.analyse(state)
        best = after[0].action
        changed += best != before[0].action
        assert best in (before[0].action, before[1].action)
        shift = after[0].worth - next(row.worth for row in before if row.action == best)
        expected = {row.action: row.worth + shift for row in before[2:]}
        found = {row.action: row.worth for row in after if row.action in expected}
        assert found == pytest.approx(expected)
        for row in after:
            assert row.worth == pytest.approx(row.win + MARGIN_WEIGHT * row.margin, abs=1e-5)
    assert changed > 0


@pytest.mark.parametrize("players", [2, 3, 4])
def test_the_last_two_turns_are_played_without_a_mistake(players):
    looker, checked = agent(players), 0
    states = random_states("official;rugs=4", players, 20, 6)
    states = states[(states["phase"] != OVER) & is_late(states)]
    actions = looker.act(states, np.random.default_rng(0))
    for state, action in zip(states, actions):
        solution, mover = solver.solve(state), state["player"]
        shares = dict(zip(solution.actions, solution.shares[:, mover]))
        assert shares[action] == pytest.approx(max(shares.values()), abs=1e-6)
        found = {row.action: row.win for row in looker.analyse(state)}
        assert found == pytest.approx(shares)
        checked += len(shares) > 1
    assert checked > 10


@pytest.mark.parametrize("players", [2, 3, 4])
def test_it_plays_whole_games_under_all_rules(players):
    looker, rng = agent(players, effort=ALL), np.random.default_rng(0)
    for text in RULES:
        batch, ended = Batch(6, players, text, seed=3), np.zeros(6, bool)
        while not ended.all():
            actions = looker.act(batch.states, rng)
            single = looker.act(batch.states[2:3], rng)
            assert actions[2] == single[0]
            batch.step(actions)  # refuses illegal ones
            ended |= batch.done
    assert rng.bit_generator.state == np.random.default_rng(0).bit_generator.state


@pytest.mark.parametrize("effort", [FLAT, value.USUAL[2]])
def test_the_best_action_is_played_and_analyse_lists_it_first(effort):
    looker = agent(effort=effort)
    states = unfinished("official", 2, 8)[:50]
    actions = looker.act(states, np.random.default_rng(0))
    for state, action in zip(states, actions):
        rows = looker.analyse(state)
        assert rows[0].action == action
        assert [row.worth for row in rows] == sorted((row.worth for row in rows), reverse=True)
        assert {row.action for row in rows} == set(
            np.flatnonzero(rules.action_mask(state.reshape(1))[0])
        )


def test_temperature_draws_from_the_softmax_of_the_worths():
    drawing = agent(temperature=0.1)
    state = unfinished("official", 2, 9, LAY)[:1]
    rows = drawing.analyse(state)
    draws = drawing.act(np.repeat(state, 20000), np.random.default_rng(1))
    chances = np.exp(np.array([row.worth for row in rows]) / 0.1)
    chances /= chances.sum()
    found = np.array([(draws == row.action).mean() for row in rows])
    np.testing.assert_allclose(found, chances, atol=0.02)
    with pytest.raises(ValueError, match=r"temperature must be a number, .*, not -1"):
        agent(temperature=-1)


def test_an_untrained_network_says_the_score():
    blank = {name: np.zeros(NET[name].shape, np.float32) for name in WEIGHT_NAMES}
    looker = value.ValueAgent(value.ValueModel.from_weights(a_head(), blank), effort=FLAT)
    start = Batch(1).states.copy()
    rules.step(start, [1], [2])
    rows = looker.analyse(start)
    assert {row.margin for row in rows} == {2.0}
    assert {row.win for row in rows} == {0.5}


def test_the_shipped_agent_plays_with_every_number_of_players():
    shipped = value.ValueAgent()
    for players in (2, 3, 4):
        batch, rng = Batch(5, players, seed=1), np.random.default_rng(0)
        for _ in range(10):
            batch.step(shipped.act(batch.states, rng))


def test_action_values_are_those_of_the_analysis():
    shipped = value.ValueAgent()
    for state in unfinished("official", 3, 1)[::40]:
        (values,) = shipped.action_values(state.reshape(1))
        rows = {row.action: row.worth for row in shipped.analyse(state)}
        assert {a: w for a, w in enumerate(values) if w > -np.inf} == rows


def test_no_action_of_a_finished_game_is_worth_anything():
    batch, rng = Batch(1, seed=1), np.random.default_rng(0)
    while not batch.done.any():
        batch.step((batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1))
    finished = batch.final_states
    assert (finished["phase"] == OVER).all()
    shipped = value.ValueAgent()
    assert (shipped.action_values(finished) == -np.inf).all()
    assert shipped.analyse(finished[0]) == []


def test_a_model_is_refused_where_another_number_of_players_sits():
    with pytest.raises(ValueError, match="made for 3 players, not for 2"):
        agent(3).act(Batch(2).states, np.random.default_rng(0))


def test_a_saved_model_plays_as_before(tmp_path):
    model = random_model(3)
    value.save(tmp_path, model)
    loaded = value.load(tmp_path / "model.json")
    assert loaded.num_players == 3
    states = unfinished("official", 3, 1)[:40]
    rng = np.random.default_rng(0)
    assert (loaded.act(states, rng) == value.ValueAgent(model).act(states, rng)).all()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "ppo"}, "kind 'value'"),
        ({"sha256": "0"}, "damaged"),
        ({"num_players": 5}, "num_players must be 2, 3 or 4"),
        ({"games": "many"}, "'games' must be of type int"),
        ({"rules": "chess"}, "unknown preset"),
    ],
)
def test_damaged_models_are_refused(tmp_path, change, message):
    value.save(tmp_path, random_model())
    path = tmp_path / "model.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), **change}))
    with pytest.raises(ValueError, match=message):
        value.load(path)


def test_weights_of_a_wrong_shape_or_with_nan_are_refused():
    model = random_model()
    short = {**model.weights(), "bias": np.zeros(3, np.float32)}
    with pytest.raises(ValueError, match=r"'bias' have shape .*found: \(3,\)"):
        value.ValueModel.from_weights(model.head, short)
    broken = {**model.weights(), "bias": np.full(NET["bias"].shape, np.nan, np.float32)}
    with pytest.raises(ValueError, match=r"beyond \+-1e\+06"):
        value.ValueModel.from_weights(model.head, broken)


def test_playing_needs_neither_torch_nor_safetensors():
    program = (
        "import sys, marrakech_agents.value\n"
        "assert not {'torch', 'safetensors', 'matplotlib'} & set(sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


# ------------------------------------------------------------------------------- as a baseline


@pytest.mark.parametrize("players", [2, 3, 4])
def test_all_seats_are_valued_and_finished_games_exactly(players):
    someone = agent(players)
    states = random_states("official;money=9", players, 60, 3)
    shares, margins = someone.evaluate(states)
    assert shares.shape == margins.shape == (len(states), players)
    assert np.isfinite(margins).all()
    np.testing.assert_allclose(shares.sum(axis=1), 1, atol=1e-5)
    over = states["phase"] == OVER
    assert 0 < over.sum() < len(states)
    np.testing.assert_array_equal(shares[over], rules.winner_shares(states[over]))
    points = rules.scores(states[over])
    for seat in range(players):
        others = np.delete(points, seat, axis=1).max(axis=1)
        np.testing.assert_allclose(margins[over, seat], points[:, seat] - others)
    for row in np.flatnonzero(~over)[:10]:
        best = someone.analyse(states[row])[0]
        mover = states["player"][row]
        assert shares[row, mover] == pytest.approx(best.win)
        assert margins[row, mover] == pytest.approx(best.margin)


@pytest.mark.parametrize("margin_weight", [-3e38, 3e38, 1.5])
def test_a_margin_weight_that_would_drown_the_win_is_refused(margin_weight):
    with pytest.raises(ValueError, match=r"margin_weight must be -1\.\.1, not"):
        random_model(margin_weight=margin_weight)


@pytest.mark.parametrize("large", [1e20, np.inf, np.nan])
def test_weights_with_which_worths_would_not_stay_finite_are_refused(large):
    weights = dict(random_model().weights())
    weights["second"] = np.full_like(weights["second"], large)
    with pytest.raises(ValueError, match=r"the weights 'second' hold numbers beyond \+-1e\+06"):
        value.ValueModel.from_weights(a_head(), weights)


def test_the_largest_weights_still_play_legal_actions():
    weights = {name: np.full(NET[name].shape, 1e6, np.float32) for name in WEIGHT_NAMES}
    weights["second"][::2] *= -1
    extreme = value.ValueAgent(value.ValueModel.from_weights(a_head(margin_weight=-1.0), weights))
    batch = Batch(20, 2, seed=1)
    for _ in range(6):
        actions = extreme.act(batch.states, np.random.default_rng(0))
        assert batch.action_mask[np.arange(20), actions].all()
        batch.step(actions)
