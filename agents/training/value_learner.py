"""The value network as a learner: it learns from self-play by temporal differences."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from stable_baselines3.common.logger import Logger

from ..value import ONE_TURN, Effort, ValueAgent
from ..value_net.model import ValueModel
from .learner import trained_by
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


class ValueLearner(TDTrainer):
    """A value network that learns from self-play, as a `Learner`."""

    unit = "games"

    def __init__(self, num_players: int, rules: str, seed: int, settings: ValueSettings) -> None:
        """Start with small random weights.

        Raises:
            ValueError: Bad rules, settings or number of players.
        """
        given = {name: value for name, value in vars(settings).items() if value is not None}
        super().__init__(num_players, rules, seed, Settings(**given))
        self._logger: Logger | None = None

    @property
    def steps(self) -> int:
        """Games learned from so far."""
        return self.num_games

    def prepare(self, logger: Logger) -> None:
        """Compile by a game of another trainer, and send losses to the logger from now on."""
        self._logger = logger
        TDTrainer(
            self.rule_set.num_players, self.rule_set, settings=Settings(games_a_round=1, workers=1)
        ).round()

    def advance(self, done: float, past: Sequence[Path]) -> None:
        """Learn from one round of games."""
        for name, value in self.round(done).items():
            if self._logger is not None:
                self._logger.record(f"train/{name}", value)

    def agent(self, effort: Effort | None = ONE_TURN) -> ValueAgent:
        """Return the present agent, with averaged weights. For speed it looks one turn ahead."""
        return super().agent(effort)

    def model(self) -> ValueModel:
        """Return the present averaged weights as a model."""
        model = super().model()
        made = trained_by("value", self.seed, self.seconds)
        return dataclasses.replace(model, head=dataclasses.replace(model.head, trained_by=made))

    def summary(self) -> str:
        """Return an empty string: this learner has no summary."""
        return ""
