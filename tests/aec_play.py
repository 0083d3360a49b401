"""Random play through the PettingZoo border, for its tests."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from marrakech_env.aec import raw_env

EMPTY = "/".join(["." * 14] * 7)
FORMS = ("planes", "flat", "features")
PLAYERS = (2, 3, 4)


def started(make=raw_env, seed=0, **keywords):
    environment = make(**keywords)
    environment.reset(seed=seed)
    return environment


def running(environment):
    return not all(environment.terminations.values())


def legal_actions(environment):
    return np.flatnonzero(environment.infos[environment.agent_selection]["action_mask"])


def play(environment, rng, decisions=10**6):
    """Random legal decisions, at most so many, and none after the end of the game."""
    for _ in range(decisions):
        if not running(environment):
            return
        environment.step(rng.choice(legal_actions(environment)))


def received(environment, rng):
    """Plays a game through `last`; what each agent received over it, and the sum of `rewards`."""
    seen, paid = defaultdict(float), defaultdict(float)
    for agent in environment.agent_iter():
        _, reward, terminated, truncated, _ = environment.last()
        seen[agent] += reward
        ended = terminated or truncated
        environment.step(None if ended else rng.choice(legal_actions(environment)))
        if not ended:
            for other, amount in environment.rewards.items():
                paid[other] += amount
    return [seen[a] for a in environment.possible_agents], [
        paid[a] for a in environment.possible_agents
    ]


def contents(environment):
    """All that a refused call must leave as it was, in a form that `==` compares."""
    agents = environment.possible_agents
    return (
        environment.position,
        environment._clocks.tobytes(),
        environment.agent_selection,
        environment.agents,
        environment.rewards,
        environment._cumulative_rewards,
        environment.terminations,
        [environment.observe(agent)["action_mask"].tolist() for agent in agents],
    )
