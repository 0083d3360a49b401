"""How the next two players are likely to walk, and what the first of them can do with his rug.

The *walker*, who moves next, steers by what he wants (`likely_steering`), and the *follower* after
him takes the cheapest way (with `steering=end`: the dearest one, since the walker steers for him).

Legend: *board* is a record of `patches.PATCHES`, *sheet* one of `evaluation.SHEET`; amounts are
dirhams; a heading is 4*cell + facing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import BOARD_SIZE, NUM_CELLS
from marrakech_env.state import STEER_AT_END, Bits, Int, Record

from .patches import (
    LANDINGS,
    MAX_STEPS,
    NOBODY,
    NUM_STEERINGS,
    ROLL_CHANCE,
    heading_of,
    lowest_cell,
    next_player,
    steerings_of,
    turns_left,
)

RUIN_COST: Final = 15
"""What a bankruptcy is taken to cost a player who chooses his way, beyond the money lost."""
WANT_SECOND, WANT_SWING, WANT_GROWTH, WANT_CUT = 0.7, 0.5, 0.2, 0.15
"""What the walker is taken to steer for, in dirhams of toll: a dirham that the follower will pay
him, a square of `swing`, a square of `growth`, a square of the largest patch he can cut into."""
_SOFT: Final = 1e-9

_ONE, _ROW = np.uint64(1), np.uint64(BOARD_SIZE)
_ALL_CELLS = np.uint64((1 << NUM_CELLS) - 1)


def cells_where(chosen: Callable[[int, int], bool]) -> np.uint64:
    """The bitboard of the cells (x, y) that are chosen."""
    squares = (divmod(cell, BOARD_SIZE)[::-1] for cell in range(NUM_CELLS))
    return np.uint64(sum(1 << c for c, (x, y) in enumerate(squares) if chosen(x, y)))


def _around(distance: int) -> NDArray[np.uint64]:
    """For each cell, the bitboard of those at most `distance` steps away, itself left out."""
    squares = (divmod(cell, BOARD_SIZE)[::-1] for cell in range(NUM_CELLS))

    def around(cx: int, cy: int) -> np.uint64:
        return cells_where(lambda x, y: 0 < abs(x - cx) + abs(y - cy) <= distance)

    return np.array([around(*square) for square in squares], np.uint64)


BESIDE: Final = _around(1)
NEAR: Final = _around(2)
_NOT_EAST_EDGE = cells_where(lambda x, y: x < BOARD_SIZE - 1)


@kernel
def follower_of(state: Record) -> Int:
    """Who walks after the walker, or NOBODY."""
    return next_player(state, np.int64(state.player)) if turns_left(state) > 1 else NOBODY


@kernel
def fill_bills(state: Record, board: Record, payer: Int, sheet: Record) -> None:
    """Writes what stopping on each cell costs a player who wants to stay in the game."""
    money = np.int64(state.money[payer])
    for cell in range(NUM_CELLS):
        size = np.int64(board.size[cell])
        bill = size if size <= money else money + RUIN_COST
        sheet.bills[cell] = 0 if board.owner[cell] == payer else bill


@kernel
def others_board(state: Record, player: Int) -> Bits:
    """The visible squares of all other players in the game."""
    squares = np.uint64(0)
    for other in range(state.num_players):
        if other != player and not state.eliminated[other]:
            squares |= game.board_of(state, other)
    return squares


@kernel
def likely_steering(state: Record, board: Record, sheet: Record) -> tuple[int, int]:
    """How the walker is likely to steer, and which steering costs him the least toll."""
    walker, heading = np.int64(state.player), heading_of(state)
    follower = follower_of(state)
    if follower != NOBODY:
        fill_bills(state, board, follower, sheet)
    theirs = others_board(state, walker)
    money = np.int64(state.money[walker])
    own = game.board_of(state, walker)
    colour = state.colour_boards[state.next_colour[walker]]
    first, last = steerings_of(state)
    likely, cheap = first, first
    sheet.costs[:] = np.inf
    for steering in range(first, last):
        toll, wants = 0.0, 0.0
        for k in range(MAX_STEPS):
            landing = np.int64(LANDINGS[heading, steering, k])
            cell = landing >> 2
            if board.owner[cell] != walker:
                size = np.int64(board.size[cell])
                toll += ROLL_CHANCE[k] * (size if size <= money else money + RUIN_COST)
            want = WANT_SWING * swing(state, cell, own, theirs)
            want += WANT_GROWTH * largest_patch(board, NEAR[cell] & colour)
            want += WANT_CUT * largest_patch(board, BESIDE[cell] & theirs)
            if follower != NOBODY:
                want += WANT_SECOND * second_income(state, board, landing, walker, sheet)
            wants += ROLL_CHANCE[k] * want
        if toll < sheet.costs[0] - _SOFT:
            cheap, sheet.costs[0] = steering, toll
        if toll - wants < sheet.costs[1] - _SOFT:
            likely, sheet.costs[1] = steering, toll - wants
    return likely, cheap


@kernel
def second_steering(state: Record, heading: Int, sheet: Record) -> Int:
    """The follower's steering: his cheapest one, or the dearest where the walker steers for him."""
    sign = -1.0 if state.flags & STEER_AT_END else 1.0
    best, least = 0, np.inf
    for steering in range(NUM_STEERINGS):
        cost = 0.0
        for k in range(MAX_STEPS):
            cost += ROLL_CHANCE[k] * sheet.bills[LANDINGS[heading, steering, k] >> 2]
        if sign * cost < least - _SOFT:
            best, least = steering, sign * cost
    return best


