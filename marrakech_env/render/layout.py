"""Sizes, colours and simple shapes of the drawn pictures, in SVG pixels.

x grows to the right and y downwards, as on the board. The colours of the rugs differ in lightness
as well as in hue, and each has a pattern of its own, so that they can be told apart without
seeing red and green, and in print.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, TypeAlias

from marrakech_env.spec import BOARD_SIZE

WIDTH: Final = 960
HEIGHT: Final = 640
CELL: Final = 72
BOARD_LEFT: Final = 68
BOARD_TOP: Final = 68
BOARD_SPAN: Final = CELL * BOARD_SIZE
FRAME: Final = 54
"""Width of the frame around the board, in which the edge track runs."""
PANEL_LEFT: Final = 652
PANEL_WIDTH: Final = WIDTH - 24 - PANEL_LEFT
CARD_HEIGHT: Final = 112
CARD_GAP: Final = 12
CARDS_TOP: Final = 106

PAPER: Final = "#FBF6EC"
INK: Final = "#2B2118"
FAINT_INK: Final = "#85786A"
FRAME_FILL: Final = "#6E4A2E"
FRAME_EDGE: Final = "#4A2F1B"
TRACK: Final = "#E6C58F"
SAND: Final = "#F0DFBD"
SAND_LINE: Final = "#CDB385"
SAND_INK: Final = "#B59A6B"
CARD: Final = "#FFFFFF"
CARD_OUT: Final = "#ECE5DA"
CARD_LINE: Final = "#DACDB8"
ACCENT: Final = "#B5451F"
COIN: Final = "#E2B33C"
COIN_EDGE: Final = "#9A7414"
ROBE: Final = "#FFFDF7"
FEZ: Final = "#A3172B"


@dataclass(frozen=True, slots=True)
class RugPalette:
    """Colours of one kind of rug: the ground, the pattern on it, and its dark outline."""

    ground: str
    pattern: str
    outline: str


RUGS: Final = (
    RugPalette("#BF3F2A", "#F7CDA8", "#6B1B10"),  # 0 brick red, nested diamonds
    RugPalette("#F0B23E", "#7A4A08", "#8A5A10"),  # 1 saffron, a lattice
    RugPalette("#27508F", "#B9D3F5", "#122848"),  # 2 indigo, zigzags
    RugPalette("#6CC3B5", "#11544B", "#1C6B60"),  # 3 turquoise, rings
)

Point: TypeAlias = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Rect:
    """A rectangle, with round corners of a radius."""

    left: float
    top: float
    width: float
    height: float
    fill: str = ""
    stroke: str = ""
    stroke_width: float = 0
    radius: float = 0


@dataclass(frozen=True, slots=True)
class Circle:
    """A disc or a ring."""

    centre: Point
    radius: float
    fill: str = ""
    stroke: str = ""
    stroke_width: float = 0


@dataclass(frozen=True, slots=True)
class Polygon:
    """A closed, filled shape."""

    points: tuple[Point, ...]
    fill: str = ""
    stroke: str = ""
    stroke_width: float = 0


@dataclass(frozen=True, slots=True)
class Polyline:
    """An open line with round ends."""

    points: tuple[Point, ...]
    stroke: str
    stroke_width: float


@dataclass(frozen=True, slots=True)
class Text:
    """One line of text; `anchor` is `start`, `middle` or `end`, y is the base line."""

    position: Point
    text: str
    size: float
    fill: str = INK
    anchor: str = "start"
    bold: bool = False


Shape: TypeAlias = Rect | Circle | Polygon | Polyline | Text


def cell_centre(cell: int) -> Point:
    """Middle of a cell 0..48 of the board."""
    y, x = divmod(cell, BOARD_SIZE)
    return (BOARD_LEFT + CELL * (x + 0.5), BOARD_TOP + CELL * (y + 0.5))


def arc(centre: Point, radius: float, start: float, end: float) -> tuple[Point, ...]:
    """Points on an arc between two angles in degrees, clockwise from east."""
    steps = max(2, round(abs(end - start) / 6))
    angles = (math.radians(start + (end - start) * i / steps) for i in range(steps + 1))
    return tuple(
        (centre[0] + radius * math.cos(angle), centre[1] + radius * math.sin(angle))
        for angle in angles
    )


def turned(points: tuple[Point, ...], centre: Point, facing: int) -> tuple[Point, ...]:
    """Points given around (0, 0) looking north, turned to a facing 0..3 and moved to a centre."""
    for _ in range(facing):
        points = tuple((-y, x) for x, y in points)
    return tuple((centre[0] + x, centre[1] + y) for x, y in points)
