"""The rules over batches of games: start, mask, step, chance, tolls, scores.

Legend: `B` games, `P` players (the same in all games of one call), `A` = 15 actions. All
functions take `states` of dtype `state.STATE` and shape (B,), run compiled over the batch, and
raise ValueError for a wrong dtype or shape or for mixed `num_players`. The rules themselves stand
in `game`, one kernel for each.
"""

from __future__ import annotations

import operator

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marrakech_env import game
from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.kernels.unpack_bits import bytes_of, put_mask
from marrakech_env.spec import DIE, FACINGS, MAX_PLAYERS, NUM_CELLS, NUM_COLOURS, RuleSet
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
    """Puts every game to its start, in place (rule 1).

    Args:
        states: Shape (B,); whatever was in it is overwritten.
        rule_set: The rules of these games from now on.
        outcomes: int (B, 1+P): the facing 0..3, then the colour of each player's first rug (-1
            with one colour). None stands for the rule set's facing (south where it is random)
            and every player's lower colour.

    Raises:
        ValueError: An outcome that the rule set cannot have; nothing is changed then.
    """
    _check_writeable(states)
    rows = _start_rows(len(states), rule_set, outcomes)
    fresh = np.zeros(len(states), STATE)
    write_rules(fresh, rule_set)
    _reset(fresh, rows)
    states[:] = fresh


def start_outcomes(rule_set: RuleSet, rng: np.random.Generator) -> NDArray[np.int8]:
    """Draws one row of outcomes for `reset`: int8 (1+P,)."""
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
    return FACINGS.index("S" if rule_set.facing == "random" else rule_set.facing)


def _start_rows(games: int, rule_set: RuleSet, outcomes: ArrayLike | None) -> NDArray[np.int8]:
    """The outcomes of `reset`, checked, as int8 (B, 1+P)."""
    players = rule_set.num_players
    usual = [2 * p if rule_set.two_colours else -1 for p in range(players)]
    if outcomes is None:
        return np.tile(np.array([_fixed_facing(rule_set), *usual], np.int8), (games, 1))
    rows = np.asarray(outcomes)
    if rows.shape != (games, 1 + players) or rows.dtype.kind not in "iu":
        raise ValueError(
            f"start outcomes must be integers of shape {(games, 1 + players)} (the facing, then "
            f"each player's first colour), not {rows.dtype} of shape {rows.shape}"
        )
    allowed = [range(4) if rule_set.facing == "random" else [_fixed_facing(rule_set)]]
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
    fill_action_mask(states, mask)
    return mask


@kernel
def fill_action_mask(states: States, mask: BoolArray) -> None:
    """Kernel: writes the legal actions of all games into `mask`, bool (B, 15)."""
    rows = bytes_of(mask)
    for i in range(len(states)):
        put_mask(rows, i, game.legal_actions(states[i]))


def step(states: States, actions: ArrayLike, outcomes: ArrayLike) -> None:
    """Takes one decision in every game, in place; finished games are left alone.

    Legality is assumed (see `action_mask`), as is that each outcome is possible (see
    `chance_outcomes`).

    Args:
        states: Shape (B,).
        actions: int (B,), each a legal action 0..14.
        outcomes: int (B,): the die 1..4 for a walk (steering, or a walk unsteered), the colour
            of the mover's next rug for laying with two colours, -1 where nothing is drawn.

    Raises:
        ValueError: Shapes or dtypes are wrong, or a number is out of range (actions 0..14,
            outcomes -1..4); nothing is changed then.
    """
    _check_writeable(states)
    work = as_states(states)
    _step(
        work, _numbers("actions", actions, work, 0, 14), _numbers("outcomes", outcomes, work, -1, 4)
    )
    if not np.shares_memory(work, states):
        states[:] = work


@kernel
def _step(states: States, actions: IntArray, outcomes: IntArray) -> None:
    for i in range(len(states)):
        state = states[i]
        walks = state.phase != LAY and not (state.phase == STEER and state.flags & STEER_AT_END)
        # A number that the phase has no meaning for must not index a table.
        if state.phase == LAY:
            if actions[i] >= 3 and outcomes[i] < NUM_COLOURS:
                game.step(state, actions[i], outcomes[i])
        elif actions[i] < 3 and (outcomes[i] >= 1 or not walks):
            game.step(state, actions[i], outcomes[i])


def _numbers(name: str, values: ArrayLike, states: States, low: int, high: int) -> IntArray:
    """`values` as int64 (B,), checked for shape, dtype and range."""
    array = np.asarray(values)
    if array.shape != states.shape or array.dtype.kind not in "iu":
        raise ValueError(
            f"{name} must be integers of shape {states.shape}, "
            f"not {array.dtype} of shape {array.shape}"
        )
    bad = np.flatnonzero((array < low) | (array > high))
    if len(bad):
        raise ValueError(f"game {bad[0]}: {name} holds {array[bad[0]]}; allowed: {low}..{high}")
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
    legal = np.flatnonzero(action_mask(as_states(state))[0])
    try:
        number = operator.index(action)
    except TypeError:
        number = -1
    if number not in legal:
        raise ValueError(f"action {action!r} is not legal; legal: {', '.join(map(str, legal))}")
    if record["phase"] == LAY:
        lower, upper = game.next_colour_weights(record)
        colours = [2 * int(record["player"]) + side for side in (0, 1)]
        pairs = [
            (c, w / (lower + upper)) for c, w in zip(colours, (lower, upper), strict=True) if w
        ]
    elif record["phase"] == STEER and record["flags"] & STEER_AT_END:
        pairs = []
    else:
        pairs = [(steps, float(DIE_PROBABILITY[steps])) for steps in sorted(set(DIE))]
    outcomes, probabilities = zip(*(pairs or [(-1, 1.0)]), strict=True)
    return np.array(outcomes, np.int8), np.array(probabilities, np.float64)


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
    """What a player would owe for stopping on each cell, not limited by his money (rule 6).

    Args:
        states: Shape (B,).
        players: Seats, int (B,) or one for all; None for the player to move.

    Returns:
        int64 (B, 49), dirhams: 0 on empty, own and neutral squares and where the game is over.

    Raises:
        ValueError: A seat that does not play.
    """
    states = as_states(states)
    if players is None:
        seats = states["player"].astype(np.int64)
    else:
        wanted = np.asarray(players)
        if wanted.ndim == 0:
            wanted = np.full(len(states), wanted)
        seated = int(states["num_players"][0]) if len(states) else MAX_PLAYERS
        seats = _numbers("players", wanted, states, 0, seated - 1)
    out = np.zeros((len(states), NUM_CELLS), np.int64)
    _tolls(states, seats, out)
    return out


@kernel
def _tolls(states: States, players: IntArray, out: IntArray) -> None:
    for i in range(len(states)):
        if states[i].phase != OVER:
            game_tolls(states[i], players[i], out[i])


@kernel
def game_tolls(state: Record, player: Int, out: IntArray) -> None:
    """Kernel: writes what a seat owes on each cell of one game into `out`, 49 zeros before."""
    for colour in range(NUM_COLOURS):
        creditor = game.owner(state, colour)
        if creditor == player or state.eliminated[creditor]:
            continue
        left = state.colour_boards[colour]
        for cell in range(NUM_CELLS):
            if left & game.cell_bit(cell):
                patch = game.region(left, cell)
                amount = game.popcount(patch)
                for other in range(cell, NUM_CELLS):
                    if patch & game.cell_bit(other):
                        out[other] = amount
                left &= ~patch


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
    """Whether each game is over by the facts, whoever is named to move: bool (B,) (rule 9)."""
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
