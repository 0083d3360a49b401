"""The state: one record of the structured dtype `STATE` per game.

Legend: `B` games, `P` players, colours 0..3, cells `7*y + x` (0..48), facings 0..3 = N, E, S, W.

A *bitboard* is a uint64 whose bit `cell` tells something about that cell. Chance is no part of
the state: the order of a shuffled rug pile is never stored, only how many rugs of each colour are
left and which colour is on top, so that no copy of a state can foresee anything.

`INVARIANTS` lists what holds in every state that `rules.reset`, `rules.step` or
`notation.parse_position` made. `as_states` refuses any other state, so kernels rely on it. Besides,
play keeps the sum of all money: reading a position does not ask for it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, Final, NoReturn, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray

from marrakech_env.compile import kernel, machine_code
from marrakech_env.spec import (
    BOARD_SIZE,
    COLOUR_RULES,
    FACING_RULES,
    FACINGS,
    MAX_PLAYERS,
    MAX_RUGS,
    MAX_START_MONEY,
    NUM_CELLS,
    NUM_COLOURS,
    PRESETS,
    RuleSet,
)

STEER, LAY, WALK, OVER = range(4)
"""The phases: to steer, to lay, to walk on unsteered (only with `steering=end`), game over."""

STATE: Final = np.dtype(
    [
        ("colour_boards", np.uint64, (4,)),  # bitboards: visible squares of each colour
        ("links_east", np.uint64),  # bit c: cells c and c+1 are the visible halves of one rug
        ("links_south", np.uint64),  # bit c: cells c and c+7 are the visible halves of one rug
        ("money", np.int16, (4,)),  # dirhams of each seat
        ("start_money", np.int16),  # rule: dirhams at the start
        ("rugs", np.uint8, (4,)),  # rugs left of each colour, the visible top ones included
        ("next_colour", np.int8, (4,)),  # colour of each seat's next rug, -1 none
        ("eliminated", np.uint8, (4,)),  # 0 in the game, else the order of elimination from 1
        ("player", np.uint8),  # the seat to move; 0 when the game is over
        ("phase", np.uint8),  # STEER, LAY, WALK or OVER
        ("num_players", np.uint8),  # 2, 3 or 4
        ("assam", np.uint8),  # Assam's cell
        ("facing", np.uint8),  # Assam's facing, 0..3 = N, E, S, W
        ("preset", np.uint8),  # rule: index of the preset in spec.PRESETS
        ("start_rugs", np.uint8),  # rule: rugs a player at the start
        ("colour_rule", np.uint8),  # rule: index in spec.COLOUR_RULES
        ("facing_rule", np.uint8),  # rule: index in spec.FACING_RULES
        ("flags", np.uint8),  # rule: COVER_OWN | PLAY_ON | STEER_AT_END | TIE_BY_SQUARES
    ],
    align=True,
)
"""80 bytes a game. `player`, `phase`, `num_players`, `money`, `eliminated`, `assam` and `facing`
are fixed names for everybody; the other fields may change between versions."""

COVER_OWN, PLAY_ON, STEER_AT_END, TIE_BY_SQUARES = 1, 2, 4, 8
SHUFFLED, COIN, ALTERNATE, SINGLE = range(4)
"""Values of `colour_rule`."""

MAX_MONEY: Final = 8191
"""Most dirhams of one player in a position text: four times this still fits int16."""

States: TypeAlias = NDArray[np.void]
"""An array of `STATE` records, shape (B,)."""
State: TypeAlias = np.void | NDArray[np.void]
"""One game: a record (`states[0]`) or an array of shape (1,)."""
Record: TypeAlias = Any
"""One record inside a compiled kernel, passed by reference: fields are changed in place."""
Bits: TypeAlias = Any
"""An unsigned number used as a set inside a kernel: uint64 for cells, uint32 for actions."""
Int: TypeAlias = Any
"""A whole number inside a kernel: a Python int outside, int64 once compiled."""

INVARIANTS: Final = {
    "rules_are_known": (
        "num_players is 2, 3 or 4, and the rule fields hold what `spec` allows",
        "num_players preset start_rugs start_money colour_rule facing_rule flags",
    ),
    "assam_on_board": ("assam is 0..48 and facing 0..3", "assam facing"),
    "bits_on_board": (
        "no bitboard has a bit above 48, and no link crosses the edge of the board",
        "colour_boards links_east links_south",
    ),
    "colours_disjoint": ("a cell shows at most one colour", "colour_boards"),
    "links_disjoint": ("no cell belongs to two links", "links_east links_south"),
    "links_join_one_colour": (
        "the two halves joined by a link show the same colour",
        "colour_boards links_east links_south",
    ),
    "unused_seats_empty": (
        "seats from num_players on hold only zeros (next_colour: -1), and colours that nobody "
        "owns have neither rugs nor squares",
        "num_players colour_rule colour_boards money rugs next_colour eliminated",
    ),
    "amounts_in_range": (
        f"nobody's money is negative, all of it is at most {NUM_COLOURS * MAX_MONEY}, and a colour "
        f"has at most {MAX_RUGS} rugs",
        "money rugs",
    ),
    "elimination_order": (
        "the non-zero entries of eliminated are 1..k, each once, and somebody is still in the game",
        "eliminated",
    ),
    "eliminated_hold_nothing": (
        "an eliminated player has no money and no rugs",
        "eliminated money rugs",
    ),
    "next_colour_held": (
        "with two colours, next_colour is one that the player owns and still holds, and -1 only "
        "where they hold none; with one colour it is their own",
        "rugs next_colour",
    ),
    "mover_in_game": (
        "phase is 0..3; player is a seat still in the game, and 0 in phase 3 (over)",
        "phase player eliminated",
    ),
    "phase_fits": (
        "phase 1 (lay) wants a next colour of the player, phase 2 (walk) the rule steering=end",
        "phase player next_colour flags",
    ),
}
"""Name of each invariant -> what it says, and the fields that it is about."""

_EAST_EDGE, _SOUTH_EDGE = (
    np.uint64(sum(1 << cell for cell in edge))
    for edge in (
        range(BOARD_SIZE - 1, NUM_CELLS, BOARD_SIZE),
        range(NUM_CELLS - BOARD_SIZE, NUM_CELLS),
    )
)
_ZERO, _ONE, _ROW, _CELLS = (np.uint64(n) for n in (0, 1, BOARD_SIZE, NUM_CELLS))
_NUM_PRESETS, _NUM_FACING_RULES = len(PRESETS), len(FACING_RULES)
_ALL_FLAGS: Final = COVER_OWN | PLAY_ON | STEER_AT_END | TIE_BY_SQUARES
_MOST_MONEY: Final = NUM_COLOURS * MAX_MONEY


def as_states(states: State | States) -> States:
    """Checks an argument that should hold states, and returns it as kernels want it.

    Returns:
        The same memory where it is a writeable contiguous array of shape (B,), else a copy.

    Raises:
        ValueError: Not of dtype `STATE`, not one-dimensional, with mixed `num_players`, or with a
            state that breaks one of `INVARIANTS`.
    """
    array = np.asarray(states)
    if array.dtype is not STATE:
        if array.dtype != STATE:
            raise ValueError(f"states must be an array of dtype STATE, not of dtype {array.dtype}")
        # Equal types may forget that they are aligned: those of np.load do.
        array = array.view(STATE)
    if array.ndim != 1:
        if array.ndim:
            raise ValueError(f"states must have shape (B,), not {array.shape}")
        array = array.reshape(1)
    if not array.flags.carray:
        array = array.take(np.arange(len(array)))  # `copy` takes ten times as long
    bad = _first_bad_code()(array)
    if bad >= 0:
        _refuse(array, bad)
    return array


def one_state(state: State) -> Record:
    """The record of an argument that should be one game.

    Raises:
        ValueError: Not one valid record of dtype `STATE`.
    """
    array = as_states(state)
    if len(array) != 1:
        raise ValueError(f"one state wanted: a record or shape (1,), not shape {array.shape}")
    return array[0]


def as_seats(players: ArrayLike | None, states: States) -> NDArray[np.int64]:
    """Checks an argument that should name a seat of each state, and returns it as kernels want it.

    Args:
        players: Seats, int (B,) or one for all; None for the player to move.
        states: Shape (B,), checked.

    Returns:
        int64 (B,), -1 for the player to move.

    Raises:
        ValueError: No integers of this shape, or a seat that does not play.
    """
    if players is None:
        return np.full(len(states), -1)
    seats = np.asarray(players)
    if seats.shape not in ((), states.shape) or seats.dtype.kind not in "iu":
        raise ValueError(
            f"players must be one seat or integers of shape {states.shape}, "
            f"not {seats.dtype} of shape {seats.shape}"
        )
    seated = int(states["num_players"][0]) if len(states) else MAX_PLAYERS
    if ((seats < 0) | (seats >= seated)).any():
        raise ValueError(f"players must be seats 0..{seated - 1}, not {players!r}")
    return np.full(len(states), seats, np.int64)


def _refuse(states: States, bad: int) -> NoReturn:
    """Raises what `_first_bad` has found at an index."""
    players = states["num_players"]
    if players[bad] != players[0]:
        raise ValueError(
            "all states of one call must have the same num_players, found "
            + ", ".join(map(str, np.unique(players)))
        )
    name = list(INVARIANTS)[_broken_invariant(states[bad])]
    meaning, fields = INVARIANTS[name]
    found = ", ".join(f"{field}={states[field][bad].tolist()}" for field in fields.split())
    raise ValueError(f"game {bad} breaks the invariant {name}: {meaning}; found {found}")


@functools.cache
def _first_bad_code() -> Callable[[States], Int]:
    """`_first_bad` as machine code: what `as_states` has to check is always of the same type."""
    return machine_code(_first_bad, np.zeros(1, STATE))


@kernel
def _first_bad(states: States) -> Int:
    """Index of the first state with another `num_players` or a broken invariant, -1 for none."""
    for i in range(len(states)):
        if states[i].num_players != states[0].num_players:
            return i
    for i in range(len(states)):
        if _broken_invariant(states[i]) >= 0:
            return i
    return -1


@kernel
def has_two_colours(state: Record) -> bool:
    """Whether each player owns two colours."""
    return bool(state.num_players == 2 and state.colour_rule != SINGLE)


@kernel
def _broken_invariant(state: Record) -> Int:
    """Index in `INVARIANTS` of one that a record breaks, -1 where all hold."""
    players, two_colours = np.int64(state.num_players), has_two_colours(state)
    if (
        players < 2
        or players > MAX_PLAYERS
        or state.preset >= _NUM_PRESETS
        or state.colour_rule > SINGLE
        or (players > 2 and state.colour_rule != SINGLE)
        or state.facing_rule >= _NUM_FACING_RULES
        or state.flags > _ALL_FLAGS
        or state.start_rugs < 1
        or state.start_rugs > MAX_RUGS
        or state.start_money < 0
        or state.start_money > MAX_START_MONEY
        or (two_colours and state.start_rugs & 1)
    ):
        return 0
    if state.assam >= NUM_CELLS or state.facing >= len(FACINGS):
        return 1

    east, south = state.links_east, state.links_south
    seen, doubled, torn = _ZERO, _ZERO, _ZERO
    for colour in range(NUM_COLOURS):
        board = state.colour_boards[colour]
        doubled |= seen & board
        seen |= board
        torn |= east & (board ^ board >> _ONE) | south & (board ^ board >> _ROW)
    if (seen | east | south) >> _CELLS | east & _EAST_EDGE | south & _SOUTH_EDGE:
        return 2
    if doubled:
        return 3
    if (
        east & east << _ONE
        | south & south << _ROW
        | (east | east << _ONE) & (south | south << _ROW)
    ):
        return 4
    if torn | (east | south) & ~seen:
        return 5

    for k in range(players, MAX_PLAYERS):
        if state.money[k] or state.eliminated[k] or state.next_colour[k] != -1:
            return 6
        if not two_colours and (state.rugs[k] or state.colour_boards[k]):
            return 6
    money = 0
    for k in range(MAX_PLAYERS):
        money += state.money[k]
        if state.money[k] < 0 or state.rugs[k] > MAX_RUGS:
            return 7
    if money > _MOST_MONEY:
        return 7
    out, orders = 0, 0
    for k in range(players):
        if state.eliminated[k]:
            out += 1
            order: Int = np.int64(state.eliminated[k])
            orders |= 1 << (order if order < players else 0)
            if state.money[k] or state.rugs[2 * k if two_colours else k]:
                return 9
            if two_colours and state.rugs[2 * k + 1]:
                return 9
    if orders != (2 << out) - 2:
        return 8
    for k in range(players):
        shown = np.int64(state.next_colour[k])
        if not two_colours:
            if shown != k:
                return 10
        elif shown < 0:
            if shown != -1 or state.rugs[2 * k] or state.rugs[2 * k + 1]:
                return 10
        elif shown >> 1 != k or not state.rugs[shown]:
            return 10

    phase, player = state.phase, np.int64(state.player)
    if phase > OVER or player >= players or (player if phase == OVER else state.eliminated[player]):
        return 11
    if phase == LAY and state.next_colour[player] < 0:
        return 12
    if phase == WALK and not state.flags & STEER_AT_END:
        return 12
    return -1


def write_rules(states: States, rule_set: RuleSet) -> None:
    """Writes the rule fields and `num_players` of a rule set into every record, in place."""
    states["num_players"] = rule_set.num_players
    states["preset"] = list(PRESETS).index(rule_set.preset_name)
    states["start_rugs"] = rule_set.rugs
    states["start_money"] = rule_set.money
    states["colour_rule"] = COLOUR_RULES.index(rule_set.colours)
    states["facing_rule"] = FACING_RULES.index(rule_set.facing)
    states["flags"] = (
        COVER_OWN * rule_set.cover_own
        | PLAY_ON * rule_set.play_on
        | STEER_AT_END * (rule_set.steering == "end")
        | TIE_BY_SQUARES * (rule_set.tie_break == "squares")
    )


def rule_set_of(state: State) -> RuleSet:
    """The rule set that a game is played by."""
    record = one_state(state)
    flags = int(record["flags"])
    return RuleSet(
        num_players=int(record["num_players"]),
        rugs=int(record["start_rugs"]),
        colours=COLOUR_RULES[record["colour_rule"]],
        cover_own=int(flags & COVER_OWN != 0),
        play_on=int(flags & PLAY_ON != 0),
        steering="end" if flags & STEER_AT_END else "start",
        money=int(record["start_money"]),
        tie_break="squares" if flags & TIE_BY_SQUARES else "money",
        facing=FACING_RULES[record["facing_rule"]],
        preset_name=list(PRESETS)[record["preset"]],
    )


def owned_colours(state: State, player: int) -> tuple[int, ...]:
    """The colours of a seat, ascending: one, or two in a 2-player game with two colours each.

    Raises:
        ValueError: Not one state, or a seat that does not play.
    """
    return rule_set_of(state).owned_colours(player)
