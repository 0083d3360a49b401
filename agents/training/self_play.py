"""Games of the value network against itself or fixed opponents, as rows to learn from.

A row is the position between two turns: its inputs, the network's values of all seats there, and
the exact expectation of those values after the next turn, over its die and with its best reply,
which the lookahead of that turn computes anyway. *Siblings* are rows of positions that one turn
could have led to, one for every placement: what the network has to tell apart when it plays.

Legend: `N` rows, `S` = 4 seats, `V` = 2 values: margin, win.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import chance, game
from marrakech_env.actions import FIRST_PLACEMENT
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import cell_at
from marrakech_env.spec import MAX_PLAYERS, RuleSet
from marrakech_env.state import LAY, OVER, STATE, STEER, STEER_AT_END, Int, Record, write_rules
from marrakech_env.tables import NUM_PLACEMENTS

from ..expectimax import ExpectimaxAgent
from ..value_net.inputs import NOBODY, NUM_INPUTS, Real
from ..value_net.network import MAX_MARGIN, write_row
from ..value_net.one_turn import (
    copy_state,
    draw_chance,
    look_ahead,
    new_evaluator,
    new_workspaces,
    value_between,
)
from .fixed_opponents import EXPECTIMAX, GREEDY, SELF, decide, new_opponents, value_opponent_turn

GREEDY_SHARE: Final = 0.67
"""Part of the games with guests in which they are greedy, not expectimax."""


@dataclass
class Games:
    """Some finished games; or siblings of their rows, each as a game of one row.

    Attributes:
        inputs: float32 (N, NUM_INPUTS).
        seats: int8 (N, S): the seat of each slot, -1 none.
        value: float32 (N, S, V), by seat: what the network says.
        backup: float32 (N, S, V), by seat: the expectation after the next turn.
        explored: bool (N,): whether the turn before the row was an exploring one.
        last: bool (N,): whether it is the last row of its game; true for siblings.
    """

    inputs: NDArray[np.float32]
    seats: NDArray[np.int8]
    value: NDArray[np.float32]
    backup: NDArray[np.float32]
    explored: NDArray[np.bool_]
    last: NDArray[np.bool_]

    @classmethod
    def join(cls, parts: Iterable[Games]) -> Games:
        """All rows of some parts in their order."""
        columns = zip(*(vars(part).values() for part in parts), strict=True)
        return cls(*map(np.concatenate, columns))

    def targets(self, lam: float) -> NDArray[np.float32]:
        """The lambda-return of every row, by seat: float32 (N, S, V).

        It is the backup, corrected by what the value turned out to be later in the game as long
        as no exploring turn comes between.
        """
        target = self.backup.copy()
        _add_corrections(target, self.value, self.explored, self.last, lam)
        return target


class Player:
    """Plays games in one thread."""

    def __init__(self, rule_set: RuleSet, net: NDArray[np.void]) -> None:
        """Takes the weights, a NET (1,); `evaluator['net']` may be overwritten between calls."""
        self.evaluator, self._workspaces = new_evaluator(net), new_workspaces()
        self._weights = ExpectimaxAgent().weights_for(rule_set.num_players)
        self._start = np.zeros(1, STATE)
        write_rules(self._start, rule_set)
        self._rows_a_game = rule_set.rugs * rule_set.num_players

    def play(
        self,
        seed: int,
        first_game: int,
        num_games: int,
        epsilon: float,
        guests: float = 0.0,
        siblings: float = 0.0,
    ) -> tuple[Games, Games]:
        """Plays the games `first_game`, ... of a seed.

        Args:
            seed: 0..2**64-1; it and the game number fix dice and exploration.
            first_game: Number of the first game.
            num_games: How many.
            epsilon: Chance that a steering, and that a placement, is drawn at random.
            guests: Chance that a game is played by the network in one seat against greedy or
                against expectimax in all others.
            siblings: Chance that siblings of a turn of the network become rows. There are none
                where Assam is steered at the end of a turn.

        Returns:
            The games, and the siblings; both are the same played in one call or in several.
        """
        size = num_games * self._rows_a_game * (1 + NUM_PLACEMENTS * (siblings > 0))
        games = Games(
            inputs=np.empty((size, NUM_INPUTS), np.float32),
            seats=np.empty((size, MAX_PLAYERS), np.int8),
            value=np.zeros((size, MAX_PLAYERS, 2), np.float32),
            backup=np.zeros((size, MAX_PLAYERS, 2), np.float32),
            explored=np.zeros(size, np.bool_),
            last=np.zeros(size, np.bool_),
        )
        clocks = np.zeros(num_games, chance.CLOCK)
        chance.set_clocks(clocks, seed, first_game)
        rows, free = _play(
            np.zeros(2, STATE),
            self._start,
            clocks,
            self._workspaces,
            self.evaluator,
            epsilon,
            guests,
            siblings,
            new_opponents(self._weights),
            games.inputs,
            games.seats,
            games.value,
            games.backup,
            games.explored,
            games.last,
        )
        arrays = vars(games).values()
        return Games(*(a[:rows] for a in arrays)), Games(*(a[free:][::-1] for a in arrays))


@kernel
def _play(
    states: NDArray[np.void],
    template: NDArray[np.void],
    clocks: NDArray[np.void],
    workspaces: NDArray[np.void],
    evaluators: NDArray[np.void],
    epsilon: float,
    guests: float,
    siblings: float,
    all_opponents: NDArray[np.void],
    inputs: NDArray[np.float32],
    seats: NDArray[np.int8],
    value: NDArray[np.float32],
    backup: NDArray[np.float32],
    explored: NDArray[np.bool_],
    last: NDArray[np.bool_],
) -> tuple[Int, Int]:
    """Plays one game for each clock and writes rows, from the end backwards those of siblings.

    Returns:
        How many rows the games have, and the first row of the siblings.
    """
    workspace, evaluator, state, trial = workspaces[0], evaluators[0], states[0], states[1]
    opponents = all_opponents[0]
    turn = workspace.turn
    row, free = 0, len(inputs)
    for i in range(len(clocks)):
        # Exploration has a stream of its own, so that dice depend on the seed alone.
        key = chance.absorb(clocks[i].game_key, np.uint64(2**32))
        chance.start_next(states, 0, template, clocks[i : i + 1])
        decision = 0
        game_row = row
        guest: Int = SELF
        own_seat: Int = 0
        if chance.uniform(key, 0, 0) < guests:
            guest = GREEDY if chance.uniform(key, 0, 1) < GREEDY_SHARE else EXPECTIMAX
            own_seat = np.int64(state.num_players * chance.uniform(key, 0, 2))
        while state.phase != OVER:
            mover = np.int64(state.player)
            kind = SELF if mover == own_seat else guest
            if kind == SELF:
                look_ahead(state, workspace, evaluator)
            else:
                value_opponent_turn(state, kind, opponents, workspace, evaluator)
            if row > game_row:
                _write_backup(turn, backup[row - 1])
            decision += 1
            is_explored = False
            steering: Int = turn.best
            if kind == SELF and state.phase == STEER:
                if chance.uniform(key, decision, 0) < epsilon:
                    steering = np.int64(3 * chance.uniform(key, decision, 1))
                    is_explored = True
            chance.advance(state, steering, clocks[i])
            laid: Int = -1
            draw: Real = np.float32(1)
            if state.phase == LAY:
                laid = np.int64(state.next_colour[mover])
                draw = draw_chance(state, laid)
                placement: Int = -1
                if kind == SELF:
                    placement = _best_placement(state, turn)
                else:
                    placement = decide(state, kind, opponents) - FIRST_PLACEMENT
                if (
                    kind == SELF
                    and not state.flags & STEER_AT_END
                    and chance.uniform(key, decision, 4) < siblings
                ):
                    end = free
                    free = _write_siblings(
                        state,
                        trial,
                        chance.absorb(key, np.uint64(decision)),
                        workspaces,
                        evaluator,
                        inputs,
                        seats,
                        value,
                        backup,
                        free,
                    )
                    explored[free:end] = False
                    last[free:end] = True
                if kind == SELF and chance.uniform(key, decision, 2) < epsilon:
                    placement = cell_at(
                        np.uint64(game.legal_placements(state)), chance.uniform(key, decision, 3)
                    )
                    is_explored = True
                chance.advance(state, placement + FIRST_PLACEMENT, clocks[i])
                if state.phase == STEER and state.flags & STEER_AT_END and state.player == mover:
                    if kind == SELF:
                        look_ahead(state, workspace, evaluator)
                        chance.advance(state, turn.best, clocks[i])
                    else:
                        chance.advance(state, decide(state, kind, opponents), clocks[i])
                    laid, draw = -1, np.float32(1)
            if state.phase == OVER:
                break
            _write(state, mover, laid, draw, workspace, evaluator, inputs, seats, value, row)
            explored[row] = is_explored
            last[row] = False
            row += 1
        if row > game_row:
            last[row - 1] = True
    return row, free


@kernel
def _write_backup(turn: Record, backup: NDArray[np.float32]) -> None:
    """Writes what all seats can expect after a turn."""
    for seat in range(MAX_PLAYERS):
        backup[seat, 0] = turn.seat_margin[seat]
        backup[seat, 1] = turn.seat_win[seat]


@kernel
def _write_siblings(
    state: Record,
    trial: Record,
    key: Int,
    workspaces: NDArray[np.void],
    evaluator: Record,
    inputs: NDArray[np.float32],
    seats: NDArray[np.int8],
    value: NDArray[np.float32],
    backup: NDArray[np.float32],
    free: Int,
) -> Int:
    """Writes a row below `free` for every placement that leads to a next turn.

    The colour of the mover's rug after this one is drawn for each with the stream of `key`.

    Returns:
        The first of the rows.
    """
    mover = np.int64(state.player)
    laid = np.int64(state.next_colour[mover])
    draw = draw_chance(state, laid)
    legal = game.legal_placements(state)
    lower, upper = game.next_colour_weights(state)
    for placement in range(NUM_PLACEMENTS):
        if not legal >> np.uint32(placement) & np.uint32(1):
            continue
        colour: Int = -1
        if lower + upper > 0:
            colour = 2 * mover + (chance.uniform(key, placement, 0) * (lower + upper) >= lower)
        copy_state(state, trial)
        game.step(trial, placement + FIRST_PLACEMENT, colour)
        if trial.phase != OVER:
            free -= 1
            _write(trial, mover, laid, draw, workspaces[0], evaluator, inputs, seats, value, free)
            look_ahead(trial, workspaces[1], evaluator)
            _write_backup(workspaces[1].turn, backup[free])
    return free


@kernel
def _best_placement(state: Record, turn: Record) -> Int:
    """The best placement where the walk has ended."""
    heading = 4 * np.int64(state.assam) + state.facing
    for walk in range(turn.num_walks):
        if turn.walk[walk] == heading:
            return np.int64(turn.walk_placement[walk])
    return -1


@kernel
def _write(
    state: Record,
    mover: Int,
    laid: Int,
    draw: Real,
    workspace: Record,
    evaluator: Record,
    inputs: NDArray[np.float32],
    seats: NDArray[np.int8],
    value: NDArray[np.float32],
    row: Int,
) -> None:
    """Writes a row for the position between two turns."""
    work, sums = workspace.other_work, workspace.sums
    value_between(state, mover, laid, draw, work, workspace, evaluator)
    write_row(work, evaluator.tables, inputs[row])
    for seat in range(MAX_PLAYERS):
        slot = work.slot_of_seat[seat]
        seats[row, seat] = -1
        value[row, seat, 0] = -MAX_MARGIN
        value[row, seat, 1] = 0
        if slot != NOBODY:
            value[row, seat, 0] = sums.margin[slot]
            value[row, seat, 1] = sums.win[slot]
    for slot in range(work.num_slots):
        seats[row, slot] = work.seat_of_slot[slot]


@kernel
def _add_corrections(
    target: NDArray[np.float32],
    value: NDArray[np.float32],
    explored: NDArray[np.bool_],
    last: NDArray[np.bool_],
    lam: float,
) -> None:
    """Turns backups into lambda-returns, in place, from the last row to the first."""
    for row in range(len(target) - 2, -1, -1):
        if not last[row] and not explored[row + 1]:
            for seat in range(MAX_PLAYERS):
                for k in range(2):
                    correction = target[row + 1, seat, k] - value[row + 1, seat, k]
                    target[row, seat, k] += np.float32(lam) * correction
