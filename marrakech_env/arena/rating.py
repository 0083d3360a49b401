"""Ratings: one number for each agent, fitted to all games at once.

Legend: `N` agents, `M` line-ups, `P` players, `D` deals.

In the model, slot k of a table wins with probability exp(s_k) / sum over slots of exp(s), where s
are the strengths: Bradley and Terry's model for two players, and the first stage of Plackett and
Luce's for more. It is fitted to win shares, so a shared win counts as a part. An agent may sit at a
table several times. One fit of all games does not depend on their order, unlike running updates
(Elo, openskill), and its uncertainty can be computed by deal.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.arena.interval import NORMAL_QUANTILE, Estimate

POINTS: Final = 400 / math.log(10)
"""Rating points for each unit of strength, as in Elo's scale: 400 points are odds of 10 to 1."""

_MAX_STEPS: Final = 100

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


def rate(
    num_agents: int,
    line_ups: IntArray,
    deal_shares: Sequence[FloatArray],
    fixed: FloatArray | None = None,
) -> list[Estimate]:
    """Return ratings with 95 % intervals.

    Each agent gets one additional drawn two-player game against an average agent. This keeps the
    rating finite for an agent that has won every game.

    Args:
        num_agents: N.
        line_ups: int64 (M, P), the agent 0..N-1 in each slot.
        deal_shares: For each line-up float64 (D, P), the win shares of its slots in each deal,
            summed over the deal's games. Row d is the same deal in all line-ups.
        fixed: float64 (N,), fixed ratings in points, and NaN for the ratings to fit.

    Returns:
        N estimates, in points. Their average is 0. Fixed ratings set the scale instead, and the
        intervals treat them as certain.
    """
    players = line_ups.shape[1]
    games = np.array([shares.sum() for shares in deal_shares])  # shares of a game add up to 1
    totals = np.stack([shares.sum(axis=0) for shares in deal_shares])
    strength = np.zeros(num_agents)
    free = np.ones(num_agents, np.bool_)
    if fixed is not None:
        free = np.isnan(fixed)
        strength[~free] = fixed[~free] / POINTS
    block = np.ix_(free, free)
    for _ in range(_MAX_STEPS):
        chance = _win_chances(strength[line_ups])
        gradient = _per_agent(line_ups, totals - games[:, None] * chance, num_agents)
        average = _logistic(strength)  # the chance against an average agent
        gradient += 0.5 - average
        information = _information(line_ups, games, chance, num_agents)
        information += np.diag(average * (1 - average))
        step = np.linalg.solve(information[block], gradient[free])
        strength[free] += np.clip(step, -1.0, 1.0)  # a full Newton step from far away can overshoot
        if np.abs(step).max() < 1e-9:
            break

    # The sandwich estimate uses the spread of the deals' gradients, because the games of a deal,
    # and one deal at several tables, are not independent.
    longest = max(len(shares) for shares in deal_shares)
    by_deal = np.zeros((longest, num_agents))
    for line_up, shares, expected in zip(line_ups, deal_shares, chance, strict=True):
        excess = shares - players * expected
        for slot, agent in enumerate(line_up):
            by_deal[: len(shares), agent] += excess[:, slot]
    spread = np.zeros((num_agents, num_agents))
    spread[block] = np.linalg.inv(information[block])
    centring = np.eye(num_agents)
    if fixed is None:  # only differences mean anything: deviations from the average agent
        centring -= 1 / num_agents
    spread = centring @ spread
    scatter = by_deal.T @ by_deal + np.diag((0.5 - average) ** 2)
    covariance = spread @ scatter @ spread.T
    half = NORMAL_QUANTILE * POINTS * np.sqrt(np.diag(covariance))
    points = POINTS * (centring @ strength)
    return [
        Estimate(float(p), float(p - h), float(p + h)) for p, h in zip(points, half, strict=True)
    ]


def _win_chances(strengths: FloatArray) -> FloatArray:
    """Each slot's probability of winning: (M, P), rows add up to 1."""
    weights = np.exp(strengths - strengths.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def _per_agent(line_ups: IntArray, values: FloatArray, num_agents: int) -> FloatArray:
    """Values of all slots, summed over the slots of each agent: (N,)."""
    out = np.zeros(num_agents)
    np.add.at(out, line_ups, values)
    return out


def _information(
    line_ups: IntArray, games: FloatArray, chance: FloatArray, num_agents: int
) -> FloatArray:
    """Minus the second derivative of the games' log likelihood: (N, N)."""
    players = line_ups.shape[1]
    by_slot = games[:, None, None] * (
        chance[:, :, None] * np.eye(players) - chance[:, :, None] * chance[:, None, :]
    )
    out = np.zeros((num_agents, num_agents))
    np.add.at(out, (line_ups[:, :, None], line_ups[:, None, :]), by_slot)
    return out


def _logistic(strength: FloatArray) -> FloatArray:
    return np.asarray(1 / (1 + np.exp(-strength)))
