"""Trains an agent for Marrakech, then measures how strong it is.

    python train.py                          five minutes, two players, then the table
    python train.py --minutes 60 --players 4
    python train.py --algorithm value        a value network from self-play, stronger than PPO
    python train.py --resume runs/NAME       goes on after a kill, a crash or a Ctrl-C

Everything of a run lies in its folder runs/NAME: config.json, metrics.csv with learning_curve.png,
checkpoint.pt for --resume, tensorboard/, past/ with earlier versions of the agent, and in the end
the model (model.json with its weights) and evaluation.json. `python evaluate.py runs/NAME greedy`
measures it again. The two algorithms are ppo_learner.py and value_learner.py in agents/training/.
"""

from __future__ import annotations

import dataclasses
import shlex
import sys
import time
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal

try:
    import tyro
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )
    from stable_baselines3.common.logger import Logger

    from marrakech_agents.training.event_file import EventFile
    from marrakech_agents.training.learner import Learner
    from marrakech_agents.training.ppo_learner import PPOLearner, PPOSettings
    from marrakech_agents.training.run_folder import RunFolder, from_json
    from marrakech_agents.training.temporal_difference import Settings
    from marrakech_agents.training.value_learner import ValueLearner
    from marrakech_env import arena
    from marrakech_env.arena.report import print_result, write_json
    from marrakech_env.arena.tournament import MOST_DEALS
    from marrakech_env.command_line import BAD_INPUT, INTERRUPTED, UNWRITTEN
except ModuleNotFoundError as error:
    print(f"train.py needs {error.name}: pip install -e '.[train]' (in the clone)", file=sys.stderr)
    sys.exit(2)

OPPONENTS = ("random", "greedy", "expectimax")
"""Whom the trained agent is measured against."""
MINUTES = 5.0
"""How long to train where nothing is said."""
OUTPUT = Console(width=None if sys.stdout.isatty() else 110)  # a log folds no names


@dataclass
class Config:
    """Train an agent for Marrakech, then measure it."""

    algorithm: Literal["ppo", "value"] = "ppo"
    """ppo: MaskablePPO against a league of opponents. value: a value network that learns by
    playing, mostly against itself, and plays with one to two turns of lookahead (evaluations on the
    way: one); after a minute it is stronger than ppo after an hour, but slower to decide."""
    minutes: float | None = None
    """Training time in minutes, evaluations on the way included; 5.0 where neither this nor
    --timesteps or --games is given."""
    timesteps: int | None = None
    """Decisions of the agent to learn from, instead of --minutes (ppo only)."""
    games: int | None = None
    """Games of self-play to learn from, instead of --minutes (value only)."""
    players: Literal[2, 3, 4] = 2
    """Number of players."""
    rules: str = "official"
    """A preset (official, boardgamearena, comp1110) and options: official;steering=end."""
    seed: int = 0
    """With --timesteps or --games it fixes the run on one machine; with --minutes it fixes only the
    dice and the first weights, because the clock decides how much is learned."""
    workers: int = 2
    """Threads that play the games of self-play; they change the time, not the result (value only).
    """
    guests: float = Settings().guests
    """Part of the games in which greedy or expectimax plays all seats but one (value only)."""
    name: str | None = None
    """Name of the run's folder below --folder; default: date and time."""
    folder: Path = Path("runs")
    """Where runs are kept."""
    resume: Annotated[Path | None, tyro.conf.arg(metavar="RUN")] = None
    """Folder of a run to go on with; its own settings hold, so no other option may be given."""

    evaluations: int = 15
    """Evaluations on the way, spread evenly; each also keeps the agent as a past version."""
    evaluation_deals: int = 100
    """Deals in each of them (one game in every seat for each deal)."""
    final_deals: int = 1000
    """Deals against each opponent in the final evaluation. 1000 of them take ppo some 15 seconds,
    value, which looks ahead, two to five minutes; Ctrl-C keeps what is measured by then."""
    checkpoint_minutes: float = 1.0
    """Minutes between two checkpoints: what a kill can cost."""

    ppo: tyro.conf.OmitArgPrefixes[PPOSettings] = field(default_factory=PPOSettings)


