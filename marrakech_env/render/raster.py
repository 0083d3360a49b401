"""The state as an RGB array, drawn with Pillow; needs no display and no fonts of the system."""

from __future__ import annotations

from functools import lru_cache
from typing import Final

import numpy as np
from numpy.typing import NDArray

try:
    from PIL import Image, ImageDraw, ImageFont
except ImportError as error:  # pragma: no cover - depends on what is installed
    raise ImportError("pictures as arrays need Pillow: pip install pillow") from error

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

_SCALE: Final = 2  # drawn larger and averaged down, because Pillow draws jagged edges
_ANCHORS: Final = {"start": "ls", "middle": "ms", "end": "rs"}


def render_rgb_array(state: State) -> NDArray[np.uint8]:
    """Draw a state as an array.

    Args:
        state: One state.

    Returns:
        uint8 (640, 960, 3): rows from the top, red, green, blue.

    Raises:
        ValueError: Not one state.
    """
    image = Image.new("RGB", (WIDTH * _SCALE, HEIGHT * _SCALE))
    draw = ImageDraw.Draw(image)
    for shape in scene(state):
        _draw(draw, shape)
    return np.array(image.reduce(_SCALE), dtype=np.uint8)


def _draw(draw: ImageDraw.ImageDraw, shape: Shape) -> None:
    match shape:
        case Rect():
            _draw_rect(draw, shape)
        case Circle():
            # Pillow draws a stroke inside of the outline, SVG on both sides of it.
            radius = shape.radius + shape.stroke_width / 2
            x, y = shape.centre
            draw.ellipse(
                _scaled((x - radius, y - radius), (x + radius, y + radius)),
                fill=shape.fill or None,
                outline=shape.stroke or None,
                width=_pixels(shape.stroke_width),
            )
        case Polygon():
            if shape.fill:
                draw.polygon(_scaled(*shape.points), fill=shape.fill)
            if shape.stroke:
                _draw_line(draw, (*shape.points, shape.points[0]), shape.stroke, shape.stroke_width)
        case Polyline():
            _draw_line(draw, shape.points, shape.stroke, shape.stroke_width)
        case Text():
            draw.text(
                _scaled(shape.position)[0],
                shape.text,
                fill=shape.fill,
                font=_font(shape.size),
                anchor=_ANCHORS[shape.anchor],
                # The built-in font has one weight: an outline of its own colour makes it bold.
                stroke_width=1 if shape.bold else 0,
            )


def _draw_rect(draw: ImageDraw.ImageDraw, rect: Rect) -> None:
    grown = rect.stroke_width / 2
    corners = _scaled(
        (rect.left - grown, rect.top - grown),
        (rect.left + rect.width + grown, rect.top + rect.height + grown),
    )
    draw.rounded_rectangle(
        corners,
        radius=(rect.radius + grown) * _SCALE if rect.radius else 0,
        fill=rect.fill or None,
        outline=rect.stroke or None,
        width=_pixels(rect.stroke_width),
    )


def _draw_line(
    draw: ImageDraw.ImageDraw, points: tuple[Point, ...], stroke: str, width: float
) -> None:
    scaled, pixels = _scaled(*points), _pixels(width)
    draw.line(scaled, fill=stroke, width=pixels)
    if pixels > 2:  # round joints and ends, which Pillow leaves open
        reach = (pixels - 1) / 2
        for x, y in scaled:
            draw.ellipse((x - reach, y - reach, x + reach, y + reach), fill=stroke)


def _scaled(*points: Point) -> list[Point]:
    return [(x * _SCALE, y * _SCALE) for x, y in points]


def _pixels(width: float) -> int:
    return max(1, round(width * _SCALE))


@lru_cache(maxsize=16)
def _font(size: float) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size * _SCALE)
