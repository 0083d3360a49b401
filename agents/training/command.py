"""The command `train.py`: train an agent, save it, and measure how strong it is."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from contextlib import ExitStack, closing
from datetime import datetime

import tyro
from rich.console import Console

from marrakech_env import arena
from marrakech_env.arena.report import print_result, write_json
from marrakech_env.command_line import BAD_INPUT, UNWRITTEN, exit_code

from .config import Config, changed_options, flag, from_json
from .learner import Learner
from .loop import Training, progress_bar
from .ppo_learner import PPOLearner
from .run_folder import RunFolder
from .value_learner import ValueLearner

OPPONENTS = ("random", "greedy", "expectimax")
"""Opponents of the final evaluation."""
WIDTH = 110
"""Characters in a line where the output is no terminal."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Train, save, evaluate and print the table.

    Args:
        arguments: The words after the command; those of the process where None.

    Returns:
        The exit code: 0; 1 where a file could not be written in the end; 2 for bad input; 130 after
        Ctrl-C and 143 after SIGTERM.
    """
    output = Console(width=None if sys.stdout.isatty() else WIDTH)
    config = tyro.cli(Config, args=arguments)
    try:
        if config.resume is not None:
            config, run, learner = continued(config)
        else:
            config, run, learner = started(config)
    except (ValueError, OSError) as error:
        return end(f"train.py: {error}", BAD_INPUT)
    go_on = f"python train.py --resume {shlex.quote(str(run.path))}"
    print(f"run folder: {run.path}", flush=True)
    try:
        # Compile what is not compiled yet, so that it does not count as training time.
        arena.play([learner.agent()], config.players, config.rules, deals=1, field=OPPONENTS)
        with progress_bar(output) as bar:
            Training(config, run, learner, bar).learn()
        learner.save(run.path)
        if summary := learner.summary():
            print(summary)
        return measure(run, config, output)
    except KeyboardInterrupt as stopped:
        return end(f"{reason(stopped)}; go on with: {go_on}", exit_code(stopped))
    except OSError as error:
        return end(f"cannot write in {run.path}: {error}; then: {go_on}", UNWRITTEN)
    finally:
        run.close()


def make_learner(config: Config) -> Learner:
    """Make the learner of a configuration.

    Raises:
        ValueError: Bad rules, opponents or settings.
    """
    if config.algorithm == "ppo":
        return PPOLearner(config.players, config.rules, config.seed, config.ppo)
    return ValueLearner(config.players, config.rules, config.seed, config.value)


def started(config: Config) -> tuple[Config, RunFolder, Learner]:
    """Start a new run.

    Raises:
        ValueError: Options are wrong, or another process trains in the folder.
        OSError: The folder exists already, or it cannot be written.
    """
    config.check()
    learner = make_learner(config)
    path = config.folder / (config.name or datetime.now().strftime("%Y-%m-%d_%H-%M-%S"))
    try:
        return config, RunFolder.create(path, config.as_json()), learner
    except FileExistsError:
        raise OSError(f"{path} exists already: take another --name, or --resume {path}") from None


def continued(given: Config) -> tuple[Config, RunFolder, Learner]:
    """Open the run of --resume and take everything back to its checkpoint.

    Raises:
        ValueError: It is no run, its files are damaged, or other options are given too.
        OSError: The folder cannot be written.
    """
    assert given.resume is not None
    if changed := changed_options(given, Config(resume=given.resume)):
        flags = ", ".join(map(flag, changed))
        raise ValueError(f"--resume takes the run's own settings; leave out: {flags}")
    with ExitStack() as stack:
        run = stack.enter_context(closing(RunFolder.open(given.resume)))
        try:
            config = from_json(run.settings)
        except ValueError as error:
            raise ValueError(f"{given.resume / 'config.json'}: {error}") from error
        learner = make_learner(config)
        restored = run.restore(learner.restore)
        run.go_back(learner.unit)
        stack.pop_all()  # from now on `main` closes it
    if restored:
        progress = f"{learner.steps:,} {learner.unit}, {run.elapsed / 60:.1f} minutes of training"
        print(f"continued from the checkpoint at {progress}")
    else:
        print("this run has no checkpoint yet; the training starts anew")
    return config, run, learner


def measure(run: RunFolder, config: Config, output: Console) -> int:
    """Play the trained agent against the known ones, print the table and keep it as JSON.

    Returns:
        The exit code. After a KeyboardInterrupt the table of the games until then is kept.
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
    told = f"trained agent: {run.path}; measuring it in {games} (seed {seed} = 2**32 + --seed)"
    print(told, flush=True)
    interruption = None
    with progress_bar(output) as bar:
        task = bar.add_task("measuring", total=tournament.num_games, note=games)
        try:
            tournament.run(lambda played, _: bar.update(task, completed=played))
        except KeyboardInterrupt as stopped:
            interruption = stopped
    result = tournament.result()
    if result.pairings:
        write_json(result, run.path / "evaluation.json")
    print_result(result, output)
    if interruption is not None:
        told = f"{reason(interruption)}; the agent is saved; measure it with: {command}"
        return end(told, exit_code(interruption))
    print(f"again: {command}")
    return 0


def reason(stopped: KeyboardInterrupt) -> str:
    """Tell what stopped the command: Ctrl-C, or a signal by its name."""
    return f"\nstopped by {stopped}" if str(stopped) else "\nstopped"


def end(message: str, code: int) -> int:
    """Print to the standard error why the command ends, and return the exit code."""
    print(message, file=sys.stderr)
    return code
