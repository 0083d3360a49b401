"""The weights of the expectimax agent: its file, checked, and what the kernels make of them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Final

import msgspec
import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from marrakech_env.files import read_ordinary
from marrakech_env.spec import check_num_players

from ..common.model_files import WEIGHTS, check_weights
from .evaluation import EVALUATION_WEIGHTS, FACTS, MAX_TURNS, NUM_TERMS
from .one_turn import FloatArray

WEIGHTS_FILE: Final = WEIGHTS / "expectimax.json"


class _Entry(msgspec.Struct):
    """The fitted numbers of a number of players, as the file has them; see `Fit`."""

    knots: Annotated[list[Annotated[int, Meta(ge=0, le=1000)]], Meta(min_length=2)]
    weights: list[list[list[float]]]
    spread: tuple[float, float]


class _File(msgspec.Struct):
    facts: list[str]
    players: dict[int, _Entry]


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
    def from_entry(cls, players: int, entry: _Entry) -> Fit:
        """Check an entry of the file.

        Raises:
            ValueError: It makes no sense.
        """
        check_num_players(players)
        knots, spread = np.array(entry.knots, np.int64), np.array(entry.spread)
        if min(np.diff(knots)) <= 0:
            raise ValueError(f"knots must be ascending: {entry.knots}")
        weights = np.array(entry.weights)
        wanted = (players, len(knots), NUM_TERMS)
        if weights.shape != wanted:
            raise ValueError(f"the weights must be of shape {wanted}, not {weights.shape}")
        check_weights("weights", weights)
        check_weights("spread", spread)
        if spread[0] <= 0 or spread[1] < 0:
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
    try:
        file = msgspec.json.decode(read_ordinary(path), type=_File)
        if file.facts != list(FACTS):
            raise ValueError(f"they are for the facts {file.facts}, not for {list(FACTS)}")
        return {players: Fit.from_entry(players, entry) for players, entry in file.players.items()}
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} holds no weights for expectimax: {error}") from error


def interpolate(at_knots: FloatArray, knots: NDArray[np.int64]) -> FloatArray:
    """Weights for 0..`MAX_TURNS` turns left, (P, turns, terms), from those at some numbers."""
    turns = np.clip(np.arange(MAX_TURNS + 1), knots[0], knots[-1])
    upper = np.clip(np.searchsorted(knots, turns), 1, len(knots) - 1)
    part = (turns - knots[upper - 1]) / (knots[upper] - knots[upper - 1])
    return np.ascontiguousarray(
        at_knots[:, upper - 1] * (1 - part)[:, None] + at_knots[:, upper] * part[:, None]
    )
