"""Games that the value network plays against itself or fixed opponents, as rows to learn from.

A row is the position between two turns: its inputs, the network's values of all seats there, and
the exact expectation of those values after the next turn, over its die and with its best reply,
which the lookahead of that turn computes anyway. *Siblings* are rows of positions that one turn
could have led to, one for every placement: the network has to tell them apart when it plays.

Legend: `N` rows, `S` = 4 seats.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import chance, game
from marrakech_env.actions import FIRST_PLACEMENT
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import cell_at
from marrakech_env.spec import MAX_PLAYERS, RuleSet
from marrakech_env.state import LAY, OVER, STATE, STEER, STEER_AT_END, Int, Record, write_rules
from marrakech_env.tables import NUM_PLACEMENTS, NUM_STEERINGS

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
"""Part of the games with guests in which the guests are greedy; in the others, expectimax."""

ROW: Final = np.dtype(
    [
        ("inputs", np.float32, (NUM_INPUTS,)),
        ("seats", np.int8, (MAX_PLAYERS,)),  # the seat of each slot, -1 for none
        # By seat, margin and win:
        ("value", np.float32, (MAX_PLAYERS, 2)),  # the network's values
        ("backup", np.float32, (MAX_PLAYERS, 2)),  # their expectation after the next turn
        ("explored", np.bool_),  # whether the turn before the row was an exploring one
        ("last", np.bool_),  # whether it is the last row of its game; true for siblings
    ],
    align=True,
)
"""A position between two turns."""
CHANCES: Final = np.dtype([(name, np.float64) for name in ("epsilon", "guests", "siblings")])
"""The arguments of `Player.play` with these names."""


def targets(rows: NDArray[np.void], lam: float) -> NDArray[np.float32]:
    """The lambda-return of every row, by seat: float32 (N, S, 2), margin and win.

    It is the backup, corrected by the values later in the game as long as no exploring turn comes
    between.
    """
    returns = rows["backup"].copy()
    _add_corrections(returns, rows, lam)
    return returns


class Player:
    """Plays games; threads may share one."""

    def __init__(self, rule_set: RuleSet, net: NDArray[np.void]) -> None:
        """Take the weights, a NET (1,); `evaluator['net']` may be overwritten between calls."""
        self.evaluator = new_evaluator(net)
        self._opponent_weights = ExpectimaxAgent().weights_for(rule_set.num_players)
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
    ) -> tuple[NDArray[np.void], NDArray[np.void]]:
        """Play the games `first_game`, ... of a seed.

        Args:
            seed: 0..2**64-1; with the game number it fixes dice and exploration.
            first_game: Number of the first game.
            num_games: Number of games.
            epsilon: Chance that a steering, and that a placement, is drawn at random.
            guests: Chance that a game is played by the network in one seat against greedy or
                against expectimax in all others.
            siblings: Chance that siblings of a turn of the network become rows. There are none
                where Assam is steered at the end of a turn.

        Returns:
            The rows of the games, ROW (N,), and those of siblings; both are the same played in one
            call or in several.
        """
        size = num_games * self._rows_a_game * (1 + NUM_PLACEMENTS * (siblings > 0))
        rows = np.zeros(size, ROW)
        clocks = np.zeros(num_games, chance.CLOCK)
        chance.set_clocks(clocks, seed, first_game)
        end, free = _play(
            self._start,
            clocks,
            np.array([(epsilon, guests, siblings)], CHANCES),
            self.evaluator,
            new_workspaces(),
            new_opponents(self._opponent_weights),
            rows,
        )
        return rows[:end], rows[free:][::-1]


@kernel
def _play(
    start: NDArray[np.void],
    clocks: NDArray[np.void],
    all_chances: NDArray[np.void],
    evaluators: NDArray[np.void],
    workspaces: NDArray[np.void],
    all_opponents: NDArray[np.void],
    rows: NDArray[np.void],
) -> tuple[Int, Int]:
    """Play one game for each clock and write rows, those of siblings from the end backwards.

    Returns:
        How many rows the games have, and the first row of the siblings.
    """
    chances, opponents, evaluator = all_chances[0], all_opponents[0], evaluators[0]
    workspace, states = workspaces[0], start.copy()
    turn, state = workspace.turn, states[0]
    end, free = 0, len(rows)
    for i in range(len(clocks)):
        # Exploration has a stream of its own, so that dice depend on the seed alone.
        key = chance.absorb(clocks[i].game_key, np.uint64(2**32))
        chance.start_next(states, 0, start, clocks[i : i + 1])
        decision = 0
        first = end
        guest: Int = SELF
        own_seat: Int = 0
        if chance.uniform(key, 0, 0) < chances.guests:
            guest = GREEDY if chance.uniform(key, 0, 1) < GREEDY_SHARE else EXPECTIMAX
            own_seat = np.int64(state.num_players * chance.uniform(key, 0, 2))
        while state.phase != OVER:
            mover = np.int64(state.player)
            kind = SELF if mover == own_seat else guest
            if kind == SELF:
                look_ahead(state, workspace, evaluator)
            else:
                value_opponent_turn(state, kind, opponents, workspace, evaluator)
            if end > first:
                _write_backup(turn, rows[end - 1])
            decision += 1
            explored = False
            action: Int = turn.best
            if kind == SELF and state.phase == STEER:
                if chance.uniform(key, decision, 0) < chances.epsilon:
                    action = np.int64(NUM_STEERINGS * chance.uniform(key, decision, 1))
                    explored = True
            chance.advance(state, action, clocks[i])
            laid, draw = np.int64(-1), np.float32(1)
            while game.is_inside_turn(state):
                action = _end_turn(state, kind, opponents, workspace, evaluator)
                laid, draw = np.int64(-1), np.float32(1)
                if state.phase == LAY:
                    laid = np.int64(state.next_colour[mover])
                    draw = draw_chance(state, laid)
                    if kind == SELF:
                        has_siblings = chance.uniform(key, decision, 4) < chances.siblings
                        if has_siblings and not state.flags & STEER_AT_END:
                            stream = chance.absorb(key, np.uint64(decision))
                            free = _write_siblings(
                                state, stream, draw, workspaces, evaluator, rows, free
                            )
                        if chance.uniform(key, decision, 2) < chances.epsilon:
                            legal = np.uint64(game.legal_actions(state))
                            action = cell_at(legal, chance.uniform(key, decision, 3))
                            explored = True
                chance.advance(state, action, clocks[i])
            if state.phase != OVER:
                row: Record = rows[end]
                end += 1
                _write_position(state, mover, laid, draw, workspace, evaluator, row)
                row.explored = explored
        if end > first:
            row = rows[end - 1]
            row.last = True
    return end, free


@kernel
def _end_turn(
    state: Record, kind: Int, opponents: Record, workspace: Record, evaluator: Record
) -> Int:
    """The next action inside a turn whose values `workspace.turn` holds."""
    turn = workspace.turn
    if kind != SELF:
        return decide(state, kind, opponents)
    if state.phase == STEER:
        look_ahead(state, workspace, evaluator)
        return np.int64(turn.best)
    heading, placement = game.heading_of(state), np.int64(-1)
    for walk in range(turn.num_walks):
        if turn.walk[walk] == heading:
            placement = np.int64(turn.walk_placement[walk])
    return FIRST_PLACEMENT + placement


@kernel
def _write_backup(turn: Record, row: Record) -> None:
    """Write the expected values of all seats after a turn."""
    for seat in range(MAX_PLAYERS):
        row.backup[seat, 0] = turn.seat_margin[seat]
        row.backup[seat, 1] = turn.seat_win[seat]


@kernel
def _write_siblings(
    state: Record,
    key: Int,
    draw: Real,
    workspaces: NDArray[np.void],
    evaluator: Record,
    rows: NDArray[np.void],
    free: Int,
) -> Int:
    """Write a row below `free` for every placement that leads to a next turn.

    The colour of the mover's rug after this one is drawn for each with the stream of `key`.

    Returns:
        The first of the rows.
    """
    inner, trial = workspaces[1], workspaces[0].trial
    mover = np.int64(state.player)
    laid = np.int64(state.next_colour[mover])
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
            row: Record = rows[free]
            _write_position(trial, mover, laid, draw, workspaces[0], evaluator, row)
            look_ahead(trial, inner, evaluator)
            _write_backup(inner.turn, row)
            row.last = True
    return free


@kernel
def _write_position(
    state: Record,
    mover: Int,
    laid: Int,
    draw: Real,
    workspace: Record,
    evaluator: Record,
    row: Record,
) -> None:
    """Write inputs, seats and values of a position between two turns."""
    work, sums = workspace.other_work, workspace.sums
    value_between(state, mover, laid, draw, work, workspace, evaluator)
    write_row(work, evaluator.tables, row.inputs)
    for seat in range(MAX_PLAYERS):
        slot = work.slot_of_seat[seat]
        row.seats[seat] = -1
        row.value[seat, 0] = -MAX_MARGIN
        row.value[seat, 1] = 0
        if slot != NOBODY:
            row.value[seat, 0] = sums.margin[slot]
            row.value[seat, 1] = sums.win[slot]
    for slot in range(work.num_slots):
        row.seats[slot] = work.seat_of_slot[slot]


@kernel
def _add_corrections(returns: NDArray[np.float32], rows: NDArray[np.void], lam: float) -> None:
    """Turn backups into lambda-returns, in place, from the last row to the first."""
    for k in range(len(returns) - 2, -1, -1):
        after = rows[k + 1]
        if not rows[k].last and not after.explored:
            for seat in range(MAX_PLAYERS):
                for value in range(2):
                    correction = returns[k + 1, seat, value] - after.value[seat, value]
                    returns[k, seat, value] += np.float32(lam) * correction
