"""The reward schemes, as data and as functions of scores and win shares.

Legend: `B` games, `P` players. Every scheme rewards every seat; a step pays 0 where the scheme
names no reward.

A seat's *margin* is (own score - best score among the others) / 20, with the scores of rule 10:
dirhams plus visible squares, 0 for the eliminated. It is 0 for every seat at the start of a game.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marrakech_env.compile import kernel
from marrakech_env.spec import MAX_PLAYERS

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

SCHEMES: Final = MappingProxyType(
    {
        "win": "at the end (P * share of the win - 1) / (P - 1): 1 for a win, -1/(P-1) for a loss",
        "score": "at the end the margin",
        "dense": "after every step the change of the margin",
    }
)
"""Every scheme with what it pays, the default first."""

MARGIN_UNIT: Final = 20
"""Points of score that make a margin of 1."""

_LOWEST: Final = np.iinfo(np.int64).min


def check_scheme(name: str) -> str:
    """Return the name of a reward scheme.

    Raises:
        ValueError: It is unknown; the message lists the known ones.
    """
    if not isinstance(name, str) or name not in SCHEMES:
        raise ValueError(f"unknown reward scheme {name!r}; known: {', '.join(SCHEMES)}")
    return name


def final_rewards(scheme: str, shares: ArrayLike, scores: ArrayLike) -> FloatArray:
    """Return what a scheme pays each seat for a whole game, from its normal start to its end.

    For `win` and `score` this is the reward of the last step; the others pay 0. For `dense` it is
    the sum of the rewards of all steps (up to float rounding), the same as `score`. A game from a
    given position pays the final margin less the margin of that position.

    Args:
        scheme: `win`, `score` or `dense`.
        shares: float (B, P), each seat's share of the win.
        scores: int (B, P), the final scores.

    Returns:
        float64 (B, P), the seats in order.

    Raises:
        ValueError: The scheme is unknown, or what it pays by has a wrong shape or dtype.
    """
    if check_scheme(scheme) != "win":
        return margins(scores)
    win_shares = _by_seat("shares", shares, "fiu").astype(np.float64)
    players = win_shares.shape[1]
    rewards: FloatArray = (players * win_shares - 1.0) / (players - 1)
    return rewards


def margins(scores: ArrayLike) -> FloatArray:
    """Return the margin of every seat.

    Args:
        scores: int (B, P).

    Returns:
        float64 (B, P): (own score - best score among the others) / 20.

    Raises:
        ValueError: Wrong shape or dtype.
    """
    points = np.ascontiguousarray(_by_seat("scores", scores, "iu"), np.int64)
    out = np.empty(points.shape, np.float64)
    _fill_margins(points, out)
    return out


def _by_seat(name: str, values: ArrayLike, kinds: str) -> NDArray[Any]:
    """`values` as an array, checked for its shape (B, P) and the kind of its dtype."""
    array = np.asarray(values)
    if array.ndim != 2 or not 2 <= array.shape[1] <= MAX_PLAYERS or array.dtype.kind not in kinds:
        raise ValueError(
            f"{name} must be {'numbers' if 'f' in kinds else 'integers'} of shape (B, P) with "
            f"P = 2..{MAX_PLAYERS}, not {array.dtype} of shape {array.shape}"
        )
    return array


@kernel
def _fill_margins(scores: IntArray, out: FloatArray) -> None:
    """Write the margins of int64 (B, P) scores into `out`, float64 (B, P)."""
    games, players = scores.shape
    for i in range(games):
        for player in range(players):
            best_of_others = _LOWEST
            for other in range(players):
                if other != player:
                    best_of_others = max(best_of_others, scores[i, other])
            out[i, player] = (scores[i, player] - best_of_others) / MARGIN_UNIT
