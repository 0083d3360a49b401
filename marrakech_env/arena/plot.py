"""The win shares of a tournament as a picture, drawn by Matplotlib without a display."""

from __future__ import annotations

import io
import math
from pathlib import Path
from typing import Final

from marrakech_env.arena.report import readable
from marrakech_env.arena.result import Pairing, Result
from marrakech_env.files import write_atomically

_COLOURS: Final = {"better": "#7fbf7b", "worse": "#e08e79", "open": "#c4c4c4"}


def check_plot(path: Path) -> None:
    """Raise ValueError where `write_plot` has no kind of picture for a suffix, or no Matplotlib."""
    try:
        from matplotlib.backend_bases import FigureCanvasBase
    except ImportError as error:
        raise ValueError("pictures need Matplotlib: pip install 'marrakech-env[arena]'") from error
    known = FigureCanvasBase.get_supported_filetypes()
    if path.suffix.removeprefix(".") not in known:
        raise ValueError(f"{path} has no suffix of a picture; known: {', '.join(sorted(known))}")


def write_plot(result: Result, path: Path) -> None:
    """Draw the win shares as bars, with their intervals and a line at even play.

    The suffix of the path sets the kind of picture.
    """
    from matplotlib.figure import Figure

    rows = result.pairings
    figure = Figure(figsize=(7.5, 1.3 + 0.38 * max(len(rows), 1)), layout="constrained")
    axes = figure.add_subplot()
    for row, pairing in enumerate(rows):
        share = pairing.win_share
        axes.barh(row, 100 * share.value, height=0.62, color=_COLOURS[result.verdict(share)])
        if not math.isnan(share.low):
            axes.plot([100 * share.low, 100 * share.high], [row, row], color="black", linewidth=1.6)
    axes.axvline(100 * result.even, color="black", linestyle="--", linewidth=1)
    labels = [_label(pairing, result) for pairing in rows]
    axes.set_yticks(range(len(rows)), labels, parse_math=False)
    axes.invert_yaxis()
    axes.set_xlim(0, 100)
    axes.set_xlabel("win share in %, 95 % interval; dashed: even play")
    axes.set_title(result.title, fontsize="medium")
    axes.spines[["top", "right"]].set_visible(False)
    picture = io.BytesIO()
    figure.savefig(picture, format=path.suffix.removeprefix("."), dpi=150)
    write_atomically(path, picture.getvalue())


def _label(pairing: Pairing, result: Result) -> str:
    if pairing.opponent == "mixed":
        label = f"{pairing.agent} at mixed tables"
    else:
        copies = "" if result.num_players == 2 else f"{result.num_players - 1} x "
        label = f"{pairing.agent} against {copies}{pairing.opponent}"
    return readable(label)