ONLY = {"timesteps": "ppo", "ppo": "ppo", "games": "value", "workers": "value", "guests": "value"}
"""Options that one algorithm alone has."""


def check(config: Config) -> None:
    """Checks what the types leave open and the learners do not know.

    Raises:
        ValueError: A number out of range, or options that do not go together.
    """
    for name in changed_options(config, Config()):
        algorithm = ONLY.get(name.split(".")[0], config.algorithm)
        if algorithm != config.algorithm:
            raise ValueError(f"{flag(name)} is an option of --algorithm {algorithm} only")
    length = "timesteps" if config.algorithm == "ppo" else "games"
    if getattr(config, length) is not None and config.minutes is not None:
        raise ValueError(f"give either --minutes or {flag(length)}")
    lowest = {length: 1, "evaluation_deals": 1, "final_deals": 1, "workers": 1}
    for name, least in {**lowest, "evaluations": 0, "checkpoint_minutes": 0}.items():
        value = getattr(config, name)
        if value is not None and not value >= least:
            raise ValueError(f"{flag(name)} must be at least {least}, not {value}")
    for name in ("evaluation_deals", "final_deals"):
        if (value := getattr(config, name)) > MOST_DEALS:
            raise ValueError(f"{flag(name)} must be at most {MOST_DEALS:,}, not {value:,}")
    if config.minutes is not None and not config.minutes > 0:
        raise ValueError(f"--minutes must be above 0, not {config.minutes}")
    if not 0 <= config.seed < 2**32:
        raise ValueError(f"--seed must be 0..{2**32 - 1}, not {config.seed}")


def make_learner(config: Config) -> Learner:
    """What learns.

    Raises:
        ValueError: Bad rules, opponents or settings.
    """
    if config.algorithm == "ppo":
        return PPOLearner(config.players, config.rules, config.seed, config.ppo)
    settings = Settings(workers=config.workers, guests=config.guests)
    if config.games is not None:
        settings = dataclasses.replace(settings, games=config.games)
    return ValueLearner(config.players, config.rules, config.seed, settings)


