"""The state's invariants: each holds in play, and its check notices when it is broken."""

import numpy as np
import pytest

from marrakech_env import rules, state
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.notation import parse_position
from marrakech_env.state import STATE, as_states, one_state, rule_set_of

START = "/".join(["." * 14] * 7)
RUGS = "/".join(["0>0<" + "." * 10, *["." * 14] * 6])

START_TEXT = f"{START} 33S 0s 30:12+12:0,30:12+12:3 official"

# invariant -> positions, each with the fields that break it, and only it: (field, index, value)
BROKEN = {
    "rules_are_known": [
        (START_TEXT, [("num_players", (), 1)]),
        (START_TEXT, [("num_players", (), 5)]),
        (START_TEXT, [("preset", (), 3)]),
        (START_TEXT, [("colour_rule", (), 4)]),
        (START_TEXT, [("facing_rule", (), 5)]),
        (START_TEXT, [("flags", (), 16)]),
        (START_TEXT, [("start_rugs", (), 0)]),
        (START_TEXT, [("start_rugs", (), 101)]),
        (START_TEXT, [("start_rugs", (), 25)]),
        (START_TEXT, [("start_money", (), -1)]),
        (START_TEXT, [("start_money", (), 1001)]),
        (f"{START} 33S 0s 30:12,30:12,30:12 official", [("colour_rule", (), 0)]),
    ],
    "assam_on_board": [
        (START_TEXT, [("assam", (), 49)]),
        (START_TEXT, [("assam", (), 200)]),
        (START_TEXT, [("facing", (), 4)]),
    ],
    "bits_on_board": [
        (START_TEXT, [("colour_boards", 0, 1 << 49)]),
        (START_TEXT, [("links_south", (), 1 << 63)]),
        ("/".join([*["." * 14] * 6, "." * 12 + "0-"]), [("links_south", (), 1 << 48)]),
        (
            "/".join(["." * 12 + "0-", "0-" + "." * 12, *["." * 14] * 5]),
            [("links_east", (), 1 << 6)],
        ),
    ],
    "colours_disjoint": [(RUGS, [("colour_boards", 1, 4 | 1)])],
    "links_disjoint": [
        ("/".join(["0>0<0-" + "." * 8, *["." * 14] * 6]), [("links_east", (), 3)]),
        (
            "/".join(["0v" + "." * 12, "0^" + "." * 12, "0-" + "." * 12, *["." * 14] * 4]),
            [("links_south", (), 1 | 1 << 7)],
        ),
        ("/".join(["0>0<" + "." * 10, "0-" + "." * 12, *["." * 14] * 5]), [("links_south", (), 1)]),
    ],
    "links_join_one_colour": [
        (RUGS, [("colour_boards", 0, 1)]),
        (START_TEXT, [("links_east", (), 1)]),
        ("/".join(["0-1-" + "." * 10, *["." * 14] * 6]), [("links_east", (), 1)]),
    ],
    "unused_seats_empty": [
        (START_TEXT, [("money", 3, 1)]),
        (START_TEXT, [("eliminated", 2, 1)]),
        (START_TEXT, [("next_colour", 2, 2)]),
        (f"{START} 33S 0s 30:12,30:12 official;colours=single", [("rugs", 2, 1)]),
        (f"{START} 33S 0s 30:12,30:12,30:12 official", [("colour_boards", 3, 1)]),
    ],
    "amounts_in_range": [
        (START_TEXT, [("money", 0, -1)]),
        (START_TEXT, [("money", 0, 32767)]),
        (START_TEXT, [("rugs", 1, 255)]),
    ],
    "elimination_order": [
        (f"{START} 33S 0s 30:12,x1:0,30:12 official", [("eliminated", 1, 2)]),
        (f"{START} 33S 0s 30:12,x1:0,x2:0,30:12 official", [("eliminated", 1, 2)]),
        (f"{START} 33S 0s 30:12,x1:0,30:12 official", [("eliminated", 1, 255)]),
        (f"{START} 33S - 30:0,x1:0,x2:0 official", [("eliminated", 0, 3), ("money", 0, 0)]),
    ],
    "eliminated_hold_nothing": [
        (f"{START} 33S 0s 30:12,x1:0,30:12 official", [("money", 1, 1)]),
        (f"{START} 33S 0s 30:12,x1:0,30:12 official", [("rugs", 1, 1)]),
        (f"{START} 33S 0s 30:12+12:0,x1:0 official", [("rugs", 3, 1), ("next_colour", 1, 3)]),
    ],
    "next_colour_held": [
        (START_TEXT, [("next_colour", 0, 2)]),
        (START_TEXT, [("next_colour", 0, -1)]),
        (START_TEXT, [("next_colour", 0, 100)]),
        (START_TEXT, [("next_colour", 0, -128)]),
        (START_TEXT, [("rugs", 0, 0)]),
        (f"{START} 33S 0s 30:12,30:12,30:12 official", [("next_colour", 1, -1)]),
    ],
    "mover_in_game": [
        (f"{START} 33S 0s 30:12,x1:0,30:12 official", [("player", (), 1)]),
        (START_TEXT, [("player", (), 2)]),
        (START_TEXT, [("player", (), 7)]),
        (START_TEXT, [("phase", (), 9)]),
        (f"{START} 33S - 30:0,30:0 comp1110", [("player", (), 1)]),
    ],
    "phase_fits": [
        (START_TEXT, [("phase", (), state.WALK)]),
        (f"{START} 33S 0s 30:0+0:-,30:1+0:2 official", [("phase", (), state.LAY)]),
    ],
}
CASES = [(name, *case) for name, cases in BROKEN.items() for case in cases]


