"""Batch: many games in self-play, with chance drawn inside and finished games started anew.

Legend: `B` games, `P` players, `A` = 15 actions.
"""

from __future__ import annotations

from typing import Any, Final, NoReturn

import numpy as np
from numpy.typing import NDArray

from marrakech_env import chance, game
from marrakech_env.actions import NUM_ACTIONS, describe_illegal
from marrakech_env.batch_kernels import (
    fill_masks,
    fill_rolls,
    first_bad_game,
    first_illegal,
    new_arrays,
    read_only,
    step_code,
)
from marrakech_env.notation import parse_start
from marrakech_env.observation import find_form
from marrakech_env.spec import RuleSet, checked_number, resolve_rules, whole_number
from marrakech_env.state import OVER, States, as_states, write_rules

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]

_ARRAY, _INT64 = np.ndarray, np.dtype(np.int64)
_MAX_GAMES: Final = 2**63  # kernels count games in int64
_ACTIONS: Final = range(NUM_ACTIONS)
_READY, _BUSY, _BROKEN = range(3)  # a call is running; a call was interrupted


class Batch:
    """Many games at once; the caller plays every seat.

    Game i draws its chance by the keys (seed, first_game + i, episode, ...) of `chance`, so it
    does not depend on the other games or on how many there are.

    All arrays are read-only views that `step`, `reset`, `set_states` and `set_position` rewrite in
    place. Copy what shall outlast the next call. A copy of a batch, or an unpickled one, has arrays
    of its own and draws the same chance.

    One batch belongs to one thread at a time: these methods raise RuntimeError where another thread
    is inside one of them. After an interrupted one, such as by Ctrl-C, they raise RuntimeError
    until `reset`.
    """

    def __init__(
        self,
        num_games: int,
        num_players: int = 2,
        rules: str | RuleSet = "official",
        seed: int | None = 0,
        first_game: int = 0,
        observation: str | None = None,
    ) -> None:
        """Start all games at their episode 0.

        Args:
            num_games: B, at least 1.
            num_players: 2, 3 or 4.
            rules: A preset, a RULES text or a rule set.
            seed: Whole number 0..2**64-1; None takes one from the system.
            first_game: Number of game 0 in the keys of chance, at least 0.
            observation: `planes`, `flat`, `features`, or None for no observation.

        Raises:
            ValueError: An argument is not allowed; the message says what is.
        """
        games = checked_number("num_games", num_games, 1)
        self._first_game = checked_number("first_game", first_game, 0)
        if self._first_game + games > _MAX_GAMES:
            raise ValueError(f"game numbers must stay below 2**63; first_game is {first_game}")
        self._rule_set = resolve_rules(rules, num_players)
        self._seed = chance.checked_seed(seed)
        self._form = None if observation is None else find_form(observation)
        players = self._rule_set.num_players
        self._arrays = new_arrays(games, players)
        write_rules(self._arrays.start, self._rule_set)
        self._observation: NDArray[Any] | None = None
        if self._form is not None:
            self._observation = self._form.zeros(games, players)
        self._show()
        self._status = _READY
        self.reset(seed=self._seed)

    def _show(self) -> None:
        """Make what goes with the arrays: their views, and the numbers of all games."""
        games = len(self._arrays.states)
        self._all = np.arange(games)
        self._movers = np.full(games, -1)  # the observer of each game: the player to move
        self._views = self._arrays.each(read_only)
        self._seen = None if self._observation is None else read_only(self._observation)

    def __getstate__(self) -> dict[str, Any]:
        if self._status == _BUSY:
            self._refuse()
        made_by_show = ("_all", "_movers", "_views", "_seen")
        return {name: value for name, value in vars(self).items() if name not in made_by_show}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        # Unpickled arrays may be read-only, or the memory of another copy.
        self._arrays = self._arrays.each(np.copy)
        self._observation = None if self._observation is None else self._observation.copy()
        self._show()

    # ------------------------------------------------------------------------------------ views

    @property
    def num_games(self) -> int:
        """B."""
        return len(self._all)

    @property
    def num_players(self) -> int:
        """P."""
        return self._rule_set.num_players

    @property
    def rule_set(self) -> RuleSet:
        """The rules of every start."""
        return self._rule_set

    @property
    def seed(self) -> int:
        """The seed in the keys of chance."""
        return self._seed

    @property
    def first_game(self) -> int:
        """The number of game 0 in the keys of chance."""
        return self._first_game

    @property
    def states(self) -> States:
        """The games: STATE (B,), never finished."""
        return self._views.states

    @property
    def action_mask(self) -> BoolArray:
        """The legal actions: bool (B, A)."""
        return self._views.action_mask

    @property
    def observation(self) -> NDArray[Any] | None:
        """What the players to move see: the form's array (B, ...), or None without a form."""
        return self._seen

    @property
    def done(self) -> BoolArray:
        """The games that ended in the last step and stand at their next start: bool (B,)."""
        return self._views.done

    @property
    def outcomes(self) -> NDArray[np.int8]:
        """What chance did in the last step: int8 (B,), a roll, a colour, or -1 for nothing."""
        return self._views.outcomes

    @property
    def final_scores(self) -> IntArray:
        """Scores of the games that ended in the last step: int64 (B, P), 0 elsewhere."""
        return self._views.final_scores

    @property
    def final_shares(self) -> FloatArray:
        """Win shares of the games that ended in the last step: float64 (B, P), 0 elsewhere."""
        return self._views.final_shares

    @property
    def final_states(self) -> States:
        """End positions of the games that ended in the last step: STATE (B,).

        The other entries have no meaning.
        """
        return self._views.final_states

    @property
    def episode(self) -> IntArray:
        """How many starts each game had before this one: int64 (B,)."""
        return self._views.clocks["episode"]

    # ------------------------------------------------------------------------------------- play

    def reset(self, seed: int | None = None) -> None:
        """Start every game anew: episode 0 of a given seed, or each game's next episode.

        Raises:
            ValueError: A bad seed; nothing has changed then.
            RuntimeError: Another thread is inside.
        """
        if seed is not None:
            seed = chance.checked_seed(seed)
        if self._status == _BUSY:
            self._refuse()
        self._status = _BUSY
        try:
            arrays = self._arrays
            if seed is not None:
                self._seed = seed
                chance.set_clocks(arrays.clocks, seed, self._first_game)
            for i in self._all:
                chance.start_next(arrays.states, i, arrays.start, arrays.clocks)
            arrays.done[:] = False
            arrays.outcomes[:] = game.NO_OUTCOME
            arrays.final_scores[:] = 0
            arrays.final_shares[:] = 0
            self._refresh(self._all)
        except BaseException:
            self._status = _BROKEN
            raise
        self._status = _READY

    def step(self, actions: Any) -> None:
        """Take one decision of the player to move in every game.

        Args:
            actions: int (B,), legal ones.

        Raises:
            ValueError: An illegal action, or a wrong shape or dtype; no game has changed then.
            RuntimeError: Another thread is inside, or a call was interrupted.
        """
        self.step_games(self._all, actions)

    def step_games(self, games: IntArray, actions: Any) -> None:
        """Take one decision in the listed games only; the others wait.

        `done`, `outcomes` and the final arrays speak of this call alone.

        Args:
            games: int (N,), distinct game numbers 0..B-1.
            actions: int (N,), a legal action for each of them.

        Raises:
            ValueError: As `step`; or `games` are no such numbers.
            RuntimeError: As `step`.
        """
        if games is not self._all:
            games = self._checked_games(games)
        if not _is_int64(actions, games):
            actions = self._checked_actions(actions, games)
        code = step_code()
        if self._status != _READY:
            self._refuse()
        # Threads and signals come between calls: not before the next line, nor behind the last one.
        self._status = _BUSY
        try:
            bad = code(*self._arrays, games, actions)
            if bad < 0 and self._form is not None:
                self._observe(games)
        except BaseException:
            self._status = _BROKEN
            raise
        self._status = _READY
        if bad >= 0:
            raise ValueError(self._describe_illegal(int(games[bad]), actions[bad]))

    def check_actions(self, actions: Any, games: IntArray) -> IntArray:
        """Check actions for some games and return them as int64, one for each of `games`.

        Raises:
            ValueError: Names the game, the action and the legal ones; or `games` are no distinct
                game numbers.
        """
        return self._checked_actions(actions, self._checked_games(games))

    def next_rolls(self, games: IntArray) -> IntArray:
        """What the die of the next walk will show in the listed games: int64 (N,), 1..4.

        Use it to measure luck after the decision is taken; no agent may be told.

        Raises:
            ValueError: `games` are no distinct game numbers 0..B-1.
        """
        games = self._checked_games(games)
        rolls = np.empty(len(games), np.int64)
        fill_rolls(self._arrays.clocks, games, rolls)
        return rolls

    def set_states(self, states: States) -> None:
        """Put every game to a state; mask and observation follow.

        A game plays on by the rules in its state, and by those of the batch from its next start.
        Its dice are those of its episode from turn 0 on: the same states get the same dice again.

        Args:
            states: STATE (B,), unfinished games with the batch's number of players.

        Raises:
            ValueError: Other states; nothing has changed then.
            RuntimeError: As `step`.
        """
        states = as_states(states)
        if len(states) != self.num_games:
            raise ValueError(f"states must have shape ({self.num_games},), not {states.shape}")
        players = int(states["num_players"][0])
        if players != self.num_players:
            raise ValueError(f"the states have {players} players, wanted: {self.num_players}")
        over = np.flatnonzero(states["phase"] == OVER)
        if len(over):
            raise ValueError(f"game {over[0]} of the states is over, nobody can move")
        self._put(self._all, states)

    def set_position(self, game: int, text: str) -> None:
        """Put one game to a position; else as `set_states`.

        Raises:
            ValueError: A bad text, a finished game, another number of players, or a game number
                outside 0..B-1; nothing has changed then.
            RuntimeError: As `step`.
        """
        number = checked_number("game", game, 0, self.num_games - 1)
        self._put(self._all[number : number + 1], parse_start(text, self.num_players))

    def _put(self, games: IntArray, states: States) -> None:
        """Put the listed games to checked states."""
        if self._status != _READY:
            self._refuse()
        self._status = _BUSY
        try:
            self._arrays.states[games] = states
            self._arrays.clocks["turn"][games] = 0
            self._refresh(games)
        except BaseException:
            self._status = _BROKEN
            raise
        self._status = _READY

    def _refresh(self, games: IntArray) -> None:
        """Write mask and observation of the listed games anew."""
        fill_masks(self._arrays.states, games, self._arrays.action_mask)
        self._observe(games)

    def _observe(self, games: IntArray) -> None:
        """Write the observation of the listed games, where there is one."""
        if self._form is not None and self._observation is not None:
            self._form.fill(self._arrays.states, games, self._movers, self._observation)

    # ----------------------------------------------------------------------------------- errors

    def _refuse(self) -> NoReturn:
        if self._status == _BUSY:
            raise RuntimeError(
                "another thread is inside this batch; one batch belongs to one thread at a time"
            )
        raise RuntimeError("a call was interrupted half way; reset() starts the games anew")

    def _checked_games(self, games: Any) -> IntArray:
        """Game numbers as int64 (N,), or a ValueError that names the first wrong one."""
        array = np.asarray(games)
        if array.ndim != 1 or array.dtype.kind not in "iu":
            raise ValueError(
                f"games must be integers of shape (N,), not {array.dtype} of shape {array.shape}"
            )
        numbers = array.astype(np.int64)  # too large ones become negative
        bad = first_bad_game(numbers, np.zeros(self.num_games, np.bool_))
        if bad >= 0:
            raise ValueError(
                f"games must be distinct numbers 0..{self.num_games - 1}; number {bad} of them is "
                f"{array[bad]}" + (", once more" if array[bad] in array[:bad] else "")
            )
        return numbers

    def _checked_actions(self, actions: Any, games: IntArray) -> IntArray:
        """As `check_actions`, for game numbers that are checked."""
        array = np.asarray(actions)
        if array.shape != games.shape or array.dtype.kind not in "iu":
            raise ValueError(self._describe_bad_actions(array, games))
        numbers = np.ascontiguousarray(array, np.int64)
        if array.dtype == np.uint64 and (array > NUM_ACTIONS).any():
            numbers = np.minimum(array, NUM_ACTIONS).astype(np.int64)
        bad = first_illegal(self._arrays.action_mask, games, numbers)
        if bad >= 0:
            raise ValueError(self._describe_illegal(int(games[bad]), array[bad]))
        return numbers

    def _describe_illegal(self, game: int, action: Any) -> str:
        return describe_illegal(game, action, self._arrays.action_mask[game])

    def _describe_bad_actions(self, array: NDArray[Any], games: IntArray) -> str:
        """Say what is wrong with actions that are no integers of the right shape."""
        if array.shape == games.shape and len(games):
            values = array.tolist()
            wrong = (j for j, value in enumerate(values) if whole_number(value) not in _ACTIONS)
            bad = next(wrong, 0)
            return self._describe_illegal(int(games[bad]), repr(values[bad])) + (
                f" (actions must be whole numbers, not {array.dtype})"
            )
        told = f"actions must be integers of shape {games.shape}, one a game, not {array.dtype} of "
        told += f"shape {array.shape}"
        for number in games[:1]:
            legal = ", ".join(map(str, np.flatnonzero(self._arrays.action_mask[number])))
            told += f"; legal actions of game {number}: {legal}"
        return told


def _is_int64(actions: Any, games: IntArray) -> bool:
    """Whether actions already have the one form that the kernel takes."""
    return (
        type(actions) is _ARRAY
        and actions.dtype is _INT64
        and actions.shape == games.shape
        and actions.flags.carray
    )
