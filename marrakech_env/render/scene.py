"""A state as a list of shapes, from back to front: what the SVG and the RGB array both draw."""

from __future__ import annotations

from collections.abc import Iterator

from marrakech_env import rules
from marrakech_env.actions import square_name
from marrakech_env.render import layout
from marrakech_env.render.facts import RugPile, Seat, seats, standing, status
from marrakech_env.render.layout import (
    BOARD_LEFT,
    BOARD_SPAN,
    BOARD_TOP,
    CELL,
    Circle,
    Point,
    Polygon,
    Polyline,
    Rect,
    Shape,
    Text,
)
from marrakech_env.spec import BOARD_SIZE, NUM_CELLS
from marrakech_env.state import Record, State, as_states, one_state, rule_set_of


def scene(state: State) -> list[Shape]:
    """All shapes of the picture of a state, from back to front.

    Raises:
        ValueError: Not one state.
    """
    state = one_state(state)
    shapes: list[Shape] = [Rect(0, 0, layout.WIDTH, layout.HEIGHT, layout.PAPER)]
    shapes += _board()
    shapes += _rugs(state)
    shapes += _assam(layout.cell_centre(int(state["assam"])), int(state["facing"]))
    shapes += _panel(state)
    return shapes


def _board() -> Iterator[Shape]:
    """Frame, edge track (rule 5) and the empty squares with their names."""
    frame, span = layout.FRAME, BOARD_SPAN
    right, bottom = BOARD_LEFT + span, BOARD_TOP + span
    yield Rect(
        BOARD_LEFT - frame,
        BOARD_TOP - frame,
        span + 2 * frame,
        span + 2 * frame,
        layout.FRAME_FILL,
        layout.FRAME_EDGE,
        3,
        16,
    )
    loops = []
    for i in range(0, BOARD_SIZE - 1, 2):  # a loop is centred on the grid line between two exits
        loops.append(layout.arc((BOARD_LEFT + CELL * (i + 1), BOARD_TOP), CELL / 2, 180, 360))
        loops.append(layout.arc((BOARD_LEFT, BOARD_TOP + CELL * (i + 1)), CELL / 2, 90, 270))
        loops.append(layout.arc((BOARD_LEFT + CELL * (i + 2), bottom), CELL / 2, 0, 180))
        loops.append(layout.arc((right, BOARD_TOP + CELL * (i + 2)), CELL / 2, -90, 90))
    loops.append(layout.arc((right, BOARD_TOP), CELL / 2, -180, 90))
    loops.append(layout.arc((BOARD_LEFT, bottom), CELL / 2, 0, 270))
    for loop in loops:
        yield Polyline(loop, layout.TRACK, 5)
        yield Polyline(loop, layout.FRAME_FILL, 1.4)
    yield Rect(BOARD_LEFT, BOARD_TOP, span, span, layout.SAND, layout.FRAME_EDGE, 3)
    for i in range(1, BOARD_SIZE):
        along: float = CELL * i
        yield Polyline(
            ((BOARD_LEFT + along, BOARD_TOP + 1), (BOARD_LEFT + along, bottom - 1)),
            layout.SAND_LINE,
            1.5,
        )
        yield Polyline(
            ((BOARD_LEFT + 1, BOARD_TOP + along), (right - 1, BOARD_TOP + along)),
            layout.SAND_LINE,
            1.5,
        )
    for i in range(BOARD_SIZE):  # x and y again outside, for when rugs hide the names of squares
        along = CELL * (i + 0.5)
        outside = frame - 9
        yield Text(
            (BOARD_LEFT + along, BOARD_TOP - outside + 5), str(i), 13, layout.TRACK, "middle"
        )
        yield Text(
            (BOARD_LEFT - outside, BOARD_TOP + along + 5), str(i), 13, layout.TRACK, "middle"
        )
    for cell in range(NUM_CELLS):
        x, y = layout.cell_centre(cell)
        yield Text((x, y + 5), square_name(cell), 14, layout.SAND_INK, "middle")


