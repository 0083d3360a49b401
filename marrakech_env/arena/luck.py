"""The luck of the dice, subtracted from the results of games.

A result is skill plus luck. The luck of a roll can be computed, because the law of chance is known.
With a baseline V that estimates what each seat can expect of a position, it is

    V(position after the actual roll) - sum over rolls of p(roll) * V(position after that roll)

Its expectation is 0 for any baseline. So the share of the win minus the luck of all rolls has the
expectation of the share itself. A better baseline leaves less variance. This is a control variate,
the part for chance of AIVAT (N. Burch, M. Schmid, M. Moravcik, D. Morrill, M. Bowling: AIVAT: A new
variance reduction technique for agent evaluation in imperfect information games, 2018). The luck of
the rugs' colours stays in the results; it decides little.

A baseline with too extreme values overstates the luck. So the luck counts with the weight that
leaves the least variance (`without_luck`), and a bad baseline does no harm.

Legend: `D` deals, `B` games, `N` unfinished games, `P` players, `F` = 4 faces of the die.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, TypeGuard, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from marrakech_env import rules
from marrakech_env.agent import agent_name, errors_of, load_agent
from marrakech_env.batch import Batch
from marrakech_env.state import STEER, STEER_AT_END, WALK, States
from marrakech_env.tables import DIE_PROBABILITY

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

DEFAULT_BASELINE: Final = "expectimax"
FEWEST_DEALS: Final = 100
"""With fewer deals the luck counts in full; its weight cannot be estimated."""
TINY: Final = 1e-12
"""A smaller variance of shares or dirhams is rounding."""
_FACES: Final = np.flatnonzero(DIE_PROBABILITY)


@runtime_checkable
class Baseline(Protocol):
    """An agent that estimates what every seat can expect."""

    def evaluate(self, states: States) -> tuple[Any, Any]:
        """Value games for all their seats.

        Args:
            states: STATE (B,), in any phase, with one number of players; not to be changed. Equal
                states must get equal values.

        Returns:
            Two float arrays (B, P): the expected share of the win and the expected final margin
            (score minus the best other one, in dirhams) of each seat, exact in finished games.
        """
        ...


def load_baseline(spec: Any, num_players: int) -> Baseline:
    """Return a baseline from an object with a method `evaluate`, or from what `load_agent` takes.

    Raises:
        ValueError: It cannot be loaded, or has no method `evaluate`.
    """
    agent = spec if _is_baseline(spec) else load_agent(spec, num_players)
    if _is_baseline(agent):
        return agent
    raise ValueError(
        f"agent {agent_name(agent, spec)!r} cannot be the baseline of luck: it has no method "
        f"`evaluate`; {DEFAULT_BASELINE} has one"
    )


def _is_baseline(found: Any) -> TypeGuard[Baseline]:
    with errors_of(type(found).__name__):  # a property may raise anything
        return isinstance(found, Baseline) and not isinstance(found, type)


class Luck:
    """The luck of the seats of some games so far.

    Attributes:
        shares: float64 (B, P), in shares of the win.
        margins: float64 (B, P), in dirhams.
    """

    def __init__(self, baseline: Baseline, num_games: int, num_players: int) -> None:
        """Start without luck."""
        self.shares = np.zeros((num_games, num_players))
        self.margins = np.zeros((num_games, num_players))
        self._baseline = baseline
        self._name = agent_name(baseline, None)

    def add(self, batch: Batch, games: IntArray, actions: IntArray) -> None:
        """Add the luck of the coming step.

        Args:
            batch: The games, before the step.
            games: int64 (N,), the games of the step.
            actions: int64 (N,), their decisions, legal ones.

        Raises:
            ValueError: The baseline returns something else than finite numbers of shape (N, P).
            Exception: The baseline's own error, with a note that names it.
        """
        phase, flags = batch.states["phase"][games], batch.states["flags"][games]
        walks = (phase == WALK) | ((phase == STEER) & (flags & STEER_AT_END == 0))
        games, actions = games[walks], actions[walks]
        if len(games):
            values = self._values_after(batch.states[games], actions)
            expected = np.tensordot(DIE_PROBABILITY[_FACES], values, axes=(0, 1))
            face = np.searchsorted(_FACES, batch.next_rolls(games))
            luck = values[:, face, np.arange(len(games))] - expected
            self.shares[games] += luck[0]
            self.margins[games] += luck[1]

    def _values_after(self, states: States, actions: IntArray) -> FloatArray:
        """The baseline's shares and margins after every roll: (2, F, N, P)."""
        after = np.tile(states, len(_FACES))
        rolls = np.repeat(_FACES, len(states))
        rules.step(after, np.tile(actions, len(_FACES)), rolls, check=False)
        players = self.shares.shape[1]
        with errors_of(self._name):
            shares, margins = self._baseline.evaluate(after)
            values = np.asarray(shares, np.float64), np.asarray(margins, np.float64)
        for array in values:
            if array.shape != (len(after), players) or not np.isfinite(array).all():
                raise ValueError(
                    f"baseline {self._name!r}: `evaluate` must give two arrays of {len(after)} x "
                    f"{players} finite numbers; one has shape {array.shape}, or numbers that are "
                    "not finite"
                )
        return np.reshape(values, (2, len(_FACES), len(states), players))


def without_luck(results: FloatArray, luck: FloatArray) -> FloatArray:
    """Subtract the luck of deals from their results, weighted for the least variance: float64 (D,).

    The weight for every other deal is fitted to the deals in between: a weight that does not depend
    on a deal's own luck leaves the mean as it is.

    Args:
        results: float64 (D,), the results of the deals.
        luck: float64 (D,), the part of the results that is luck.
    """
    weights = np.ones(len(luck))
    for start in (0, 1):
        others, their_luck = results[1 - start :: 2], luck[1 - start :: 2]
        if len(luck) >= FEWEST_DEALS and their_luck.var() > TINY:
            covariance = ((others - others.mean()) * (their_luck - their_luck.mean())).mean()
            weights[start::2] = covariance / their_luck.var()
    return np.asarray(results - weights * luck)
