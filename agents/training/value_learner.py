"""The value network as a learner of `train.py`: it learns from self-play, see `td`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stable_baselines3.common.logger import Logger

from marrakech_env.agent import Agent

from ..value import ONE_TURN, save
from .learner import Learner, trained_by
from .temporal_difference import Settings, TDTrainer


class ValueLearner(Learner):
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
        """Learns from one round of games."""
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
        model, trainer = self._trainer.model(), self._trainer
        made = trained_by("value", trainer.seed, trainer.seconds)
        head = dataclasses.replace(model.head, trained_by=made)
        save(folder, dataclasses.replace(model, head=head))

    def summary(self) -> str:
        """Nothing."""
        return ""

    def state(self) -> dict[str, Any]:
        """A copy of what `restore` needs: tensors and plain values."""
        return self._trainer.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Goes back to a state; what follows is as if nothing had happened."""
        self._trainer.restore(state)
