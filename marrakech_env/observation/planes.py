"""Planes and flat: the facts of a position, as a picture and as a vector; schema and kernels.

Legend: see `observation`. A *plane* holds one value for each of the 49 squares.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.compile import kernel
from marrakech_env.kernels.unpack_bits import put_board
from marrakech_env.observation.perspective import colour_of_slot, num_slots, seat_after
from marrakech_env.observation.schema import MAX_MONEY_OF_ALL, Entry, Schema, offset_table
from marrakech_env.spec import BOARD_SIZE, MAX_RUGS, NUM_CELLS
from marrakech_env.state import LAY, OVER, WALK, Bits, Int, Record, States
from marrakech_env.tables import SHOWN_CELL

IntArray = NDArray[np.int64]

_COLOURS, _SEATS, _SINGLE = (4, 3, 4), (2, 3, 4), (1, 1, 1)
MAX_PLANE_MONEY: Final = 255
"""Money of 255 and more looks the same in `planes`; `flat` and `features` hold it whole."""

PLANES: Final = Schema(
    (
        Entry("colours", _COLOURS, "1 where the colour is visible; by colour slot", by_square=True),
        Entry(
            "links",
            (4, 4, 4),
            "1 where the other half of the same rug is visible on the square above, to the right, "
            "below, to the left",
            by_square=True,
        ),
        Entry("assam", _SINGLE, "1 on Assam's square", by_square=True),
        Entry("facing_east_west", _SINGLE, "1 where Assam truly faces east or west"),
        Entry(
            "money",
            _SEATS,
            f"dirhams; by seat; {MAX_PLANE_MONEY} and more look the same in `planes`, "
            "`flat` holds them whole",
            high=MAX_MONEY_OF_ALL,
        ),
        Entry(
            "rugs",
            _COLOURS,
            "unlaid rugs, the visible top one included; by colour slot",
            high=MAX_RUGS,
        ),
        Entry("eliminated", _SEATS, "order of elimination from 1, 0 in the game; by seat", high=4),
        Entry("turn", _SEATS, "1 for the seat to move, all 0 when the game is over; by seat"),
        Entry("laying", _SINGLE, "1 where a rug is to be laid"),
        Entry("walking", _SINGLE, "1 where the mover walks on unsteered (steering=end)"),
    )
)
"""The schema of `planes` and `flat`: entries `by_square` are planes of 49 values, the others are
constant planes in `planes` and single numbers in `flat`."""

_FLAT, _PLANES = offset_table(PLANES), offset_table(PLANES, planes=True)
_MAX_PLANES = int(_PLANES["total"].max())
_ONE, _SQUARES = np.uint64(1), np.uint64(NUM_CELLS)
_LINK_SHIFT = np.array([BOARD_SIZE, 0, 0, 1], np.uint64)
"""By direction of the other half: how far a link's cell is from the cell where it is kept."""
_SHOWN = SHOWN_CELL.astype(np.uint64)


def _build_turned() -> NDArray[np.uint64]:
    """Build `turned[facing, row, squares]`: the bitboard of a row's squares as Assam sees them."""
    table = np.zeros((4, BOARD_SIZE, 1 << BOARD_SIZE), np.uint64)
    for facing, cells in enumerate(SHOWN_CELL):
        for place, cell in enumerate(cells):
            row, column = divmod(int(cell), BOARD_SIZE)
            has_square = np.arange(1 << BOARD_SIZE) >> column & 1 == 1
            table[facing, row, has_square] |= np.uint64(1 << place)
    table.setflags(write=False)
    return table


_TURNED: Final = _build_turned()
"""uint64 (4, 7, 128): by facing, row from the north, and the bits of that row."""


@kernel
def _turned(board: Bits, facing: Bits) -> Bits:
    """A bitboard turned so that a facing is up."""
    turned, last = np.uint64(0), np.uint64((1 << BOARD_SIZE) - 1)
    for row in range(BOARD_SIZE):
        turned |= _TURNED[facing, row, board >> np.uint64(BOARD_SIZE * row) & last]
    return turned


@kernel
def _find_facts(
    state: Record, observer: Int, boards: NDArray[np.uint64], numbers: IntArray
) -> tuple[Int, Int]:
    """Write the planes as bitboards and the other entries as numbers, in the order of `PLANES`.

    Returns:
        Number of bitboards and number of numbers.
    """
    if observer < 0:
        observer = np.int64(state.player)
    players, slots = np.int64(state.num_players), num_slots(state)
    money, rugs = 1, 1 + players
    eliminated = rugs + slots
    turn = eliminated + players
    mover = np.int64(state.player) if state.phase != OVER else -1
    numbers[0] = state.facing & 1
    for k in range(players):
        seat = np.uint64(seat_after(state, observer, k))
        numbers[money + k] = state.money[seat]
        numbers[eliminated + k] = state.eliminated[seat]
        numbers[turn + k] = np.int64(seat) == mover
    numbers[turn + players] = state.phase == LAY
    numbers[turn + players + 1] = state.phase == WALK
    for slot in range(slots):
        colour = colour_of_slot(state, observer, slot)
        boards[slot] = state.colour_boards[colour] if colour >= 0 else np.uint64(0)
        numbers[rugs + slot] = state.rugs[colour] if colour >= 0 else 0
    east, south = state.links_east, state.links_south
    for seen in range(4):
        direction = seen + state.facing & 3
        boards[slots + seen] = (east if direction & 1 else south) << _LINK_SHIFT[direction]
    boards[slots + 4] = _ONE << np.uint64(state.assam)
    return slots + 5, turn + players + 2


@kernel
def fill_planes(states: States, games: IntArray, players: IntArray, out: NDArray[np.uint8]) -> None:
    """Kernel: write the planes of some games into their rows; see `Form.fill`."""
    boards, numbers = np.empty(_MAX_PLANES, np.uint64), np.empty(_MAX_PLANES, np.int64)
    for j in range(len(games)):
        state = states[games[j]]
        num_boards, num_numbers = _find_facts(state, players[games[j]], boards, numbers)
        at = np.uint64(games[j]) * _SQUARES * _PLANES[state.num_players].total
        facing = np.uint64(state.facing)
        for k in range(num_boards):
            put_board(out, at, _turned(boards[k], facing))
            at += _SQUARES
        for k in range(num_numbers):
            value = np.uint8(min(numbers[k], MAX_PLANE_MONEY))
            for square in range(NUM_CELLS):
                out[at + np.uint64(square)] = value
            at += _SQUARES


@kernel
def fill_flat(states: States, games: IntArray, players: IntArray, out: NDArray[np.float32]) -> None:
    """Kernel: write the flat vectors of some games into their rows; see `Form.fill`."""
    boards, numbers = np.empty(_MAX_PLANES, np.uint64), np.empty(_MAX_PLANES, np.int64)
    for j in range(len(games)):
        state = states[games[j]]
        num_boards, num_numbers = _find_facts(state, players[games[j]], boards, numbers)
        at = np.uint64(games[j]) * _FLAT[state.num_players].total
        facing = np.uint64(state.facing)
        for k in range(num_boards):
            board = boards[k]
            for square in range(NUM_CELLS):
                shown = board >> _SHOWN[facing, np.uint64(square)] & _ONE
                out[at + np.uint64(square)] = np.int32(shown)
            at += _SQUARES
        for k in range(num_numbers):
            out[at + np.uint64(k)] = numbers[k]
