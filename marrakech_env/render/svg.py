"""The state as a self-contained SVG picture."""

from __future__ import annotations

from typing import Final
from xml.sax.saxutils import escape

from marrakech_env.notation import format_position
from marrakech_env.render.facts import status
from marrakech_env.render.layout import (
    HEIGHT,
    WIDTH,
    Circle,
    Point,
    Polygon,
    Polyline,
    Rect,
    Shape,
    Text,
)
from marrakech_env.render.scene import scene
from marrakech_env.state import State

_FONTS: Final = "Aileron, 'Helvetica Neue', Helvetica, Arial, sans-serif"


def render_svg(state: State) -> str:
    """Draw a state as an SVG document of 960 x 640 pixels.

    Its title tells who is to move, its description is the position text.

    Args:
        state: One state.

    Raises:
        ValueError: Not one state.
    """
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" '
        f'viewBox="0 0 {WIDTH} {HEIGHT}" font-family="{_FONTS}" stroke-linecap="round" '
        'stroke-linejoin="round" role="img">',
        f"<title>Marrakech. {escape(status(state))}</title>",
        f"<desc>{escape(format_position(state))}</desc>",
    ]
    lines += map(_element, scene(state))
    lines.append("</svg>")
    return "\n".join(lines) + "\n"


def _element(shape: Shape) -> str:
    match shape:
        case Rect():
            return (
                f'<rect x="{shape.left:g}" y="{shape.top:g}" width="{shape.width:g}" '
                f'height="{shape.height:g}" rx="{shape.radius:g}"{_paint(shape)}/>'
            )
        case Circle():
            x, y = shape.centre
            return f'<circle cx="{x:g}" cy="{y:g}" r="{shape.radius:g}"{_paint(shape)}/>'
        case Polygon():
            return f'<polygon points="{_points(shape.points)}"{_paint(shape)}/>'
        case Polyline():
            return (
                f'<polyline points="{_points(shape.points)}" fill="none" '
                f'stroke="{shape.stroke}" stroke-width="{shape.stroke_width:g}"/>'
            )
        case Text():
            x, y = shape.position
            weight = ' font-weight="bold"' if shape.bold else ""
            return (
                f'<text x="{x:g}" y="{y:g}" font-size="{shape.size:g}" fill="{shape.fill}" '
                f'text-anchor="{shape.anchor}"{weight} xml:space="preserve">'
                f"{escape(shape.text)}</text>"
            )


def _paint(shape: Rect | Circle | Polygon) -> str:
    text = f' fill="{shape.fill or "none"}"'
    if shape.stroke:
        text += f' stroke="{shape.stroke}" stroke-width="{shape.stroke_width:g}"'
    return text


def _points(points: tuple[Point, ...]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
