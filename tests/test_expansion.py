"""`rules.start` and `rules.expand`: starts and all successors of a batch."""

from __future__ import annotations

import numpy as np
import pytest
from positions import RULES, random_states

from marrakech_env import rules
from marrakech_env.spec import RuleSet
from marrakech_env.state import OVER, STATE


@pytest.mark.parametrize("players", [2, 3, 4])
@pytest.mark.parametrize("text", RULES)
def test_rows_are_all_actions_with_all_outcomes(text: str, players: int) -> None:
    states = random_states(text, players, 3, seed=players)[:60]
    rows = rules.expand(states)
    expected = [
        (i, action, outcome, probability)
        for i in range(len(states))
        for action in np.flatnonzero(rules.action_mask(states[i])[0])
        for outcome, probability in zip(*rules.chance_outcomes(states[i], action), strict=True)
    ]
    assert rows.game.tolist() == [row[0] for row in expected]
    assert rows.action.tolist() == [row[1] for row in expected]
    assert rows.outcome.tolist() == [row[2] for row in expected]
    np.testing.assert_allclose(rows.probability, [row[3] for row in expected])
    after = states[rows.game]
    rules.step(after, rows.action, rows.outcome)
    assert (after == rows.after).all()
    assert set(rows.game) == set(np.flatnonzero(states["phase"] != OVER))


def test_dtypes_and_an_empty_batch() -> None:
    rows = rules.expand(np.zeros(0, STATE))
    assert [len(array) for array in rows] == [0] * 5
    assert [array.dtype for array in rows] == [np.int64, np.int64, np.int8, np.float64, STATE]


def test_one_record_is_expanded_and_left_alone() -> None:
    states = rules.start(2)
    before = states.copy()
    assert len(rules.expand(states[0]).game) == 3 * 4
    assert (states == before).all()


def test_starts_are_those_of_reset() -> None:
    states, expected = rules.start(3, 2, "boardgamearena"), np.zeros(3, STATE)
    rules.reset(expected, RuleSet.preset("boardgamearena"))
    assert (states == expected).all()


def test_a_generator_draws_every_start() -> None:
    states = rules.start(200, 2, "official;facing=random", np.random.default_rng(0))
    assert set(states["facing"]) == {0, 1, 2, 3}
    assert set(states["next_colour"][:, 1]) == {2, 3}
    again = rules.start(200, 2, "official;facing=random", np.random.default_rng(0))
    assert (states == again).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((-1,), "num_games must be"),
        ((1.5,), "num_games must be"),
        ((True,), "num_games must be"),
        ((2, 5), "num_players must be 2, 3 or 4"),
        ((2, 2, "chess"), "unknown preset"),
        ((2, 2, "official", 7), "rng must be a numpy.random.Generator"),
    ],
)
def test_bad_arguments_are_refused(arguments: tuple, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        rules.start(*arguments)