def _rugs(state: Record) -> Iterator[Shape]:
    """Whole rugs over two squares, and the visible halves of those partly covered."""
    east, south = int(state["links_east"]), int(state["links_south"])
    second_halves = east << 1 | south << BOARD_SIZE
    for cell, colour in enumerate(rules.colours(as_states(state))[0].tolist()):
        if colour < 0 or second_halves >> cell & 1:
            continue
        x, y = layout.cell_centre(cell)
        corner = (x - CELL / 2, y - CELL / 2)
        if east >> cell & 1:
            yield from _rug(colour, corner, CELL, 2, 1)
        elif south >> cell & 1:
            yield from _rug(colour, corner, CELL, 1, 2)
        else:
            yield from _rug(colour, corner, CELL, 1, 1)


def _rug(colour: int, corner: Point, cell: float, across: int, down: int) -> Iterator[Shape]:
    """A rug of 1 or 2 squares of a size, its square corner in the north-west.

    A whole rug has fringes at both short ends and one border around both of its squares.
    """
    palette, unit = layout.RUGS[colour], cell / 72
    gap = 5 * unit
    left, top = corner[0] + gap, corner[1] + gap
    width, height = cell * across - 2 * gap, cell * down - 2 * gap
    if across + down > 2:
        count = 13
        for i in range(count):
            if across == 2:
                y = top + height * (i + 0.5) / count
                ends = ((left - 3.5 * unit, y), (left + width + 3.5 * unit, y))
            else:
                x = left + width * (i + 0.5) / count
                ends = ((x, top - 3.5 * unit), (x, top + height + 3.5 * unit))
            yield Polyline(ends, palette.outline, 1.6 * unit)
    yield Rect(left, top, width, height, palette.ground, palette.outline, 2 * unit, 3 * unit)
    if across + down > 2:
        inner = 5.5 * unit
        yield Rect(
            left + inner,
            top + inner,
            width - 2 * inner,
            height - 2 * inner,
            "",
            palette.pattern,
            1.8 * unit,
            2 * unit,
        )
    for i in range(across):
        for j in range(down):
            centre = (corner[0] + cell * (i + 0.5), corner[1] + cell * (j + 0.5))
            yield from _MOTIFS[colour](centre, unit, palette)
    if across + down > 2:  # a small lozenge on the seam shows that the two halves belong together
        seam = (corner[0] + cell * across / 2, corner[1] + cell * down / 2)
        yield Polygon(_lozenge(seam, 6 * unit), palette.pattern)


def _lozenge(centre: Point, radius: float) -> tuple[Point, ...]:
    x, y = centre
    return ((x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y))


def _diamonds(centre: Point, unit: float, palette: layout.RugPalette) -> Iterator[Shape]:
    yield Polygon(_lozenge(centre, 21 * unit), "", palette.pattern, 2.4 * unit)
    yield Polygon(_lozenge(centre, 12 * unit), palette.pattern)
    yield Polygon(_lozenge(centre, 5 * unit), palette.ground)


def _lattice(centre: Point, unit: float, palette: layout.RugPalette) -> Iterator[Shape]:
    x, y = centre
    reach = 17 * unit
    for offset in (-reach, 0, reach):
        for ends in (
            ((x + offset, y - reach), (x + offset, y + reach)),
            ((x - reach, y + offset), (x + reach, y + offset)),
        ):
            yield Polyline(ends, palette.pattern, 2.4 * unit)
    for dx in (-0.5, 0.5):
        for dy in (-0.5, 0.5):
            yield Circle((x + dx * reach, y + dy * reach), 3.2 * unit, palette.pattern)


def _zigzags(centre: Point, unit: float, palette: layout.RugPalette) -> Iterator[Shape]:
    x, y = centre
    for dy in (-12, 0, 12):
        points = tuple(
            (x + dx * unit, y + (dy + (5 if step % 2 else -5)) * unit)
            for step, dx in enumerate((-20, -10, 0, 10, 20))
        )
        yield Polyline(points, palette.pattern, 2.8 * unit)


def _rings(centre: Point, unit: float, palette: layout.RugPalette) -> Iterator[Shape]:
    yield Circle(centre, 19 * unit, "", palette.pattern, 2.4 * unit)
    yield Circle(centre, 11.5 * unit, "", palette.pattern, 2.4 * unit)
    yield Circle(centre, 5 * unit, palette.pattern)


