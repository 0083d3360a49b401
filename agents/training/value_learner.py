"""The value network as a learner: it learns from self-play by temporal differences."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from stable_baselines3.common.logger import Logger

from marrakech_env.agent import Agent

from ..value import ONE_TURN, save
from .learner import Learner, trained_by
from .temporal_difference import Settings, TDTrainer


@dataclass(frozen=True)
class ValueSettings:
    """Only with --algorithm value."""

    games: int | None = None
    """Games to learn from, instead of --minutes."""
    workers: int = Settings().workers
    """Threads that play the games; they change the time and not the result."""
    guests: float = Settings().guests
    """Part of the games in which greedy or expectimax plays all seats but one."""


class ValueLearner(Learner):
    """A value network that learns from self-play."""

    unit = "games"

    def __init__(self, num_players: int, rules: str, seed: int, settings: ValueSettings) -> None:
        """Make the trainer.

        Raises:
            ValueError: Bad rules, settings or number of players.
        """
        given = {name: value for name, value in vars(settings).items() if value is not None}
        self._trainer = TDTrainer(num_players, rules, seed, Settings(**given))
        self._logger: Logger | None = None

    @property
    def steps(self) -> int:
        """Games learned from so far."""
        return self._trainer.num_games

    def prepare(self, logger: Logger) -> None:
        """Compile by a game of another trainer, and send losses to the logger from now on."""
        self._logger = logger
        TDTrainer(
            self._trainer.rule_set.num_players,
            self._trainer.rule_set,
            settings=Settings(games_a_round=1, workers=1),
        ).round()

    def advance(self, done: float, past: Sequence[Path]) -> None:
        """Learn from one round of games."""
        for name, value in self._trainer.round(done).items():
            if self._logger is not None:
                self._logger.record(f"train/{name}", value)

    def agent(self) -> Agent:
        """Return the present agent, with averaged weights. For speed it looks one turn ahead."""
        return self._trainer.agent(ONE_TURN)

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the present agent as a model into an existing folder.

        Raises:
            OSError: The folder cannot be written.
        """
        model, trainer = self._trainer.model(), self._trainer
        made = trained_by("value", trainer.seed, trainer.seconds)
        head = dataclasses.replace(model.head, trained_by=made)
        save(folder, dataclasses.replace(model, head=head))

    def summary(self) -> str:
        """Return an empty string: this learner has no summary."""
        return ""

    def state(self) -> dict[str, Any]:
        """Copy what `restore` needs: tensors and plain values."""
        return self._trainer.state()

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state; the training goes on as without the break."""
        self._trainer.restore(state)
