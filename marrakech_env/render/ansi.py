"""The state as text for a terminal: box-drawing characters, colours on request."""

from __future__ import annotations

from typing import Final

from marrakech_env import rules
from marrakech_env.render.facts import Seat, seats, standing, status
from marrakech_env.spec import BOARD_SIZE
from marrakech_env.state import Record, State, as_states, one_state, rule_set_of

_LEFT, _TOP = 5, 2  # column and line of the board's north-west corner
_WIDE, _HIGH = 6, 2  # from one grid line to the next
_RIGHT, _BOTTOM = _LEFT + _WIDE * BOARD_SIZE, _TOP + _HIGH * BOARD_SIZE
_TABLE: Final = _RIGHT + 6  # column where the table of the players starts

_ARROWS: Final = "▲▶▼◀"
# Which of the lines up (1), right (2), down (4) and left (8) meet at a corner of the grid.
_CORNERS: Final = " ╵╶└╷│┌├╴┘─┴┐┤┬┼"

_BACKGROUNDS: Final = (166, 214, 25, 80)  # of the 256 terminal colours, one for each rug colour
_FOREGROUNDS: Final = (231, 16, 231, 16)
_RESET: Final = "\x1b[0m"


def render_ansi(state: State, colour: bool = False) -> str:
    """Draw a state as lines of text, without a line break at the end.

    The wall between the two visible halves of one rug is left out; the curves outside show which
    exits the edge track joins; the arrow is Assam. Rugs show the digit of their colour.

    Args:
        state: One state.
        colour: Whether to add escape sequences that colour the rugs (256 colours).

    Raises:
        ValueError: Not one state.
    """
    state = one_state(state)
    canvas = [[" "] * (_RIGHT + 3) for _ in range(_BOTTOM + 2)]
    paint: dict[tuple[int, int], int] = {}
    _draw_track(canvas)
    _draw_grid(canvas, state)
    _draw_rugs(canvas, paint, state)
    _draw_assam(canvas, state)
    lines = []
    for number, (row, words) in enumerate(zip(canvas, _table(state, len(canvas)), strict=True)):
        text = _coloured(row, number, paint) if colour else "".join(row)
        lines.append((text + " " * (_TABLE - len(row)) + words).rstrip())
    return "\n".join(lines)


def _column(x: int) -> int:
    return _LEFT + _WIDE * x + _WIDE // 2


def _line(y: int) -> int:
    return _TOP + _HIGH * y + 1


def _write(canvas: list[list[str]], line: int, column: int, text: str) -> None:
    canvas[line][column : column + len(text)] = text


def _draw_track(canvas: list[list[str]]) -> None:
    """The numbers of columns and rows, and the edge track outside of them (rule 5)."""
    last, width = BOARD_SIZE - 1, _WIDE - 1
    for i in range(BOARD_SIZE):
        _write(canvas, 1, _column(i), str(i))
        _write(canvas, _line(i), _LEFT - 2, str(i))
    for i in range(0, last, 2):
        _write(canvas, 0, _column(i), f"╭{'─' * width}╮")
        _write(canvas, _BOTTOM + 1, _column(i + 1), f"╰{'─' * width}╯")
        for column, first, y in ((1, "╭│╰", i), (_RIGHT + 2, "╮│╯", i + 1)):
            for below, mark in enumerate(first):
                _write(canvas, _line(y) + below, column, mark)
    _write(canvas, 0, _column(last), f"╭{'─' * (_RIGHT + 1 - _column(last))}╮")
    for line in range(1, _line(0)):
        _write(canvas, line, _RIGHT + 2, "│")
    _write(canvas, _line(0), _RIGHT + 2, "╯")
    _write(canvas, _line(last), 1, "╭")
    _write(canvas, _BOTTOM, 1, "│")
    _write(canvas, _BOTTOM + 1, 1, f"╰{'─' * (_column(0) - 2)}╯")


