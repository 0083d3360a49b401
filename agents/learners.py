"""The two ways to learn of `train.py`, behind one interface.

`ppo`: MaskablePPO plays one seat against a mixture of opponents, past versions of the agent among
them. `value`: a value network plays all seats and learns by temporal differences (`td`).

Legend: a *round* is what is played and learned from between two looks at the policy.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Protocol

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.logger import Logger

from marrakech_env.agent import Agent, load_agent
from marrakech_env.sb3 import MarrakechVecEnv
from marrakech_env.spec import resolve_rules

from . import policies, ppo
from .networks import Weights
from .td import Settings, TDTrainer
from .value import ONE_TURN

# The networks are small: a second thread gains little, and beside another busy process the two wait
# for each other (measured: 1,300 decisions a second with two threads, 9,200 with one).
torch.set_num_threads(1)

PAST: Final = "past"
"""Place of earlier versions of the agent in a mixture of opponents."""


class Learner(Protocol):
    """What learns.

    Attributes:
        unit: What `steps` counts, in the plural.
    """

    unit: str

    @property
    def steps(self) -> int:
        """How much it has learned from so far."""
        ...

    def prepare(self, logger: Logger) -> None:
        """Compiles what a round needs; losses go to the logger from now on."""
        ...

    def advance(self, done: float, past: Sequence[Path]) -> None:
        """Learns for one round.

        Args:
            done: The part of the training that is behind, 0..1: where the schedules stand.
            past: Models of earlier versions, oldest first.
        """
        ...

    def agent(self) -> Agent:
        """The agent of now."""
        ...

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the agent of now as a model into an existing folder.

        Raises:
            OSError: The folder cannot be written.
        """
        ...

    def state(self) -> dict[str, Any]:
        """A copy of what `restore` needs: tensors and plain values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Goes back to a `state` of a learner with the same arguments."""
        ...


class ValueLearner:
    """A value network that learns from self-play, see `td`."""

    unit = "games"

    def __init__(self, num_players: int, rules: str, seed: int, settings: Settings) -> None:
        """As TDTrainer.

        Raises:
            ValueError: Bad rules or number of players.
        """
        self._trainer = TDTrainer(num_players, rules, seed, settings)
        self._logger: Logger | None = None

    @property
    def steps(self) -> int:
        """Games learned from so far."""
        return self._trainer.num_games

    def prepare(self, logger: Logger) -> None:
        """Compiles by a game of another trainer; losses go to the logger from now on."""
        self._logger = logger
        TDTrainer(
            self._trainer.rule_set.num_players,
            self._trainer.rule_set,
            settings=Settings(games_a_round=1, workers=1),
        ).round()

    def advance(self, done: float, past: Sequence[Path]) -> None:
        """Learns from some games against itself, as it is now."""
        for name, value in self._trainer.round(done).items():
            if self._logger is not None:
                self._logger.record(f"train/{name}", value)

    def agent(self) -> Agent:
        """The agent of now, with averaged weights; for speed it searches one turn only."""
        return self._trainer.agent(ONE_TURN)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the agent of now as a model into an existing folder.

        Raises:
            OSError: The folder cannot be written.
        """
        self._trainer.save(folder)

    def state(self) -> dict[str, Any]:
        """A copy of what `restore` needs: tensors and plain values."""
        return self._trainer.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Goes back to a state; what follows is as if nothing had happened."""
        self._trainer.restore(state)


