"""Look-up tables of the value network: where walks end and what Assam sees from where he stands.

Legend: see `value_inputs`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.spec import BOARD_SIZE, NUM_CELLS
from marrakech_env.tables import DIE_PROBABILITY, NUM_HEADINGS, WALK

from .inputs import NOWHERE, NUM_COLUMNS, NUM_FACES, NUM_STEERINGS, WINDOW

TABLES: Final = np.dtype(
    [
        ("chances", np.float32, (2 * NUM_HEADINGS, NUM_CELLS, NUM_COLUMNS)),
        ("ends", np.int64, (2 * NUM_HEADINGS, NUM_STEERINGS * NUM_FACES)),
        ("landing", np.int64, (2 * NUM_HEADINGS, NUM_STEERINGS * NUM_FACES)),
        ("seen", np.int64, (NUM_HEADINGS, NUM_CELLS)),
        ("assam", np.int64, (NUM_HEADINGS,)),
    ],
    align=True,
)
"""By *look*: a heading, plus 196 where the next walk goes straight on whatever the steering.
`chances`: how likely the walk of a column ends on a cell, later steerings being random; `ends`: the
cells of the next walk by steering and roll; `landing`: the headings there; `seen`: the place of a
cell in the window; `assam`: Assam's square. Left and right change places where the board is
reflected."""


def _turned(x: int, y: int, facing: int) -> tuple[int, int]:
    """A square once the symmetry that lets Assam look north is applied."""
    last = BOARD_SIZE - 1
    return ((x, y), (last - y, last - x), (last - x, last - y), (y, x))[facing]


def build_tables() -> NDArray[np.void]:
    """The tables as TABLES (1,)."""
    tables = np.zeros(1, TABLES)
    straight = np.zeros((NUM_HEADINGS, NUM_HEADINGS))
    for heading in range(NUM_HEADINGS):
        for steps in range(1, NUM_FACES + 1):
            straight[heading, WALK[steps, heading]] += DIE_PROBABILITY[steps]
    headings = np.arange(NUM_HEADINGS)
    turned = [headings // 4 * 4 + (headings + turn) % 4 for turn in (3, 0, 1)]
    steered = sum(straight[to] for to in turned) / NUM_STEERINGS
    for heading in range(NUM_HEADINGS):
        facing = heading % 4
        y, x = divmod(heading // 4, BOARD_SIZE)
        ax, ay = _turned(x, y, facing)
        tables["assam"][0, heading] = BOARD_SIZE * ay + ax
        for cell in range(NUM_CELLS):
            cx, cy = _turned(cell % BOARD_SIZE, cell // BOARD_SIZE, facing)
            column, row = cx - ax + WINDOW // 2, cy - ay + WINDOW // 2
            inside = 0 <= column < WINDOW and 0 <= row < WINDOW
            tables["seen"][0, heading, cell] = WINDOW * row + column if inside else NOWHERE
        for straight_on in (0, 1):
            look = heading + NUM_HEADINGS * straight_on
            walks: list[NDArray[np.float64]] = []
            for steering in (2, 1, 0) if facing % 2 else (0, 1, 2):
                start = heading if straight_on else int(turned[steering][heading])
                k = NUM_FACES * len(walks)
                tables["ends"][0, look, k : k + NUM_FACES] = WALK[1:, start] // 4
                tables["landing"][0, look, k : k + NUM_FACES] = WALK[1:, start]
                walks.append(straight[start])
            after = [walk @ steered for walk in walks]
            third = sum(after) / NUM_STEERINGS @ steered
            for column, chances in enumerate([*walks, *after, third, third @ steered]):
                tables["chances"][0, look, :, column] = chances.reshape(NUM_CELLS, 4).sum(1)
    tables.setflags(write=False)
    return tables


TABLE: Final = build_tables()
"""TABLES (1,). An argument of kernels: too large to be compiled in."""