@kernel
def second_income(state: Record, board: Record, heading: Int, player: Int, sheet: Record) -> float:
    """What a player can expect of the follower's walk from a heading."""
    steering = second_steering(state, heading, sheet)
    income = 0.0
    for k in range(MAX_STEPS):
        cell = LANDINGS[heading, steering, k] >> 2
        if board.owner[cell] == player:
            income += ROLL_CHANCE[k] * sheet.bills[cell]
    return income


@kernel
def largest_patch(board: Record, squares: Bits) -> Int:
    """Size of the largest patch that some squares belong to, 0 without any."""
    most: Int = 0
    while squares:
        cell = lowest_cell(squares)
        most = max(most, np.int64(board.size[cell]))
        squares &= ~board.patch[cell] & (squares - _ONE)
    return most


@kernel
def swing(state: Record, cell: Int, own: Bits, theirs: Bits) -> Int:
    """Squares won plus squares taken by the best rug that can be laid from a cell, 1 to 4.

    Half a rug on a rival's square counts 2, on an empty or neutral one 1, on an own one 0; the two
    halves of one rug are never covered together (rule 8).
    """
    here, beside = game.cell_bit(cell), BESIDE[cell]
    # The west and the north halves of all rugs that may lie on the board, Assam being on `cell`.
    east = _NOT_EAST_EDGE & ~state.links_east & ~(here | here >> _ONE)
    south = ~state.links_south & ~(here | here >> _ROW)
    pairs = east & theirs & theirs >> _ONE
    if _reach(pairs, south & theirs & theirs >> _ROW, beside):
        return 4
    free = _ALL_CELLS & ~(own | theirs)
    pairs = east & (theirs & free >> _ONE | free & theirs >> _ONE)
    if _reach(pairs, south & (theirs & free >> _ROW | free & theirs >> _ROW), beside):
        return 3
    pairs = east & (theirs & own >> _ONE | own & theirs >> _ONE | free & free >> _ONE)
    below = south & (theirs & own >> _ROW | own & theirs >> _ROW | free & free >> _ROW)
    return 2 if _reach(pairs, below, beside) else 1


@kernel
def _reach(east: Bits, south: Bits, beside: Bits) -> bool:
    """Whether a rug of one of these west or north halves lies on a square of `beside`."""
    return bool((east | east << _ONE | south | south << _ROW) & beside)
