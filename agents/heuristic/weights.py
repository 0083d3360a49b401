"""The weights of the expectimax agent: its file, checked, and what the kernels make of them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.spec import check_num_players

from ..common.model_files import WEIGHTS
from .evaluation import EVALUATION_WEIGHTS, FACTS, MAX_TURNS, NUM_TERMS
from .one_turn import FloatArray

WEIGHTS_FILE: Final = WEIGHTS / "expectimax.json"


@dataclass(frozen=True)
class Fit:
    """The fitted numbers of a number of players.

    Attributes:
        knots: int64 (K,), the numbers of turns left at which there are weights, ascending.
        weights: float64 (P, K, `NUM_TERMS`), by turns since a player moved.
        spread: float64 (2,), constant and slope of the squared width of the softmax by turns left.
    """

    knots: NDArray[np.int64]
    weights: FloatArray
    spread: FloatArray

    @classmethod
    def from_json(cls, players: int, entry: dict[str, Any]) -> Fit:
        """Reads an entry of the file.

        Raises:
            ValueError: It makes no sense.
        """
        check_num_players(players)
        knots, spread = np.array(entry["knots"]), np.array(entry["spread"], np.float64)
        weights = np.array(entry["weights"], np.float64)
        if knots.dtype != np.int64 or knots.ndim != 1 or len(knots) < 2 or min(np.diff(knots)) <= 0:
            raise ValueError(f"knots must be whole numbers, ascending: {entry['knots']}")
        wanted = (players, len(knots), NUM_TERMS)
        if weights.shape != wanted or not np.isfinite(weights).all():
            raise ValueError(f"the weights must be finite, of shape {wanted}, not {weights.shape}")
        if spread.shape != (2,) or not (0 < spread[0] < np.inf and 0 <= spread[1] < np.inf):
            raise ValueError(f"spread must be a positive number and one of at least 0: {spread}")
        return cls(knots, weights, spread)

    def table(self) -> NDArray[np.void]:
        """The weights as kernels take them: EVALUATION_WEIGHTS (1,), read-only for threads."""
        table = np.zeros(1, EVALUATION_WEIGHTS)
        table["terms"][0, : len(self.weights)] = interpolate(self.weights, self.knots)
        constant, slope = self.spread
        table["spreads"][0] = np.sqrt(constant + slope * np.arange(MAX_TURNS + 1))
        table.setflags(write=False)
        return table


def read_fits(path: Path) -> dict[int, Fit]:
    """What was fitted for each number of players.

    Raises:
        ValueError: The file holds no weights, or some for other facts; it is named.
        OSError: It cannot be read.
    """
    text = path.read_bytes()
    try:
        data = json.loads(text)
        if data["facts"] != list(FACTS):
            raise ValueError(f"they are for the facts {data['facts']}, not for {list(FACTS)}")
        return {int(n): Fit.from_json(int(n), entry) for n, entry in data["players"].items()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"{path} holds no weights for expectimax: {error}") from error


def interpolate(at_knots: FloatArray, knots: NDArray[np.int64]) -> FloatArray:
    """Weights for 0..`MAX_TURNS` turns left, (P, turns, terms), from those at some numbers."""
    turns = np.clip(np.arange(MAX_TURNS + 1), knots[0], knots[-1])
    upper = np.clip(np.searchsorted(knots, turns), 1, len(knots) - 1)
    part = (turns - knots[upper - 1]) / (knots[upper] - knots[upper - 1])
    return np.ascontiguousarray(
        at_knots[:, upper - 1] * (1 - part)[:, None] + at_knots[:, upper] * part[:, None]
    )
