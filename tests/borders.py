"""Every way into the games behind one small interface, for tests of laws that hold in all of them.

Legend: `N` games side by side, `P` players.
"""

from __future__ import annotations

from marrakech_env.aec import env, raw_env
from marrakech_env.batch import Batch
from marrakech_env.vector import MarrakechEnv, MarrakechVectorEnv

RULES = {
    2: "boardgamearena;money=9",
    3: "official;steering=end;money=9",
    4: "official;money=9",
}
"""By number of players: rule sets that together reach every phase and many eliminations."""


class BatchBorder:
    """`Batch`."""

    def __init__(self, players, games=4, seed=0):
        self.games = Batch(games, players, RULES[players], seed=seed, observation="flat")

    def masks(self):
        return self.games.action_mask

    def step(self, actions):
        self.games.step(actions)

    def contents(self):
        return self.games.states.tobytes(), self.games._arrays.clocks.tobytes()


class AgentBorder:
    """The PettingZoo environments."""

    make = staticmethod(raw_env)

    def __init__(self, players, games=1, seed=0):
        self.games = self.make(players, RULES[players])
        self.games.reset(seed=seed)

    def masks(self):
        return self.games.infos[self.games.agent_selection]["action_mask"][None] == 1

    def step(self, actions):
        self.games.step(int(actions[0]))
        if self.games.terminations["player_0"]:
            self.games.reset()

    def contents(self):
        return self.games._states.tobytes(), self.games._clocks.tobytes()


class OrderedAgentBorder(AgentBorder):
    """The PettingZoo environment that checks the order of calls."""

    make = staticmethod(env)


class GymBorder:
    """The single Gymnasium environment."""

    def __init__(self, players, games=1, seed=0):
        self.games = MarrakechEnv(players, RULES[players], seat=players - 1)
        _, self.info = self.games.reset(seed=seed)

    def masks(self):
        return self.info["action_mask"][None] == 1

    def step(self, actions):
        *_, over, _, self.info = self.games.step(int(actions[0]))
        if over:
            _, self.info = self.games.reset()

    def contents(self):
        batch = self.games._seats.batch
        return batch.states.tobytes(), batch._arrays.clocks.tobytes()


class VectorBorder(GymBorder):
    """The Gymnasium vector environment."""

    def __init__(self, players, games=4, seed=0):
        self.games = MarrakechVectorEnv(games, players, RULES[players], seat="rotate")
        _, self.info = self.games.reset(seed=seed)

    def masks(self):
        return self.info["action_mask"] == 1

    def step(self, actions):
        *_, self.info = self.games.step(actions)


class SB3Border(GymBorder):
    """The Stable-Baselines3 environment."""

    def __init__(self, players, games=4, seed=0):
        from marrakech_env.sb3 import MarrakechVecEnv

        self.games = MarrakechVecEnv(games, players, RULES[players], opponents=None)
        self.games.seed(seed)
        self.games.reset()

    def masks(self):
        return self.games.action_masks()

    def step(self, actions):
        self.games.step(actions)


BORDERS = {
    "Batch": BatchBorder,
    "raw_env": AgentBorder,
    "env": OrderedAgentBorder,
    "Env": GymBorder,
    "VectorEnv": VectorBorder,
    "VecEnv": SB3Border,
}


def random_legal(masks, rng):
    """A uniformly random legal action of each row: int64 (N,)."""
    return (masks * rng.random(masks.shape)).argmax(-1)
