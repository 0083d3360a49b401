"""What a tournament gave, as a table in the terminal, as JSON, as CSV and as a picture.

Rich and Matplotlib are imported where they are used: JSON and CSV need neither.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, astuple
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from marrakech_env.arena.endgames import EndgameResult
from marrakech_env.arena.interval import Estimate
from marrakech_env.arena.result import LuckAdjusted, Pairing, Result
from marrakech_env.files import write_atomically

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

CSV_FIELDS: Final = (
    "agent",
    "opponent",
    "num_players",
    "rules",
    "seed",
    "deals",
    "games",
    "even",
    "win_share",
    "win_share_low",
    "win_share_high",
    "margin",
    "margin_low",
    "margin_high",
    "adjusted_win_share",
    "adjusted_win_share_low",
    "adjusted_win_share_high",
    "adjusted_margin",
    "adjusted_margin_low",
    "adjusted_margin_high",
    "variance_ratio",
    "margin_variance_ratio",
)
"""Columns of the CSV file; those about luck are empty where it was not measured."""


def as_dict(result: Result) -> dict[str, Any]:
    """The result as what JSON can hold: shares 0..1, dirhams, points, milliseconds.

    An estimate has `value`, `low` and `high`; numbers that cannot be known are None, as the ends
    that one deal does not give. `luck_adjusted` is None where luck was not measured.
    """
    return {
        "num_players": result.num_players,
        "rules": result.rules,
        "seed": result.seed,
        "tables": result.tables,
        "baseline": result.baseline,
        "complete": result.complete,
        "even": result.even,
        "pairings": [pairing_as_dict(pairing) for pairing in result.pairings],
        "agents": [
            {
                "name": agent.name,
                "rating": None if agent.rating is None else estimate_as_dict(agent.rating),
                "decisions": agent.decisions,
                "ms_per_decision": agent.ms_per_decision,
            }
            for agent in result.agents
        ],
    }


def pairing_as_dict(pairing: Pairing) -> dict[str, Any]:
    """One pairing of `as_dict`."""
    return {
        "agent": pairing.agent,
        "opponent": pairing.opponent,
        "deals": pairing.deals,
        "games": pairing.games,
        "win_share": estimate_as_dict(pairing.win_share),
        "margin": estimate_as_dict(pairing.margin),
        "luck_adjusted": _adjusted_as_dict(pairing.luck_adjusted),
    }


def write_json(result: Result, path: Path) -> None:
    """Writes everything as JSON (see `as_dict`)."""
    write_atomically(path, (json.dumps(as_dict(result), indent=2) + "\n").encode())


def write_csv(result: Result, path: Path) -> None:
    """Writes one line for each pairing, with the columns `CSV_FIELDS`."""
    table = io.StringIO(newline="")
    writer = csv.writer(table)
    writer.writerow(CSV_FIELDS)
    for pairing in result.pairings:
        writer.writerow(
            (
                pairing.agent,
                pairing.opponent,
                result.num_players,
                result.rules,
                result.seed,
                pairing.deals,
                pairing.games,
                result.even,
                *estimate_as_dict(pairing.win_share).values(),
                *estimate_as_dict(pairing.margin).values(),
                *_adjusted_cells(pairing.luck_adjusted),
            )
        )
    write_atomically(path, table.getvalue().encode())


def write_plot(result: Result, path: Path) -> None:
    """Draws the win shares as bars with their intervals and a line where even play stands.

    Without a display; the kind of picture goes by the suffix of the path.
    """
    from matplotlib.figure import Figure

    rows = result.pairings
    figure = Figure(figsize=(7.5, 1.3 + 0.38 * max(len(rows), 1)), layout="constrained")
    axes = figure.add_subplot()
    for row, pairing in enumerate(rows):
        share = pairing.win_share
        axes.barh(row, 100 * share.value, height=0.62, color=_COLOURS[_verdict(share, result)])
        if not math.isnan(share.low):
            axes.plot([100 * share.low, 100 * share.high], [row, row], color="black", linewidth=1.6)
    axes.axvline(100 * result.even, color="black", linestyle="--", linewidth=1)
    axes.set_yticks(range(len(rows)), [_label(pairing, result) for pairing in rows])
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("win share in %, 95 % interval; dashed: even play")
    axes.set_title(_title(result), fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix.removeprefix("."), dpi=150)
    write_atomically(path, picture.getvalue())


def check_plot(path: Path) -> None:
    """Raises ValueError where `write_plot` knows no picture of this suffix, or lacks Matplotlib."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise ValueError("pictures need Matplotlib: pip install 'marrakech-env[arena]'") from error
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.removeprefix(".") not in known:
        raise ValueError(f"{path} has no suffix of a picture; known: {', '.join(sorted(known))}")


WRITERS: Final[dict[str, Callable[[Result, Path], None]]] = {
    "json": write_json,
    "csv": write_csv,
    "plot": write_plot,
}
"""What writes each kind of file, by the name of its option on the command line."""


def print_result(result: Result, console: Console) -> None:
    """Prints the table of pairings and the table of agents."""
    console.print(_title(result), highlight=False, markup=False)
    if not result.pairings:
        console.print("No deal was played to the end.", highlight=False)
        return
    console.print(_pairing_table(result))
    if result.baseline is not None:
        console.print(_luck_table(result))
    console.print(_agent_table(result))


