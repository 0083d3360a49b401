"""Agents that need no thought, for the tests of the arena."""

from __future__ import annotations

from typing import Any

import numpy as np

from marrakech_env.arena.match import Entrant
from marrakech_env.rules import action_mask


class Lowest:
    """Always the first legal action."""

    name = "lowest"

    def act(self, states: Any, rng: np.random.Generator) -> Any:
        return action_mask(states).argmax(axis=1)


class Highest:
    """Always the last legal action."""

    name = "highest"

    def act(self, states: Any, rng: np.random.Generator) -> Any:
        return 14 - action_mask(states)[:, ::-1].argmax(axis=1)


class Noisy:
    """Uniformly random, by other draws than the agent `random` takes."""

    name = "noisy"

    def act(self, states: Any, rng: np.random.Generator) -> Any:
        mask = action_mask(states)
        return (mask * rng.random(mask.shape)).argmax(axis=1)


def entrants(*agents: Any) -> list[Entrant]:
    return [Entrant(agent.name, agent) for agent in agents]