_MOTIFS = (_diamonds, _lattice, _zigzags, _rings)


def _assam(centre: Point, facing: int) -> Iterator[Shape]:
    """A man in a white robe and a fez, seen from above, with an arrow where Assam looks."""
    x, y = centre

    def at(*points: Point) -> tuple[Point, ...]:
        return layout.turned(points, centre, facing)

    yield Circle((x + 2, y + 3), 24, layout.FRAME_EDGE)
    yield Polygon(at((-20, -14), (0, -36), (20, -14)), layout.INK, layout.ROBE, 3)
    yield Circle(centre, 22, layout.ROBE, layout.INK, 3)
    for side in (-1, 1):
        yield Polygon(at((side * 13, -8), (side * 7, -18), (side * 4, -8)), layout.FEZ)
    yield Circle(centre, 11, layout.FEZ, layout.INK, 2)
    yield Polyline(at((0, 0), (0, 15)), layout.INK, 2.4)
    yield Circle(at((0, 15))[0], 2.8, layout.INK)
    yield Circle(centre, 2.4, layout.INK)


def _panel(state: Record) -> Iterator[Shape]:
    left = layout.PANEL_LEFT
    yield Text((left, 42), status(state), 18, layout.INK, bold=True)
    yield Text((left, 66), "Rules:", 13, layout.FAINT_INK)
    for line, words in enumerate(_wrapped(str(rule_set_of(state)))):
        yield Text((left + 44, 66 + 17 * line), words, 13, layout.FAINT_INK)
    for seat in seats(state):
        top = layout.CARDS_TOP + seat.player * (layout.CARD_HEIGHT + layout.CARD_GAP)
        yield from _card(seat, top)


def _wrapped(rules_text: str) -> list[str]:
    """The rules on at most two lines; what does not fit is left out."""
    lines = [""]
    for part in rules_text.replace(";", "; ").split():
        if len(lines[-1]) + len(part) > 34:
            lines.append("")
        lines[-1] += f"{part} "
    if len(lines) > 2:
        lines[1] += "..."
    return [line.strip() for line in lines[:2]]


def _card(seat: Seat, top: float) -> Iterator[Shape]:
    """The card of one player: name, money + squares = score, rugs."""
    left, width = layout.PANEL_LEFT, layout.PANEL_WIDTH
    out = seat.eliminated > 0
    marked = seat.to_move or seat.share > 0
    ink = layout.FAINT_INK if out else layout.INK
    yield Rect(
        left,
        top,
        width,
        layout.CARD_HEIGHT,
        layout.CARD_OUT if out else layout.CARD,
        layout.ACCENT if marked else layout.CARD_LINE,
        3 if marked else 1.5,
        10,
    )
    yield Text((left + 16, top + 27), f"Player {seat.player}", 17, ink, bold=True)
    note = standing(seat) or ("to move" if seat.to_move else "")
    if note:
        yield Text((left + 96, top + 27), note, 14, layout.ACCENT if marked else ink)
    yield Text((left + width - 16, top + 32), str(seat.score), 28, ink, "end", bold=True)
    yield Circle((left + 25, top + 48), 8, layout.COIN, layout.COIN_EDGE, 1.5)
    squares = "1 square" if seat.squares == 1 else f"{seat.squares} squares"
    yield Text((left + 39, top + 53), f"{seat.money}  +  {squares}", 14, ink)
    for place, pile in enumerate(seat.piles):
        yield from _pile(pile, (left + 14 + 130 * place, top + 64), out)


def _pile(pile: RugPile, corner: Point, out: bool) -> Iterator[Shape]:
    x, y = corner
    if pile.is_next:
        yield Rect(x - 4, y - 3, 128, 45, layout.PAPER, layout.ACCENT, 1.5, 6)
    yield from _rug(pile.colour, (x, y + 1), 37, 1, 1)
    ink = layout.FAINT_INK if out else layout.INK
    words = "laid, neutral" if out else f"{pile.left} left"
    yield Text((x + 43, y + 17), words, 14, ink)
    note = f"colour {pile.colour}" + (", next" if pile.is_next else "")
    yield Text((x + 43, y + 33), note, 12, layout.FAINT_INK)