class Training:
    """The loop around a learner: evaluations, past versions, checkpoints, the bar."""

    def __init__(self, config: Config, run: RunFolder, learner: Learner, bar: Progress) -> None:
        self.config = config
        self.run = run
        self.learner = learner
        self.bar = bar
        self.complaints: set[str] = set()
        events = EventFile(run.path / "tensorboard", self.complain)
        self.logger = Logger(None, [events])
        self.learner.prepare(self.logger)
        if run.checkpoint is not None:
            bar.console.print(
                f"continued from the checkpoint at {learner.steps:,} {learner.unit}, "
                f"{run.elapsed / 60:.1f} minutes of training"
            )
        self.state = learner.state()
        self.started = self.last_checkpoint = time.monotonic()
        self.task = bar.add_task("training", total=1.0, note=self.note or "the first round ...")
        bar.update(self.task, completed=self.done)
        bar.tasks[self.task].start_time = bar.get_time() - run.elapsed

    @property
    def elapsed(self) -> float:
        """Seconds of training, those before a resume included."""
        return float(self.run.elapsed) + time.monotonic() - self.started

    @property
    def done(self) -> float:
        """The part of the training that is done, 0..1."""
        length = self.config.timesteps or self.config.games
        if length is not None:
            return min(1.0, float(self.learner.steps) / length)
        return min(1.0, self.elapsed / (60 * (self.config.minutes or MINUTES)))

    @property
    def note(self) -> str:
        """The last evaluation, empty before the first."""
        if not self.run.metrics:
            return ""
        row = self.run.metrics[-1]
        share = f"{100 * row['win_share_greedy']:.0f} % against greedy"
        return f"{row['steps']:,} {self.learner.unit}, {share}"

    def learn(self) -> None:
        """Goes on to the end, or to a Ctrl-C: then the last whole round is kept."""
        try:
            while (done := self.done) < 1:
                self.learner.advance(done, self.run.past)
                self.state = self.learner.state()
                self.bar.update(self.task, completed=self.done, note=self.note)
                measured = self.run.metrics[-1]["progress"] if self.run.metrics else 0.0
                parts = self.config.evaluations
                if int(self.done * parts) > int(measured * parts):
                    self.evaluate()
                if time.monotonic() - self.last_checkpoint > 60 * self.config.checkpoint_minutes:
                    self.checkpoint()
                self.logger.dump(self.learner.steps)
            self.evaluate()
        finally:
            self.checkpoint()

    def evaluate(self) -> None:
        """Measures the agent against greedy, and keeps it as a past version."""
        config, steps = self.config, self.learner.steps
        if self.run.metrics and self.run.metrics[-1]["steps"] == steps:
            return
        agent = self.learner.agent()
        result = arena.play(
            [agent], config.players, config.rules, config.evaluation_deals, steps, field=["greedy"]
        )
        share, margin = result.pairings[0].win_share, result.pairings[0].margin
        row = {
            "steps": steps,
            "minutes": round(self.elapsed / 60, 3),
            "progress": round(self.done, 6),
            "win_share_greedy": share.value,
            "low": share.low,
            "high": share.high,
            "margin_greedy": margin.value,
        }
        self.run.metrics.append(row)
        for name, value in row.items():
            self.logger.record(f"evaluation/{name}", value)
        self.bar.update(self.task, completed=self.done, note=self.note)
        if not self.bar.console.is_terminal:
            self.bar.console.print(f"{100 * self.done:3.0f} %: {self.note}")
        try:
            self.run.keep_version(self.learner.save, steps)
        except OSError as error:
            self.complain(f"cannot keep this version of the agent in {self.run.path}: {error}")

    def checkpoint(self) -> None:
        """Writes a checkpoint; a full disk costs the checkpoint, not the training."""
        self.last_checkpoint = time.monotonic()
        try:
            self.run.save_checkpoint(self.state, self.elapsed, self.learner.unit)
        except OSError as error:
            self.complain(
                f"cannot write the checkpoint in {self.run.path}: {error}; training goes on, "
                "and --resume takes the last checkpoint that could be written"
            )

    def complain(self, message: str) -> None:
        """Prints an error above the bar, the same one only once."""
        if message not in self.complaints:
            self.complaints.add(message)
            self.bar.console.print(message, style="red", markup=False)


def main(config: Config) -> int:
    """Trains, saves, evaluates and prints the table.

    Returns:
        The exit code, as that of evaluate.py: 0; 1 where a file could not be written in the end; 2
        for bad input; 130 after Ctrl-C.
    """
    run = None
    try:
        if config.resume is not None:
            config, run = continued(config)
        else:
            check(config)
        learner = make_learner(config)
        if run is None:
            run = new_run(config)
        else:
            run.restore(learner.restore)
    except (ValueError, OSError) as error:
        return tell(f"train.py: {error}", BAD_INPUT)
    say(f"run folder: {run.path}")
    go_on = f"python train.py --resume {shlex.quote(str(run.path))}"
    try:
        # Compiles what is not compiled yet, so that it does not count as training time.
        arena.play([learner.agent()], config.players, config.rules, deals=1, field=OPPONENTS)
        with progress_bar() as bar:
            training = Training(config, run, learner, bar)
            training.learn()
            bar.update(training.task, completed=1.0)
        learner.save(run.path)
        if summary := learner.summary():
            say(summary)
        return measure(run, config)
    except KeyboardInterrupt:
        return tell(f"\nstopped; go on with: {go_on}", INTERRUPTED)
    except OSError as error:
        return tell(f"cannot write in {run.path}: {error}; then: {go_on}", UNWRITTEN)


