"""MaskablePPO as a learner: it plays one seat against a league of opponents."""

from __future__ import annotations

import copy
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.logger import Logger

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.agent import Agent
from marrakech_env.sb3 import MarrakechVecEnv
from marrakech_env.spec import resolve_rules
from marrakech_env.state import States

from .. import ppo
from ..policy_net import torch_policies as policies
from ..policy_net.networks import Weights
from .league import MEMORY, League, read_mixture
from .learner import Learner, one_thread, trained_by
from .teacher import Teacher


@dataclass(frozen=True)
class PPOSettings:
    """Only with --algorithm ppo."""

    timesteps: int | None = None
    """Decisions to learn from, instead of --minutes."""
    opponents: str = "random:1,greedy:9,expectimax:5,past:3"
    """The league that plays the other seats: names, paths or module:attr, each with :WEIGHT
    (default 1). One is drawn for every game. `past` stands for earlier versions of the agent;
    greedy plays for them if there are none and no other opponents."""
    hardness: float = 2.0
    """Exponent of prioritised fictitious self-play. Each opponent's weight is multiplied by
    (1 - win share) ** hardness; 0 keeps the given weights."""
    teacher: str | None = None
    """An agent to imitate besides: name, path or module:attr. value looks one turn ahead then."""
    past_versions: int = 6
    """Number of past versions in the league, the newest ones."""
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
    """Step size of Adam at the start; it falls linearly to a twentieth."""
    entropy: float = 0.01
    """Weight of the entropy bonus at the start; it falls linearly to a twentieth."""
    gamma: float = 0.96
    """Discount for each decision."""
    gae_lambda: float = 0.8
    """Lambda of the generalised advantage estimate; a lower one removes more luck of the dice."""
    averaging: int = 30
    """Rounds in the running average of the weights. The agent plays with the average."""
    clip_range: float = 0.2
    """Clip range of PPO."""
    network: Literal["scorer", "mlp"] = "scorer"
    """Policy network. scorer: one small network scores every steering, another every placement,
    from its consequences and a summary of the whole; it needs --observation features. mlp: dense
    layers."""
    hidden: int = 64
    """Units of the first layer of the scorer's networks for one action; the second has half."""
    summary: int = 192
    """Units of each of the two layers of the scorer's summary of the whole observation."""
    value_hidden: int = 128
    """Units of each of the two hidden layers of the value network (of both networks with mlp)."""

    def check(self) -> None:
        """Check what neither the environment nor the types check.

        Raises:
            ValueError: A number is out of range, or the network cannot read the observation.
        """
        if self.timesteps is not None and self.timesteps < 1:
            raise ValueError(f"timesteps must be at least 1, not {self.timesteps}")
        lowest = {"past_versions": 1, "num_steps": 2, "batch_size": 2, "epochs": 1, "averaging": 1}
        for name, least in {**lowest, "hidden": 2, "summary": 1, "value_hidden": 1}.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, not {getattr(self, name)}")
        if not 0 <= self.hardness <= 10:
            raise ValueError(f"hardness must be 0..10, not {self.hardness}")
        for name in ("learning_rate", "entropy", "gamma", "gae_lambda", "clip_range"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be 0..1, not {getattr(self, name)}")
        if self.network == "scorer" and self.observation != "features":
            raise ValueError("--network scorer wants --observation features; else: --network mlp")


class PPOLearner(Learner):
    """MaskablePPO against a league."""

    unit = "decisions"

    def __init__(self, num_players: int, rules: str, seed: int, settings: PPOSettings) -> None:
        """Make the environment and the networks.

        Raises:
            ValueError: Bad rules, opponents, settings or number of players.
        """
        settings.check()
        self._settings = settings
        self._seed = seed
        self._rule_set = resolve_rules(rules, num_players)
        mixture = read_mixture(settings.opponents)
        self._league = League(mixture, num_players, settings.hardness, settings.past_versions)
        self._teacher = None
        if settings.teacher is not None:
            self._teacher = Teacher(settings.teacher, num_players, seed)
        self._env = self._make_env(settings.num_envs)
        self._learning_rate = settings.learning_rate
        self._seconds = 0.0
        self._model = self._make_model()
        self._network, self._averages = policies.export(self._model.policy)

    def _make_env(self, num_envs: int) -> MarrakechVecEnv:
        return MarrakechVecEnv(
            num_envs,
            num_players=self._rule_set.num_players,
            rules=self._rule_set,
            observation=self._settings.observation,
            reward=self._settings.reward,
            opponents=self._league.opponents(),
            seat="rotate",
        )

    @one_thread()
    def _make_model(self) -> MaskablePPO:
        settings = self._settings
        policy: Any = "MlpPolicy"
        sizes: dict[str, Any] = {"net_arch": [settings.value_hidden] * 2}
        if settings.network == "scorer":
            policy = policies.ScorerPolicy
            sizes = {
                "num_players": self._rule_set.num_players,
                "hidden": settings.hidden,
                "summary": settings.summary,
                "value_hidden": settings.value_hidden,
            }
        model = MaskablePPO(
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
        model.policy.action_dist = policies.UncheckedDistribution(NUM_ACTIONS)
        return model

    @property
    def steps(self) -> int:
        """Decisions learned from so far."""
        return self._model.num_timesteps

    def prepare(self, logger: Logger) -> None:
        """Compile the environment, and send losses and rewards to the logger from now on."""
        self._make_env(1).reset()
        self._model.set_logger(logger)

    @one_thread()
    def advance(self, done: float, past: Sequence[Path]) -> None:
        """Learn from `num_steps` decisions in each game, against the present league.

        The games go on from one round to the next.
        """
        started = time.monotonic()
        decay = 1 - 0.95 * done
        self._learning_rate = self._settings.learning_rate * decay
        self._model.ent_coef = self._settings.entropy * decay
        self._league.meet(past)
        self._env.set_opponents(self._league.opponents())
        round_size = self._settings.num_envs * self._settings.num_steps
        watcher = _Watcher(self._league)
        self._model.learn(round_size, watcher, reset_num_timesteps=False)
        if self._teacher is not None:
            loss = self._teacher.teach(
                self._model, watcher.states[:-1], self._settings.epochs, self._settings.batch_size
            )
            self._model.logger.record("train/teacher_loss", loss)
        self._average(self.steps // round_size)
        for what, values in (("share", self._league.shares()), ("weight", self._league.weights())):
            for name, value in values.items():
                self._model.logger.record(f"league_{what}/{name}", value)
        self._seconds += time.monotonic() - started

    def _average(self, rounds: int) -> None:
        """Take the present weights into the averages, which play."""
        rate = np.float32(1 / min(rounds, self._settings.averaging))
        for name, weights in policies.export(self._model.policy)[1].items():
            self._averages[name] = self._averages[name] + rate * (weights - self._averages[name])

    def agent(self) -> Agent:
        """Return the present agent, with averaged weights."""
        return ppo.PPOAgent(ppo.PPOModel.from_weights(*self._describe()))

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the present agent as a model into an existing folder.

        Raises:
            OSError: The folder cannot be written.
        """
        ppo.save(folder, *self._describe())

    def summary(self) -> str:
        """Return the table of the league."""
        return (
            f"the league, and what the learner won against it while it learned (average of some "
            f"{MEMORY} games,\nin which it tried things out; the agent plays with averaged weights "
            f"and wins more, see below):\n{self._league.table()}"
        )

    def _describe(self) -> tuple[ppo.ModelHead, Weights]:
        head = ppo.ModelHead(
            num_players=self._rule_set.num_players,
            rules=str(self._rule_set),
            observation=self._settings.observation,
            observation_size=int(np.prod(self._model.observation_space.shape or ())),
            network=self._network,
            steps=self.steps,
            trained_by=trained_by("ppo", self._seed, self._seconds),
        )
        return head, self._averages

    def state(self) -> dict[str, Any]:
        """Copy what `restore` needs: tensors and plain values."""
        policy = self._model.policy
        return {
            "steps": self.steps,
            "seconds": self._seconds,
            "policy": copy.deepcopy(policy.state_dict()),
            "optimizer": copy.deepcopy(policy.optimizer.state_dict()),
            "league": self._league.state(),
            "averages": {name: torch.tensor(w) for name, w in self._averages.items()},
            "torch_rng": torch.get_rng_state(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state.

        The games start anew, with fresh dice, and the teacher's Adam starts without moments.
        """
        self._model.policy.load_state_dict(state["policy"])
        self._model.policy.optimizer.load_state_dict(state["optimizer"])
        self._averages = {name: w.numpy().copy() for name, w in state["averages"].items()}
        self._league.restore(state["league"])
        self._model.num_timesteps = state["steps"]
        self._seconds = state["seconds"]
        torch.set_rng_state(state["torch_rng"])
        self._env.seed(2**32 * state["steps"] + self._seed)


class _Watcher(BaseCallback):
    """Record finished games in the league, and keep the positions of a rollout.

    Attributes:
        states: Each STATE (num_envs,), before the first step and after every one.
    """

    def __init__(self, league: League) -> None:
        super().__init__()
        self._league = league
        self.states: list[States] = []

    def _on_rollout_start(self) -> None:
        self._keep()

    def _on_step(self) -> bool:
        self._keep()
        for game in np.flatnonzero(self.locals["dones"]):
            facts = self.locals["infos"][game]
            seat = facts["player"]
            # One draw holds for all other seats.
            share = float(facts["final_shares"][seat])
            self._league.record(facts["opponents"][seat - 1], share)
        return True

    def _keep(self) -> None:
        env: Any = self.training_env
        self.states.append(env.game_states)
