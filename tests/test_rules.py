"""The public functions of the rules: shapes, dtypes, in-place law, errors."""

import numpy as np
import pytest

from marrakech_env import rules
from marrakech_env.notation import format_position, parse_position
from marrakech_env.spec import RuleSet
from marrakech_env.state import STATE, STEER

EMPTY = "/".join(["." * 14] * 7)
START = f"{EMPTY} 33S 0s 30:12+12:0,30:12+12:3 official"


def start(games=3, players=2, text="official"):
    states = np.zeros(games, STATE)
    rules.reset(states, RuleSet.parse(text, players))
    return states


def test_shapes_and_dtypes_are_as_documented():
    states = start(5, 3)
    for function, shape, kind in [
        (rules.action_mask, (5, 15), "b"),
        (rules.tolls, (5, 49), "i"),
        (rules.colours, (5, 49), "i"),
        (rules.scores, (5, 3), "i"),
        (rules.is_over, (5,), "b"),
        (rules.winner_shares, (5, 3), "f"),
        (rules.ranks, (5, 3), "i"),
    ]:
        result = function(states)
        assert result.shape == shape
        assert result.dtype.kind == kind
        assert len(function(states[:0])) == 0
    assert rules.colours(states).dtype == np.int8


def test_the_start_without_outcomes_faces_south_with_the_lower_colours():
    assert format_position(start(1)) == START.replace(":3 ", ":2 ")
    random_facing = start(1, text="official;facing=random")
    assert random_facing["facing"][0] == 2


def test_the_start_takes_outcomes_for_facing_and_first_colours():
    states = np.zeros(2, STATE)
    rule_set = RuleSet.preset("official", facing="random")
    rules.reset(states, rule_set, [[0, 1, 2], [3, 0, 3]])
    assert states["facing"].tolist() == [0, 3]
    assert states["next_colour"][:, :2].tolist() == [[1, 2], [0, 3]]


@pytest.mark.parametrize(
    ("text", "outcomes", "message"),
    [
        ("official", [[2, 0]], r"shape \(1, 3\)"),
        ("official", [[2.0, 0, 2]], "integers"),
        ("official", [[0, 0, 2]], "facing is 0; allowed by the rule set official: 2"),
        ("official;facing=random", [[4, 0, 2]], "allowed.*0, 1, 2, 3"),
        ("official", [[2, 2, 2]], "first colour of player 0 is 2; .*: 0, 1"),
        ("official;colours=alternate", [[2, 1, 2]], "first colour of player 0 is 1"),
        ("comp1110", [[2, 0, 0]], "first colour of player 0 is 0; .*: -1"),
    ],
)
def test_impossible_start_outcomes_are_refused(text, outcomes, message):
    states = np.zeros(1, STATE)
    with pytest.raises(ValueError, match=message):
        rules.reset(states, RuleSet.parse(text), outcomes)
    assert states[0] == np.zeros(1, STATE)[0]


@pytest.mark.parametrize("players", [2, 3, 4])
def test_drawn_start_outcomes_are_possible_ones(players):
    rng = np.random.default_rng(0)
    for text in ("official;facing=random", "boardgamearena", "official;colours=alternate;facing=W"):
        rule_set = RuleSet.parse(text, players)
        rows = np.array([rules.start_outcomes(rule_set, rng) for _ in range(40)])
        rules.reset(np.zeros(40, STATE), rule_set, rows)
        if "random" in text:
            assert set(rows[:, 0]) == {0, 1, 2, 3}


def test_step_works_in_place_on_views_of_any_stride():
    every, plain = start(6), start(3)
    view = every[::2]
    rules.step(view, [0, 1, 2], [1, 2, 3])
    rules.step(plain, [0, 1, 2], [1, 2, 3])
    assert (every[::2] == plain).all()
    assert (every[1::2] == start(3)).all()


@pytest.mark.parametrize(("play_on", "over"), [(0, True), (1, False)])
def test_a_last_survivor_plays_on_where_the_rules_say_so(play_on, over):
    turn = "0s" if play_on else "-"
    states = parse_position(f"{EMPTY} 33S {turn} 30:2,x1:0,x2:0 official;play_on={play_on}")
    assert rules.is_over(states)[0] == over
    assert rules.action_mask(states).any() != over
    if play_on:
        rules.step(states, [1], [1])
        rules.step(states, [int(rules.action_mask(states).argmax())], [-1])
        assert not rules.is_over(states)[0]
        assert states["player"][0] == 0


def test_finished_games_are_left_alone():
    text = f"{EMPTY} 33S - 30:0+0:-,30:0+0:- official"
    states = parse_position(text)
    rules.step(states, [1], [2])
    assert format_position(states) == text
    assert not rules.action_mask(states).any()
    assert not rules.tolls(states).any()