def new_run(config: Config) -> RunFolder:
    """Makes the folder of a new run.

    Raises:
        ValueError: Another process trains in it.
        OSError: It exists already, or cannot be written.
    """
    path = config.folder / (config.name or datetime.now().strftime("%Y-%m-%d_%H-%M-%S"))
    settings = dataclasses.asdict(config)
    del settings["resume"], settings["folder"]
    try:
        return RunFolder.create(path, settings)
    except FileExistsError:
        raise OSError(f"{path} exists already: take another --name, or --resume {path}") from None


def continued(given: Config) -> tuple[Config, RunFolder]:
    """The settings and the folder of the run of --resume.

    Raises:
        ValueError: It is no run, its files are damaged, or other options were given too.
    """
    assert given.resume is not None
    changed = changed_options(given, Config(resume=given.resume))
    if changed:
        flags = ", ".join(map(flag, changed))
        raise ValueError(f"--resume takes the run's own settings; leave out: {flags}")
    run = RunFolder.open(given.resume)
    try:
        config = from_json(run.settings, Config)
        check(config)
    except ValueError as error:
        raise ValueError(f"{given.resume / 'config.json'}: {error}") from error
    return config, run


def changed_options(given: Any, usual: Any, prefix: str = "") -> list[str]:
    """The options in which two configurations differ, those of a group as group.option."""
    changed = []
    for name, default in vars(usual).items():
        value = getattr(given, name)
        if dataclasses.is_dataclass(default):
            changed += changed_options(value, default, f"{name}.")
        elif value != default:
            changed.append(prefix + name)
    return changed


def flag(option: str) -> str:
    """How an option is written on the command line."""
    return "--" + option.rpartition(".")[2].replace("_", "-")


def progress_bar() -> Progress:
    """The bar: part done, time gone and left, last evaluation."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:3.0f} %"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
        console=OUTPUT,
        speed_estimate_period=600,  # an evaluation or a slow round can take longer than 30 seconds
    )


def measure(run: RunFolder, config: Config) -> int:
    """Plays the trained agent against the known ones, prints the table and keeps it as JSON.

    Returns:
        The exit code. After a Ctrl-C the table of what was played until then is kept.
    """
    seed = 2**32 + config.seed  # deals that no evaluation on the way has seen
    again = ["evaluate.py", str(run.path), "--field", ",".join(OPPONENTS)]
    again += ["--players", str(config.players), "--seed", str(seed)]
    again += ["--games", str(config.final_deals * config.players)]
    if config.rules != Config.rules:
        again += ["--rules", config.rules]
    command = f"python {shlex.join(again)}"
    tournament = arena.Tournament(
        [str(run.path)], config.players, config.rules, config.final_deals, seed, field=OPPONENTS
    )
    games = f"{tournament.num_games:,} games"
    say(f"trained agent: {run.path}; measuring it in {games} (seed {seed} = 2**32 + --seed)")
    stopped = False
    with progress_bar() as bar:
        task = bar.add_task("measuring", total=tournament.num_games, note=games)
        try:
            tournament.run(lambda played, _: bar.update(task, completed=played))
        except KeyboardInterrupt:
            stopped = True
    result = tournament.result()
    print_result(result, OUTPUT)
    if result.pairings:
        write_json(result, run.path / "evaluation.json")
    if stopped:
        return tell(f"\nstopped; the agent is saved; measure it with: {command}", INTERRUPTED)
    say(f"again: {command}")
    return 0


def say(message: str) -> None:
    """Prints a line that may hold any file name, in one piece."""
    OUTPUT.print(message, markup=False, soft_wrap=True)


def tell(message: str, code: int) -> int:
    """Prints why it ends to the standard error; returns the exit code."""
    print(message, file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main(tyro.cli(Config)))
