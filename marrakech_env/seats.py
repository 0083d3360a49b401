"""SeatedBatch: many games in which opponents play some of the seats inside.

The Gymnasium and Stable-Baselines3 environments are thin shells around it. It plays every game on
until the *caller* (the learner) has to decide, so each step gives the caller all that happened up
to his next decision.

Legend: `B` games, `P` players, `E` games that ended, `A` = 15 actions.

Which agents sit at a game depends on (seed, game, episode) alone, and so does what `random` plays
(see `opponents`). All other agents draw from one NumPy Generator for the whole batch, so what they
draw depends on the number of games too.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.spaces import Box
from numpy.typing import NDArray

from marrakech_env import chance, rules
from marrakech_env.batch import Batch
from marrakech_env.notation import parse_start
from marrakech_env.observation import find_form
from marrakech_env.opponents import CALLER, ROTATE, Mixture, checked_seat
from marrakech_env.rewards import check_scheme, final_rewards, margins
from marrakech_env.seat_kernels import NO_ACTION, play_code, seat_all
from marrakech_env.spec import RuleSet
from marrakech_env.state import States

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_TRIES: Final = 100


class SeatedBatch:
    """A `Batch` that asks the caller only for the decisions of his own seats.

    Attributes:
        batch: The games. Between two calls the player to move in each of them is the caller's
            (unless it is over, without autoreset); `batch.done` and the final arrays speak of the
            last step.
        num_games: B.
        num_players: P.
        self_play: Whether the caller plays every seat (opponents=None).
        rng: What opponents draw from; begun anew from each given seed.
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
        """Makes the games; `reset` starts them.

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
        self._is_running = False  # a reset was made, and no end or error came after it
        self._is_closed = False
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

    # -------------------------------------------------------------------------------- opponents

    def set_opponents(self, opponents: Any) -> None:
        """Changes who plays the other seats, in all games that start from now on.

        Args:
            opponents: An agent (all that `load_agent` takes) for all other seats; a dict agent ->
                weight, from which one agent is drawn for each game and takes all other seats; or
                a list of P entries, one a seat, each an agent or a dict that is drawn from for
                this seat alone (the entry of the caller's own seat is ignored).

        Raises:
            ValueError: No such agent, a weight that is no number of at least 0, weights that add
                up to 0, a list of another length, or None (or anything, where every seat is the
                caller's); nothing has changed then.
        """
        if self.self_play or opponents is None:
            raise ValueError(
                f"opponents={opponents!r}: whether there are opponents is decided when the "
                "environment is made (opponents=None: the caller plays every seat)"
            )
        mixture = Mixture.read(opponents, self.num_players, self._seat)
        self._mixture, self._lineups = mixture.beside(self._mixture, self._lineups)

    def _ask(self, number: int, games: IntArray) -> IntArray:
        """The legal actions that an agent chooses in some games."""
        agent, name, rng = self._mixture.agents[number], self._mixture.names[number], self.rng
        assert agent is not None
        assert rng is not None
        try:
            # NumPy's `states[games]` copies records field by field, in 30 times the time.
            actions = agent.act(self.batch.states.take(games), rng)
        except Exception as error:
            error.add_note(f"raised by the opponent {name!r}")
            raise
        try:
            return self.batch._checked_actions(actions, games)
        except ValueError as error:
            raise ValueError(f"opponent {name!r}: {error}") from None

    # ------------------------------------------------------------------------------------- play

    def reset(self, seed: int | None = None, positions: Sequence[str | None] = ()) -> None:
        """Starts every game anew and plays on to the caller's first decisions.

        A position whose game the opponents end before the caller's first decision is started
        again with the dice of the next episode, until he has one to take.

        Args:
            seed: Episode 0 of this seed; None: each game's next episode (at the first reset:
                episode 0 of a seed from the system).
            positions: B position texts to start from, None for the usual start; empty: B times
                None.

        Raises:
            ValueError: A bad seed or text, a text whose game is over or has another number of
                players, or in which the caller's seat is eliminated (any seat, if it rotates);
                nothing has changed then. Also where the caller got no decision from a position
                in 100 tries; then only another reset helps.
            ClosedEnvironmentError: After `close`.
        """
        self._check_open()
        given = [g for g, text in enumerate(positions) if text is not None]
        starts = self._read(positions, given)
        if seed is not None or self.rng is None:
            seed = chance.checked_seed(seed)
        self.batch.reset(seed)
        if seed is not None:
            self.rng = np.random.default_rng(seed)
        self._is_running = False
        seat_all(
            self.batch._arrays.clocks,
            self.batch.first_game,
            self._seat,
            self._mixture.shared,
            self._mixture.numbers,
            self._mixture.edges,
            self._lineups,
        )
        self._margins[:] = 0.0
        games = np.array(given, np.int64)
        if given:
            self._margins[games] = margins(rules.scores(starts[games]))
        for _ in range(_TRIES):
            self.batch._arrays.states[games] = starts[games]
            self.batch._arrays.clocks["turn"][games] = 0
            self._play_on(self._all, self._no_actions, autoreset=True)
            games = np.flatnonzero(self.batch.done)
            self.batch._arrays.done[:] = False
            if not len(games):
                self._is_running = True
                return
        raise ValueError(
            f"game {games[0]}: in {_TRIES} tries the game of this position ended before the "
            f"caller's first decision: {positions[games[0]]}"
        )

    def check_positions(self, positions: Sequence[str | None]) -> None:
        """Raises the ValueError that `reset` would for these positions, before it is called."""
        self._read(positions, [g for g, text in enumerate(positions) if text is not None])

    def step(self, actions: Any) -> None:
        """Takes the caller's decision in every game and plays on to his next one.

        Args:
            actions: int (B,), legal ones.

        Raises:
            ResetNeeded: Before the first `reset`, after the end (without autoreset), and after an
                error that broke a step.
            ValueError: An illegal action, or a wrong shape or dtype; no game has changed then.
                Or an opponent's illegal action; then only a reset helps.
            ClosedEnvironmentError: After `close`.
        """
        self._check_open()
        if not self._is_running:
            raise ResetNeeded("no game is running: call reset() before step()")
        batch = self.batch
        numbers = batch._checked_actions(actions, self._all)
        self._is_running = False
        self.actors = batch.states["player"].astype(np.int64)
        batch._arrays.done[:] = False
        self._play_on(self._all, numbers, self._autoreset)
        self.ended = batch.done.nonzero()[0]
        self._pay()
        self._is_running = self._autoreset or not len(self.ended)

    def close(self) -> None:
        """Lets any later `reset` or `step` raise ClosedEnvironmentError."""
        self._is_closed = True

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedEnvironmentError("this environment is closed; make a new one")

    def _play_on(self, games: IntArray, actions: IntArray, autoreset: bool) -> None:
        """Takes actions in some games and lets opponents decide until the caller has to."""
        waiting = self._play(games, actions, autoreset)
        while waiting:
            for number in range(1, len(self._mixture.agents)):
                asked = np.flatnonzero(self._awaited == number)
                if len(asked):
                    chosen = self._ask(number, asked)
                    waiting += self._play(asked, chosen, autoreset) - len(asked)

    def _play(self, games: IntArray, actions: IntArray, autoreset: bool) -> int:
        """See `seat_kernels.play`."""
        arrays = self.batch._arrays
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
            self._mixture.shared,
            self._mixture.numbers,
            self._mixture.edges,
            self._lineups,
            self._final_lineups,
            self._awaited,
            autoreset,
        )
        return waiting

    def _pay(self) -> None:
        """Works out `rewards` of the step that has just been played."""
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

    def _read(self, positions: Sequence[str | None], given: list[int]) -> States:
        """The states of position texts, STATE (B,), checked before anything is changed."""
        starts = self.batch.states.take(self._all)
        known: dict[str, Any] = {}
        for g in given:
            text: Any = positions[g]  # from an option, so it may be anything
            if not isinstance(text, str) or text not in known:
                position = parse_start(text, self.num_players)
                self._check_seat(position, text)
                known[text] = position[0]
            starts[g] = known[text]
        return starts

    def _check_seat(self, position: States, text: str) -> None:
        """Raises ValueError where the caller's seat could be an eliminated one."""
        if self.self_play:
            return
        out = np.flatnonzero(position["eliminated"][0])
        if self._seat == ROTATE and len(out):
            raise ValueError(f"seat='rotate' wants a position with nobody eliminated: {text}")
        if self._seat in out:
            raise ValueError(f"the caller's seat {self._seat} is eliminated in: {text}")

    # ------------------------------------------------------------------------------------ views

    @property
    def observation_space(self) -> Box:
        """The space of one observation."""
        return self._form.space(self.num_players)

    def observe(self) -> NDArray[Any]:
        """A new array (B, ...): what the players to move see."""
        out = np.empty((self.num_games, *self._shape), self._form.dtype)
        self._form.fill(self.batch._arrays.states, self._all, self._movers, out)
        return out

    def final_observations(self) -> NDArray[Any]:
        """A new array (E, ...): what the last step's `actors` see at the ends of their games."""
        out = np.empty((len(self.ended), *self._shape), self._form.dtype)
        states, observers = self.batch.final_states.take(self.ended), self.actors[self.ended]
        self._form.fill(states, self._all[: len(self.ended)], observers, out)
        return out

    def final_facts(self) -> dict[str, NDArray[Any]]:
        """What is to be told of the games that ended, in new arrays, one row each.

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
