"""The state's invariants: each holds in play, and its check notices when it is broken."""

import numpy as np
import pytest

from marrakech_env import rules, state
from marrakech_env.agent import load_agent
from marrakech_env.batch import Batch
from marrakech_env.notation import parse_position
from marrakech_env.state import STATE, as_states, check_invariants, one_state, rule_set_of

START = "/".join(["." * 14] * 7)
RUGS = "/".join(["0>0<" + "." * 10, *["." * 14] * 6])

# name of the invariant, a sound position, and what breaks just this one
BROKEN = {
    "bits_on_board": (START, lambda s: s["colour_boards"].__setitem__((0, 0), 1 << 49)),
    "colours_disjoint": (RUGS, lambda s: s["colour_boards"].__setitem__((0, 1), 4 | 1)),
    "links_join_one_colour": (RUGS, lambda s: s["colour_boards"].__setitem__((0, 0), 1)),
    "links_disjoint": (
        "/".join(["0>0<0-" + "." * 8, *["." * 14] * 6]),
        lambda s: s.__setitem__("links_east", 3),
    ),
    "assam_on_board": (START, lambda s: s.__setitem__("assam", 49)),
    "elimination_order": (START, lambda s: s["eliminated"].__setitem__((0, 1), 2)),
    "eliminated_hold_nothing": (START, lambda s: s["eliminated"].__setitem__((0, 1), 1)),
    "unused_seats_empty": (START, lambda s: s["money"].__setitem__((0, 3), 1)),
    "next_colour_held": (START, lambda s: s["next_colour"].__setitem__((0, 0), 2)),
    "mover_in_game": (
        START,
        lambda s: (
            s["eliminated"].__setitem__((0, 0), 1),
            s["money"].__setitem__((0, 0), 0),
            s["rugs"].__setitem__((0, slice(0, 2)), 0),
            s["next_colour"].__setitem__((0, 0), -1),
        ),
    ),
    "phase_fits_steering": (START, lambda s: s.__setitem__("phase", state.WALK)),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_invariant_is_named(name):
    board, damage = BROKEN[name]
    position = parse_position(f"{board} 33S 0s 30:12+12:0,30:12+12:3 official")
    check_invariants(position)
    damage(position)
    with pytest.raises(AssertionError, match=f"breaks the invariant {name}"):
        check_invariants(position)


def test_every_listed_invariant_has_a_case_above():
    listed = {line.split("`")[1] for line in state.__doc__.splitlines() if line.startswith("* ")}
    assert listed == set(BROKEN)


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("rule_text", ["official;money=9", "boardgamearena;steering=end"])
def test_invariants_and_the_money_total_hold_in_play(players, rule_text):
    batch = Batch(64, players, rule_text, seed=players)
    rng = np.random.default_rng(players)
    total = batch.states["money"].sum(1)
    for _ in range(150):
        batch.step((batch.action_mask * rng.random(batch.action_mask.shape)).argmax(1))
        check_invariants(batch.states)
        check_invariants(batch.final_states[batch.done])
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
    mixed = np.zeros(2, STATE)
    mixed["num_players"] = [2, 3]
    with pytest.raises(ValueError, match="same num_players, found 2, 3"):
        as_states(mixed)
    with pytest.raises(ValueError, match="dtype STATE"):
        as_states(np.zeros(3))
    with pytest.raises(ValueError, match="shape"):
        as_states(np.zeros((2, 2), STATE))
    with pytest.raises(ValueError, match="one state wanted"):
        one_state(np.zeros(2, STATE))


def test_a_record_and_an_array_of_one_are_the_same_state():
    position = parse_position(f"{START} 33S 0s 30:12+12:0,30:12+12:3 official")
    assert one_state(position[0]) == one_state(position)
    assert rules.action_mask(position[0]).shape == (1, 15)


@pytest.mark.parametrize("agent", ["greedy", "expectimax", "value"])
def test_states_that_were_saved_and_loaded_are_played_on(agent, tmp_path):
    states = Batch(3, seed=1).states
    np.save(tmp_path / "states.npy", states)
    loaded = np.load(tmp_path / "states.npy")
    assert not loaded.dtype.isalignedstruct
    expected, found = (load_agent(agent).act(s, np.random.default_rng(0)) for s in (states, loaded))
    np.testing.assert_array_equal(found, expected)
    rules.step(loaded, found, [1, 2, 3])
    rules.step(states, expected, [1, 2, 3])
    np.testing.assert_array_equal(loaded, states)
