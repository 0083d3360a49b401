"""Batch: many games in self-play, with chance drawn inside and finished games started anew.

Legend: `B` games, `P` players, `A` = 15 actions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import chance, game
from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel, machine_code
from marrakech_env.kernels.unpack_bits import bytes_of, put_mask
from marrakech_env.notation import parse_start
from marrakech_env.observation import Form, find_form
from marrakech_env.spec import RuleSet, resolve_rules, whole_number
from marrakech_env.state import OVER, STATE, Int, Record, States, write_rules

IntArray = NDArray[np.int64]

_ARRAY, _INT64 = np.ndarray, np.dtype(np.int64)
_MAX_GAMES: Final = 2**63  # kernels count games in int64


class Batch:
    """Many games at once; the caller plays every seat.

    Game i draws its chance by the keys (seed, first_game + i, episode, ...) of `chance`, so it
    does not depend on the other games or on how many there are.

    These arrays are rewritten in place by `step`, `reset` and `set_position`; copy what shall
    outlast the next call:

    Attributes:
        states: STATE (B,), never finished.
        action_mask: bool (B, 15), True where legal.
        observation: The form's array (B, ...) for the player to move, or None without a form.
        done: bool (B,), the games that ended in the last step (and stand at their next start).
        final_scores: int64 (B, P), scores of those games, 0 elsewhere.
        final_shares: float64 (B, P), win shares of those games, 0 elsewhere.
        final_states: STATE (B,), the end positions of those games; elsewhere without meaning.
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
        """Starts all games at their episode 0.

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
        self.num_games = _whole("num_games", num_games, 1)
        self.first_game = _whole("first_game", first_game, 0)
        if self.first_game + self.num_games > _MAX_GAMES:
            raise ValueError(f"game numbers must stay below 2**63; first_game is {first_game}")
        self.rule_set = resolve_rules(rules, num_players)
        self.num_players = self.rule_set.num_players
        self.seed = chance.checked_seed(seed)
        self.form: Form | None = None if observation is None else find_form(observation)

        games, players = self.num_games, self.num_players
        self._start = np.zeros(1, STATE)
        write_rules(self._start, self.rule_set)
        self._all = np.arange(games)
        self._movers = np.full(games, -1)  # the observer of each game: the player to move
        self._clocks = np.zeros(games, chance.CLOCK)
        self.states: States = np.zeros(games, STATE)
        self.action_mask = np.zeros((games, NUM_ACTIONS), np.bool_)
        self.observation: NDArray[Any] | None = None
        if self.form is not None:
            self.observation = np.zeros((games, *self.form.shape(players)), self.form.dtype)
        self.done = np.zeros(games, np.bool_)
        self.final_scores = np.zeros((games, players), np.int64)
        self.final_shares = np.zeros((games, players), np.float64)
        self.final_states: States = np.zeros(games, STATE)
        self._arrays = (  # as `_step_games` takes them
            self.states,
            self._start,
            self._clocks,
            self.action_mask,
            self.done,
            self.final_scores,
            self.final_shares,
            self.final_states,
        )
        self.reset(seed=self.seed)

    @property
    def episode(self) -> IntArray:
        """How many starts each game had before this one: int64 (B,), a live view."""
        return self._clocks["episode"]

    def reset(self, seed: int | None = None) -> None:
        """Starts every game anew: episode 0 of a given seed, or each game's next episode."""
        if seed is not None:
            self.seed = chance.checked_seed(seed)
            chance.set_clocks(self._clocks, self.seed, self.first_game)
        for i in self._all:
            chance.start_next(self.states, i, self._start, self._clocks)
        self.done[:] = False
        self.final_scores[:] = 0
        self.final_shares[:] = 0
        self.refresh(self._all)

    def step(self, actions: Any) -> None:
        """Takes one decision of the player to move in every game.

        Args:
            actions: int (B,), legal ones.

        Raises:
            ValueError: An illegal action, or a wrong shape or dtype; no game has changed then.
        """
        self.step_games(self._all, actions)

    def check_actions(self, actions: Any, games: IntArray) -> IntArray:
        """Checks actions for some games and returns them as int64, one for each of `games`.

        Raises:
            ValueError: Names the game, the action and the legal ones.
        """
        array = np.asarray(actions)
        if array.shape != games.shape or array.dtype.kind not in "iu":
            raise ValueError(self._describe_bad_actions(array, games))
        numbers = np.ascontiguousarray(array, np.int64)
        if array.dtype == np.uint64 and (array > NUM_ACTIONS).any():
            numbers = np.minimum(array, NUM_ACTIONS).astype(np.int64)
        bad = _first_illegal(self.action_mask, games, numbers)
        if bad >= 0:
            raise ValueError(self._describe_illegal(int(games[bad]), array[bad]))
        return numbers

    def step_games(self, games: IntArray, actions: Any) -> None:
        """Takes one decision in the listed games only; the others wait.

        `done` and the final arrays speak of this call alone.

        Args:
            games: int64 (N,), distinct game numbers 0..B-1.
            actions: int (N,), a legal action for each of them.

        Raises:
            ValueError: As `step`.
        """
        if games is not self._all:
            games = np.ascontiguousarray(games, np.int64)
        if not _is_int64(actions, games):
            actions = self.check_actions(actions, games)
        bad = _step_code()(*self._arrays, games, actions)
        if bad >= 0:
            raise ValueError(self._describe_illegal(int(games[bad]), actions[bad]))
        if self.form is not None and self.observation is not None:
            self.form.fill(self.states, games, self._movers, self.observation)

    def next_rolls(self, games: IntArray) -> IntArray:
        """What the die of the next walk will show in the listed games: int64 (N,), 1..4.

        For measuring luck after the decision has been taken; no agent may be told.
        """
        rolls = np.empty(len(games), np.int64)
        _fill_rolls(self._clocks, games, rolls)
        return rolls

    def refresh(self, games: IntArray) -> None:
        """Writes mask and observation of the listed games anew, after a change of `states`."""
        _fill_masks(self.states, games, self.action_mask)
        if self.form is not None and self.observation is not None:
            self.form.fill(self.states, games, self._movers, self.observation)

    def set_position(self, game: int, text: str) -> None:
        """Puts one game to a position; its dice are those of its episode from turn 0.

        Raises:
            ValueError: A bad text, a finished game, another number of players, or a game number
                outside 0..B-1; nothing has changed then.
        """
        number = _whole("game", game, 0)
        if number >= self.num_games:
            raise ValueError(f"game {number} does not exist; games: 0..{self.num_games - 1}")
        position = parse_start(text, self.num_players)
        self.states[number] = position[0]
        self._clocks["turn"][number] = 0
        self.refresh(self._all[number : number + 1])

    def _describe_illegal(self, game: int, action: Any) -> str:
        legal = ", ".join(map(str, np.flatnonzero(self.action_mask[game])))
        return f"game {game}: action {action} is not legal; legal actions: {legal}"

    def _describe_bad_actions(self, array: NDArray[Any], games: IntArray) -> str:
        """Says what is wrong with actions that are no integers of the right shape."""
        if array.shape == games.shape and len(games):
            values = array.tolist()
            bad = next(
                (i for i, v in enumerate(values) if whole_number(v) not in range(NUM_ACTIONS)),
                0,
            )
            return self._describe_illegal(int(games[bad]), repr(values[bad])) + (
                f" (actions must be whole numbers, not {array.dtype})"
            )
        legal = ", ".join(map(str, np.flatnonzero(self.action_mask[games[0]])))
        return (
            f"actions must be integers of shape {games.shape}, one a game, not {array.dtype} of "
            f"shape {array.shape}; legal actions of game {games[0]}: {legal}"
        )


