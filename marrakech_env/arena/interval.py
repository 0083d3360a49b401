"""Means over deals with 95 % intervals.

Legend: `D` deals. The games of a deal share their dice, so they are not independent. The average
over the games of a deal is one observation, and deals are independent of each other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import astuple, dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

NORMAL_QUANTILE: Final = 1.959963984540054
"""97.5 % quantile of the normal distribution: half of a 95 % interval in standard deviations."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean with its 95 % interval.

    Attributes:
        value: The mean.
        low: Lower end; NaN after a single deal.
        high: Upper end, or NaN.
    """

    value: float
    low: float
    high: float


def mean_estimate(observations: NDArray[np.float64]) -> Estimate:
    """Return the mean of unbounded numbers, such as margins, with Student's t interval.

    Args:
        observations: float64 (D,), one for each deal, D at least 1.
    """
    deals = len(observations)
    mean = float(observations.mean())
    if deals < 2:
        return Estimate(mean, math.nan, math.nan)
    half = t_quantile(deals - 1) * float(observations.std(ddof=1)) / math.sqrt(deals)
    return Estimate(mean, mean - half, mean + half)


def average_estimate(estimates: Sequence[Estimate]) -> Estimate:
    """Return the average of at least one independent estimates, with equal weights."""
    value, low, high = (np.array(ends) for ends in zip(*map(astuple, estimates), strict=True))
    count, mean = len(estimates), float(value.mean())
    below, above = (math.sqrt(float((gap**2).sum())) / count for gap in (value - low, high - value))
    return Estimate(mean, mean - below, mean + above)


def share_estimate(observations: NDArray[np.float64], games: int) -> Estimate:
    """Return the mean of shares in 0..1, with Wilson's interval for the equivalent number of games.

    A symmetric interval fails near 0 and 1: after 100 wins in 100 deals it would have no width.
    Wilson's interval has a width there, but assumes independent games. So it is computed for the
    number of independent games with the same precision as the deals: mean (1 - mean) / variance
    games for each deal. The variance gets one more deal of independent games, so that a few equal
    deals still have an interval.

    Args:
        observations: float64 (D,), one for each deal, D at least 1.
        games: Games in a deal.
    """
    deals = len(observations)
    mean = float(observations.mean())
    if deals < 2:
        return Estimate(mean, math.nan, math.nan)
    spread = mean * (1 - mean)  # the variance of one game without shared wins
    variance = (float(((observations - mean) ** 2).sum()) + spread / games) / deals
    worth = deals * spread / variance if spread else float(deals * games)
    doubt = t_quantile(deals - 1) ** 2 / worth
    centre = (mean + doubt / 2) / (1 + doubt)
    half = math.sqrt(doubt * spread + doubt**2 / 4) / (1 + doubt)
    # A mean of 0 or 1 is an end of the interval; this removes the rounding error.
    return Estimate(mean, max(0.0, min(mean, centre - half)), min(1.0, max(mean, centre + half)))


def t_quantile(freedom: int) -> float:
    """Return the 97.5 % quantile of Student's t for a number of degrees of freedom.

    Fisher's expansion about the normal quantile, cut after the third term: 1 % too small with 3
    degrees of freedom, exact to four digits from 10 on.
    """
    z = NORMAL_QUANTILE
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
    return z + first / freedom + second / freedom**2 + third / freedom**3
