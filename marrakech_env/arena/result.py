"""Results of tournaments and of the leaderboard.

Legend: `D` deals, `P` players.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from marrakech_env.arena.endgames import EndgameResult
from marrakech_env.arena.interval import Estimate, mean_estimate
from marrakech_env.arena.luck import TINY, without_luck

FloatArray = NDArray[np.float64]
Tables = Literal["copies", "both", "mixed"]
"""The kinds of tables; see `Tournament`."""


@dataclass(frozen=True)
class LuckAdjusted:
    """The figures of a pairing without the luck of the dice, see `luck`.

    Attributes:
        win_share: As that of the pairing. Its interval is Student's and not bounded by 0 and 1.
        margin: As that of the pairing.
        variance_ratio: The variance of the pairing's `deal_shares` over that of these
            `deal_shares`. This many times fewer deals give the same interval. NaN where the
            adjusted ones do not vary.
        margin_variance_ratio: The same of the margins.
        deal_shares: float64 (D,), the win share of each deal `without_luck`.
        deal_margins: float64 (D,), the margin of each deal `without_luck`.
    """

    win_share: Estimate
    margin: Estimate
    variance_ratio: float
    margin_variance_ratio: float
    deal_shares: FloatArray = field(repr=False)
    deal_margins: FloatArray = field(repr=False)

    @classmethod
    def of(
        cls,
        shares: FloatArray,
        margins: FloatArray,
        lucky_shares: FloatArray,
        lucky_margins: FloatArray,
    ) -> LuckAdjusted:
        """Compute the figures from the results of the deals and their luck, all float64 (D,)."""
        fair_shares = without_luck(shares, lucky_shares)
        fair_margins = without_luck(margins, lucky_margins)
        return cls(
            win_share=mean_estimate(fair_shares),
            margin=mean_estimate(fair_margins),
            variance_ratio=_ratio(shares.var(), fair_shares.var()),
            margin_variance_ratio=_ratio(margins.var(), fair_margins.var()),
            deal_shares=fair_shares,
            deal_margins=fair_margins,
        )


def _ratio(plain: float, adjusted: float) -> float:
    """The factor by which a variance has shrunk; NaN where only rounding is left of it."""
    return float(plain / adjusted) if adjusted > TINY else math.nan


@dataclass(frozen=True)
class Pairing:
    """The results of one agent against one kind of table.

    Attributes:
        agent: Name of the agent.
        opponent: Name of the agent in all other seats; `mixed` where those differ.
        deals: Deals played.
        games: Games played.
        win_share: Mean share of the wins, 0..1; a win shared by k counts 1/k.
        margin: Mean of the agent's final score minus the best other one, in dirhams.
        deal_shares: float64 (D,), the win share of each deal. Subtract those of two agents against
            one opponent to compare them without the luck of the deals.
        deal_margins: float64 (D,), the margin of each deal.
        luck_adjusted: The same without the luck of the dice; None without a baseline.
    """

    agent: str
    opponent: str
    deals: int
    games: int
    win_share: Estimate
    margin: Estimate
    deal_shares: FloatArray = field(repr=False)
    deal_margins: FloatArray = field(repr=False)
    luck_adjusted: LuckAdjusted | None = None


@dataclass(frozen=True)
class AgentSummary:
    """One agent over the whole tournament.

    Attributes:
        name: Its name.
        rating: Points (400 are odds of 10 to 1 in a two-player game, the average is 0);
            None with fewer than three agents, and while a line-up has not played.
        decisions: Decisions taken.
        ms_per_decision: Milliseconds for one decision, None where there was none. Decisions are
            taken for many games at once, which is faster than one by one.
    """

    name: str
    rating: Estimate | None
    decisions: int
    ms_per_decision: float | None


@dataclass(frozen=True)
class Result:
    """The results of a tournament.

    Attributes:
        num_players: P.
        rules: The RULES text.
        seed: The seed of dice and agents.
        tables: The kind of tables.
        baseline: What measured luck; None where nothing did.
        complete: False where the tournament was stopped early.
        pairings: Every pairing of which deals are known.
        agents: Every agent.
    """

    num_players: int
    rules: str
    seed: int
    tables: Tables
    baseline: str | None
    complete: bool
    pairings: list[Pairing]
    agents: list[AgentSummary]

    @property
    def even(self) -> float:
        """The win share of an agent that is as good as its opponents: 1/P."""
        return 1 / self.num_players

    @property
    def title(self) -> str:
        """Players, rules and seed in a line."""
        stopped = "" if self.complete else ", stopped early"
        return f"{self.num_players} players, rules {self.rules}, seed {self.seed}{stopped}"

    def verdict(self, share: Estimate) -> Literal["better", "worse", "open"]:
        """Return whether the interval of a win share lies above or below even play."""
        if share.low > self.even:
            return "better"
        return "worse" if share.high < self.even else "open"


@dataclass(frozen=True)
class Row:
    """An agent on the leaderboard for one number of players.

    Attributes:
        name: With its version: `greedy@1`.
        rating: In points; None while one of the line-ups has not played.
        win_share: Mean over the opponents it has met; None before the first.
        luck_adjusted: The same without the luck of the dice.
        endgames: Its results in late positions, by turns left.
        ms_per_decision: Milliseconds, None before the first decision.
        num_parameters: Number of its weights, None where the agent has no such attribute.
    """

    name: str
    rating: Estimate | None
    win_share: Estimate | None
    luck_adjusted: Estimate | None
    endgames: tuple[EndgameResult, ...]
    ms_per_decision: float | None
    num_parameters: int | None


@dataclass(frozen=True)
class Standings:
    """The leaderboard for one number of players.

    Attributes:
        num_players: P.
        rows: The agents, best first.
        opponents: Names of the opponents: those of the rows, or the entries of the ladder.
        pairings: Every pairing of which deals are known; with two players each pair once.
        left_out: Reasons of the agents that are not among the rows, by name.
    """

    num_players: int
    rows: list[Row]
    opponents: list[str]
    pairings: list[Pairing]
    left_out: dict[str, str]


def share_matrix(
    pairings: Sequence[Pairing], num_players: int, adjusted: bool = False
) -> dict[tuple[str, str], Estimate]:
    """Return the win share of each agent against each other one, by the names of both.

    With two players a pairing gives both: the shares of the two agents add up to 1.

    Args:
        pairings: The pairings.
        num_players: P.
        adjusted: Without the luck of the dice, for pairings where that is known.
    """
    matrix = {}
    for pairing in pairings:
        share = pairing.win_share
        if adjusted:
            if pairing.luck_adjusted is None:
                continue
            share = pairing.luck_adjusted.win_share
        matrix[pairing.agent, pairing.opponent] = share
        if num_players == 2:
            rest = Estimate(1 - share.value, 1 - share.high, 1 - share.low)
            matrix[pairing.opponent, pairing.agent] = rest
    return matrix
