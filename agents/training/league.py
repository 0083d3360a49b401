"""The league: who plays against the learner of `ppo_learner`, chosen by how the learner fares.

Its members are the agents of a mixture with their given weights, and past versions of the learner.
A member is drawn the more often the harder the learner finds it: prioritised fictitious self-play
with f(p) = (1 - p) ** hardness, p the learner's chance against the member (Vinyals et al., 2019:
Grandmaster level in StarCraft II using multi-agent reinforcement learning, Nature 575). The results
come from the training games themselves.

Legend: `P` players; a *share* is a win share of the learner, even is 1 / P.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from marrakech_env.agent import FunctionAgent, load_agent

from .. import ppo

PAST: Final = "past"
"""Place of past versions of the learner in a mixture; greedy stands in while there is none."""

MEMORY: Final = 500
"""Games over which the share against a member is averaged, exponentially."""
EVEN_GAMES: Final = 20
"""Even games that every average starts with, so that the first results do not say too much."""
FLOOR: Final = 0.2
"""The part of its given weight that a member keeps however weak it is: nobody is forgotten."""


class League:
    """The members, the learner's share against each, and how often each is to be met."""

    def __init__(
        self, mixture: Mapping[str, float], num_players: int, hardness: float, past_versions: int
    ) -> None:
        """Loads the agents.

        Args:
            mixture: Given weight by agent, `PAST` for all past versions together.
            num_players: P.
            hardness: Exponent of 1 - p; 0 leaves the given weights as they are.
            past_versions: How many past versions are members, the newest ones.

        Raises:
            ValueError: An unknown agent, or one for another number of players.
        """
        self._players = num_players
        self._hardness = hardness
        self._past_versions = past_versions
        self._given = {name: weight for name, weight in mixture.items() if name != PAST}
        self._past_weight = mixture.get(PAST, 0.0)
        self._past: list[str] = []
        self._agents: dict[str, Any] = {}
        for name in self._given or {"greedy": 1.0}:
            # `random` by its name needs no call from the games to Python.
            agent = load_agent(name, num_players)
            self._agents[name] = name if name == "random" else FunctionAgent(agent.act, name)
        # Games and won shares, the older ones counting less.
        self._results: dict[str, tuple[float, float]] = {}

    def meet(self, past: Sequence[Path]) -> None:
        """Makes the newest of these versions, oldest first, the past versions of the league.

        Raises:
            ValueError: One of them is damaged.
        """
        if not self._past_weight:
            return
        folders = {f"{PAST}/{folder.name}": folder for folder in past[-self._past_versions :]}
        for name in self._past:
            if name not in folders:
                del self._agents[name]
                self._results.pop(name, None)
        for name, folder in folders.items():
            if name not in self._agents:
                agent = ppo.load(folder, temperature=1.0)
                self._agents[name] = FunctionAgent(agent.act, name)
        self._past = list(folders)
        if self._past and not self._given:
            self._agents.pop("greedy", None)

    def record(self, name: str, share: float) -> None:
        """Takes in a finished game against a member; games against former members are left out."""
        if name in self._agents:
            keep = 1 - 1 / MEMORY
            games, won = self._results.get(name, (0.0, 0.0))
            self._results[name] = keep * games + 1, keep * won + share

    def shares(self) -> dict[str, float]:
        """The learner's averaged share against each member."""
        shares = {}
        for name in self._agents:
            games, won = self._results.get(name, (0.0, 0.0))
            shares[name] = (won + EVEN_GAMES / self._players) / (games + EVEN_GAMES)
        return shares

    def weights(self) -> dict[str, float]:
        """How often each member is to be met; together 1.

        A share of more than two players counts as the chance that it means against one opponent of
        that strength, if chances of winning are as strengths: 1/2 where it is even.
        """
        given = np.array([self._given_weight(name) for name in self._agents])
        share = np.array(list(self.shares().values()))
        beaten = share * (self._players - 1) / (1 + share * (self._players - 2))
        hard = (1 - beaten) ** self._hardness
        factor = FLOOR + (1 - FLOOR) * hard * given.sum() / (given @ hard)
        return dict(zip(self._agents, (factor * given / given.sum()).tolist(), strict=True))

    def _given_weight(self, name: str) -> float:
        if name in self._past:
            return self._past_weight / len(self._past)
        return self._given.get(name, 1.0)

    def opponents(self) -> dict[Any, float]:
        """The members with their weights, as `set_opponents` takes them."""
        return {self._agents[name]: weight for name, weight in self.weights().items()}

    def table(self) -> str:
        """A line for each member: the share against it, and how often it is met."""
        shares = self.shares()
        width = max(map(len, shares))
        return "\n".join(
            f"{name:{width}} {100 * shares[name]:5.1f} % won, in {100 * weight:4.1f} % of the games"
            for name, weight in self.weights().items()
        )

    def state(self) -> dict[str, tuple[float, float]]:
        """What `restore` needs; the past versions come by `meet`."""
        return dict(self._results)

    def restore(self, state: Mapping[str, tuple[float, float]]) -> None:
        """Goes back to a state."""
        self._results = dict(state)


def read_mixture(text: str) -> dict[str, float]:
    """Reads the option --opponents as weights by agent.

    Raises:
        ValueError: No opponent, a doubled one, or a bad weight.
    """
    mixture: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, weight = part, 1.0
        head, colon, tail = part.rpartition(":")
        if colon and tail.replace(".", "", 1).isdigit():  # else the colon is that of module:attr
            name, weight = head, float(tail)
        if name in mixture:
            raise ValueError(f"--opponents names {name!r} twice")
        if weight <= 0:
            raise ValueError(f"--opponents: the weight of {name!r} must be above 0, not {weight}")
        mixture[name] = weight
    if not mixture:
        raise ValueError("--opponents names no agent; for example: greedy,past:2")
    return mixture
