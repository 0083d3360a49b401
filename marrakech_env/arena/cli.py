"""The command line of the arena: `python evaluate.py`, `python -m marrakech_env.arena`."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Final

import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TaskID,
    TextColumn,
    TimeRemainingColumn,
)

from marrakech_env.agent import load_agent
from marrakech_env.arena.endgames import EndgameResult, play_endgames
from marrakech_env.arena.leaderboard import Leaderboard
from marrakech_env.arena.leaderboard_files import Circumstances, as_json, as_markdown, read_ladder
from marrakech_env.arena.luck import DEFAULT_BASELINE
from marrakech_env.arena.options import (
    ENDGAMES,
    GAMES,
    LEADERBOARD,
    Config,
    checked_use,
    leaderboard_command,
)
from marrakech_env.arena.plot import check_plot, write_plot
from marrakech_env.arena.report import (
    print_endgames,
    print_result,
    write_csv,
    write_endgames_json,
    write_json,
)
from marrakech_env.arena.tournament import Tournament
from marrakech_env.command_line import (
    BAD_INPUT,
    UNWRITTEN,
    check_stopped,
    held_signals,
    run_command,
)
from marrakech_env.files import check_writable, write_atomically
from marrakech_env.spec import check_num_players

WRITERS: Final = {"json": write_json, "csv": write_csv, "plot": write_plot}
"""The functions that write the files, by option."""
PIPED_WIDTH = 120
"""Characters in a line where the output is no terminal."""


def main(arguments: list[str] | None = None) -> int:
    """Read the command line, play, write files, print.

    Args:
        arguments: The words after the command; those of the process where None.

    Returns:
        The exit code: 0; 1 where an output could not be written, or no game of the leaderboard
        fitted into the budget; 2 for bad input or an illegal action of an agent; 130 after Ctrl-C;
        143 after SIGTERM. The results up to a stop are written and printed in any case.

    Raises:
        Exception: An agent's own error, after the report.
    """
    return run_command(partial(_main, arguments))


@dataclass(frozen=True)
class Report:
    """The results of a command.

    Attributes:
        files: For each file, the function that writes it.
        show: Prints the results, given the files that were written.
    """

    files: Mapping[Path, Callable[[Path], None]]
    show: Callable[[Sequence[Path]], None]


@dataclass(frozen=True)
class Session:
    """What a command does.

    Attributes:
        play: Plays to the end, or until it is stopped.
        report: The results, given what stopped the play; None where there are none.
    """

    play: Callable[[], None]
    report: Callable[[BaseException | None], Report | None]


def _main(arguments: list[str] | None) -> int:
    config = tyro.cli(Config, args=arguments)
    console, messages = Console(), Console(stderr=True)
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    try:
        session = SESSIONS[checked_use(config)](config, console, messages)
    except ValueError as error:
        check_stopped()
        return _tell(error, messages, BAD_INPUT)
    stopped: Exception | KeyboardInterrupt | None = None
    try:
        session.play()
    except (Exception, KeyboardInterrupt) as error:
        stopped = error
    with held_signals():  # files first: printing can fail
        report = session.report(stopped)
        files = {} if report is None else report.files
        written = [path for path, write in files.items() if _write(path, write, messages)]
    if report is not None:
        report.show(written)
    check_stopped()
    if isinstance(stopped, ValueError) and not hasattr(stopped, "__notes__"):
        return _tell(stopped, messages, BAD_INPUT)
    if stopped is not None:  # an agent's own error shows where it arose
        raise stopped
    return UNWRITTEN if report is None or len(written) < len(files) else 0


def _write(path: Path, write: Callable[[Path], None], messages: Console) -> bool:
    """Write a file; print why it cannot be written."""
    try:
        write(path)
    except Exception as error:  # Matplotlib has errors of its own
        reason = (isinstance(error, OSError) and error.strerror) or error
        _tell(f"{path} was not written: {reason}", messages, UNWRITTEN)
        return False
    return True


# ----------------------------------------------------------------------------------------- games


def _games(config: Config, console: Console, messages: Console) -> Session:
    outputs = _outputs(config)
    tournament = _tournament(config)

    def play() -> None:
        with _bar(messages, TextColumn("games"), MofNCompleteColumn()) as bar:
            task = bar.add_task("games", total=tournament.num_games)
            tournament.run(lambda played, _: _follow(bar, task, played))

    def report(stopped: BaseException | None) -> Report | None:
        result = tournament.result()
        if not result.pairings and isinstance(stopped, Exception):
            return None
        files = {path: partial(WRITERS[option], result) for option, path in outputs.items()}
        return Report(files, lambda written: print_result(result, console))

    return Session(play, report)


def _tournament(config: Config) -> Tournament:
    check_num_players(config.players)
    if config.baseline != DEFAULT_BASELINE and not config.luck_adjusted:
        raise ValueError("--baseline is about luck; add --luck-adjusted or leave it out")
    if config.games < 1:
        raise ValueError(f"games must be at least 1, not {config.games}")
    return Tournament(
        config.agents,
        config.players,
        config.rules,
        deals=-(-config.games // config.players),
        seed=config.seed,
        field=[name.strip() for name in config.field.split(",")] if config.field else None,
        tables=config.tables,
        baseline=config.baseline if config.luck_adjusted else None,
    )


def _outputs(config: Config) -> dict[str, Path]:
    """The files that are wanted, by option; ValueError where one could not be written."""
    wanted = {option: getattr(config, option) for option in WRITERS}
    outputs = {option: path for option, path in wanted.items() if path is not None}
    if len({os.path.realpath(path) for path in outputs.values()}) < len(outputs):
        raise ValueError(f"--{', --'.join(outputs)} must be different files")
    for option, path in outputs.items():
        _check_writable(option, path)
    if "plot" in outputs:
        check_plot(outputs["plot"])
    return outputs


# -------------------------------------------------------------------------------- late positions


def _endgames(config: Config, console: Console, messages: Console) -> Session:
    outputs = _outputs(config)
    for agent in config.agents:
        load_agent(agent, config.players)  # a wrong name is an error before the first decision
    results: list[EndgameResult] = []

    def play() -> None:
        for agent in config.agents:
            check_stopped()
            results.extend(play_endgames(agent, config.players, config.seed))

    def report(stopped: BaseException | None) -> Report | None:
        if not results and isinstance(stopped, Exception):
            return None
        files = {path: partial(write_endgames_json, results) for path in outputs.values()}
        return Report(files, lambda written: print_endgames(results, console))

    return Session(play, report)


# ----------------------------------------------------------------------------------- leaderboard


def _leaderboard(config: Config, console: Console, messages: Console) -> Session:
    ladder = None if config.against is None else read_ladder(config.against)
    files = _leaderboard_files(config)
    started = perf_counter()
    board = Leaderboard(config.agents, config.seed, config.baseline, ladder)
    seconds = 60 * config.budget

    def play() -> None:
        with _bar(messages, TextColumn("{task.description}")) as bar:
            task = bar.add_task("", total=seconds)
            board.run(seconds, lambda used, doing: _follow(bar, task, used, description=doing))

    def report(stopped: BaseException | None) -> Report | None:
        standings = board.standings()
        if not any(players.pairings for players in standings):
            advice = f"; give more minutes than --budget {config.budget:g}" * (stopped is None)
            _tell(
                f"no game was played and nothing written; {perf_counter() - started:.0f} seconds "
                "went into compiling, which the budget does not count, and into the late positions "
                f"of all agents{advice}",
                messages,
                UNWRITTEN,
            )
            return None
        made = Circumstances(
            leaderboard_command(config),
            config.budget,
            config.seed,
            config.baseline,
            complete=stopped is None,
        )
        page, data = (write(standings, made, board.ladder) for write in (as_markdown, as_json))

        def show(written: Sequence[Path]) -> None:
            _print_line(console, page)
            if written:
                _print_line(console, f"written: {' and '.join(map(str, written))}")

        texts = zip(files, (page, data), strict=True)
        writers = {file: partial(write_atomically, data=text.encode()) for file, text in texts}
        return Report(writers, show)

    return Session(play, report)


def _leaderboard_files(config: Config) -> tuple[Path, Path]:
    """The files of the page and the JSON; ValueError for a bad budget or place."""
    if not (config.budget > 0 and math.isfinite(config.budget)):
        raise ValueError(f"--budget must be a number of minutes above 0, not {config.budget}")
    folder = config.out
    if folder is None:
        folder = Path("docs") if Path("docs").is_dir() else Path()
    stem = "leaderboard" if config.against is None else "leaderboard-against"
    files = folder / f"{stem}.md", folder / f"{stem}.json"
    for file in files:
        _check_writable("out", file)
    return files


SESSIONS: Final = {GAMES: _games, ENDGAMES: _endgames, LEADERBOARD: _leaderboard}


# ------------------------------------------------------------------------------------------ both


def _check_writable(option: str, path: Path) -> None:
    """Raise ValueError where a file cannot be written."""
    try:
        check_writable(path)
    except OSError as error:
        raise ValueError(f"--{option} {path} cannot be written: {error.strerror}") from error


def _bar(messages: Console, *columns: ProgressColumn) -> Progress:
    return Progress(
        *columns,
        BarColumn(),
        TimeRemainingColumn(),
        console=messages,
        transient=True,
        disable=not messages.is_terminal,
    )


def _follow(bar: Progress, task: TaskID, completed: float, description: str | None = None) -> None:
    check_stopped()
    bar.update(task, completed=completed, description=description)


def _print_line(console: Console, text: str, style: str | None = None) -> None:
    """Print a text that may hold any file name, in one piece."""
    console.print(text, style=style, markup=False, highlight=False, soft_wrap=True)


def _tell(error: Exception | str, messages: Console, code: int) -> int:
    _print_line(messages, f"error: {error}", "red")
    return code
