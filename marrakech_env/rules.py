"""The rules over batches of games: start, mask, step, chance, tolls, scores.

Legend: `B` games, `P` players (the same in all games of one call), `A` = 15 actions. All
functions take `states` of dtype `state.STATE` and shape (B,), run compiled over the batch, and
raise ValueError for a wrong dtype or shape or for mixed `num_players`. The rules themselves stand
in `game`, one kernel for each.
"""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marrakech_env import game
from marrakech_env.actions import NUM_ACTIONS, describe_illegal
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import lowest_cell
from marrakech_env.kernels.regions import REGIONS, find_regions
from marrakech_env.kernels.unpack_bits import bytes_of, put_mask
from marrakech_env.spec import FACINGS, NUM_CELLS, NUM_COLOURS, RuleSet, whole_number
from marrakech_env.state import (
    LAY,
    OVER,
    STATE,
    STEER,
    STEER_AT_END,
    Int,
    Record,
    State,
    States,
    as_seats,
    as_states,
    one_state,
    write_rules,
)
from marrakech_env.tables import DIE_PROBABILITY

BoolArray = NDArray[np.bool_]
IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float64]


# --------------------------------------------------------------------------------------- start


def reset(states: States, rule_set: RuleSet, outcomes: ArrayLike | None = None) -> None:
    """Put every game to its start, in place (rule 1).

    Args:
        states: Shape (B,); whatever was in it is overwritten.
        rule_set: The rules of these games from now on.
        outcomes: int (B, 1+P): the facing 0..3, then the colour of each player's first rug (-1
            with one colour). None stands for the rule set's facing (south where it is random)
            and every player's lower colour.

    Raises:
        ValueError: No rule set, or an outcome that it cannot have; nothing is changed then.
    """
    _check_writeable(states)
    rows = _start_rows(len(states), rule_set, outcomes)
    fresh = np.zeros(len(states), STATE)
    write_rules(fresh, rule_set)
    _reset(fresh, rows)
    states[:] = fresh


