"""The state: one record of the structured dtype `STATE` per game.

Legend: `B` games, `P` players, colours 0..3, cells `7*y + x` (0..48), facings 0..3 = N, E, S, W.

A *bitboard* is a uint64 whose bit `cell` tells something about that cell. Chance is no part of
the state: the order of a shuffled rug pile is never stored, only how many rugs of each colour are
left and which colour is on top, so that no copy of a state can foresee anything.

Invariants of every state that `rules.reset`, `rules.step` or `notation.parse_position` made (each
is checked by `check_invariants`, and by a test of the same name):

* `bits_on_board`: no bitboard has a bit above 48.
* `colours_disjoint`: a cell shows at most one colour.
* `links_join_one_colour`: the two halves joined by a link show the same colour.
* `links_disjoint`: no cell belongs to two links, and no link crosses the edge of the board.
* `assam_on_board`: `assam` is 0..48 and `facing` 0..3.
* `elimination_order`: the non-zero entries of `eliminated` are 1..k, each once.
* `eliminated_hold_nothing`: an eliminated player has no money and no rugs.
* `unused_seats_empty`: seats from `num_players` on hold only zeros (`next_colour`: -1), and
  colours that nobody owns have neither rugs nor squares.
* `next_colour_held`: with two colours, a next colour is one that the player owns and still holds,
  and -1 only when he holds none; with one colour it is always his own.
* `mover_in_game`: the player to move is not eliminated; `player` is 0 when the game is over.
* `phase_fits_steering`: phase WALK occurs only where players steer at the end of their turn.

Besides, play keeps the sum of all money (`money_total`): reading a position does not ask for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from marrakech_env.spec import (
    BOARD_SIZE,
    COLOUR_RULES,
    FACING_RULES,
    FACINGS,
    NUM_CELLS,
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

_BOARD: Final = (1 << NUM_CELLS) - 1
_EAST_EDGE: Final = sum(1 << (BOARD_SIZE * y + BOARD_SIZE - 1) for y in range(BOARD_SIZE))
_SOUTH_EDGE: Final = sum(1 << (NUM_CELLS - 1 - x) for x in range(BOARD_SIZE))


def as_states(states: State | States) -> States:
    """Checks an argument that should hold states, and returns it as kernels want it.

    Returns:
        The same memory where it is a writeable contiguous array of shape (B,), else a copy.

    Raises:
        ValueError: Not of dtype `STATE`, not one-dimensional, or with mixed `num_players`.
    """
    array = np.asarray(states)
    if array.dtype != STATE:
        raise ValueError(f"states must be an array of dtype STATE, not of dtype {array.dtype}")
    array = array.view(STATE)  # equal types may forget that they are aligned: those of np.load do
    if array.ndim != 1:
        if array.ndim:
            raise ValueError(f"states must have shape (B,), not {array.shape}")
        array = array.reshape(1)
    if not (array.flags.c_contiguous and array.flags.writeable and array.flags.aligned):
        array = array.copy()
    if len(array) > 1:
        players = array["num_players"]
        if (players != players[0]).any():
            raise ValueError(
                "all states of one call must have the same num_players, found "
                + ", ".join(map(str, np.unique(players)))
            )
    return array


def one_state(state: State) -> Record:
    """The record of an argument that should be one game.

    Raises:
        ValueError: Not one record of dtype `STATE`.
    """
    array = as_states(state)
    if len(array) != 1:
        raise ValueError(f"one state wanted: a record or shape (1,), not shape {array.shape}")
    return array[0]


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
    """The colours of a seat, ascending: one, or two in a 2-player game with two colours each."""
    record = one_state(state)
    if record["num_players"] == 2 and record["colour_rule"] != SINGLE:
        return (2 * player, 2 * player + 1)
    return (player,)


def check_invariants(states: States) -> None:
    """Checks the invariants listed at the top of this module, for tests and soaks.

    Raises:
        AssertionError: Names the first invariant that is broken and the game.
    """
    for game, state in enumerate(as_states(states)):
        for name, holds in _invariants(state):
            if not holds:
                raise AssertionError(f"game {game} breaks the invariant {name}: {state}")


def _invariants(state: np.void) -> Iterator[tuple[str, bool]]:
    """Every invariant with whether it holds, in the order of the list above."""
    players, phase = int(state["num_players"]), int(state["phase"])
    boards = [int(board) for board in state["colour_boards"]]
    east, south = int(state["links_east"]), int(state["links_south"])
    halves = (east, east << 1, south, south << BOARD_SIZE)
    linked = east | east << 1 | south | south << BOARD_SIZE
    eliminated = state["eliminated"].tolist()
    out = [seat for seat in range(players) if eliminated[seat]]
    unused = range(players, 4)

    yield "bits_on_board", not any((bits & ~_BOARD) for bits in (*boards, linked))
    yield "colours_disjoint", sum(boards) == boards[0] | boards[1] | boards[2] | boards[3]
    yield (
        "links_join_one_colour",
        all(
            (bits & boards[c]) == (start & boards[c]) << shift
            for c in range(4)
            for start, bits, shift in (
                (east, east << 1, 1),
                (south, south << BOARD_SIZE, BOARD_SIZE),
            )
        )
        and not linked & ~sum(boards),
    )
    yield (
        "links_disjoint",
        (
            sum(bits.bit_count() for bits in halves) == linked.bit_count()
            and not east & _EAST_EDGE
            and not south & _SOUTH_EDGE
        ),
    )
    yield "assam_on_board", state["assam"] < NUM_CELLS and state["facing"] < len(FACINGS)
    yield "elimination_order", sorted(eliminated[s] for s in out) == list(range(1, len(out) + 1))
    yield (
        "eliminated_hold_nothing",
        all(
            state["money"][seat] == 0
            and not any(state["rugs"][c] for c in owned_colours(state, seat))
            for seat in out
        ),
    )
    owned = [colour for seat in range(players) for colour in owned_colours(state, seat)]
    yield (
        "unused_seats_empty",
        all(
            state["money"][s] == 0 and eliminated[s] == 0 and state["next_colour"][s] == -1
            for s in unused
        )
        and not any(boards[c] or state["rugs"][c] for c in range(4) if c not in owned),
    )
    yield "next_colour_held", all(_next_colour_held(state, seat) for seat in range(players))
    yield (
        "mover_in_game",
        (state["player"] == 0 if phase == OVER else eliminated[state["player"]] == 0),
    )
    yield "phase_fits_steering", phase != WALK or bool(state["flags"] & STEER_AT_END)


def _next_colour_held(state: np.void, seat: int) -> bool:
    """Whether the colour of a seat's next rug fits what he holds."""
    owned, colour = owned_colours(state, seat), int(state["next_colour"][seat])
    if len(owned) == 1:
        return colour == owned[0]
    held = [c for c in owned if state["rugs"][c]]
    return colour in held if held else colour == -1
