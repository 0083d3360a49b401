"""Illegal actions and impossible outcomes, at random: an error that names them, nothing changed.

What is legal and possible is asked of the independent reference.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from positions import RULES, random_states
from reference import Game

from marrakech_env import notation, rules
from marrakech_env.batch import Batch
from marrakech_env.state import OVER, States

Step = tuple[int, int]
"""An action and an outcome."""

STRANGE = (-(2**31), -100, -2, 5, 15, 16, 64, 200, 2**31, 2**62)


def legal_steps(text: str) -> dict[int, list[int]]:
    """The possible outcomes of every legal action in a position."""
    game = Game.from_text(text)
    return {a: [o for o, _ in game.chance_outcomes(a)] for a in game.legal_actions()}


def illegal_steps(
    legal: dict[int, list[int]], count: int, rng: np.random.Generator
) -> Iterator[tuple[Step, str]]:
    """Steps that cannot be, with what the error has to say; half of them with a legal action."""
    numbers = (*range(-1, 15), *STRANGE)
    while count:
        action, outcome = (int(number) for number in rng.choice(numbers, 2))
        if count % 2:
            action = int(rng.choice(list(legal)))
        if action not in legal:
            yield (
                (action, outcome),
                f"action {action} is not legal; legal actions: " + ", ".join(map(str, legal)),
            )
        elif outcome not in legal[action]:
            possible = ", ".join(map(str, legal[action]))
            yield (
                (action, outcome),
                (
                    f"outcome {outcome} is not possible after action {action}; "
                    f"possible outcomes: {possible}"
                ),
            )
        else:
            continue
        count -= 1


def unfinished(players: int, number: int, seed: int) -> Iterator[States]:
    """States (1,) of every rule set."""
    for text in RULES:
        states = random_states(text, players, 8, seed)
        states = states[states["phase"] != OVER]
        picked = np.random.default_rng(seed).choice(len(states), number // len(RULES) + 1)
        yield from (states[i : i + 1] for i in picked)


def check_rules_step(players: int, positions: int, each: int) -> int:
    """Puts illegal steps into the middle of legal ones; returns how many there were."""
    rng, tried = np.random.default_rng(players), 0
    for state in unfinished(players, positions, seed=players):
        legal = legal_steps(notation.format_position(state))
        good = next(iter(legal)), legal[next(iter(legal))][0]
        states, before = np.repeat(state, 3), np.repeat(state, 3).tobytes()
        for bad, message in illegal_steps(legal, each, rng):
            place = int(rng.integers(3))
            steps = np.array([good] * 3)
            steps[place] = bad
            with pytest.raises(ValueError) as told:  # noqa: PT011 - compared in full below
                rules.step(states, steps[:, 0], steps[:, 1])
            assert str(told.value) == f"game {place}: {message}"
            tried += 1
        assert states.tobytes() == before
        rules.step(states, *np.array([good] * 3).T)
        assert states.tobytes() != before
    return tried


def check_batch_step(players: int, steps: int, each: int) -> int:
    """Plays a batch and tries illegal actions before every step; returns how many there were."""
    rng, tried = np.random.default_rng(players), 0
    batch = Batch(5, players, "official;steering=end;money=9", seed=3, observation="flat")
    for _ in range(steps):
        arrays = batch.states, batch.action_mask, batch.done, batch.outcomes, batch.observation
        before = [array.tobytes() for array in arrays]
        good = (batch.action_mask * rng.random((5, 15))).argmax(1)
        for _ in range(each):
            place = int(rng.integers(5))
            legal = np.flatnonzero(batch.action_mask[place])
            bad = int(rng.choice(np.setdiff1d([*range(15), *STRANGE], legal)))
            actions = good.copy()
            actions[place] = bad
            with pytest.raises(ValueError) as told:  # noqa: PT011 - compared in full below
                batch.step(actions)
            listed = ", ".join(map(str, legal))
            assert str(told.value) == (
                f"game {place}: action {bad} is not legal; legal actions: {listed}"
            )
            tried += 1
        assert [array.tobytes() for array in arrays] == before
        batch.step(good)
    return tried


@pytest.mark.parametrize("players", [2, 3, 4])
def test_illegal_steps_are_named_and_change_nothing(players: int) -> None:
    assert check_rules_step(players, positions=60, each=10) >= 600
    assert check_batch_step(players, steps=80, each=10) >= 800


@pytest.mark.long
@pytest.mark.parametrize("players", [2, 3, 4])
def test_two_hundred_thousand_illegal_steps_are_named_and_change_nothing(players: int) -> None:
    assert check_rules_step(players, positions=700, each=50) >= 35_000
    assert check_batch_step(players, steps=700, each=50) >= 35_000