def print_endgames(results: Sequence[EndgameResult], console: Console) -> None:
    """Prints how agents play late positions, the regrets in percentage points."""
    from rich.markup import escape

    table = _new_table()
    table.add_column("agent", overflow="fold")
    titles = ("players", "turns\nleft", "positions", "regret\npoints", "95 %", "optimal\n%")
    for title in titles:
        table.add_column(title, justify="right", no_wrap=True)
    for result in results:
        regret = Estimate(*(100 * number for number in astuple(result.regret)))
        table.add_row(
            escape(result.agent),
            str(result.num_players),
            str(result.turns),
            str(result.positions),
            f"{regret.value:.2f}",
            _range(regret, ".2f"),
            f"{100 * result.optimal.value:.1f}",
        )
    console.print(table)


def write_endgames_json(results: Sequence[EndgameResult], path: Path) -> None:
    """Writes the results as a JSON list, regrets as shares of the win."""
    rows = [
        asdict(result)
        | {"regret": estimate_as_dict(result.regret), "optimal": estimate_as_dict(result.optimal)}
        for result in results
    ]
    write_atomically(path, (json.dumps(rows, indent=2) + "\n").encode())


def _new_table() -> Table:
    """A table that leaves as much of 80 characters as it can to the names."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), caption_justify="left")


def _pairing_table(result: Result) -> Table:
    table = _table_of_pairings(result, "games")
    table.caption = f"even play: {100 * result.even:.1f} %\n"
    for pairing in result.pairings:
        _add_pairing(table, pairing, pairing.win_share, pairing.margin, result, str(pairing.games))
    return table


def _luck_table(result: Result) -> Table:
    table = _table_of_pairings(result, "x less\nvariance")
    table.caption = (
        f"the same without the luck of the dice, as {result.baseline} sees it; x less variance: "
        "of the win share, of the margin\n"
    )
    for pairing in result.pairings:
        fair = pairing.luck_adjusted
        if fair is not None:
            ratios = (fair.variance_ratio, fair.margin_variance_ratio)
            told = ", ".join("-" if math.isnan(ratio) else f"{ratio:.1f}" for ratio in ratios)
            _add_pairing(table, pairing, fair.win_share, fair.margin, result, told)
    return table


def _table_of_pairings(result: Result, last: str) -> Table:
    table = _new_table()
    table.add_column("agent", overflow="fold")
    table.add_column("against" + " (copies of)" * (result.num_players > 2), overflow="fold")
    for title in ("win\nshare %", "95 %", "margin", "95 %", last):
        table.add_column(title, justify="right", no_wrap=True)
    return table


def _add_pairing(
    table: Table, pairing: Pairing, share: Estimate, margin: Estimate, result: Result, last: str
) -> None:
    from rich.markup import escape

    percent = Estimate(*(100 * number for number in astuple(share)))
    table.add_row(
        escape(pairing.agent),
        escape(pairing.opponent),
        f"[{_STYLES[_verdict(share, result)]}]{percent.value:.1f}[/]",
        _range(percent, ".1f"),
        f"{margin.value:+.1f}",
        _range(margin, "+.1f"),
        last,
    )


def _agent_table(result: Result) -> Table:
    from rich.markup import escape

    rated = any(agent.rating is not None for agent in result.agents)
    table = _new_table()
    table.add_column("agent", overflow="fold")
    for title in (("rating", "95 %") if rated else ()) + ("ms/decision", "decisions"):
        table.add_column(title, justify="right", no_wrap=True)
    agents = result.agents
    if rated:
        agents = sorted(agents, key=lambda agent: -agent.rating.value if agent.rating else 0.0)
    for agent in agents:
        cells = [escape(agent.name)]
        if agent.rating is not None:
            cells += [f"{agent.rating.value:+.0f}", _range(agent.rating, "+.0f")]
        cells.append("-" if agent.ms_per_decision is None else f"{agent.ms_per_decision:.3g}")
        table.add_row(*cells, str(agent.decisions))
    return table


_STYLES: Final = {"better": "green", "worse": "red", "open": "default"}
_COLOURS: Final = {"better": "#7fbf7b", "worse": "#e08e79", "open": "#c4c4c4"}


def _verdict(share: Estimate, result: Result) -> str:
    """Whether the interval lies above or below even play."""
    if share.low > result.even:
        return "better"
    return "worse" if share.high < result.even else "open"


def _title(result: Result) -> str:
    stopped = "" if result.complete else ", stopped early"
    return f"{result.num_players} players, rules {result.rules}, seed {result.seed}{stopped}"


def _label(pairing: Pairing, result: Result) -> str:
    if pairing.opponent == "mixed":
        return f"{pairing.agent} at mixed tables"
    copies = "" if result.num_players == 2 else f"{result.num_players - 1} x "
    return f"{pairing.agent} against {copies}{pairing.opponent}"


def _range(estimate: Estimate, form: str) -> str:
    if math.isnan(estimate.low):
        return "-"
    return f"{estimate.low:{form}} to {estimate.high:{form}}"


def estimate_as_dict(estimate: Estimate) -> dict[str, float | None]:
    """An estimate as JSON can hold it, with None for what is not known."""
    return {name: _known(number) for name, number in asdict(estimate).items()}


def _known(number: float) -> float | None:
    return None if math.isnan(number) else number


def _adjusted_as_dict(fair: LuckAdjusted | None) -> dict[str, Any] | None:
    if fair is None:
        return None
    return {
        "win_share": estimate_as_dict(fair.win_share),
        "margin": estimate_as_dict(fair.margin),
        "variance_ratio": _known(fair.variance_ratio),
        "margin_variance_ratio": _known(fair.margin_variance_ratio),
    }


def _adjusted_cells(fair: LuckAdjusted | None) -> list[float | None]:
    if fair is None:
        return [None] * 8
    ratios = [_known(fair.variance_ratio), _known(fair.margin_variance_ratio)]
    return [
        *estimate_as_dict(fair.win_share).values(),
        *estimate_as_dict(fair.margin).values(),
        *ratios,
    ]
