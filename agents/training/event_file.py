"""The file that TensorBoard reads, written so that a full disk costs a round and not the training.

Stable-Baselines3's own writer has a thread, which a full disk ends for good.
"""

from __future__ import annotations

import errno
import io
import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from stable_baselines3.common.logger import KVWriter
from tensorboard.compat.proto.event_pb2 import Event
from tensorboard.compat.proto.summary_pb2 import Summary
from tensorboard.summary.writer.record_writer import RecordWriter


class EventFile(KVWriter):
    """Numbers for TensorBoard, as an output of Stable-Baselines3's logger."""

    def __init__(self, folder: Path, complain: Callable[[str], None]) -> None:
        """Makes the folder.

        Args:
            folder: Where the file goes.
            complain: Is told that the file cannot be written.

        Raises:
            OSError: The folder cannot be made.
        """
        folder.mkdir(exist_ok=True)
        self._path = folder / f"events.out.tfevents.{time.time():.0f}.{os.getpid()}"
        self._complain = complain

    def write(
        self, key_values: Mapping[str, Any], key_excluded: Mapping[str, Any], step: int = 0
    ) -> None:
        """Adds a round as a whole, or nothing of it."""
        values = [
            Summary.Value(tag=name, simple_value=value)
            for name, value in key_values.items()
            if "tensorboard" not in key_excluded[name]
        ]
        try:
            if not self._path.exists():
                self._append(Event(wall_time=time.time(), file_version="brain.Event:2"))
            summary = Summary(value=values)
            self._append(Event(wall_time=time.time(), step=step, summary=summary))
        except OSError as error:
            self._complain(f"cannot write {self._path}: {error}; training goes on without it")

    def _append(self, event: Any) -> None:
        record = io.BytesIO()
        RecordWriter(record).write(event.SerializeToString())
        data = record.getvalue()
        with open(self._path, "ab", buffering=0) as file:
            size = file.tell()
            if file.write(data) != len(data):  # half a record would hide all later ones
                file.truncate(size)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def close(self) -> None:
        """Nothing is open between two rounds."""
