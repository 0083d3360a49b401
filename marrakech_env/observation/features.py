"""Features: the form that says, for each legal action, what the rules make of it; the schema.

A vector of facts and consequences: who has what, the board around Assam, the squares that the
coming walks can reach, and for each steering and each placement what follows from it. Nothing in it
values a position. `observation` describes the perspective and the symmetry: entries are by seat, by
colour slot, or by steering, placement and square as Assam sees them. `feature_kernels` writes it.

Legend: a *walk* is counted from the next one on. Expected amounts are for the board as it lies and
not limited by anybody's money; where a walk's steering is not given, each of the three is equally
likely. *Income* is what the observer gets in a walk of another player, or, counted down, what the
observer pays in a walk of their own. The *size* of a square is the number of squares of its region,
counted up for the observer's, down for those of others still in the game, else 0.
"""

from __future__ import annotations

from typing import Final

from marrakech_env.observation.schema import MAX_MONEY_OF_ALL, Entry, Schema
from marrakech_env.spec import MAX_PLAYERS, MAX_RUGS, NUM_CELLS

WINDOW: Final = 5
"""Side of the window around Assam, in squares."""
LOW_MONEY: Final = (5, 15)
"""Where the ramps of `money_low` end, in dirhams."""
LOW_TURNS: Final = (4, 12)
"""Where the ramps of `turns_low` end, in unlaid rugs."""
MAX_LATE_MARGIN: Final = 5

_SEATS, _OTHERS, _SLOTS, _ONE = (2, 3, 4), (1, 2, 3), (4, 3, 4), (1, 1, 1)
_STEERINGS, _PLACEMENTS, _WINDOW = (3,) * 3, (12,) * 3, (WINDOW * WINDOW,) * 3
_CELLS, _MONEY, _TURNS = NUM_CELLS, MAX_MONEY_OF_ALL, MAX_PLAYERS * MAX_RUGS
_EVEN = _CELLS * _TURNS
_IF_LAY = "; by placement; 0 unless it is legal for the observer now"


def _signed(
    name: str, counts: tuple[int, ...], meaning: str, bound: int, divisor: float = 1
) -> Entry:
    """An entry from -bound to bound."""
    return Entry(name, counts, meaning, -bound, bound, divisor)


def _steer(name: str, meaning: str, bound: int, divisor: float = 1) -> Entry:
    """An entry about each steering, centred on their mean."""
    meaning += ", less its mean over the three; by steering; 0 unless the observer is to steer"
    return _signed(f"steer_{name}", _STEERINGS, meaning, bound, divisor)


def _covered(name: str, meaning: str, counts: tuple[int, ...] = _PLACEMENTS) -> Entry:
    """An entry about what the two halves of each placement lie on."""
    return Entry(f"lay_{name}", counts, meaning + _IF_LAY, 0, 2)


def _lay(name: str, meaning: str, bound: int, divisor: float = 1) -> Entry:
    """An entry about each placement, centred on the mean of the legal ones."""
    meaning += ", less its mean over the legal ones" + _IF_LAY
    return _signed(f"lay_{name}", _PLACEMENTS, meaning, bound, divisor)