@pytest.mark.parametrize(
    ("actions", "outcomes", "message"),
    [
        ([1, 1], [1, 1, 1], r"actions must be integers of shape \(3,\)"),
        ([1, 1, 1], [1, 1, 1.5], "outcomes must be integers"),
        ([1, 1, 15], [1, 1, 1], "game 2: action 15 is not legal; legal actions: 0, 1, 2$"),
        ([1, -1, 1], [1, 1, 1], "game 1: action -1 is not legal"),
        (
            [1, 1, 1],
            [1, 1, 5],
            "game 2: outcome 5 is not possible after action 1; .*: 1, 2, 3, 4$",
        ),
    ],
)
def test_bad_numbers_are_refused_before_anything_changes(actions, outcomes, message):
    states = start()
    before = states.copy()
    with pytest.raises(ValueError, match=message):
        rules.step(states, actions, outcomes)
    assert (states == before).all()


def test_mixed_numbers_of_players_are_refused_by_every_function():
    states = np.concatenate([start(1, 2), start(1, 3)])
    for function in (
        rules.action_mask,
        rules.tolls,
        rules.colours,
        rules.scores,
        rules.is_over,
        rules.winner_shares,
        rules.ranks,
        lambda s: rules.step(s, [1, 1], [1, 1]),
    ):
        with pytest.raises(ValueError, match="same num_players"):
            function(states)


def test_chance_outcomes_of_a_walk_are_the_die():
    outcomes, probabilities = rules.chance_outcomes(start(1), 0)
    assert outcomes.tolist() == [1, 2, 3, 4]
    assert outcomes.dtype == np.int8
    np.testing.assert_allclose(probabilities, [1 / 6, 2 / 6, 2 / 6, 1 / 6])


@pytest.mark.parametrize(
    ("players", "rule_text", "expected"),
    [
        ("30:3+1:0,30:12+12:3", "official", {0: 2 / 3, 1: 1 / 3}),
        ("30:1+1:0,30:12+12:3", "official", {1: 1.0}),
        ("30:1+0:0,30:12+12:3", "official", {-1: 1.0}),
        ("30:3+1:0,30:12+12:3", "official;colours=coin", {0: 0.5, 1: 0.5}),
        ("30:3+1:1,30:12+12:3", "official;colours=coin", {0: 1.0}),
        ("30:3+1:0,30:12+12:3", "official;colours=alternate", {1: 1.0}),
        ("30:3+1:1,30:12+12:3", "official;colours=alternate", {0: 1.0}),
        ("30:3,30:12", "official;colours=single", {-1: 1.0}),
    ],
)
def test_chance_outcomes_of_laying_are_the_next_colours(players, rule_text, expected):
    state = parse_position(f"{EMPTY} 33S 0l {players} {rule_text}")
    outcomes, probabilities = rules.chance_outcomes(state, 4)
    assert dict(zip(outcomes.tolist(), probabilities.tolist(), strict=True)) == pytest.approx(
        expected
    )


@pytest.mark.parametrize("action", [3, 15, -1, 1.0, None, "1"])
def test_chance_outcomes_of_an_illegal_action_are_refused(action):
    with pytest.raises(ValueError, match="legal: 0, 1, 2"):
        rules.chance_outcomes(start(1), action)


def test_tolls_of_given_players():
    board = "/".join(["0>0<" + "." * 10, *["." * 14] * 6])
    states = np.repeat(parse_position(f"{board} 33S 0s 30:15,30:15,30:15 official"), 2)
    assert not rules.tolls(states).any()
    assert rules.tolls(states, 1)[:, :3].tolist() == [[2, 2, 0]] * 2
    assert rules.tolls(states, [0, 2])[:, 0].tolist() == [0, 2]
    with pytest.raises(ValueError, match=r"players must be seats 0\.\.2, not 3"):
        rules.tolls(states, 3)


def test_read_only_states_can_be_read_but_not_stepped():
    states = start()
    states.setflags(write=False)
    assert rules.action_mask(states).any()
    with pytest.raises(ValueError, match="read-only"):
        rules.step(states, [1] * 3, [1] * 3)
    with pytest.raises(ValueError, match="read-only"):
        rules.reset(states, RuleSet.preset("official"))


def test_eliminations_are_numbered_in_their_order_and_the_later_one_ranks_better():
    empty = "." * 14
    board = "/".join([empty] * 4 + ["......3v......", "......3^......", empty])
    states = parse_position(f"{board} 33S 0s 1:12,1:12,1:12,30:12 official")
    rules.step(states, [1], [1])
    assert states["eliminated"][0].tolist() == [1, 0, 0, 0]
    rules.step(states, [1], [1])
    assert states["eliminated"][0].tolist() == [1, 2, 0, 0]
    assert states["money"][0].tolist() == [0, 0, 1, 32]
    players = "x2:0,x1:0,40:0,30:0"
    over = parse_position(f"{board} 33S - {players} official")
    assert rules.ranks(over).tolist() == [[3, 4, 1, 2]]
    assert rules.winner_shares(over).tolist() == [[0, 0, 1, 0]]


def test_a_player_without_a_rug_is_passed_over_while_others_have_some():
    states = parse_position(f"{EMPTY} 33S 0l 30:2,30:0,30:2 official")
    rules.step(states, [4], [-1])
    assert (states["player"][0], states["phase"][0]) == (2, STEER)
