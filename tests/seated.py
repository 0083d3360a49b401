"""Agents and loops for the tests of `SeatedBatch`: who sits with the caller, and how he plays."""

import numpy as np

from marrakech_env import rules


class Lowest:
    """Always the lowest legal action."""

    name = "lowest"

    def act(self, states, rng):
        return rules.action_mask(states).argmax(1)


class Highest:
    name = "highest"

    def act(self, states, rng):
        return 14 - rules.action_mask(states)[:, ::-1].argmax(1)


class Drawing:
    """Random, but with the generator that it is given."""

    name = "drawing"

    def act(self, states, rng):
        return (rules.action_mask(states) * rng.random((len(states), 15))).argmax(1)


class Scripted:
    """Returns what it was made with, whatever is legal."""

    def __init__(self, answer, name="scripted"):
        self.answer, self.name = answer, name

    def act(self, states, rng):
        return self.answer(states) if callable(self.answer) else self.answer


def legal_actions(seats, rng):
    mask = seats.batch.action_mask
    return (mask * rng.random(mask.shape)).argmax(1)


def play(seats, steps, seed=0):
    """Plays random actions; yields after every step."""
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        seats.step(legal_actions(seats, rng))
        yield seats


def facts_of_ends(seats, steps):
    """`final_facts` of all games that end within some steps, one dict a game."""
    found = []
    for _ in play(seats, steps):
        facts = seats.final_facts()
        found += [{key: rows[r] for key, rows in facts.items()} for r in range(len(seats.ended))]
    return found
