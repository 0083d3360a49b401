"""The command line of the arena: `python evaluate.py`, `python -m marrakech_env.arena`."""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import Annotated, Final, Literal

import tyro
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    TextColumn,
    TimeRemainingColumn,
)

from marrakech_env.agent import load_agent
from marrakech_env.arena.endgames import EndgameResult, play_endgames
from marrakech_env.arena.leaderboard import Leaderboard
from marrakech_env.arena.leaderboard_files import (
    as_json,
    as_markdown,
    circumstances,
    read_ladder,
)
from marrakech_env.arena.luck import DEFAULT_BASELINE
from marrakech_env.arena.report import (
    WRITERS,
    check_plot,
    print_endgames,
    print_result,
    write_endgames_json,
)
from marrakech_env.arena.tournament import Tournament
from marrakech_env.files import check_writable, write_atomically
from marrakech_env.spec import check_num_players

File = Annotated[Path | None, tyro.conf.arg(metavar="FILE")]

UNWRITTEN, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit codes besides 0."""
PIPED_WIDTH = 120
"""Characters in a line where the output is no terminal."""


GAMES, ENDGAMES, LEADERBOARD = "games", "--endgames", "--leaderboard"
USES: Final = {
    GAMES: "field players rules games tables luck_adjusted baseline json csv plot",
    ENDGAMES: "players json",
    LEADERBOARD: "baseline budget out against",
}
"""The options that belong to each thing that the command can do; `agents` and `seed` to all."""


@dataclass
class Config:
    """Measures agents against each other and prints how strong they are.

    With two players every two agents meet. With three or four, one agent sits among copies of
    another, for every ordered pair. A deal is played once for every seat rotation, with the same
    dice and rug colours.
    """

    agents: Annotated[tuple[str, ...], tyro.conf.Positional, tyro.conf.arg(metavar="AGENT...")]
    """Who is measured: a name (random, greedy, expectimax, ...), the path of a trained model, a
    file my_agent.py with `act` in it, my_agent.py:NAME or module:NAME. Files and modules are
    run."""
    field: str = ""
    """Opponents, joined by commas. The agents then meet these and not each other."""
    players: int = 2
    """Number of players: 2, 3 or 4."""
    rules: str = "official"
    """A preset (official, boardgamearena, comp1110), also with options: official;money=20."""
    games: int = 2000
    """Games for each pairing, rounded up to whole deals of as many games as players."""
    tables: Literal["copies", "mixed"] = "copies"
    """copies: one agent among copies of its opponent. mixed: all agents at a table differ, in
    every combination, and an agent's result is its mean over all its tables."""
    seed: int = 0
    """Seed of the dice and of the agents: the same command prints the same win shares."""
    luck_adjusted: bool = False
    """Also report win shares and margins without the luck of the dice: the same on average, with
    much smaller intervals."""
    baseline: str = DEFAULT_BASELINE
    """Who judges that luck: any agent with a method `evaluate`."""
    endgames: bool = False
    """Instead of games: how the agents decide in late positions whose true values are known."""
    leaderboard: bool = False
    """All agents that are known by name, and the named ones, with 2, 3 and 4 players: writes
    leaderboard.md and leaderboard.json."""
    budget: float = 60
    """Minutes for the leaderboard: first the late positions of all agents, then games. What is
    compiled before does not count."""
    out: Annotated[Path | None, tyro.conf.arg(metavar="FOLDER")] = None
    """Where to write the leaderboard: docs where that exists, else the current folder."""
    against: File = None
    """An earlier leaderboard.json, whose ratings are held fixed: the named agents are rated
    against its entries, into leaderboard-against.md and .json."""
    json: File = None
    """File to write the result to as JSON."""
    csv: File = None
    """File to write one line for each pairing to."""
    plot: File = None
    """File to draw the win shares to, for example result.png."""


