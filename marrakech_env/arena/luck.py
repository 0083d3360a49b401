"""The luck of the dice, taken out of what a game gave.

A game's result is skill and luck. The luck of a roll can be computed, because the law of chance is
known: with a baseline V that says what each seat can expect of a position, it is

    V(position after the roll that came) - sum over rolls of p(roll) * V(position after that roll)

whose expectation is 0 for any baseline, however bad. So the share of the win minus the luck of all
rolls of the game has the expectation of the share itself, and the better the baseline, the less
variance: a control variate, the part for chance of AIVAT (N. Burch, M. Schmid, M. Moravcik,
D. Morrill, M. Bowling: AIVAT: A new variance reduction technique for agent evaluation in imperfect
information games, 2018). The colours of the next rugs are left in: they decide little.

A baseline that is too sure of itself makes too much of the luck. So the luck counts with the weight
that leaves the least variance (`without_luck`), and no baseline does harm.

Legend: `D` deals, `B` games, `N` of them that are played on, `P` players, `F` = 4 faces of the die.
"""

from __future__ import annotations

from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from marrakech_env import rules
from marrakech_env.agent import agent_name, load_agent
from marrakech_env.batch import Batch
from marrakech_env.state import STEER, STEER_AT_END, WALK, States
from marrakech_env.tables import DIE_PROBABILITY

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

DEFAULT_BASELINE: Final = "expectimax"
FEWEST_DEALS: Final = 100
"""By fewer deals the weight of the luck is not judged; it counts in full."""
TINY: Final = 1e-12
"""A smaller variance of shares or dirhams is rounding."""
_FACES: Final = np.flatnonzero(DIE_PROBABILITY)


@runtime_checkable
class Baseline(Protocol):
    """Whoever can tell what every seat can expect."""

    def evaluate(self, states: States) -> tuple[Any, Any]:
        """Values games for all their seats.

        Args:
            states: STATE (B,), in any phase, with one number of players; not to be changed. The
                same state must always get the same values.

        Returns:
            Two float arrays (B, P): the expected share of the win and the expected final margin
            (score minus the best other one, in dirhams) of each seat, exact in finished games.
        """
        ...


def load_baseline(spec: Any, num_players: int) -> Baseline:
    """A baseline: an object with a method `evaluate`, or what `load_agent` takes.

    Raises:
        ValueError: It cannot be loaded, or has no method `evaluate`.
    """
    is_one = isinstance(spec, Baseline) and not isinstance(spec, type)
    agent = spec if is_one else load_agent(spec, num_players)
    if not isinstance(agent, Baseline):
        raise ValueError(
            f"agent {agent_name(agent, spec)!r} cannot be the baseline of luck: it has no method "
            f"`evaluate`; {DEFAULT_BASELINE} has one"
        )
    return agent


class Luck:
    """The luck that the seats of some games have had so far.

    Attributes:
        shares: float64 (B, P), in shares of the win.
        margins: float64 (B, P), in dirhams.
    """

    def __init__(self, baseline: Baseline, num_games: int, num_players: int) -> None:
        """Starts with none."""
        self.shares = np.zeros((num_games, num_players))
        self.margins = np.zeros((num_games, num_players))
        self._baseline = baseline

    def add(self, batch: Batch, games: IntArray, actions: IntArray) -> None:
        """Adds the luck of the coming step.

        Args:
            batch: The games, before the step.
            games: int64 (N,), those that will be stepped.
            actions: int64 (N,), their decisions, legal ones.

        Raises:
            ValueError: The baseline gives anything but finite numbers of shape (N, P).
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
        values = [np.asarray(v, np.float64) for v in self._baseline.evaluate(after)]
        for array in values:
            if array.shape != (len(after), players) or not np.isfinite(array).all():
                raise ValueError(
                    f"a baseline's `evaluate` must give two arrays of {len(after)} x {players} "
                    f"finite numbers; one has shape {array.shape}, or numbers that are not finite"
                )
        return np.reshape(values, (2, len(_FACES), len(states), players))


def without_luck(results: FloatArray, luck: FloatArray) -> FloatArray:
    """Results of deals minus their luck, weighted so that they vary least: float64 (D,).

    The weight for every other deal is fitted to the deals in between: a weight that knows nothing
    of a deal's own luck leaves the mean as it is.

    Args:
        results: float64 (D,), what the deals gave.
        luck: float64 (D,), how much of it was luck.
    """
    weights = np.ones(len(luck))
    for start in (0, 1):
        others, their_luck = results[1 - start :: 2], luck[1 - start :: 2]
        if len(luck) >= FEWEST_DEALS and their_luck.var() > TINY:
            covariance = ((others - others.mean()) * (their_luck - their_luck.mean())).mean()
            weights[start::2] = covariance / their_luck.var()
    return np.asarray(results - weights * luck)
