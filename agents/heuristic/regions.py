"""What the greedy and the expectimax agent look up about one board, in one record.

A *patch* is a side-connected region of one colour whose owner is still in the game: whoever else
stops on it owes him its size. Neutral rugs (rule 7) belong to no patch.

Legend: cells 0..48, *heading* = 4*cell + facing 0..195, steerings 0..2 = left, straight, right.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import lowest_cell, lowest_square
from marrakech_env.kernels.regions import boards_in_play, joined_squares, lowest_regions
from marrakech_env.spec import DIE, MAX_PLAYERS, NUM_CELLS
from marrakech_env.state import WALK as TO_WALK
from marrakech_env.state import Bits, Int, Record
from marrakech_env.tables import DIE_PROBABILITY, NUM_HEADINGS, WALK

NOBODY: Final = -1
NUM_STEERINGS: Final = 3
MAX_STEPS: Final = max(DIE)

PATCHES: Final = np.dtype(
    [
        ("patch", np.uint64, (NUM_CELLS,)),  # bitboard of the patch a cell belongs to, 0 none
        ("size", np.int16, (NUM_CELLS,)),  # squares of that patch
        ("owner", np.int8, (NUM_CELLS,)),  # seat that owns it, or NOBODY
        ("rent", np.int64, (MAX_PLAYERS,)),  # sum of the sizes over all squares of each seat
        # Written where `greedy` lays a rug; the walk is the next one, on the board before.
        ("weights", np.float64, (MAX_PLAYERS + 1,)),  # worth of a square lost, by owner + 1
        ("met", np.uint64),  # bitboard of the patches on whose squares it can end
        ("tolls", np.float64, (NUM_STEERINGS, MAX_STEPS)),  # chance times toll of each landing
        ("incomes", np.float64, (NUM_STEERINGS, MAX_STEPS)),  # what of it goes to the mover
    ],
    align=True,
)

ROLL_CHANCE: Final = np.ascontiguousarray(DIE_PROBABILITY[1:])
"""float64 (4,): probability of the rolls 1..4, by roll - 1."""
_ONE = np.uint64(1)


def _build_landings() -> NDArray[np.uint8]:
    """`landings[heading, steering, roll - 1]` = the heading after that walk."""
    headings = np.arange(NUM_HEADINGS)
    turned = [headings // 4 * 4 + (headings + steering + 3) % 4 for steering in range(3)]
    return np.stack([WALK[1:, heading].T for heading in turned], axis=1)


LANDINGS: Final = _build_landings()
"""uint8 (196, 3, 4): heading after a steering and a roll, `LANDINGS[heading, steering, roll-1]`."""


@kernel
def heading_of(state: Record) -> Int:
    """Where Assam stands and looks."""
    return 4 * np.int64(state.assam) + state.facing


@kernel
def steerings_of(state: Record) -> tuple[int, int]:
    """The steerings of the coming walk, as a range: only straight on where it is unsteered."""
    return (1, 2) if state.phase == TO_WALK else (0, NUM_STEERINGS)


@kernel
def turns_left(state: Record) -> Int:
    """Rugs that are still to be laid by all players."""
    rugs = 0
    for player in range(state.num_players):
        rugs += game.rugs_left(state, player)
    return rugs


@kernel
def next_player(state: Record, player: Int) -> Int:
    """The next other seat after `player` that is in the game and holds a rug, or NOBODY."""
    for ahead in range(1, state.num_players):
        seat = player + ahead
        if seat >= state.num_players:
            seat -= state.num_players
        if not state.eliminated[seat] and game.rugs_left(state, seat) > 0:
            return seat
    return NOBODY


@kernel
def likelier_colour(state: Record) -> Int:
    """The likelier colour of the rug that the mover gets next, the lower among equals; -1: none."""
    lower, upper = game.next_colour_weights(state)
    if lower + upper == 0:
        return -1
    return 2 * np.int64(state.player) + (1 if upper > lower else 0)


@kernel
def survey(state: Record, board: Record) -> None:
    """Writes all patches of a game into `board`."""
    for cell in range(NUM_CELLS):
        board.patch[cell] = 0
        board.size[cell] = 0
        board.owner[cell] = NOBODY
    for player in range(MAX_PLAYERS):
        board.rent[player] = 0
    boards = boards_in_play(state)
    east, south = joined_squares(boards)
    left = boards[0] | boards[1] | boards[2] | boards[3]
    while left:
        grown = lowest_regions(boards, left, east, south)
        left ^= grown
        first, second = boards[0] & grown, boards[1] & grown
        third, fourth = boards[2] & grown, boards[3] & grown
        for colour, patch in enumerate((first, second, third, fourth)):
            size = game.popcount(patch)
            board.rent[game.owner(state, colour)] += size * size
        while grown:
            cell = lowest_cell(grown)
            square = lowest_square(grown)
            grown ^= square
            patch, colour = first, 0
            patch, colour = (second, 1) if second & square else (patch, colour)
            patch, colour = (third, 2) if third & square else (patch, colour)
            patch, colour = (fourth, 3) if fourth & square else (patch, colour)
            board.patch[cell] = patch
            board.size[cell] = game.popcount(patch)
            board.owner[cell] = game.owner(state, colour)


@kernel
def mark(board: Record, squares: Bits, owner: Int) -> None:
    """Writes the patches that some squares of one colour form into `board`."""
    while squares:
        patch = game.region(squares, lowest_cell(squares))
        squares &= ~patch
        size = game.popcount(patch)
        board.rent[owner] += size * size
        left = patch
        while left:
            cell = lowest_cell(left)
            left &= left - _ONE
            board.patch[cell] = patch
            board.size[cell] = size
            board.owner[cell] = owner


@kernel
def _take_rent(board: Record, squares: Bits) -> None:
    """Takes whole patches, and squares that belong to none, out of `rent`."""
    while squares:
        cell = lowest_cell(squares)
        size = np.int64(board.size[cell])
        board.rent[board.owner[cell]] -= size * size  # 0 where it is NOBODY's
        squares &= ~board.patch[cell] & (squares - _ONE)


@kernel
def relay(state: Record, first: Int, second: Int, board: Record) -> None:
    """Brings `board` up to date after a rug was laid.

    Args:
        state: The game right after the rug was laid.
        first: Cell of one half of the rug.
        second: Cell of the other half.
        board: The patches from before, changed in place.
    """
    rug = game.cell_bit(first) | game.cell_bit(second)
    colour = game.colour_at(state, first)
    owner = game.owner(state, colour)
    patch = game.region(state.colour_boards[colour], first)
    # Covered squares may have held an old patch together; what is left of it, is marked anew.
    torn = board.patch[first] & ~rug & ~patch
    torn_owner = np.int64(board.owner[first])
    other = board.patch[second] & ~rug & ~patch & ~torn
    other_owner = np.int64(board.owner[second])
    _take_rent(board, torn | other | rug | patch)
    mark(board, torn, torn_owner)
    mark(board, other, other_owner)
    mark(board, patch, owner)
