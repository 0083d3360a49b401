"""Agents in files, for the tests of the leaderboard."""

NOISY = """
from marrakech_env import rules

class Noisy:
    version = 3
    num_parameters = 1234

    def act(self, states, rng):
        mask = rules.action_mask(states)
        return (mask * rng.random(mask.shape)).argmax(axis=1)

agent = Noisy
"""
FOR_TWO = """
from marrakech_env import rules

def act(states, rng):
    if states["num_players"][0] != 2:
        raise ValueError("only for two")
    return rules.action_mask(states).argmax(axis=1)
"""
