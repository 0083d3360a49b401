"""The folder of a training run: settings, metrics, checkpoint, learning curve, past versions.

Every file is written so that a kill at any moment leaves the old or the new one whole. A
checkpoint holds tensors and plain values only, so that reading one runs no code.
"""

from __future__ import annotations

import csv
import dataclasses
import errno
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, TypeVar, get_args, get_type_hints

from marrakech_env.files import TEMPORARY, write_atomically

PAST = "past"
"""Name of the folder of past versions."""

Settings = TypeVar("Settings")


def from_json(values: Any, of: type[Settings]) -> Settings:
    """A dataclass of settings as JSON gave it.

    Args:
        values: What was read; fields that it leaves out keep their defaults.
        of: A dataclass with fields of plain types, choices, None and such dataclasses.

    Raises:
        ValueError: Names the field, what was found and what is allowed.
    """
    if not isinstance(values, dict):
        raise ValueError(f"the settings must be an object, not {values!r}")
    hints, fields = get_type_hints(of), dict(values)
    for name, value in values.items():
        if name not in hints:
            raise ValueError(f"{name} is no setting of this version of train.py")
        if dataclasses.is_dataclass(hints[name]):
            fields[name] = from_json(value, hints[name])
            continue
        allowed = get_args(hints[name]) or (hints[name],)
        kinds = (float, int) if type(value) is int else (type(value),)
        if not any(one in kinds or (type(one) in kinds and one == value) for one in allowed):
            names = [one.__name__ if isinstance(one, type) else repr(one) for one in allowed]
            wanted = " or ".join(names).replace("NoneType", "null")
            raise ValueError(f"{name} must be {wanted}, not {json.dumps(value)}")
    return of(**fields)


class BusyError(ValueError):
    """Another process trains in the folder."""


def lock(folder: Path) -> IO[bytes]:
    """Locks a folder for this process, as long as the file that is returned is open.

    The system frees the lock when the process ends, however it ends. Where a file system knows no
    locks, the folder stays unlocked.

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
    """What a run keeps on disk, locked for this process.

    Attributes:
        path: The folder.
        settings: Content of config.json.
        metrics: Rows of metrics.csv, one for each evaluation, all with the same fields.
        past: Folders of the past versions, oldest first, without those that somebody deleted.
        elapsed: Seconds of training up to the last checkpoint of an earlier process.
        checkpoint: What the learner needs to go on; None before the first checkpoint.
    """

    def __init__(self, path: Path, settings: dict[str, Any]) -> None:
        """Locks and describes a folder; `create` and `open` make and read one."""
        self.path = path
        self._lock = lock(path)
        self.settings = settings
        self.metrics: list[dict[str, float]] = []
        self.past: list[Path] = []
        self.elapsed = 0.0
        self.checkpoint: dict[str, Any] | None = None

    @classmethod
    def create(cls, path: Path, settings: dict[str, Any]) -> RunFolder:
        """Makes the folder of a new run and writes its settings.

        What a process left behind that was killed before it had written them is taken over.

        Raises:
            FileExistsError: There is such a folder already, with something in it.
            BusyError: Another process has just made it.
            OSError: It cannot be written.
        """
        path.mkdir(parents=True, exist_ok=True)
        if any(not file.name.startswith(".") for file in path.iterdir()):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(path))
        run = cls(path, settings)
        write_atomically(path / "config.json", json.dumps(settings, indent=2).encode())
        return run

    @classmethod
    def open(cls, path: Path) -> RunFolder:
        """Opens a run as its last checkpoint left it; what came after will be made again.

        Files that a killed process had half written are removed.

        Raises:
            ValueError: It is no run, one of its files is damaged, or another process trains there.
        """
        import torch

        if not (path / "config.json").exists():
            lack = "it has no config.json" if path.is_dir() else "there is no such folder"
            raise ValueError(f"cannot resume {path}, it is no run folder: {lack}")
        try:
            run = cls(path, json.loads((path / "config.json").read_text(encoding="utf-8")))
            if (path / "checkpoint.pt").exists():
                saved = torch.load(path / "checkpoint.pt", weights_only=True)
                run.metrics = saved["metrics"]
                versions = [path / PAST / name for name in saved["past"]]
                run.past = [folder for folder in versions if (folder / "model.json").exists()]
                run.elapsed = saved["elapsed"]
                run.checkpoint = saved["trainer"]
            for unfinished in path.rglob(TEMPORARY.format(name="*", process="*")):
                unfinished.unlink()
        except BusyError:
            raise
        except Exception as error:  # torch has errors of its own for files that make no sense
            raise ValueError(f"cannot resume {path}: {type(error).__name__}: {error}") from error
        return run

    def restore(self, restore: Callable[[dict[str, Any]], None]) -> None:
        """Puts a learner to the checkpoint, if there is one, by its own `restore`.

        Raises:
            ValueError: The checkpoint is of another learner.
        """
        if self.checkpoint is not None:
            try:
                restore(self.checkpoint)
            except (KeyError, RuntimeError, TypeError, ValueError) as error:
                raise ValueError(
                    f"the checkpoint in {self.path} does not fit its config.json or this version "
                    f"of train.py: {type(error).__name__}: {error}"
                ) from error

    def keep_version(self, save: Callable[[Path], None], steps: int) -> None:
        """Keeps the agent of now as a past version.

        Args:
            save: Writes it as a model into a folder.
            steps: What it has learned from.

        Raises:
            OSError: It cannot be written.
        """
        folder = self.path / PAST / f"{steps:010d}"
        folder.mkdir(parents=True, exist_ok=True)
        save(folder)
        self.past.append(folder)

    def save_checkpoint(self, learner: dict[str, Any], elapsed: float, unit: str) -> None:
        """Writes the checkpoint, and metrics and learning curve as they stand at it.

        Args:
            learner: Tensors and plain values that the learner needs to go on.
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
            table = io.StringIO()
            writer = csv.DictWriter(table, fieldnames=list(self.metrics[0]))
            writer.writeheader()
            writer.writerows(self.metrics)
            write_atomically(self.path / "metrics.csv", table.getvalue().encode())
            self.draw_learning_curve(unit)

    def draw_learning_curve(self, unit: str) -> None:
        """Draws the win share against greedy with its interval over what was learned from."""
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