def _draw_grid(canvas: list[list[str]], state: Record) -> None:
    """All walls between squares, but for those inside whole rugs."""
    east, south = int(state["links_east"]), int(state["links_south"])

    def wall_down(i: int, y: int) -> bool:
        """Whether the wall west of square (i, y) stands."""
        if y not in range(BOARD_SIZE):
            return False
        return i in (0, BOARD_SIZE) or not east >> (BOARD_SIZE * y + i - 1) & 1

    def wall_right(x: int, j: int) -> bool:
        """Whether the wall north of square (x, j) stands."""
        if x not in range(BOARD_SIZE):
            return False
        return j in (0, BOARD_SIZE) or not south >> (BOARD_SIZE * (j - 1) + x) & 1

    for j in range(BOARD_SIZE + 1):
        for i in range(BOARD_SIZE + 1):
            line, column = _TOP + _HIGH * j, _LEFT + _WIDE * i
            corner = wall_down(i, j - 1) + 2 * wall_right(i, j)
            corner += 4 * wall_down(i, j) + 8 * wall_right(i - 1, j)
            canvas[line][column] = _CORNERS[corner]
            if wall_right(i, j):
                _write(canvas, line, column + 1, "─" * (_WIDE - 1))
            if wall_down(i, j):
                canvas[line + 1][column] = "│"


def _draw_rugs(canvas: list[list[str]], paint: dict[tuple[int, int], int], state: Record) -> None:
    """The digits of the colours, and in `paint` the colour of every character of a rug."""
    east, south = int(state["links_east"]), int(state["links_south"])
    for cell, colour in enumerate(rules.colours(as_states(state))[0].tolist()):
        if colour < 0:
            continue
        y, x = divmod(cell, BOARD_SIZE)
        canvas[_line(y)][_column(x)] = str(colour)
        wide, high = _WIDE - 1 + (east >> cell & 1), 1 + (south >> cell & 1)
        for line in range(_line(y), _line(y) + high):
            for column in range(_LEFT + _WIDE * x + 1, _LEFT + _WIDE * x + 1 + wide):
                paint[line, column] = colour


def _draw_assam(canvas: list[list[str]], state: Record) -> None:
    """The arrow, in the middle of an empty square, else between brackets beside the digit."""
    y, x = divmod(int(state["assam"]), BOARD_SIZE)
    line, column = _line(y), _column(x)
    arrow = _ARROWS[state["facing"]]
    if canvas[line][column] == " ":
        _write(canvas, line, column - 1, f"({arrow})")
    else:
        _write(canvas, line, column - 2, f"{canvas[line][column]}({arrow})")


def _coloured(row: list[str], line: int, paint: dict[tuple[int, int], int]) -> str:
    parts, before = [], -1
    for column, character in enumerate(row):
        colour = paint.get((line, column), -1)
        if colour != before:
            parts.append(_RESET if before >= 0 else "")
            if colour >= 0:
                parts.append(f"\x1b[38;5;{_FOREGROUNDS[colour]};48;5;{_BACKGROUNDS[colour]}m")
            before = colour
        parts.append(character)
    return "".join(parts) + (_RESET if before >= 0 else "")


def _table(state: Record, height: int) -> list[str]:
    """The words beside the board, one string a line of it."""
    lines = ["", "", status(state), f"Rules: {rule_set_of(state)}", ""]
    for seat in seats(state):
        lines += _seat_lines(seat)
    return lines + [""] * (height - len(lines))


def _seat_lines(seat: Seat) -> list[str]:
    marker = "▶" if seat.to_move else " "
    if seat.eliminated:
        return [f"{marker} Player {seat.player}  {standing(seat)}", ""]
    sums = f"{seat.money} dirhams + {seat.squares} squares = {seat.score}"
    piles = ", ".join(
        f"{pile.left} of colour {pile.colour}{' (next)' if pile.is_next else ''}"
        for pile in seat.piles
    )
    return [
        f"{marker} Player {seat.player}  {sums}  {standing(seat)}",
        f"  {' ' * len(f'Player {seat.player}')}  rugs: {piles}",
    ]
