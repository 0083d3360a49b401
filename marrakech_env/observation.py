"""Observations: what an agent sees, in three forms, always from the observer's point of view.

* `planes`: uint8 (C, 7, 7), the whole board as Assam sees it (turned so that he looks up), and the
  single facts as constant planes.
* `flat`: float32 (N,), the same facts as numbers; money is not clipped.
* `features`: float32 (N,), see `features`.

Legend: `B` games, `P` players, `C` planes, `N` numbers. C and N depend on P alone.

Perspective. *Seats* are counted from the observer: 0 is the observer, then the others in seat order
after him. *Colours* follow their owners in that order. With 2 players each seat has two slots: the
colour of his next rug, then his other colour (lower colour first when he has no rug left; with
single colours the second slot stays 0). So renaming a player's two colours changes nothing.

Symmetry. The track around the board is the same after a half turn and after a reflection in either
diagonal. A half turn of the position changes no observation. A reflection turns the picture into
its mirror image (left and right change places, also in the actions) and flips `facing_east_west`,
which tells where the two corner loops are: at the upper right and lower left where it is 0, at the
upper left and lower right where it is 1.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import ArrayLike, NDArray

from marrakech_env.compile import kernel, machine_code
from marrakech_env.feature_kernels import fill_features
from marrakech_env.features import FEATURES
from marrakech_env.schema import MAX_MONEY_OF_ALL, Entry, Schema, offset_table
from marrakech_env.spec import BOARD_SIZE, MAX_RUGS, NUM_CELLS
from marrakech_env.state import (
    LAY,
    OVER,
    STATE,
    WALK,
    Bits,
    Int,
    Record,
    State,
    States,
    as_seats,
    as_states,
)
from marrakech_env.stores import put_boards, put_number
from marrakech_env.views import colour_of_slot, num_slots, seat_after

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


@dataclass(frozen=True)
class Form:
    """One form of observation.

    Attributes:
        name: `planes`, `flat` or `features`.
        dtype: Of the array.
        schema: What the array holds.
    """

    name: str
    dtype: np.dtype[Any]
    schema: Schema
    _fill: Callable[[States, IntArray, IntArray, NDArray[Any]], None]

    def __reduce__(self) -> tuple[Callable[[str], Form], tuple[str]]:
        """Copies and pickles by name, so that no compiled kernel travels along."""
        return find_form, (self.name,)

    def shape(self, num_players: int) -> tuple[int, ...]:
        """Shape of one observation: (C, 7, 7) or (N,)."""
        planes = self.name == "planes"
        size = int(self.schema.offsets(num_players, planes)[-1])
        return (size, BOARD_SIZE, BOARD_SIZE) if planes else (size,)

    def space(self, num_players: int) -> Box:
        """The Gymnasium space of one observation, with the bounds of the schema."""
        shape = self.shape(num_players)
        low, high = self.schema.bounds(num_players, self.name == "planes")
        if self.name == "planes":
            high = np.minimum(high, MAX_PLANE_MONEY)
            low = np.broadcast_to(low[:, None, None], shape)
            high = np.broadcast_to(high[:, None, None], shape)
        return Box(low.astype(self.dtype), high.astype(self.dtype), shape, self.dtype.type)

    def fill(self, states: States, games: IntArray, players: IntArray, out: NDArray[Any]) -> None:
        """Writes the observations of some games into their rows, in place; arguments unchecked.

        Args:
            states: Shape (B,).
            games: int64 (N,), the game numbers to write.
            players: int64 (B,), the observing seat of each game; -1: the player to move.
            out: (B, ...) of this form's shape and dtype, contiguous.
        """
        self._fill(states, games, players, out.reshape(-1))


def find_form(name: str) -> Form:
    """The form of a name.

    Raises:
        ValueError: Unknown; the message lists the known ones.
    """
    if not isinstance(name, str) or name not in FORMS:
        raise ValueError(f"unknown observation form {name!r}; known: {', '.join(FORMS)}")
    return FORMS[name]


def encode(
    states: State | States, form: str = "planes", players: ArrayLike | None = None
) -> NDArray[Any]:
    """Encode a batch as observations.

    Args:
        states: Shape (B,), or one record.
        form: `planes`, `flat` or `features`.
        players: The observing seats, int (B,) or one for all; None: the player to move (seat 0
            where the game is over).

    Returns:
        uint8 (B, C, 7, 7) or float32 (B, N).

    Raises:
        ValueError: An unknown form, a seat that does not play, or wrong states.
    """
    found = find_form(form)
    states = as_states(states)
    seated = int(states["num_players"][0]) if len(states) else 2
    out = np.zeros((len(states), *found.shape(seated)), found.dtype)
    found.fill(states, np.arange(len(states)), as_seats(players, states), out)
    return out


# ------------------------------------------------------------------------------------ encoders

_FLAT_SIZES = offset_table(PLANES)["total"].astype(np.int64)
_PLANES_SIZES = NUM_CELLS * offset_table(PLANES, planes=True)["total"].astype(np.int64)
_MAX_PLANES = _PLANES_SIZES.max() // NUM_CELLS
_ONE, _CELLS = np.uint64(1), np.uint64(NUM_CELLS)
_LINK_SHIFT = np.array([BOARD_SIZE, 0, 0, 1], np.uint64)
"""By direction of the other half: how far a link's cell is from the cell where it is kept."""


@kernel
def _find(
    state: Record, observer: Int, boards: NDArray[np.uint64], numbers: IntArray
) -> tuple[Int, Int]:
    """Writes the entries by square as bitboards, and the others as numbers, as `PLANES` has them.

    Returns:
        How many bitboards and how many numbers.
    """
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
def _fill(
    states: States,
    games: IntArray,
    players: IntArray,
    out: NDArray[Any],
    sizes: IntArray,
    width: Bits,
) -> None:
    """Writes observations of `sizes[P]` numbers: boards 49 wide, the other entries `width`."""
    boards, numbers = np.empty(_MAX_PLANES, np.uint64), np.empty(_MAX_PLANES, np.int64)
    for j in range(len(games)):
        state = states[games[j]]
        observer = players[games[j]] if players[games[j]] >= 0 else np.int64(state.player)
        at = np.uint64(games[j] * sizes[state.num_players])
        num_boards, num_numbers = _find(state, observer, boards, numbers)
        put_boards(out, at, boards, num_boards, np.int64(state.facing))
        at += _CELLS * np.uint64(num_boards)
        for k in range(num_numbers):
            put_number(out, at, numbers[k])
            at += width


@functools.cache
def _fill_code(dtype: type[np.generic]) -> Callable[..., None]:
    """`_fill` for an `out` of a dtype; the types of the other arrays are always the same."""
    games = np.zeros(0, np.int64)
    out = np.zeros(0, dtype)
    return machine_code(_fill, np.zeros(0, STATE), games, games, out, _FLAT_SIZES, _ONE)


def _fill_planes(states: States, games: IntArray, players: IntArray, out: NDArray[Any]) -> None:
    _fill_code(np.uint8)(states, games, players, out, _PLANES_SIZES, _CELLS)


def _fill_flat(states: States, games: IntArray, players: IntArray, out: NDArray[Any]) -> None:
    _fill_code(np.float32)(states, games, players, out, _FLAT_SIZES, _ONE)


FORMS: Final = {
    form.name: form
    for form in (
        Form("planes", np.dtype(np.uint8), PLANES, _fill_planes),
        Form("flat", np.dtype(np.float32), PLANES, _fill_flat),
        Form("features", np.dtype(np.float32), FEATURES, fill_features),
    )
}
"""Every form by its name."""
