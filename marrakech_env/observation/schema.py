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
from marrakech_env.state import MAX_MONEY

MIN_PLAYERS: Final = 2
_COUNTS: Final = range(MIN_PLAYERS, MAX_PLAYERS + 1)

MAX_MONEY_OF_ALL: Final = MAX_PLAYERS * MAX_MONEY
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
    counts: tuple[int, ...]
    meaning: str
    low: float = 0
    high: float = 1
    divisor: float = 1
    by_square: bool = False

    @property
    def factor(self) -> np.float32:
        """What the encoder multiplies the value with."""
        return np.float32(1 / self.divisor)

    def count(self, num_players: int) -> int:
        """Planes or numbers with so many players."""
        return self.counts[num_players - MIN_PLAYERS]

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
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Least and greatest value of each plane or number, divided: two float32 (N,)."""
        bounds = np.array([(entry.low, entry.high) for entry in self.entries], np.float32)
        sizes = np.diff(self.offsets(num_players, planes))
        low, high = np.repeat(bounds.T, sizes, axis=1) * self.factors(num_players, planes)
        return low, high

    def factors(self, num_players: int, planes: bool = False) -> NDArray[np.float32]:
        """What the encoder multiplies each plane or number with: float32 (N,)."""
        sizes = np.diff(self.offsets(num_players, planes))
        return np.repeat([entry.factor for entry in self.entries], sizes)


def offset_table(schema: Schema, planes: bool = False) -> NDArray[np.void]:
    """The offsets for kernels, by number of players, in planes or in numbers.

    Returns:
        Records (5,) with a field for each entry and `total`; kernels read `table[P].name`.
        They are unsigned, because Numba checks a signed index for counting from the end.
    """
    names = [entry.name for entry in schema.entries]
    table = np.zeros(MAX_PLAYERS + 1, [(name, np.uint16) for name in (*names, "total")])
    for num_players in _COUNTS:
        table[num_players] = tuple(schema.offsets(num_players, planes).tolist())
    table.setflags(write=False)
    return table


def factor_table(schema: Schema) -> NDArray[np.float32]:
    """What kernels multiply each number with: float32 (5, N), by number of players."""
    rows = [schema.factors(num_players) for num_players in _COUNTS]
    table = np.zeros((MAX_PLAYERS + 1, max(map(len, rows))), np.float32)
    for num_players, row in zip(_COUNTS, rows, strict=True):
        table[num_players, : len(row)] = row
    table.setflags(write=False)
    return table


def markdown_table(schema: Schema, planes: bool = False) -> str:
    """The schema as a table for the documentation, counted in planes or in numbers.

    Columns: the entry, its places with 2, 3 and 4 players, its meaning, and its least and greatest
    value as they are written.
    """
    head = ["entry", *(f"P = {count}" for count in _COUNTS), "meaning", "values"]
    rows = [head, ["---"] * len(head)]
    for entry in schema.entries:
        parts = [schema.part(entry.name, count, planes) for count in _COUNTS]
        places = [_range_text(part.start, part.stop - 1) for part in parts]
        values = f"{entry.low:g}..{entry.high:g}"
        if entry.divisor != 1:
            values += f", /{entry.divisor:g}"
        rows.append([f"`{entry.name}`", *places, entry.meaning, values])
    totals = [f"**{schema.offsets(count, planes)[-1]}**" for count in _COUNTS]
    rows.append(["all", *totals, "", ""])
    return "\n".join("| " + " | ".join(row) + " |" for row in rows)


def _range_text(first: int, last: int) -> str:
    return str(first) if first == last else f"{first}..{last}"
