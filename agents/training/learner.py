"""The interface between the training loop and the two algorithms.

`ppo_learner`: MaskablePPO plays one seat against a league of opponents. `value_learner`: a value
network learns by temporal differences from self-play.

Legend: a *round* is what is played and learned between two updates of the weights that play.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import torch

from marrakech_env.agent import Agent

if TYPE_CHECKING:
    from stable_baselines3.common.logger import Logger


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch use one thread inside the block, and as many as before after it.

    The networks are small: a second thread gains little, and on a busy machine it costs most of the
    speed.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def trained_by(algorithm: str, seed: int, seconds: float) -> str:
    """Describe how a model was made, for people who read model.json."""
    return (
        f"train.py --algorithm {algorithm}, seed {seed}, {seconds / 60:.1f} minutes without "
        f"evaluations, on {platform.system()} {platform.machine()}"
    )


class Learner(Protocol):
    """The agent being trained.

    Attributes:
        unit: What `steps` counts, in the plural.
    """

    unit: str

    @property
    def steps(self) -> int:
        """Steps learned from so far."""
        ...

    def prepare(self, logger: Logger) -> None:
        """Compile what a round needs, and send losses to the logger from now on."""
        ...

    def advance(self, done: float, past: Sequence[Path]) -> None:
        """Learn for one round.

        Args:
            done: The part of the training that is done, 0..1; it sets the schedules.
            past: Models of earlier versions, oldest first.
        """
        ...

    def agent(self) -> Agent:
        """Return the present agent."""
        ...

    def save(self, folder: str | os.PathLike[str]) -> None:
        """Write the present agent as a model into an existing folder.

        Raises:
            OSError: The folder cannot be written.
        """
        ...

    def summary(self) -> str:
        """Return what is printed at the end of the training; empty for nothing."""
        ...

    def state(self) -> dict[str, Any]:
        """Copy what `restore` needs: tensors and plain values."""
        ...

    def restore(self, state: dict[str, Any]) -> None:
        """Go back to a state of a learner with the same arguments."""
        ...
