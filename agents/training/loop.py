"""The training loop around a learner: evaluations, past versions, checkpoints, the progress bar."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from stable_baselines3.common.logger import Logger

from marrakech_env import arena

from .config import MINUTES, Config
from .learner import Learner
from .run_folder import RunFolder
from .tensorboard_log import TensorBoardLog


def progress_bar(output: Console) -> Progress:
    """Make a bar that shows the part done, the time gone and left, and the last evaluation."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=output,
        speed_estimate_period=600,  # an evaluation or a slow round can take longer than 30 seconds
    )


class Training:
    """The training of one run in this process."""

    def __init__(self, config: Config, run: RunFolder, learner: Learner, bar: Progress) -> None:
        """Compile what the learner needs and start the clock.

        Args:
            config: The settings of the run.
            run: The folder of the run.
            learner: The learner, at the checkpoint of the run.
            bar: The progress bar, to which errors are printed too.
        """
        self._config = config
        self._run = run
        self._learner = learner
        self._bar = bar
        self._complaints: set[str] = set()
        log = TensorBoardLog(run.path / "tensorboard", learner.steps, self._complain)
        self._logger = Logger(None, [log])
        learner.prepare(self._logger)
        self._state = learner.state()
        self._started = self._last_checkpoint = time.monotonic()
        self._task = bar.add_task("training", total=1.0, note=self._note or "the first round ...")
        bar.update(self._task, completed=self._done)
        bar.tasks[self._task].start_time = bar.get_time() - run.elapsed

    @property
    def _elapsed(self) -> float:
        """Seconds of training, those before a resume included."""
        return self._run.elapsed + time.monotonic() - self._started

    @property
    def _done(self) -> float:
        """The part of the training that is done, 0..1."""
        if (length := self._config.length) is not None:
            return min(1.0, self._learner.steps / length)
        return min(1.0, self._elapsed / (60 * (self._config.minutes or MINUTES)))

    @property
    def _note(self) -> str:
        """The last evaluation; empty before the first."""
        if not self._run.metrics:
            return ""
        row = self._run.metrics[-1]
        share = f"{100 * row['win_share_greedy']:.0f} % against greedy"
        return f"{row['steps']:,} {self._learner.unit}, {share}"

    def learn(self) -> None:
        """Learn to the end, or until a KeyboardInterrupt; the last whole round is kept."""
        try:
            while (done := self._done) < 1:
                self._learner.advance(done, self._run.past)
                self._state = self._learner.state()
                self._bar.update(self._task, completed=self._done, note=self._note)
                measured = self._run.metrics[-1]["progress"] if self._run.metrics else 0.0
                parts = self._config.evaluations
                if int(self._done * parts) > int(measured * parts):
                    self._evaluate()
                if time.monotonic() - self._last_checkpoint > 60 * self._config.checkpoint_minutes:
                    self._checkpoint()
                self._logger.dump(self._learner.steps)
            self._evaluate()
            self._logger.dump(self._learner.steps)
            self._bar.update(self._task, completed=1.0)
        finally:
            self._checkpoint()
            self._logger.close()

    def _evaluate(self) -> None:
        """Measure the agent against greedy, and keep it as a past version."""
        config, steps = self._config, self._learner.steps
        if self._run.metrics and self._run.metrics[-1]["steps"] == steps:
            return
        result = arena.play(
            [self._learner.agent()],
            config.players,
            config.rules,
            config.evaluation_deals,
            steps,
            field=["greedy"],
        )
        share, margin = result.pairings[0].win_share, result.pairings[0].margin
        row = {
            "steps": steps,
            "minutes": round(self._elapsed / 60, 3),
            "progress": round(self._done, 6),
            "win_share_greedy": share.value,
            "low": share.low,
            "high": share.high,
            "margin_greedy": margin.value,
        }
        self._run.metrics.append(row)
        for name, value in row.items():
            self._logger.record(f"evaluation/{name}", value)
        self._bar.update(self._task, completed=self._done, note=self._note)
        if not self._bar.console.is_terminal:
            self._bar.console.print(f"{100 * self._done:3.0f} %: {self._note}")
        try:
            self._run.keep_version(self._learner.save, steps)
        except OSError as error:
            self._complain(f"cannot keep this version of the agent in {self._run.path}: {error}")

    def _checkpoint(self) -> None:
        """Write a checkpoint; a full disk costs the checkpoint and not the training."""
        self._last_checkpoint = time.monotonic()
        try:
            self._run.save_checkpoint(self._state, self._elapsed, self._learner.unit)
        except OSError as error:
            self._complain(
                f"cannot write the checkpoint in {self._run.path}: {error}; training goes on, "
                "and --resume takes the last checkpoint that could be written"
            )

    def _complain(self, message: str) -> None:
        """Print an error above the bar, each error once."""
        if message not in self._complaints:
            self._complaints.add(message)
            self._bar.console.print(message, style="red", markup=False)
