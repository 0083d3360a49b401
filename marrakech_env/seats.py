"""SeatedBatch: many games in which opponents play some of the seats inside.

The Gymnasium and Stable-Baselines3 environments are thin shells around it. It plays every game on
to the next decision of the *caller* (the learner), so each step shows the caller all that happened
up to that decision.

Legend: `B` games, `P` players, `E` games that ended, `A` = 15 actions.

The agents at a game depend on (seed, game, episode) alone, and so does what `random` plays (see
`opponents`). All other agents draw from one NumPy Generator for the whole batch, so their draws
depend on the number of games too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, Final, NoReturn, TypeVar

import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Box
from numpy.typing import NDArray

from marrakech_env import chance, rules
from marrakech_env.agent import ask
from marrakech_env.batch import Batch
from marrakech_env.notation import parse_start
from marrakech_env.observation import find_form
from marrakech_env.opponents import CALLER, ROTATE, Mixture, checked_seat
from marrakech_env.ownership import in_use, interrupted, own_arrays
from marrakech_env.rewards import check_scheme, final_rewards, margins
from marrakech_env.seat_kernels import NO_ACTION, play_code, seat_all
from marrakech_env.spec import RuleSet, checked_number
from marrakech_env.state import STATE, States

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]
Told = TypeVar("Told")

MAX_ENVS: Final = 2**20
"""Most games of one vector environment."""

_TRIES: Final = 100
# No game runs yet or any more; a call is inside; the last call was interrupted; after `close`.
_RUNNING, _IDLE, _BUSY, _BROKEN, _CLOSED = range(5)


def checked_num_envs(num_envs: Any) -> int:
    """Return the number of games of a vector environment.

    Raises:
        ValueError: No whole number 1..MAX_ENVS.
    """
    return checked_number("num_envs", checked_number("num_envs", num_envs, 1), 1, MAX_ENVS)


class SeatedBatch:
    """A `Batch` that asks the caller only for the decisions of the caller's own seats.

    One seated batch belongs to one thread at a time: a call from a second thread, or from an
    opponent inside, raises RuntimeError. A call that does not reach its end (Ctrl-C, an opponent's
    error) leaves games half played: every call raises ResetNeeded until `reset`. A copy or an
    unpickled one has arrays of its own.

    Attributes:
        batch: The games. Between two calls the player to move in each of them is the caller's
            (unless it is over, without autoreset); `batch.done` and the final arrays speak of the
            last step.
        num_games: B.
        num_players: P.
        self_play: Whether the caller plays every seat (opponents=None).
        rng: The Generator of the opponents, made anew from each given seed.
        actors: int64 (B,), the seats that acted for the caller in the last step.
        rewards: float64 (B, P), what every seat received from the caller's last decision to now.
        ended: int64 (E,), the games that ended in the last step, ascending.
    """

    def __init__(
        self,
        num_games: int,
        num_players: int = 2,
        rules: str | RuleSet = "official",
        observation: str = "features",
        reward: str = "win",
        opponents: Any = "random",
        seat: int | str = 0,
        *,
        first_game: int = 0,
        autoreset: bool = True,
    ) -> None:
        """Make the games; `reset` starts them.

        Args:
            num_games: B, at least 1.
            num_players: 2, 3 or 4.
            rules: A preset, a RULES text or a rule set.
            observation: `planes`, `flat` or `features`.
            reward: `win`, `score` or `dense`.
            opponents: See `set_opponents`; None: the caller plays every seat.
            seat: The caller's seat 0..P-1, or `rotate`; without meaning where opponents is None.
            first_game: Number of game 0 in the keys of chance.
            autoreset: Whether a finished game goes on to the next episode within the same step;
                else it stays over until `reset`.

        Raises:
            ValueError: An argument is not allowed; the message says what is.
        """
        self.batch = Batch(num_games, num_players, rules, first_game=first_game)
        self.num_games = games = self.batch.num_games
        self.num_players = players = self.batch.num_players
        self.reward_scheme = check_scheme(reward)
        self.rng: np.random.Generator | None = None
        self.self_play = opponents is None
        self._autoreset = autoreset
        self._status = _IDLE
        self._seat = checked_seat(seat, players)
        self._form = find_form(observation)
        self._shape = self._form.shape(players)
        self._all = np.arange(games)
        self._movers = np.full(games, -1)  # observers: the players to move
        self._no_actions = np.full(games, NO_ACTION)
        self._lineups = np.full((games, players), CALLER)
        self._final_lineups = self._lineups.copy()
        self._awaited = np.full(games, CALLER)  # who has to decide: CALLER or an agent's number
        self._margins = np.zeros((games, players))
        self._mixture = Mixture.of_caller(players)
        if not self.self_play:
            self.set_opponents(opponents)
        self.actors = np.zeros(games, np.int64)
        self.rewards: FloatArray = np.zeros((games, players))
        self.ended = self._all[:0]

    def __getstate__(self) -> dict[str, Any]:
        if self._status == _BUSY:
            raise in_use()
        return self.__dict__

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(own_arrays(state))
        mixture = self._mixture
        self._mixture = replace(mixture, numbers=mixture.numbers.copy(), edges=mixture.edges.copy())

    def _refuse(self) -> NoReturn:
        """Raise what a call gets that the games are not ready for."""
        if self._status == _CLOSED:
            raise ClosedEnvironmentError("this environment is closed; make a new one")
        if self._status == _BUSY:
            raise in_use()
        if self._status == _BROKEN:
            raise interrupted()
        raise ResetNeeded("no game is running: call reset() before step()")

    def check_running(self) -> None:
        """Raise the error that `step` raises for any actions, if it does."""
        if self._status != _RUNNING:
            self._refuse()

    # -------------------------------------------------------------------------------- opponents

    def set_opponents(self, opponents: Any) -> None:
        """Change the agents of the other seats, in all games that start from now on.

        Args:
            opponents: An agent (all that `load_agent` takes) for all other seats; a dict agent ->
                weight, from which one agent is drawn for each game and takes all other seats; or
                a list of P entries, one a seat, each an agent or a dict that is drawn from for
                this seat alone (the entry of the caller's own seat is ignored).

        Raises:
            ValueError: No such agent, a weight that is no number of at least 0, weights that add
                up to 0, a list of another length, or None (or anything, where every seat is the
                caller's); nothing has changed then.
            RuntimeError: Another call is inside.
        """
        if self.self_play or opponents is None:
            raise ValueError(
                f"opponents={opponents!r}: whether there are opponents is decided when the "
                "environment is made (opponents=None: the caller plays every seat)"
            )
        mixture = Mixture.read(opponents, self.num_players, self._seat)
        status = self._status
        if status == _BUSY:
            self._refuse()
        try:
            self._status = _BUSY
            mixture, lineups = mixture.beside(self._mixture, self._lineups)
            self._mixture, self._lineups = mixture, lineups
        finally:
            self._status = status

    def _ask(self, number: int, games: IntArray) -> IntArray:
        """The legal actions that an agent chooses in some games."""
        agent, name, rng = self._mixture.agents[number], self._mixture.names[number], self.rng
        assert agent is not None
        assert rng is not None
        # NumPy's `states[games]` copies records field by field, in 30 times the time.
        answer = ask(agent, name, self.batch._arrays.states.take(games), rng)
        try:
            return self.batch._checked_actions(answer, games)
        except ValueError as error:
            raise ValueError(f"opponent {name!r}: {error}") from None

    # ------------------------------------------------------------------------------------- play

    def reset(
        self,
        seed: int | None = None,
        positions: Sequence[str | None] = (),
        tell: Callable[[], Told] = lambda: None,  # type: ignore[assignment, return-value]
    ) -> Told:
        """Start every game anew and play on to the caller's first decisions.

        A position whose game the opponents end before the caller's first decision is started
        again with the dice of the next episode, until the caller has a decision.

        Args:
            seed: Episode 0 of this seed; None: each game's next episode (at the first reset:
                episode 0 of a seed from the system).
            positions: B position texts to start from, None for the usual start; empty: B times
                None.
            tell: Makes what is returned. The call has not reached its end before.

        Raises:
            ValueError: A bad seed or text, a text whose game is over or has another number of
                players, or in which the caller's seat is eliminated (any seat, if it rotates);
                nothing has changed then. Also where the caller got no decision from a position
                in 100 tries; then only another reset helps.
            RuntimeError: Another call is inside.
            ClosedEnvironmentError: After `close`.
        """
        if self._status == _CLOSED:
            self._refuse()
        games, starts = self._read(positions)
        if seed is not None or self.rng is None:
            seed = chance.checked_seed(seed)
        after = self._status
        if after == _BUSY:
            self._refuse()
        try:
            self._status, after = _BUSY, _BROKEN
            self._start(seed, games, starts, positions)
            told = tell()
            after = _RUNNING
            return told
        finally:
            self._status = after

    def _start(
        self, seed: int | None, games: IntArray, starts: States, positions: Sequence[str | None]
    ) -> None:
        """`reset` from checked arguments; `games` start from the states in `starts`."""
        arrays, mixture = self.batch._arrays, self._mixture
        self.batch.reset(seed)
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        seat_all(
            arrays.clocks,
            self.batch.first_game,
            self._seat,
            mixture.shared,
            mixture.numbers,
            mixture.edges,
            self._lineups,
        )
        self._margins[:] = 0.0
        self._margins[games] = margins(rules.scores(starts)) if len(games) else 0.0
        tried = np.arange(len(games))  # which of the positions have to be put up
        for _ in range(_TRIES):
            arrays.states[games[tried]] = starts[tried]
            arrays.clocks["turn"][games[tried]] = 0
            self._play_on(self._all, self._no_actions, autoreset=True)
            tried = np.flatnonzero(arrays.done[games])
            arrays.done[:] = False
            if not len(tried):
                return
        raise ValueError(
            f"game {games[tried[0]]}: in {_TRIES} tries the game of this position ended before "
            f"the caller's first decision: {positions[games[tried[0]]]}"
        )

    def check_positions(self, positions: Sequence[str | None]) -> None:
        """Raise the ValueError that `reset` raises for these positions."""
        self._read(positions)

    def step(
        self,
        actions: Any,
        tell: Callable[[], Told] = lambda: None,  # type: ignore[assignment, return-value]
    ) -> Told:
        """Take the caller's decision in every game and play on to the next one.

        Args:
            actions: int (B,), legal ones.
            tell: Makes what is returned. The call has not reached its end before.

        Raises:
            ResetNeeded: Before the first `reset`, after the end (without autoreset), and after a
                call that did not reach its end.
            ValueError: An illegal action, or a wrong shape or dtype; no game has changed then.
                Or an opponent's illegal action; then only a reset helps.
            RuntimeError: Another call is inside.
            ClosedEnvironmentError: After `close`.
        """
        after = self._status
        if after != _RUNNING:
            self._refuse()
        try:
            self._status = _BUSY
            numbers = self.batch._checked_actions(self._copied(actions), self._all)
            after = _BROKEN
            self.actors = self.batch.states["player"].astype(np.int64)
            self.batch._arrays.done[:] = False
            self._play_on(self._all, numbers, self._autoreset)
            self.ended = self.batch.done.nonzero()[0]
            self._pay()
            told = tell()
            after = _RUNNING if self._autoreset or not len(self.ended) else _IDLE
            return told
        finally:
            self._status = after

    def _copied(self, actions: Any) -> NDArray[Any]:
        """The caller's actions as an array that no other thread can change."""
        try:
            return np.array(actions)
        except Exception as error:
            raise ValueError(
                f"actions must be integers of shape ({self.num_games},), one a game; "
                f"these are no array: {error}"
            ) from error

    def close(self) -> None:
        """Let any later `reset` or `step` raise ClosedEnvironmentError."""
        if self._status == _BUSY:
            self._refuse()
        self._status = _CLOSED

    def _play_on(self, games: IntArray, actions: IntArray, autoreset: bool) -> None:
        """Take actions in some games and let opponents decide until the caller has to."""
        waiting = self._play(games, actions, autoreset)
        while waiting:
            for number in range(1, len(self._mixture.agents)):
                asked = np.flatnonzero(self._awaited == number)
                if len(asked):
                    chosen = self._ask(number, asked)
                    waiting += self._play(asked, chosen, autoreset) - len(asked)

    def _play(self, games: IntArray, actions: IntArray, autoreset: bool) -> int:
        """See `seat_kernels.play`."""
        arrays, mixture = self.batch._arrays, self._mixture
        waiting: int = play_code()(
            arrays.states,
            games,
            actions,
            arrays.start,
            arrays.clocks,
            arrays.action_mask,
            arrays.done,
            arrays.final_scores,
            arrays.final_shares,
            arrays.final_states,
            self.batch.first_game,
            self._seat,
            mixture.shared,
            mixture.numbers,
            mixture.edges,
            self._lineups,
            self._final_lineups,
            self._awaited,
            autoreset,
        )
        return waiting

    def _pay(self) -> None:
        """Work out `rewards` of the step that has just been played."""
        batch, ended = self.batch, self.ended
        if self.reward_scheme == "dense":
            now = margins(rules.scores(batch._arrays.states))
            self.rewards = now - self._margins
            self.rewards[ended] = margins(batch.final_scores[ended]) - self._margins[ended]
            now[ended] = 0.0  # their next games started even, before the opponents' first moves
            self._margins = now
            return
        self.rewards = np.zeros((self.num_games, self.num_players))
        if len(ended):
            self.rewards[ended] = final_rewards(
                self.reward_scheme, batch.final_shares[ended], batch.final_scores[ended]
            )

    def _read(self, positions: Sequence[str | None]) -> tuple[IntArray, States]:
        """The games that start from a position, int64 (N,), and their states, STATE (N,)."""
        games = [g for g, text in enumerate(positions) if text is not None]
        starts = np.zeros(len(games), STATE)
        known: dict[str, Any] = {}
        for i, g in enumerate(games):
            text: Any = positions[g]  # from an option, so it may be anything
            if not isinstance(text, str) or text not in known:
                position = parse_start(text, self.num_players)
                self._check_seat(position, text)
                known[text] = position[0]
            starts[i] = known[text]
        return np.array(games, np.int64), starts

    def _check_seat(self, position: States, text: str) -> None:
        """Raise ValueError where the caller's seat could be an eliminated one."""
        if self.self_play:
            return
        out = np.flatnonzero(position["eliminated"][0])
        if self._seat == ROTATE and len(out):
            raise ValueError(f"seat='rotate' wants a position with nobody eliminated: {text}")
        if self._seat in out:
            raise ValueError(f"the caller's seat {self._seat} is eliminated in: {text}")

    # ------------------------------------------------------------------------------------ views

    def look(self, view: Callable[[Batch], Told]) -> Told:
        """Return what a function makes of the games, with no other call inside.

        Raises:
            RuntimeError: Another call is inside.
            ResetNeeded: After a call that did not reach its end.
        """
        status = self._status
        if status in (_BUSY, _BROKEN):
            self._refuse()
        try:
            self._status = _BUSY
            return view(self.batch)
        finally:
            self._status = status

    def action_masks(self) -> NDArray[np.bool_]:
        """Return the legal actions: a new array, bool (B, A)."""
        return self.look(lambda batch: batch.action_mask.copy())

    def states(self) -> States:
        """Return a copy of the games, STATE (B,)."""
        return self.look(lambda batch: batch.states.take(self._all))

    def own_rewards(self) -> FloatArray:
        """Return what the last step's `actors` received: a new array, float64 (B,)."""
        return self.rewards[self._all, self.actors]

    @property
    def observation_space(self) -> Box:
        """The space of one observation."""
        return self._form.space(self.num_players)

    def observe(self) -> NDArray[Any]:
        """Return what the players to move see: a new array (B, ...)."""
        out = np.empty((self.num_games, *self._shape), self._form.dtype)
        self._form.fill(self.batch._arrays.states, self._all, self._movers, out)
        return out

    def final_observations(self) -> NDArray[Any]:
        """Return what the last step's `actors` see at the ends of games: a new array (E, ...)."""
        out = np.empty((len(self.ended), *self._shape), self._form.dtype)
        states, observers = self.batch.final_states.take(self.ended), self.actors[self.ended]
        self._form.fill(states, self._all[: len(self.ended)], observers, out)
        return out

    def final_facts(self) -> dict[str, NDArray[Any]]:
        """Return the results of the games that ended, in new arrays with one row each.

        Returns:
            `final_scores` int64 (E, P), in dirhams and squares; `final_shares` float64 (E, P), of
            the win; `final_ranks` int64 (E, P), 1 is best; `rewards` float64 (E, P), of the last
            step; `player` int64 (E,), the caller's seat (in self-play the one that acted);
            `opponents`, objects (E,): a tuple of P names, None for the caller's seats.
        """
        batch, ended = self.batch, self.ended
        names = np.empty(len(ended), object)
        known: dict[tuple[int, ...], tuple[str | None, ...]] = {}
        for row, lineup in enumerate(map(tuple, self._final_lineups[ended].tolist())):
            if lineup not in known:
                known[lineup] = tuple(
                    None if n == CALLER else self._mixture.names[n] for n in lineup
                )
            names[row] = known[lineup]
        return {
            "final_scores": batch.final_scores[ended],
            "final_shares": batch.final_shares[ended],
            "final_ranks": rules.ranks(batch.final_states.take(ended)),
            "rewards": self.rewards[ended],
            "player": self.actors[ended],
            "opponents": names,
        }
