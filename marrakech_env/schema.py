"""Schema: what an observation holds, as data.

A schema is a tuple of entries. The encoder takes its offsets from it, the spaces their bounds,
`docs/environment.md` its tables and the tests what to compare, so that none of them can drift.

Legend: `P` players, `E` entries, `N` values of one observation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.spec import MAX_PLAYERS, NUM_CELLS

MAX_MONEY_OF_ALL: Final = 4 * 8191
"""Most dirhams that one player can come to hold: those of all four of a position text."""


@dataclass(frozen=True)
class Entry:
    """One group of planes or numbers of an observation.

    Attributes:
        name: Unique in its schema.
        counts: How many planes or numbers it has with 2, 3 and 4 players.
        meaning: For the documentation: what each stands for, in which order, seen by whom.
        low: Least value, before the division.
        high: Greatest value, before the division.
        divisor: What the encoder divides the value by, so that usual values are of order 1.
        by_square: Whether each of the `counts` is a board with one value a square.
    """

    name: str
    counts: tuple[int, int, int]
    meaning: str
    low: float = 0
    high: float = 1
    divisor: float = 1
    by_square: bool = False

    def count(self, num_players: int) -> int:
        """Planes or numbers with so many players."""
        return self.counts[num_players - 2]

    def size(self, num_players: int) -> int:
        """Numbers that it takes in a vector."""
        return self.count(num_players) * (NUM_CELLS if self.by_square else 1)


@dataclass(frozen=True)
class Schema:
    """All entries of an observation, in the order in which they are written."""

    entries: tuple[Entry, ...]

    def index(self, name: str) -> int:
        """The place of an entry among the entries.

        Raises:
            ValueError: No entry has this name.
        """
        names = [entry.name for entry in self.entries]
        if name not in names:
            raise ValueError(f"unknown entry {name!r}; known: {', '.join(names)}")
        return names.index(name)

    def offsets(self, num_players: int, planes: bool = False) -> NDArray[np.int64]:
        """Where each entry starts, then the size of all: int64 (E+1,), in planes or in numbers."""
        sizes = [e.count(num_players) if planes else e.size(num_players) for e in self.entries]
        return np.cumsum([0, *sizes], dtype=np.int64)

    def part(self, name: str, num_players: int, planes: bool = False) -> slice:
        """Where an entry stands in an observation, in planes or in numbers."""
        offsets, index = self.offsets(num_players, planes), self.index(name)
        return slice(int(offsets[index]), int(offsets[index + 1]))

    def bounds(
        self, num_players: int, planes: bool = False
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Least and greatest value of each plane or number, divided: two float64 (N,)."""
        sizes = np.diff(self.offsets(num_players, planes))
        low = [entry.low / entry.divisor for entry in self.entries]
        high = [entry.high / entry.divisor for entry in self.entries]
        return np.repeat(low, sizes), np.repeat(high, sizes)


def offset_table(schema: Schema, planes: bool = False) -> NDArray[np.int64]:
    """The offsets for kernels: int64 (5, E+1), the row being the number of players."""
    rows = [schema.offsets(max(players, 2), planes) for players in range(MAX_PLAYERS + 1)]
    table = np.stack(rows)
    table.setflags(write=False)
    return table
