"""Read-only look-up tables of the board's geometry, each beside the function that builds it.

A *heading* is `4*cell + facing` (0..195): where Assam stands and looks. Cells are numbered

     0  1  2  3  4  5  6        north
     7  8  9 10 11 12 13     west   east
    14 15 16 17 18 19 20        south
    21 22 23 24 25 26 27
    28 29 30 31 32 33 34     cell = 7*y + x
    35 36 37 38 39 40 41
    42 43 44 45 46 47 48

and a *placement* 0..11 is `action - 3 = 3*side + turn`, as Assam sees it; `actions` draws them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from marrakech_env.spec import BOARD_SIZE, DIE, EAST, NORTH, NUM_CELLS, SOUTH, WEST

_Table = TypeVar("_Table", bound=NDArray[Any])

NUM_HEADINGS: Final = 4 * NUM_CELLS
NUM_PLACEMENTS: Final = 12
NUM_STEERINGS: Final = 3
MAX_STEPS: Final = max(DIE)
"""Squares of the longest walk."""
DX: Final = (0, 1, 0, -1)
DY: Final = (-1, 0, 1, 0)
"""Steps of the facings 0..3 = N, E, S, W."""


def _frozen(table: _Table) -> _Table:
    table.setflags(write=False)
    return table


def on_board(x: int, y: int) -> bool:
    """Whether a square lies on the board."""
    return 0 <= x < BOARD_SIZE and 0 <= y < BOARD_SIZE


def cells_where(chosen: Callable[[int, int], bool]) -> np.uint64:
    """The bitboard of the cells (x, y) that are chosen."""
    squares = (divmod(cell, BOARD_SIZE)[::-1] for cell in range(NUM_CELLS))
    return np.uint64(sum(1 << c for c, (x, y) in enumerate(squares) if chosen(x, y)))


def _build_around(distance: int) -> NDArray[np.uint64]:
    """For each cell, the bitboard of those at most `distance` steps away, itself left out."""
    squares = (divmod(cell, BOARD_SIZE)[::-1] for cell in range(NUM_CELLS))

    def around(cx: int, cy: int) -> np.uint64:
        return cells_where(lambda x, y: 0 < abs(x - cx) + abs(y - cy) <= distance)

    return np.array([around(*square) for square in squares], np.uint64)


def walk_one(x: int, y: int, facing: int) -> tuple[int, int, int]:
    """One step of Assam (rule 5): straight ahead, or once along the edge track.

    The track joins neighbouring exits of one edge in pairs, so that he comes back one row beside
    his own, turned round; at the north-east and the south-west corner the odd exits that are left
    over are joined to each other, and he comes back at the same square, turned by a quarter.
    """
    if on_board(x + DX[facing], y + DY[facing]):
        return x + DX[facing], y + DY[facing], facing
    last = BOARD_SIZE - 1
    if facing == NORTH:  # pairs (0, 1), (2, 3), (4, 5) of columns; 6 goes round the corner
        return (x, y, WEST) if x == last else (x ^ 1, y, SOUTH)
    if facing == EAST:  # pairs (1, 2), (3, 4), (5, 6) of rows; 0 goes round the corner
        return (x, y, SOUTH) if y == 0 else (x, (y - 1 ^ 1) + 1, WEST)
    if facing == SOUTH:  # pairs (1, 2), (3, 4), (5, 6) of columns; 0 goes round the corner
        return (x, y, EAST) if x == 0 else ((x - 1 ^ 1) + 1, y, NORTH)
    return (x, y, NORTH) if y == last else (x, y ^ 1, EAST)  # WEST: pairs as in the north


def _build_walk() -> NDArray[np.uint8]:
    """`WALK[steps, heading]` = the heading after a walk of 0..4 squares."""
    walk = np.zeros((max(DIE) + 1, NUM_HEADINGS), np.uint8)
    walk[0] = np.arange(NUM_HEADINGS)
    for heading in range(NUM_HEADINGS):
        y, x = divmod(heading // 4, BOARD_SIZE)
        nx, ny, facing = walk_one(x, y, heading % 4)
        walk[1, heading] = 4 * (BOARD_SIZE * ny + nx) + facing
    for steps in range(2, max(DIE) + 1):
        walk[steps] = walk[1][walk[steps - 1]]
    return walk


def _build_placements() -> tuple[NDArray[np.int8], NDArray[np.int8]]:
    """The cells of both halves of each placement at each heading, -1 where off the board."""
    first = np.full((NUM_HEADINGS, NUM_PLACEMENTS), -1, np.int8)
    second = first.copy()
    for heading in range(NUM_HEADINGS):
        y, x = divmod(heading // 4, BOARD_SIZE)
        for placement in range(NUM_PLACEMENTS):
            side, turn = divmod(placement, 3)
            out = (heading + side) % 4
            on = (out + turn - 1) % 4
            x1, y1 = x + DX[out], y + DY[out]
            x2, y2 = x1 + DX[on], y1 + DY[on]
            if on_board(x1, y1) and on_board(x2, y2):
                first[heading, placement] = BOARD_SIZE * y1 + x1
                second[heading, placement] = BOARD_SIZE * y2 + x2
    return first, second


_LAST: Final = BOARD_SIZE - 1
EDGES: Final = cells_where(lambda x, y: x in (0, _LAST) or y in (0, _LAST))
"""Bitboard of the squares on the edge of the board."""
CORNERS: Final = cells_where(lambda x, y: x in (0, _LAST) and y in (0, _LAST))
"""Bitboard of the squares in its corners."""
BESIDE: Final = _frozen(_build_around(1))
"""uint64 (49,): bitboards of the cells beside a cell."""
NEAR: Final = _frozen(_build_around(2))
"""uint64 (49,): bitboards of the cells at most two steps from a cell, itself left out: what a rug
that is laid with Assam there can cover."""

WALK: Final = _frozen(_build_walk())
"""uint8 (5, 196): heading after walking 0..4 squares from a heading."""


def _build_landings() -> NDArray[np.uint8]:
    """`landings[heading, steering, roll - 1]` = the heading after that walk."""
    headings = np.arange(NUM_HEADINGS)
    turned = [headings // 4 * 4 + (headings + turn) % 4 for turn in (3, 0, 1)]
    return np.stack([WALK[1:, heading].T for heading in turned], axis=1)


LANDINGS: Final = _frozen(_build_landings())
"""uint8 (196, 3, 4): heading after a steering and a roll, `LANDINGS[heading, steering, roll-1]`."""

_first, _second = _build_placements()
FIRST_CELL: Final = _frozen(_first)
"""int8 (196, 12): cell of the half beside Assam, -1 where the placement leaves the board."""
SECOND_CELL: Final = _frozen(_second)
"""int8 (196, 12): cell of the other half, -1 where the placement leaves the board."""

ON_BOARD: Final = _frozen(((FIRST_CELL >= 0) << np.arange(NUM_PLACEMENTS)).sum(1).astype(np.uint32))
"""uint32 (196,): bit k is set where placement k lies on the board."""


def _build_rugs_around() -> NDArray[np.uint64]:
    """The west and the north cells of the rugs that may be laid with Assam on a cell."""
    rugs = np.zeros((NUM_CELLS, 2), np.uint64)
    for cell in range(NUM_CELLS):
        for first, second in zip(FIRST_CELL[4 * cell], SECOND_CELL[4 * cell], strict=True):
            low, high = sorted((int(first), int(second)))
            if low >= 0:
                rugs[cell, 0 if high - low == 1 else 1] |= np.uint64(1 << low)
    return rugs


RUGS_AROUND: Final = _frozen(_build_rugs_around())
"""uint64 (49, 2): bitboards of the rugs around a cell: the west cells of those that lie east-west,
the north cells of the others."""

DIE_PROBABILITY: Final = _frozen(
    np.array([DIE.count(steps) / len(DIE) for steps in range(max(DIE) + 1)])
)
"""float64 (5,): probability of walking 0..4 squares."""
ROLL_CHANCE: Final = _frozen(np.ascontiguousarray(DIE_PROBABILITY[1:]))
"""float64 (4,): probability of the rolls 1..4, by roll - 1."""

DIE_COUNTS: Final = _frozen(
    np.array([DIE.count(steps) for steps in range(1, max(DIE) + 1)], np.uint32)
)
"""uint32 (4,): faces of the die that show 1..4."""

DIE_FACES: Final = _frozen(np.array(DIE, np.int8))
"""int8 (6,): the faces of the die."""


def _build_shown() -> NDArray[np.uint8]:
    """`shown[facing, square]`: the cell at a square of the board as Assam sees it."""
    cells = np.arange(NUM_CELLS, dtype=np.uint8).reshape(BOARD_SIZE, BOARD_SIZE)
    return np.array([np.rot90(cells, facing).ravel() for facing in range(4)])


SHOWN_CELL: Final = _frozen(_build_shown())
"""uint8 (4, 49): the cells in rows from the upper left, the board turned so that a facing is up."""


# The legality of all 12 placements asks whether the two cells of each are joined by a link. Seen
# from Assam's cell c, the 6 placements that lie east-west have their western cell at c-8, c-7,
# c-2, c+1, c+6, c+7, and the 6 that lie north-south their northern one at c-14, c-8, c-6, c-1,
# c+1, c+7. `rules` collects those link bits into two numbers of 6 bits and looks the placements
# up here, instead of asking twelve times.
EAST_LINK_OFFSETS: Final = (-8, -7, -2, 1, 6, 7)
SOUTH_LINK_OFFSETS: Final = (-14, -8, -6, -1, 1, 7)


def _build_blocked(offsets: tuple[int, ...], step: int) -> NDArray[np.uint32]:
    """`blocked[facing, bits]`: placements whose two cells are joined by one of the 6 links."""
    middle = NUM_CELLS // 2  # a cell from which all twelve placements lie on the board
    blocked = np.zeros((4, 64), np.uint32)
    for facing in range(4):
        for placement in range(NUM_PLACEMENTS):
            heading = 4 * middle + facing
            first, second = FIRST_CELL[heading, placement], SECOND_CELL[heading, placement]
            low, high = int(min(first, second)), int(max(first, second))
            if high - low == step:
                link = offsets.index(low - middle)
                for bits in range(64):
                    blocked[facing, bits] |= (bits >> link & 1) << placement
    return blocked


BLOCKED_BY_EAST_LINKS: Final = _frozen(_build_blocked(EAST_LINK_OFFSETS, 1))
"""uint32 (4, 64): placements (bits) that the east links around Assam forbid, by facing."""
BLOCKED_BY_SOUTH_LINKS: Final = _frozen(_build_blocked(SOUTH_LINK_OFFSETS, BOARD_SIZE))
"""uint32 (4, 64): placements (bits) that the south links around Assam forbid, by facing."""
