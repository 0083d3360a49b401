"""Pictures of a state: text for a terminal, SVG, and an RGB array. None of them needs a display.

The SVG and the array are the same drawing (`scene`), in the same sizes and colours (`layout`).
Pillow is needed by `render_rgb_array` only and imported when that is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from marrakech_env.render.ansi import render_ansi
from marrakech_env.render.svg import render_svg

if TYPE_CHECKING:
    from marrakech_env.render.raster import render_rgb_array

__all__ = ["render_ansi", "render_rgb_array", "render_svg"]


def __getattr__(name: str) -> Any:
    """Import what needs Pillow at its first use."""
    if name == "render_rgb_array":
        from marrakech_env.render.raster import render_rgb_array

        return render_rgb_array
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