@pytest.mark.parametrize(("name", "text", "damage"), CASES)
def test_a_broken_invariant_is_named(name, text, damage):
    states = parse_position(text if " " in text else START_TEXT.replace(START, text))
    as_states(states)
    for field, index, value in damage:
        states[field][(0, index) if index != () else 0] = value
    field, *_ = damage[0]
    with pytest.raises(
        ValueError, match=f"game 0 breaks the invariant {name}: .*{field}=.*"
    ) as told:
        as_states(states)
    assert str(damage[0][2]) in str(told.value)


def test_the_game_with_a_broken_invariant_is_named():
    states = np.repeat(parse_position(START_TEXT), 3)
    states["assam"][2] = 200
    with pytest.raises(ValueError, match="game 2 breaks the invariant assam_on_board"):
        rules.action_mask(states)


def test_every_invariant_has_a_case_above():
    assert list(state.INVARIANTS) == list(BROKEN)


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("rule_text", ["official;money=9", "boardgamearena;steering=end"])
def test_invariants_and_the_money_total_hold_in_play(players, rule_text):
    batch = Batch(64, players, rule_text, seed=players)
    rng = np.random.default_rng(players)
    total = batch.states["money"].sum(1)
    for _ in range(150):
        batch.step((batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1))
        as_states(batch.states)
        as_states(batch.final_states[batch.done])
        assert (batch.states["money"].sum(1) == total).all()
        assert (batch.final_states["money"].sum(1) == total)[batch.done].all()


def test_a_record_takes_at_most_80_bytes():
    assert STATE.itemsize == 80


def test_a_state_holds_its_rule_set():
    for text in ("official", "boardgamearena;steering=end;money=1000", "comp1110;facing=random"):
        states = np.zeros(1, STATE)
        rules.reset(states, rules.RuleSet.parse(text, 2))
        assert str(rule_set_of(states)) == text


def test_arguments_that_are_no_states_are_refused():
    mixed = np.repeat(parse_position(START_TEXT), 2)
    mixed["num_players"] = [2, 3]
    with pytest.raises(ValueError, match="same num_players, found 2, 3"):
        as_states(mixed)
    with pytest.raises(ValueError, match="dtype STATE"):
        as_states(np.zeros(3))
    with pytest.raises(ValueError, match="shape"):
        as_states(np.zeros((2, 2), STATE))
    with pytest.raises(ValueError, match="one state wanted"):
        one_state(np.repeat(parse_position(START_TEXT), 2))


def test_a_record_and_an_array_of_one_are_the_same_state():
    position = parse_position(f"{START} 33S 0s 30:12+12:0,30:12+12:3 official")
    assert one_state(position[0]) == one_state(position)
    assert rules.action_mask(position[0]).shape == (1, 15)


@pytest.mark.parametrize("agent", ["greedy", "expectimax", "value"])
def test_states_that_were_saved_and_loaded_are_played_on(agent, tmp_path):
    states = Batch(3, seed=1).states.copy()
    np.save(tmp_path / "states.npy", states)
    loaded = np.load(tmp_path / "states.npy")
    assert not loaded.dtype.isalignedstruct
    expected, found = (load_agent(agent).act(s, np.random.default_rng(0)) for s in (states, loaded))
    np.testing.assert_array_equal(found, expected)
    rules.step(loaded, found, [1, 2, 3])
    rules.step(states, expected, [1, 2, 3])
    np.testing.assert_array_equal(loaded, states)
