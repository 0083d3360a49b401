"""The render modes that every environment has."""

from __future__ import annotations

import contextlib
from typing import Any, Final, TypeAlias

import gymnasium
import numpy as np
from numpy.typing import NDArray

from marrakech_env.command_line import printable
from marrakech_env.render.ansi import render_ansi
from marrakech_env.state import State

Picture: TypeAlias = str | NDArray[np.uint8]
"""Text, or uint8 (height, width, 3)."""

RENDER_MODES: Final = ("human", "ansi", "rgb_array")


def checked_render_mode(mode: Any) -> str | None:
    """Return a render mode.

    Raises:
        ValueError: It is unknown; the message lists the known ones.
    """
    if mode is None or (isinstance(mode, str) and mode in RENDER_MODES):
        return mode
    raise ValueError(f"unknown render_mode {mode!r}; known: None, {', '.join(RENDER_MODES)}")


def picture(state: State, render_mode: str | None) -> Picture | None:
    """Return a state as a render mode shows it, without a display.

    Returns:
        `ansi`: the board as text. `rgb_array`: uint8 (height, width, 3). `human`: None, and the
        text is printed. None: None, with a warning.

    Raises:
        ValueError: Not one state, or an unknown render mode.
    """
    if checked_render_mode(render_mode) is None:
        gymnasium.logger.warn(
            "render() without a render mode shows nothing; make the environment with "
            f"render_mode={' or '.join(map(repr, RENDER_MODES))}"
        )
        return None
    if render_mode == "rgb_array":
        from marrakech_env.render.raster import render_rgb_array  # needs Pillow, so only here

        return render_rgb_array(state)
    text = render_ansi(state)
    if render_mode == "ansi":
        return text
    _print(text)
    return None


def _print(text: str) -> None:
    """Print a board; a stdout that cannot take it stops no game."""
    try:
        print(printable(text))
    except (OSError, ValueError) as error:  # a broken pipe or a full disk; a closed file
        with contextlib.suppress(ValueError):  # stderr is closed too
            gymnasium.logger.warn(f"the board cannot be printed: {error}")