@dataclass(frozen=True)
class PPOSettings:
    """Only with --algorithm ppo."""

    opponents: str = "random:1,greedy:9,expectimax:5,past:3"
    """Who plays the other seats: names, paths or module:attr, each with :WEIGHT (default 1), drawn
    anew for every game; `past` stands for earlier versions of the agent itself (alone: greedy until
    there is one)."""
    past_versions: int = 6
    """How many past versions stay in the mixture, the newest ones."""
    observation: Literal["features", "flat", "planes"] = "features"
    """Form of the observation."""
    reward: Literal["dense", "score", "win"] = "dense"
    """Reward scheme."""
    num_envs: int = 256
    """Games that are played side by side."""
    num_steps: int = 64
    """Decisions in each game between two updates."""
    batch_size: int = 1024
    """Decisions in one gradient step."""
    epochs: int = 4
    """Times that each decision is learned from."""
    learning_rate: float = 1e-3
    """Step size of Adam at the start; falls linearly to a twentieth."""
    entropy: float = 0.01
    """Weight of the entropy bonus at the start; falls linearly to a twentieth."""
    gamma: float = 0.96
    """Discount for each decision."""
    gae_lambda: float = 0.8
    """Lambda of the generalised advantage estimate; less takes out more of the luck of the dice."""
    averaging: int = 30
    """Rounds over which the weights are averaged that play; the learner goes on with its own."""
    clip_range: float = 0.2
    """Clip range of PPO."""
    network: Literal["scorer", "mlp"] = "scorer"
    """Policy network. scorer: one small network scores every steering, another every placement,
    from its own consequences (wants --observation features). mlp: dense layers."""
    hidden: int = 64
    """Units of the scorer's layers."""
    value_hidden: int = 128
    """Units of each of the two hidden layers of the value network (of both networks with mlp)."""

    def check(self) -> None:
        """Checks what neither the environment nor the types do.

        Raises:
            ValueError: A number out of range, or a network that cannot read the observation.
        """
        lowest = {"past_versions": 1, "num_steps": 2, "batch_size": 2, "epochs": 1, "averaging": 1}
        for name, least in {**lowest, "hidden": 2, "value_hidden": 1}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")
        for name in ("learning_rate", "entropy", "gamma", "gae_lambda", "clip_range"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be 0..1, not {getattr(self, name)}")
        if self.network == "scorer" and self.observation != "features":
            raise ValueError("--network scorer wants --observation features; else: --network mlp")


class PPOLearner:
    """MaskablePPO against a mixture of opponents."""

    unit = "decisions"

    def __init__(self, num_players: int, rules: str, seed: int, settings: PPOSettings) -> None:
        """Makes environment and networks.

        Raises:
            ValueError: Bad rules, opponents, settings or number of players.
        """
        settings.check()
        self._settings = settings
        self._seed = seed
        self._rule_set = resolve_rules(rules, num_players)
        self._mixture = read_mixture(settings.opponents, num_players)
        self._past: list[Path] = []
        self._env = self._make_env(settings.num_envs)
        self._learning_rate = settings.learning_rate
        # Masked distributions are checked at every decision otherwise, a tenth of the time.
        torch.distributions.Distribution.set_default_validate_args(False)
        self._model = self._make_model()
        self._network, self._averages = policies.export(self._model.policy)

    def _make_env(self, num_envs: int) -> MarrakechVecEnv:
        known = {name: weight for name, weight in self._mixture.items() if name != PAST}
        return MarrakechVecEnv(
            num_envs,
            num_players=self._rule_set.num_players,
            rules=self._rule_set,
            observation=self._settings.observation,
            reward=self._settings.reward,
            opponents=known or "greedy",
            seat="rotate",
        )

    def _make_model(self) -> MaskablePPO:
        settings = self._settings
        policy: Any = "MlpPolicy"
        sizes: dict[str, Any] = {"net_arch": [settings.value_hidden] * 2}
        if settings.network == "scorer":
            policy = policies.ScorerPolicy
            sizes = {
                "num_players": self._rule_set.num_players,
                "hidden": settings.hidden,
                "value_hidden": settings.value_hidden,
            }
        return MaskablePPO(
            policy,
            self._env,
            learning_rate=lambda _: self._learning_rate,
            n_steps=settings.num_steps,
            batch_size=settings.batch_size,
            n_epochs=settings.epochs,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            clip_range=settings.clip_range,
            policy_kwargs=sizes,
            seed=self._seed,
            device="cpu",
        )

    @property
    def steps(self) -> int:
        """Decisions learned from so far."""
        return self._model.num_timesteps

    def prepare(self, logger: Logger) -> None:
        """Compiles the environment; losses and rewards go to the logger from now on."""
        self._make_env(1).reset()
        self._model.set_logger(logger)

    def advance(self, done: float, past: Sequence[Path]) -> None:
        """Learns from `num_steps` decisions in each game, with the newest versions in the mixture.

        The games go on from one round to the next.
        """
        decay = 1 - 0.95 * done
        self._learning_rate = self._settings.learning_rate * decay
        self._model.ent_coef = self._settings.entropy * decay
        self._meet(list(past[-self._settings.past_versions :]))
        round_size = self._settings.num_envs * self._settings.num_steps
        self._model.learn(round_size, reset_num_timesteps=False)
        self._average(self.steps // round_size)

    def _average(self, rounds: int) -> None:
        """Takes the weights of now into the averages, which play."""
        rate = np.float32(1 / min(rounds, self._settings.averaging))
        for name, weights in policies.export(self._model.policy)[1].items():
            self._averages[name] = self._averages[name] + rate * (weights - self._averages[name])

    def _meet(self, past: list[Path]) -> None:
        """Puts these past versions into the mixture."""
        if PAST not in self._mixture or past == self._past:
            return
        mixture: dict[Any, float] = {n: w for n, w in self._mixture.items() if n != PAST}
        for folder in past:
            mixture[ppo.load(folder, temperature=1.0)] = self._mixture[PAST] / len(past)
        self._env.set_opponents(mixture)
        self._past = past

    def agent(self) -> Agent:
        """The agent of now, with averaged weights."""
        return ppo.PPOAgent(*self._describe())

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Writes the agent of now as a model into an existing folder.

        Raises:
            OSError: The folder cannot be written.
        """
        ppo.save(folder, *self._describe())

    def _describe(self) -> tuple[ppo.ModelHead, Weights]:
        head = ppo.ModelHead(
            num_players=self._rule_set.num_players,
            rules=str(self._rule_set),
            observation=self._settings.observation,
            observation_size=int(np.prod(self._model.observation_space.shape or ())),
            network=self._network,
            steps=self.steps,
            trained_by=f"train.py, seed {self._seed}",
        )
        return head, self._averages

    def state(self) -> dict[str, Any]:
        """A copy of what `restore` needs: tensors and plain values."""
        policy = self._model.policy
        return {
            "steps": self.steps,
            "policy": copy.deepcopy(policy.state_dict()),
            "optimizer": copy.deepcopy(policy.optimizer.state_dict()),
            "averages": {name: torch.tensor(w) for name, w in self._averages.items()},
            "torch_rng": torch.get_rng_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Goes back to a state; the games start anew, with fresh dice."""
        self._model.policy.load_state_dict(state["policy"])
        self._model.policy.optimizer.load_state_dict(state["optimizer"])
        self._averages = {name: w.numpy().copy() for name, w in state["averages"].items()}
        self._model.num_timesteps = state["steps"]
        torch.set_rng_state(state["torch_rng"])
        self._env.seed(2**32 * state["steps"] + self._seed)


def read_mixture(text: str, num_players: int) -> dict[str, float]:
    """Reads the option --opponents as weights by agent.

    Raises:
        ValueError: No opponent, an unknown one, a doubled one, or a bad weight.
    """
    mixture: dict[str, float] = {}
    for part in filter(None, text.split(",")):
        name, weight = part, 1.0
        head, colon, tail = part.rpartition(":")
        if colon and tail.replace(".", "", 1).isdigit():  # else the colon is that of module:attr
            name, weight = head, float(tail)
        if name in mixture:
            raise ValueError(f"--opponents: {name!r} stands twice")
        if weight <= 0:
            raise ValueError(f"--opponents: the weight of {name!r} must be above 0, not {weight}")
        if name != PAST:
            load_agent(name, num_players)
        mixture[name] = weight
    if not mixture:
        raise ValueError("--opponents names nobody")
    return mixture