def start_outcomes(rule_set: RuleSet, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draw one row of outcomes for `reset`: int8 (1+P,).

    Raises:
        ValueError: No rule set.
    """
    row = [_fixed_facing(rule_set)]
    if rule_set.facing == "random":
        row = [int(rng.integers(4))]
    for player in range(rule_set.num_players):
        if not rule_set.two_colours:
            row.append(-1)
        elif rule_set.colours == "alternate":
            row.append(2 * player)
        else:
            row.append(2 * player + int(rng.integers(2)))
    return np.array(row, np.int8)


def _fixed_facing(rule_set: RuleSet) -> int:
    if not isinstance(rule_set, RuleSet):
        raise ValueError(f"rule_set must be a RuleSet, not {rule_set!r}")
    return FACINGS.index("S" if rule_set.facing == "random" else rule_set.facing)


def _start_rows(games: int, rule_set: RuleSet, outcomes: ArrayLike | None) -> NDArray[np.int8]:
    """The outcomes of `reset`, checked, as int8 (B, 1+P)."""
    fixed, players = _fixed_facing(rule_set), rule_set.num_players
    usual = [2 * p if rule_set.two_colours else -1 for p in range(players)]
    if outcomes is None:
        return np.tile(np.array([fixed, *usual], np.int8), (games, 1))
    rows = np.asarray(outcomes)
    if rows.shape != (games, 1 + players) or rows.dtype.kind not in "iu":
        raise ValueError(
            f"start outcomes must be integers of shape {(games, 1 + players)} (the facing, then "
            f"each player's first colour), not {rows.dtype} of shape {rows.shape}"
        )
    allowed = [range(4) if rule_set.facing == "random" else [fixed]]
    upper = rule_set.two_colours and rule_set.colours != "alternate"
    allowed += [[colour, colour + 1] if upper else [colour] for colour in usual]
    for column, values in enumerate(allowed):
        bad = np.flatnonzero(~np.isin(rows[:, column], list(values)))
        if len(bad):
            what = f"first colour of player {column - 1}" if column else "facing"
            raise ValueError(
                f"game {bad[0]}: {what} is {rows[bad[0], column]}; "
                f"allowed by the rule set {rule_set}: {', '.join(map(str, values))}"
            )
    return np.ascontiguousarray(rows, np.int8)


@kernel
def _reset(states: States, rows: NDArray[np.int8]) -> None:
    for i in range(len(states)):
        state = states[i]
        game.clear_for_start(state)
        state.facing = rows[i, 0]
        for player in range(state.num_players):
            game.set_start_outcome(state, player, rows[i, 1 + player])


# --------------------------------------------------------------------------------------- play


def action_mask(states: States) -> BoolArray:
    """The legal actions: bool (B, 15), True where legal, all False where the game is over."""
    states = as_states(states)
    mask = np.empty((len(states), NUM_ACTIONS), np.bool_)
    _fill_action_mask(states, mask)
    return mask


@kernel
def _fill_action_mask(states: States, mask: BoolArray) -> None:
    rows = bytes_of(mask)
    for i in range(len(states)):
        put_mask(rows, i, game.legal_actions(states[i]))


def step(states: States, actions: ArrayLike, outcomes: ArrayLike, check: bool = True) -> None:
    """Take one decision in every game, in place.

    Finished games are left alone, whatever their numbers are. A player named to steer or walk who
    has no rug (only from a text) walks, pays and lays nothing, and the turn passes on.

    Args:
        states: Shape (B,).
        actions: int (B,), each a legal action 0..14 (see `action_mask`).
        outcomes: int (B,), each a possible one (see `chance_outcomes`): the die 1..4 for a walk
            (steering, or a walk unsteered), the colour of the mover's next rug for laying with two
            colours, -1 where nothing is drawn.
        check: False assumes legal actions and possible outcomes; a game where they are not may
            become one that all functions refuse.

    Raises:
        ValueError: Shapes or dtypes are wrong; with `check` also an illegal action or an
            impossible outcome, which the message names with the game and what is allowed. Nothing
            is changed then.
    """
    _check_writeable(states)
    work = as_states(states)
    chosen, drawn = _integers("actions", actions, work), _integers("outcomes", outcomes, work)
    bad = _first_impossible(work, chosen, drawn) if check else -1
    if bad >= 0:
        _refuse_step(work[bad], bad, np.asarray(actions)[bad], np.asarray(outcomes)[bad])
    _step(work, chosen, drawn)
    if not np.shares_memory(work, states):
        states[:] = work


@kernel
def _first_impossible(states: States, actions: IntArray, outcomes: IntArray) -> Int:
    """Index of the first game with an illegal action or an impossible outcome, -1 for none."""
    for i in range(len(states)):
        if states[i].phase != OVER and not (
            0 <= actions[i] < NUM_ACTIONS
            and game.legal_actions(states[i]) >> np.uint32(actions[i]) & np.uint32(1)
            and game.outcome_chance(states[i], outcomes[i]) > 0
        ):
            return i
    return -1


def _refuse_step(state: Record, number: int, action: Any, outcome: Any) -> NoReturn:
    mask = action_mask(state)[0]
    if action not in np.flatnonzero(mask).tolist():
        raise ValueError(describe_illegal(number, action, mask))
    possible = ", ".join(map(str, chance_outcomes(state, action)[0]))
    raise ValueError(
        f"game {number}: outcome {outcome} is not possible after action {action}; "
        f"possible outcomes: {possible}"
    )


@kernel
def _step(states: States, actions: IntArray, outcomes: IntArray) -> None:
    for i in range(len(states)):
        state = states[i]
        # A number that the phase has no meaning for must not index a table.
        if state.phase == LAY:
            if 3 <= actions[i] < NUM_ACTIONS and -1 <= outcomes[i] < NUM_COLOURS:
                game.step(state, actions[i], outcomes[i])
        elif 0 <= actions[i] < 3 and outcomes[i] < len(DIE_PROBABILITY):
            if outcomes[i] >= 1 or (state.phase == STEER and state.flags & STEER_AT_END):
                game.step(state, actions[i], outcomes[i])


def _integers(name: str, values: ArrayLike, states: States) -> IntArray:
    """`values` as int64 (B,), checked for shape and dtype."""
    array = np.asarray(values)
    if array.shape != states.shape or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be integers of shape {states.shape}, "
            f"not {array.dtype} of shape {array.shape}"
        )
    if array.dtype == np.uint64:  # 2**63 and more must stay out of every range
        array = np.minimum(array, np.uint64(np.iinfo(np.int64).max))
    return np.ascontiguousarray(array, np.int64)


def _check_writeable(states: States) -> None:
    if not isinstance(states, np.ndarray) or states.dtype != STATE or states.ndim != 1:
        raise ValueError("states must be an array of dtype STATE and shape (B,)")
    if not states.flags.writeable:
        raise ValueError("states are read-only and cannot be changed in place")


def chance_outcomes(state: State, action: int) -> tuple[NDArray[np.int8], FloatArray]:
    """What chance can do after an action, and how likely.

    Args:
        state: One unfinished game.
        action: A legal action of it.

    Returns:
        int8 (N,) outcomes in ascending order, impossible ones left out, and their probabilities,
        float64 (N,). A walk: the die 1..4. Laying with two colours: the colour of the mover's
        next rug. -1 with probability 1 where nothing is drawn.

    Raises:
        ValueError: The action is not legal.
    """
    record = one_state(state)
    legal = np.flatnonzero(action_mask(record)[0])
    if whole_number(action) not in legal.tolist():
        raise ValueError(f"action {action!r} is not legal; legal: {', '.join(map(str, legal))}")
    chances = {outcome: game.outcome_chance(record, outcome) for outcome in game.OUTCOMES}
    possible = {outcome: chance for outcome, chance in chances.items() if chance > 0}
    return np.array(list(possible), np.int8), np.array(list(possible.values()), np.float64)


# --------------------------------------------------------------------------------------- views


def colours(states: States) -> NDArray[np.int8]:
    """The visible colour of every cell: int8 (B, 49), -1 where empty."""
    states = as_states(states)
    out = np.empty((len(states), NUM_CELLS), np.int8)
    _colours(states, out)
    return out


@kernel
def _colours(states: States, out: NDArray[np.int8]) -> None:
    for i in range(len(states)):
        for cell in range(NUM_CELLS):
            out[i, cell] = game.colour_at(states[i], cell)


def tolls(states: States, players: ArrayLike | None = None) -> IntArray:
    """What a player would owe for stopping on each cell, not limited by their money (rule 6).

    Args:
        states: Shape (B,).
        players: Seats, int (B,) or one for all; None for the player to move.

    Returns:
        int64 (B, 49), dirhams: 0 on empty, own and neutral squares and where the game is over.

    Raises:
        ValueError: A seat that does not play.
    """
    states = as_states(states)
    seats = as_seats(players, states)
    out = np.zeros((len(states), NUM_CELLS), np.int64)
    _tolls(states, seats, out)
    return out


@kernel
def _tolls(states: States, players: IntArray, out: IntArray) -> None:
    regions = np.zeros(1, REGIONS)[0]
    for i in range(len(states)):
        if states[i].phase == OVER:
            continue
        player = players[i] if players[i] >= 0 else np.int64(states[i].player)
        find_regions(states[i], regions)
        for region in range(regions.count):
            squares = regions.bits[region]
            if game.owner(states[i], regions.colour[region]) == player:
                continue
            while squares:
                out[i, lowest_cell(squares)] = regions.squares[region]
                squares &= squares - np.uint64(1)


def scores(states: States) -> IntArray:
    """Dirhams and visible squares of every player now, 0 for the eliminated: int64 (B, P)."""
    states = as_states(states)
    out = np.zeros((len(states), _players(states)), np.int64)
    _scores(states, out)
    return out


@kernel
def _scores(states: States, out: IntArray) -> None:
    for i in range(len(states)):
        for player in range(states[i].num_players):
            out[i, player] = game.score(states[i], player)


def is_over(states: States) -> BoolArray:
    """Whether each game is over by the facts, not by the seat to move: bool (B,) (rule 9)."""
    states = as_states(states)
    out = np.empty(len(states), np.bool_)
    _is_over(states, out)
    return out


@kernel
def _is_over(states: States, out: BoolArray) -> None:
    for i in range(len(states)):
        out[i] = game.is_over(states[i])


def winner_shares(states: States) -> FloatArray:
    """Shares of the win: float64 (B, P), 1/k for each of k winners, 0 until the game is over."""
    states = as_states(states)
    out = np.zeros((len(states), _players(states)), np.float64)
    _winner_shares(states, out)
    return out


@kernel
def _winner_shares(states: States, out: FloatArray) -> None:
    for i in range(len(states)):
        if game.is_over(states[i]):
            for player in range(states[i].num_players):
                out[i, player] = game.winner_share(states[i], player)


def ranks(states: States) -> IntArray:
    """Places: int64 (B, P), 1 is best, equals share the better one (1, 1, 3), 0 until over."""
    states = as_states(states)
    out = np.zeros((len(states), _players(states)), np.int64)
    _ranks(states, out)
    return out


@kernel
def _ranks(states: States, out: IntArray) -> None:
    for i in range(len(states)):
        if game.is_over(states[i]):
            for player in range(states[i].num_players):
                out[i, player] = game.rank(states[i], player)


def _players(states: States) -> int:
    return int(states["num_players"][0]) if len(states) else 0
