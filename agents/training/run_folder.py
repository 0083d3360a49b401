"""The folder of a training run: settings, metrics, checkpoint, learning curve, past versions.

Every file is written so that a kill at any moment leaves the old or the new one whole. A
checkpoint holds tensors and plain values only, so that reading one runs no code.
"""

from __future__ import annotations

import csv
import errno
import io
import json
import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

from marrakech_env.files import TEMPORARY, write_atomically

PAST = "past"
"""Name of the folder of past versions."""


class BusyError(ValueError):
    """Another process trains in the folder."""


def lock(folder: Path) -> IO[bytes]:
    """Lock a folder for this process, as long as the returned file is open.

    The system frees the lock when the process ends, however it ends. A file system without locks
    leaves the folder unlocked.

    Raises:
        BusyError: Another process holds the lock.
        OSError: The folder cannot be written.
    """
    file = open(folder / ".lock", "ab")  # noqa: SIM115 - it stays open
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EACCES, errno.EAGAIN):
            file.close()
            raise BusyError(f"{folder} is in use: another process is training there") from error
    return file


class RunFolder:
    """The files of a run, locked for this process until `close`.

    Attributes:
        path: The folder.
        settings: Content of config.json.
        metrics: Rows of metrics.csv, one for each evaluation, all with the same fields.
        past: Folders of the past versions that exist, oldest first.
        elapsed: Seconds of training up to the checkpoint that this process continues from.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        """Lock a folder; `create` makes one and `open` reads one."""
        self.path = path
        self._lock = lock(path)
        self.settings = settings
        self.metrics: list[dict[str, float]] = []
        self.past: list[Path] = []
        self.elapsed = 0.0

    @classmethod
    def create(cls, path: Path, settings: dict[str, Any]) -> RunFolder:
        """Make the folder of a new run and write its settings.

        An existing folder is used if it is empty, apart from hidden files.

        Raises:
            FileExistsError: The folder exists, and something is in it.
            BusyError: Another process has just made the folder.
            OSError: The folder cannot be written.
        """
        path.mkdir(parents=True, exist_ok=True)
        if any(not file.name.startswith(".") for file in path.iterdir()):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        run = cls(path, settings)
        write_atomically(path / "config.json", json.dumps(settings, indent=2).encode())
        return run

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Open a run and read its settings; `restore` reads its checkpoint.

        Raises:
            ValueError: The folder holds no run, its settings are no JSON, or another process trains
                there.
            OSError: The folder cannot be read or written.
        """
        if not (path / "config.json").exists():
            lack = "it has no config.json" if path.is_dir() else "there is no such folder"
            raise ValueError(f"cannot resume {path}, it is no run folder: {lack}")
        try:
            settings = json.loads((path / "config.json").read_bytes())
        except ValueError as error:
            raise ValueError(f"{path / 'config.json'} is no JSON: {error}") from error
        return cls(path, settings)

    def close(self) -> None:
        """Unlock the folder."""
        self._lock.close()

    def restore(self, restore: Callable[[dict[str, Any]], None]) -> bool:
        """Read the checkpoint and restore a learner from it; leave all files as they are.

        Args:
            restore: Method of the learner that takes its state.

        Returns:
            Whether there is a checkpoint.

        Raises:
            ValueError: The checkpoint is damaged, or it is of another learner.
        """
        import torch

        if not (self.path / "checkpoint.pt").exists():
            return False
        try:
            saved = torch.load(self.path / "checkpoint.pt", weights_only=True)
        except Exception as error:  # torch has errors of its own for files that make no sense
            raise ValueError(
                f"cannot resume {self.path}, its checkpoint.pt is damaged: "
                f"{type(error).__name__}: {error}"
            ) from error
        try:
            versions = [self.path / PAST / name for name in saved["past"]]
            self.past = [folder for folder in versions if (folder / "model.json").exists()]
            self.metrics, self.elapsed = saved["metrics"], saved["elapsed"]
            restore(saved["trainer"])
        except (KeyError, RuntimeError, TypeError, ValueError) as error:
            raise ValueError(
                f"the checkpoint in {self.path} does not fit its config.json or this version "
                f"of train.py: {type(error).__name__}: {error}"
            ) from error
        return True

    def go_back(self, unit: str) -> None:
        """Bring all files back to the checkpoint, or to the start of the run if there is none.

        Past versions that are newer and half-written files are removed. Metrics and learning curve
        are written anew. A finished model stays until the end of the training replaces it.

        Args:
            unit: What the `steps` of the metrics count, in the plural.

        Raises:
            OSError: The folder cannot be written.
        """
        for unfinished in self.path.rglob(TEMPORARY.format(name="*", process="*")):
            unfinished.unlink()
        for version in (self.path / PAST).glob("*"):
            if version.name.isdigit() and version not in self.past:
                shutil.rmtree(version)
        if self.metrics:
            self._write_metrics(unit)
        else:
            for name in ("metrics.csv", "learning_curve.png"):
                (self.path / name).unlink(missing_ok=True)

    def keep_version(self, save: Callable[[Path], None], steps: int) -> None:
        """Keep the present agent as a past version.

        Args:
            save: Writes the agent as a model into a folder.
            steps: What the agent has learned from.

        Raises:
            OSError: The folder cannot be written.
        """
        folder = self.path / PAST / f"{steps:010d}"
        folder.mkdir(parents=True, exist_ok=True)
        save(folder)
        self.past.append(folder)

    def save_checkpoint(self, learner: dict[str, Any], elapsed: float, unit: str) -> None:
        """Write the checkpoint, then the metrics and the learning curve.

        Args:
            learner: State of the learner: tensors and plain values.
            elapsed: Seconds of training so far.
            unit: What the `steps` of the metrics count, in the plural.

        Raises:
            OSError: The folder cannot be written; the last checkpoint still holds.
        """
        import torch

        buffer = io.BytesIO()
        torch.save(
            {
                "metrics": self.metrics,
                "past": [folder.name for folder in self.past],
                "elapsed": elapsed,
                "trainer": learner,
            },
            buffer,
        )
        write_atomically(self.path / "checkpoint.pt", buffer.getvalue())
        if self.metrics:
            self._write_metrics(unit)

    def _write_metrics(self, unit: str) -> None:
        table = io.StringIO()
        writer = csv.DictWriter(table, fieldnames=list(self.metrics[0]))
        writer.writeheader()
        writer.writerows(self.metrics)
        write_atomically(self.path / "metrics.csv", table.getvalue().encode())
        self._draw_learning_curve(unit)

    def _draw_learning_curve(self, unit: str) -> None:
        """Draw the win share against greedy, with its interval, over the steps."""
        from matplotlib.figure import Figure

        steps = [row["steps"] for row in self.metrics]
        share, low, high = (
            [100 * row[name] for row in self.metrics]
            for name in ("win_share_greedy", "low", "high")
        )
        figure = Figure(figsize=(7, 4), layout="constrained")
        axes = figure.add_subplot()
        axes.fill_between(steps, low, high, alpha=0.25, label="95 % interval")
        axes.plot(steps, share, marker="o", label="win share against greedy")
        even = 100 / self.settings["players"]
        axes.axhline(even, linestyle="--", color="black", linewidth=1, label="even")
        axes.set(xlabel=f"{unit} learned from", ylabel="%", ylim=(0, 100))
        axes.legend(loc="lower right")
        axes.spines[["top", "right"]].set_visible(False)
        picture = io.BytesIO()
        figure.savefig(picture, format="png", dpi=150)
        write_atomically(self.path / "learning_curve.png", picture.getvalue())
