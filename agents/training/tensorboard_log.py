"""The log for TensorBoard, which survives a full disk and goes back to a checkpoint."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from stable_baselines3.common.logger import KVWriter
from torch.utils.tensorboard import SummaryWriter

ROOM = 65_536
"""Bytes that must be free on the disk for a round, far more than a round takes."""


class TensorBoardLog(KVWriter):
    """Numbers of each round, as an output of Stable-Baselines3's logger.

    SummaryWriter writes in a thread, which the first error ends with a traceback. So each round is
    written only where the disk has room for it, and a new writer follows one that failed.
    """

    def __init__(self, folder: Path, step: int, complain: Callable[[str], None]) -> None:
        """Continue the log at a step.

        Args:
            folder: The folder of the event files. It is made with the first round.
            step: What the run has learned from so far. TensorBoard drops the rounds after it.
            complain: Called with the reason why a round cannot be written.
        """
        self._folder = folder
        self._complain = complain
        self._last_step = step
        self._writer: SummaryWriter | None = None

    def write(
        self, key_values: Mapping[str, Any], key_excluded: Mapping[str, Any], step: int = 0
    ) -> None:
        """Add a round as a whole, or nothing of it."""
        try:
            self._folder.mkdir(exist_ok=True)
            with TemporaryFile(dir=self._folder) as file:
                file.write(bytes(ROOM))
            writer = self._writer or SummaryWriter(self._folder, purge_step=self._last_step + 1)
            self._writer = None  # the next round needs a new one, unless this one succeeds
            for name, value in key_values.items():
                if "tensorboard" not in (key_excluded[name] or ()):
                    writer.add_scalar(name, value, step)
            writer.flush()
            self._writer, self._last_step = writer, step
        except OSError as error:
            self._complain(f"cannot write in {self._folder}: {error}; training goes on without it")

    def close(self) -> None:
        """Close the event file."""
        if self._writer is not None:
            self._writer.close()