def main(arguments: list[str] | None = None) -> int:
    """Reads the command line, plays, reports.

    Args:
        arguments: The words after the command; those of the process where None.

    Returns:
        The exit code: 0; 1 where a file could not be written in the end, and where no game of the
        leaderboard fitted into the budget; 2 for bad input, and where an agent chose an illegal
        action; 130 after Ctrl-C. What is known when the play stops is reported in any case.

    Raises:
        Exception: Whatever an agent raised, after the report.
    """
    config = tyro.cli(Config, args=arguments)
    messages = Console(stderr=True)
    console = Console()
    if not console.is_terminal:
        console.width = PIPED_WIDTH
    try:
        _check_options(config)
        if config.leaderboard:
            return _leaderboard(config, console, messages)
        outputs = _outputs(config)
        if config.endgames:
            return _endgames(config, console, messages)
        tournament = _tournament(config)
    except ValueError as error:
        return _ending(error, messages)
    stopped = _until_stopped(partial(_run, tournament, messages))
    result = tournament.result()
    if not result.pairings and isinstance(stopped, Exception):
        return _ending(stopped, messages)
    print_result(result, console)
    writers = {path: partial(WRITERS[option], result) for option, path in outputs.items()}
    written = _write(writers, messages)
    return _ending(stopped, messages) or (0 if len(written) == len(outputs) else UNWRITTEN)


def _until_stopped(play: Callable[[], None]) -> Exception | KeyboardInterrupt | None:
    """Plays; what stopped it before its end, if anything did."""
    try:
        play()
    except (Exception, KeyboardInterrupt) as stopped:
        return stopped
    return None


def _ending(stopped: Exception | KeyboardInterrupt | None, messages: Console) -> int:
    """Tells what stopped the command and returns the exit code.

    Raises:
        Exception: An agent's own error, to show where it arose.
    """
    if stopped is None:
        return 0
    if isinstance(stopped, KeyboardInterrupt):
        return INTERRUPTED
    if isinstance(stopped, ValueError) and not hasattr(stopped, "__notes__"):
        return _tell(stopped, messages, BAD_INPUT)
    raise stopped


def _write(writers: Mapping[Path, Callable[[Path], None]], messages: Console) -> list[Path]:
    """Writes files, tells which ones cannot be written, and returns the others."""
    written = []
    for path, write in writers.items():
        try:
            write(path)
            written.append(path)
        except OSError as error:
            _tell(f"{path} was not written: {error.strerror or error}", messages, UNWRITTEN)
    return written


def _check_options(config: Config) -> None:
    """Raises ValueError where an option is given that the command would not look at."""
    if config.endgames and config.leaderboard:
        raise ValueError("--endgames and --leaderboard are two commands; give one of them")
    mode = ENDGAMES if config.endgames else LEADERBOARD if config.leaderboard else GAMES
    usual = Config(())
    for option in vars(config):
        homes = [home for home, options in USES.items() if option in options.split()]
        if homes and mode not in homes and getattr(config, option) != getattr(usual, option):
            advice = f"leave it out with {mode}" if mode != GAMES else f"add {homes[0]}"
            raise ValueError(
                f"--{option.replace('_', '-')} is about {' and '.join(homes)}; {advice}"
            )


def _tournament(config: Config) -> Tournament:
    if not config.agents:
        raise ValueError("no agents given; try: greedy expectimax (--help tells more)")
    check_num_players(config.players)
    if config.baseline != DEFAULT_BASELINE and not config.luck_adjusted:
        raise ValueError("--baseline is about luck; add --luck-adjusted or leave it out")
    if config.games < 1:
        raise ValueError(f"games must be at least 1, not {config.games}")
    return Tournament(
        config.agents,
        config.players,
        config.rules,
        deals=math.ceil(config.games / config.players),
        seed=config.seed,
        field=[name.strip() for name in config.field.split(",")] if config.field else None,
        tables=config.tables,
        baseline=config.baseline if config.luck_adjusted else None,
    )


def _endgames(config: Config, console: Console, messages: Console) -> int:
    """Prints and keeps how the agents play late positions; returns the exit code.

    Raises:
        ValueError: No agent, an unknown one, or an illegal action.
    """
    if not config.agents:
        raise ValueError("no agents given; try: --endgames greedy expectimax")
    for agent in config.agents:
        load_agent(agent, config.players)  # so that a wrong name is told before anybody plays
    results: list[EndgameResult] = []

    def play() -> None:
        for agent in config.agents:
            results.extend(play_endgames(agent, config.players, config.seed))

    stopped = _until_stopped(play)
    if not results and isinstance(stopped, Exception):
        return _ending(stopped, messages)
    print_endgames(results, console)
    outputs = [config.json] if config.json is not None else []
    written = _write({path: partial(write_endgames_json, results) for path in outputs}, messages)
    return _ending(stopped, messages) or (0 if len(written) == len(outputs) else UNWRITTEN)


