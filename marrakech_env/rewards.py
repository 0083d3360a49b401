"""The reward schemes, as data and as functions of scores and win shares.

Legend: `B` games, `P` players. Every scheme rewards every seat; nothing is due where a scheme
does not say so.

A seat's *margin* is (own score - best score among the others) / 20, with the scores of rule 10:
dirhams plus visible squares, 0 for the eliminated. It is 0 for everybody at the start of a game.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import Final

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marrakech_env.compile import kernel

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


def check_scheme(name: str) -> str:
    """Returns the name of a reward scheme.

    Raises:
        ValueError: It is unknown; the message lists the known ones.
    """
    if not isinstance(name, str) or name not in SCHEMES:
        raise ValueError(f"unknown reward scheme {name!r}; known: {', '.join(SCHEMES)}")
    return name


def final_rewards(scheme: str, shares: ArrayLike, scores: ArrayLike) -> FloatArray:
    """What a scheme pays each seat for a whole game, from its normal start to its end.

    For `win` and `score` this is the reward of the last step, all before it being 0. For `dense`
    it is what the rewards of all steps add up to (up to float rounding): the same as `score`. A
    game that starts from a given position pays the final margin less the margin of that position,
    as `dense` rewards only what changes while it is played.

    Args:
        scheme: `win`, `score` or `dense`.
        shares: float (B, P), each seat's share of the win.
        scores: int (B, P), the final scores.

    Returns:
        float64 (B, P), the seats in order.

    Raises:
        ValueError: The scheme is unknown.
    """
    if check_scheme(scheme) != "win":
        return margins(scores)
    win_shares = np.asarray(shares, np.float64)
    players = win_shares.shape[-1]
    rewards: FloatArray = (players * win_shares - 1.0) / (players - 1)
    return rewards


def margins(scores: ArrayLike) -> FloatArray:
    """The margin of every seat.

    Args:
        scores: int (B, P).

    Returns:
        float64 (B, P): (own score - best score among the others) / 20.
    """
    points = np.ascontiguousarray(scores, np.int64)
    out = np.empty(points.shape, np.float64)
    _fill_margins(points, out)
    return out


@kernel
def _fill_margins(scores: IntArray, out: FloatArray) -> None:
    """Writes the margins of int64 (B, P) scores into `out`, float64 (B, P)."""
    games, players = scores.shape
    for i in range(games):
        for player in range(players):
            best_of_others = -1  # below every score
            for other in range(players):
                if other != player:
                    best_of_others = max(best_of_others, scores[i, other])
            out[i, player] = (scores[i, player] - best_of_others) / MARGIN_UNIT