FEATURES: Final = Schema(
    (
        # name, counts with 2, 3, 4 players, meaning, least and greatest value, divisor
        Entry("turn", _SEATS, "1 for the seat to move, all 0 in a finished game; by seat"),
        Entry("phase", (3,) * 3, "1 where it is to steer, to lay, to walk on unsteered"),
        Entry("walker", _SEATS, "1 for the seat that takes the next walk; by seat"),
        Entry("eliminated", _SEATS, "1 for the eliminated; by seat"),
        Entry("money", _SEATS, "dirhams; by seat", 0, _MONEY, 30),
        Entry(
            "money_low",
            tuple(len(LOW_MONEY) * seats for seats in _SEATS),
            "share of {} dirhams, at most 1, by seat; then of {} dirhams".format(*LOW_MONEY),
        ),
        Entry("squares", _SEATS, "visible squares; by seat", 0, _CELLS, 15),
        _signed(
            "lead",
            _OTHERS,
            "own score now minus that of each other seat; by seat",
            _MONEY + _CELLS,
            20,
        ),
        _signed(
            "late_margin",
            _ONE,
            "own score now minus the best of the others, over 2 + `turns`, cut off at "
            f"+-{MAX_LATE_MARGIN}",
            MAX_LATE_MARGIN,
        ),
        Entry("rugs", _SLOTS, "unlaid rugs; by colour slot", 0, MAX_RUGS, 12),
        Entry("turns", _ONE, "unlaid rugs of all players", 0, _TURNS, 24),
        Entry(
            "turns_low",
            (len(LOW_TURNS),) * 3,
            "share of {} `turns`, at most 1; then of {} `turns`".format(*LOW_TURNS),
        ),
        Entry("largest", _SLOTS, "squares of the largest region; by colour slot", 0, _CELLS, 8),
        Entry(
            "even_toll",
            _SLOTS,
            "mean due over all 49 squares: the squared region sizes over 49; by colour slot",
            0,
            _CELLS,
            2,
        ),
        Entry(
            "even_gain",
            _ONE,
            "expected income of all coming walks of others, if each ended on any of the 49 squares "
            "alike",
            0,
            _EVEN,
            10,
        ),
        Entry(
            "even_cost",
            _ONE,
            "expected dues of all coming walks of the observer, likewise",
            0,
            _EVEN,
            10,
        ),
        Entry("facing_east_west", _ONE, "1 where Assam truly faces east or west"),
        _signed("under", _ONE, "size of Assam's square", _CELLS, 5),
        _signed("income", (4,) * 3, "expected income of the next four walks", _CELLS, 2),
        _signed(
            "ahead",
            _PLACEMENTS,
            "size of the square where the next walk ends; by steering, then by roll 1..4",
            _CELLS,
            5,
        ),
        Entry(
            "ahead_own",
            _STEERINGS,
            "expected due of the next walk to the observer, were it another's; by steering",
            0,
            _CELLS,
            3,
        ),
        Entry(
            "ahead_others",
            _STEERINGS,
            "expected due of the next walk to others, were it the observer's; by steering",
            0,
            _CELLS,
            3,
        ),
        Entry("ruin", _STEERINGS, "chance that the next walk eliminates its walker; by steering"),
        _steer("income", "expected income of the next walk", _CELLS),
        _steer("next", "expected income of the walk after it", 2 * _CELLS),
        _steer(
            "next_best", "the same, if that walk is steered to cost its walker least", 2 * _CELLS
        ),
        _steer(
            "near_own",
            "expected largest region of the observer within two steps of where the walk ends",
            _CELLS,
            2,
        ),
        _steer("near_others", "the same of others", _CELLS, 2),
        _steer(
            "near_squares",
            "expected squares of others within two steps of where the walk ends",
            12,
            2,
        ),
        _steer(
            "shift",
            "expected most that one legal rug where the walk ends can shift: 2 for a square of "
            "others, 1 for one that is nobody's",
            4,
        ),
        Entry("lay_legal", _PLACEMENTS, "1" + _IF_LAY),
        _covered("own", "own squares that it covers"),
        _covered(
            "others",
            "squares that it covers of each other seat still in the game, by seat",
            tuple(12 * others for others in _OTHERS),
        ),
        _covered("breaks_own", "own rugs with both halves visible of which it covers a half"),
        _covered("breaks_others", "such rugs of others still in the game"),
        _covered("edge", "its squares on the edge of the board"),
        _lay("region", "squares of the region that it belongs to", _CELLS, 2),
        _lay("next", "expected income of the next walk after it", 2 * _CELLS),
        _lay("next_best", "the same, if that walk is steered to cost its walker least", 2 * _CELLS),
        _lay("gain", "expected income of the second to fourth walks that others take", 3 * _CELLS),
        _lay("cost", "expected dues of those that the observer takes", 3 * _CELLS),
        _lay("even_gain", "`even_gain` after it", _EVEN, 2),
        _lay("even_cost", "`even_cost` after it", _EVEN, 2),
        Entry(
            "window_colours",
            tuple(WINDOW * WINDOW * slots for slots in _SLOTS),
            f"1 where the colour is visible in the {WINDOW}x{WINDOW} squares around Assam, row by "
            "row; by colour slot",
        ),
        Entry("window_outside", _WINDOW, "1 in the window beyond the edge of the board"),
        _signed("window_size", _WINDOW, "size of each square in the window", _CELLS, 5),
    )
)
"""The schema of `features`."""