def _leaderboard_files(config: Config) -> tuple[Path, Path]:
    """Where the page and the JSON of the leaderboard go.

    Raises:
        ValueError: A bad budget, or a place that cannot be written.
    """
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


def _leaderboard(config: Config, console: Console, messages: Console) -> int:
    """Plays, prints and writes the leaderboard; returns the exit code.

    Raises:
        ValueError: Bad input.
    """
    ladder = None if config.against is None else read_ladder(config.against)
    files = _leaderboard_files(config)
    started = perf_counter()
    board = Leaderboard(config.agents, config.seed, config.baseline, ladder)
    seconds = 60 * config.budget

    def play() -> None:
        with _bar(messages, TextColumn("{task.description}")) as bar:
            task = bar.add_task("", total=seconds)
            board.run(
                seconds,
                lambda used, doing: bar.update(task, completed=used, description=doing),
            )

    stopped = _until_stopped(play)
    standings = board.standings()
    if not any(players.pairings for players in standings):
        advice = f"; give more minutes than --budget {config.budget:g}" if stopped is None else ""
        _tell(
            f"no game was played and nothing written; {perf_counter() - started:.0f} seconds went "
            "into compiling, which the budget does not count, and into the late positions of all "
            f"agents{advice}",
            messages,
            UNWRITTEN,
        )
        return _ending(stopped, messages) or UNWRITTEN
    made = circumstances(
        _command(config), config.budget, config.seed, config.baseline, complete=stopped is None
    )
    page, data = (write(standings, made, board.ladder) for write in (as_markdown, as_json))
    console.print(page, markup=False, highlight=False, soft_wrap=True)
    texts = dict(zip(files, (page, data), strict=True))
    written = _write(
        {file: partial(write_atomically, data=text.encode()) for file, text in texts.items()},
        messages,
    )
    if written:
        told = f"written: {' and '.join(map(str, written))}"
        console.print(told, markup=False, highlight=False, soft_wrap=True)
    return _ending(stopped, messages) or (0 if len(written) == len(files) else UNWRITTEN)


def _command(config: Config) -> str:
    """The command that makes the same leaderboard."""
    words = ["python", "evaluate.py", *config.agents, "--leaderboard"]
    usual = Config(())
    for option in ("budget", "against", "baseline", "seed"):
        if (value := getattr(config, option)) != getattr(usual, option) or option == "budget":
            words += [f"--{option}", f"{value:g}" if option == "budget" else str(value)]
    return shlex.join(words)


def _run(tournament: Tournament, messages: Console) -> None:
    """Plays under a progress bar."""
    with _bar(messages, TextColumn("games"), MofNCompleteColumn()) as bar:
        task = bar.add_task("games", total=tournament.num_games)
        tournament.run(lambda played, _: bar.update(task, completed=played))


def _bar(messages: Console, *columns: ProgressColumn) -> Progress:
    return Progress(
        *columns,
        BarColumn(),
        TimeRemainingColumn(),
        console=messages,
        transient=True,
        disable=not messages.is_terminal,
    )


def _outputs(config: Config) -> dict[str, Path]:
    """The files that are wanted, by option.

    Raises:
        ValueError: One that could not be written, found before anything is played.
    """
    wanted = {option: getattr(config, option) for option in WRITERS}
    outputs = {option: path for option, path in wanted.items() if path is not None}
    if len({os.path.realpath(path) for path in outputs.values()}) < len(outputs):
        raise ValueError(f"--{', --'.join(outputs)} must be different files")
    for option, path in outputs.items():
        _check_writable(option, path)
    if "plot" in outputs:
        check_plot(outputs["plot"])
    return outputs


def _check_writable(option: str, path: Path) -> None:
    """Raises ValueError where a file could not be written."""
    try:
        check_writable(path)
    except OSError as error:
        raise ValueError(f"--{option} {path} cannot be written: {error.strerror}") from error


def _tell(error: Exception | str, messages: Console, code: int) -> int:
    messages.print(f"error: {error}", style="red", markup=False, highlight=False, soft_wrap=True)
    return code