def _is_int64(actions: Any, games: IntArray) -> bool:
    """Whether actions already have the one form that the kernel takes."""
    return (
        type(actions) is _ARRAY
        and actions.dtype is _INT64
        and actions.shape == games.shape
        and actions.flags.carray
    )


def _whole(name: str, value: Any, low: int) -> int:
    """A whole number of at least `low`, or a ValueError that names it."""
    number = whole_number(value)
    if number is None or number < low:
        raise ValueError(f"{name} must be a whole number of at least {low}, not {value!r}")
    return number


@kernel
def _first_illegal(mask: NDArray[np.bool_], games: IntArray, actions: IntArray) -> Int:
    """Index into `games` of the first illegal action, -1 where all are legal."""
    for j in range(len(games)):
        action = actions[j]
        if action < 0 or action >= NUM_ACTIONS or not mask[games[j], action]:
            return j
    return -1


@kernel
def _fill_masks(states: States, games: IntArray, mask: NDArray[np.bool_]) -> None:
    rows = bytes_of(mask)
    for i in games:
        put_mask(rows, i, game.legal_actions(states[i]))


@kernel
def _fill_rolls(clocks: NDArray[np.void], games: IntArray, rolls: IntArray) -> None:
    for j in range(len(games)):
        rolls[j] = chance.next_roll(clocks[games[j]])


@functools.cache
def _step_code() -> Callable[..., Int]:
    """`_step_games` for the arrays of any batch: their types are always the same."""
    one = Batch(1)
    return machine_code(_step_games, *one._arrays, one._all, one._all)


@kernel
def _step_games(
    states: States,
    template: States,
    clocks: NDArray[np.void],
    mask: NDArray[np.bool_],
    done: NDArray[np.bool_],
    scores: IntArray,
    shares: NDArray[np.float64],
    final_states: States,
    games: IntArray,
    actions: IntArray,
) -> Int:
    """One decision in each listed game, in place; draws chance, starts finished games anew.

    Returns:
        -1, or the index into `games` of the first illegal action; nothing has changed then.
    """
    bad = _first_illegal(mask, games, actions)
    if bad >= 0:
        return bad
    for i in range(len(done)):
        if done[i]:
            done[i] = False
            scores[i] = 0
            shares[i] = 0.0
    rows = bytes_of(mask)
    for j in range(len(games)):
        i = games[j]
        state: Record = states[i]
        chance.advance(state, actions[j], clocks[i])
        if state.phase == OVER:
            done[i] = True
            final_states[i] = state
            for player in range(state.num_players):
                scores[i, player] = game.score(state, player)
                shares[i, player] = game.winner_share(state, player)
            chance.start_next(states, i, template, clocks)
        put_mask(rows, i, game.legal_actions(state))
    return -1
