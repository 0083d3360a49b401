"""What `train.py` asks of whoever learns: one interface for both algorithms.

`ppo_learner`: MaskablePPO plays one seat against a league of opponents. `value_learner`: a value
network plays itself, in part of the games greedy or expectimax, and learns by temporal differences.

Legend: a *round* is what is played and learned from between two updates of the weights
that play.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

import torch
from stable_baselines3.common.logger import Logger

from marrakech_env.agent import Agent

# The networks are small: a second thread gains little, and beside another busy process the two wait
# for each other (measured: 1,300 decisions a second with two threads, 9,200 with one).
torch.set_num_threads(1)


def trained_by(algorithm: str, seed: int, seconds: float) -> str:
    """What a model says of how it was made, for people."""
    return (
        f"train.py --algorithm {algorithm}, seed {seed}, {seconds / 60:.1f} minutes without "
        f"evaluations, on {platform.system()} {platform.machine()}"
    )


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

    def summary(self) -> str:
        """What else is to be told at the end of the training; empty for nothing."""
        ...

    def state(self) -> dict[str, Any]:
        """A copy of what `restore` needs: tensors and plain values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Goes back to a `state` of a learner with the same arguments."""
        ...
