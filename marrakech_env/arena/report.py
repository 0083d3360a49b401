"""The results of a tournament and of late positions as JSON, as CSV and as tables in the terminal.

Rich is imported where it is used: JSON and CSV do not need it.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import astuple, fields, is_dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from marrakech_env.arena.endgames import EndgameResult
from marrakech_env.arena.interval import Estimate
from marrakech_env.arena.result import Pairing, Result
from marrakech_env.files import write_atomically

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

ESTIMATES: Final = ("win_share", "margin", "adjusted_win_share", "adjusted_margin")
CSV_FIELDS: Final = (
    *("agent", "opponent", "num_players", "rules", "seed", "deals", "games", "even"),
    *(name + end for name in ESTIMATES for end in ("", "_low", "_high")),
    *("variance_ratio", "margin_variance_ratio"),
)
"""Columns of the CSV file. Those about luck are empty without a baseline."""


# ----------------------------------------------------------------------------------------- files


def json_values(value: Any) -> Any:
    """Return a value as JSON can hold it.

    A dataclass becomes an object without its fields with `repr=False`, which are the arrays by
    deal. NaN becomes None. Texts become `readable`.
    """
    if is_dataclass(value):
        return {f.name: json_values(getattr(value, f.name)) for f in fields(value) if f.repr}
    if isinstance(value, Mapping):
        return {readable(str(key)): json_values(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [json_values(part) for part in value]
    if isinstance(value, str):
        return readable(value)
    return None if isinstance(value, float) and math.isnan(value) else value


def readable(text: str) -> str:
    """Return a text with an escape for each byte of a file name that is not UTF-8."""
    return text.encode("utf-8", "backslashreplace").decode()


def as_dict(result: Result) -> dict[str, Any]:
    """Return the result as JSON can hold it: shares 0..1, dirhams, points, milliseconds.

    An estimate has `value`, `low` and `high`. A number that is not known is None, such as the ends
    of an interval after a single deal. `luck_adjusted` is None without a baseline.
    """
    return {**json_values(result), "even": result.even}


def as_text(data: Any) -> str:
    """Return JSON as text; see `json_values`."""
    return json.dumps(json_values(data), indent=2) + "\n"


def write_json(result: Result, path: Path) -> None:
    """Write a result as JSON; see `as_dict`."""
    write_atomically(path, as_text(as_dict(result)).encode())


def write_endgames_json(results: Sequence[EndgameResult], path: Path) -> None:
    """Write results in late positions as a JSON list, with regrets as shares of the win."""
    write_atomically(path, as_text(results).encode())


def write_csv(result: Result, path: Path) -> None:
    """Write a line for each pairing, with the columns `CSV_FIELDS`."""
    table = io.StringIO(newline="")
    writer = csv.DictWriter(table, CSV_FIELDS)
    writer.writeheader()
    same = {name: getattr(result, name) for name in ("num_players", "rules", "seed", "even")}
    for pairing in result.pairings:
        writer.writerow(same | _csv_cells(pairing))
    write_atomically(path, table.getvalue().encode())


def _csv_cells(pairing: Pairing) -> dict[str, Any]:
    cells = json_values(pairing)
    fair = cells.pop("luck_adjusted") or {}
    cells |= {name if "ratio" in name else f"adjusted_{name}": part for name, part in fair.items()}
    for name in ESTIMATES:
        estimate = cells.pop(name, None) or {}
        for end, number in estimate.items():
            cells[name if end == "value" else f"{name}_{end}"] = number
    return dict(cells)


# ---------------------------------------------------------------------------------------- tables


def print_result(result: Result, console: Console) -> None:
    """Print the table of pairings and the table of agents."""
    console.print(result.title, highlight=False, markup=False)
    if not result.pairings:
        console.print("No deal was played to the end.", highlight=False)
        return
    console.print(_pairing_table(result))
    if result.baseline is not None:
        console.print(_luck_table(result))
    console.print(_agent_table(result))


def print_endgames(results: Sequence[EndgameResult], console: Console) -> None:
    """Print how agents play late positions, with regrets in percentage points."""
    titles = ("players", "turns\nleft", "positions", "regret\npoints", "95 %", "optimal\n%")
    table = _new_table(("agent",), titles)
    for result in results:
        regret = _percent(result.regret)
        table.add_row(
            _escaped(result.agent),
            str(result.num_players),
            str(result.turns),
            str(result.positions),
            f"{regret.value:.2f}",
            _range(regret, ".2f"),
            f"{100 * result.optimal.value:.1f}",
        )
    console.print(table)


def _new_table(names: Sequence[str], titles: Sequence[str]) -> Table:
    """A table that leaves as much of 80 characters as it can to the columns of names."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    table = Table(box=SIMPLE_HEAD, show_edge=False, padding=(0, 1, 0, 0), caption_justify="left")
    for name in names:
        table.add_column(name, overflow="fold")
    for heading in titles:
        table.add_column(heading, justify="right", no_wrap=True)
    return table


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
    names = ("agent", "against" + " (copies of)" * (result.num_players > 2))
    return _new_table(names, ("win\nshare %", "95 %", "margin", "95 %", last))


def _add_pairing(
    table: Table, pairing: Pairing, share: Estimate, margin: Estimate, result: Result, last: str
) -> None:
    percent = _percent(share)
    table.add_row(
        _escaped(pairing.agent),
        _escaped(pairing.opponent),
        f"[{_STYLES[result.verdict(share)]}]{percent.value:.1f}[/]",
        _range(percent, ".1f"),
        f"{margin.value:+.1f}",
        _range(margin, "+.1f"),
        last,
    )


def _agent_table(result: Result) -> Table:
    rated = any(agent.rating is not None for agent in result.agents)
    titles = (("rating", "95 %") if rated else ()) + ("ms/decision", "decisions")
    table = _new_table(("agent",), titles)
    agents = result.agents
    if rated:
        agents = sorted(agents, key=lambda agent: -agent.rating.value if agent.rating else 0.0)
    for agent in agents:
        cells = [_escaped(agent.name)]
        if agent.rating is not None:
            cells += [f"{agent.rating.value:+.0f}", _range(agent.rating, "+.0f")]
        cells.append("-" if agent.ms_per_decision is None else f"{agent.ms_per_decision:.3g}")
        table.add_row(*cells, str(agent.decisions))
    return table


_STYLES: Final = {"better": "green", "worse": "red", "open": "default"}


def _percent(share: Estimate) -> Estimate:
    return Estimate(*(100 * number for number in astuple(share)))


def _range(estimate: Estimate, form: str) -> str:
    if math.isnan(estimate.low):
        return "-"
    return f"{estimate.low:{form}} to {estimate.high:{form}}"


def _escaped(name: str) -> str:
    """A name in which square brackets are no markup."""
    from rich.markup import escape

    return escape(name)
