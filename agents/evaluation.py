"""What expectimax thinks of a position between two turns: everybody's predicted final score.

Right after a rug was laid, a few facts are found out about every player (`FACTS`). His final score
is predicted as a weighted sum of his own facts and of the mean of the others', with weights for
the number of turns that are left and for how long ago he moved. The predictions become shares of
the win by a softmax whose width shrinks with the turns that are left, and the value of the position
is the share of the player who looks, plus a little for his margin.

The facts look two walks ahead. The *walker*, who moves next, steers by what he wants
(`likely_steering`), and the *follower* after him takes the cheapest way (with `steering=end`: the
dearest one, since the walker steers for him). How the walker may lay his rug then is told by the
facts `swing`, `growth`, `cover` and `cut`.

Legend: `P` players; *board* is a record of `patches.PATCHES`, *sheet* one of `SHEET`; amounts are
dirhams; a *toll* is limited by the money of the one who pays.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import BOARD_SIZE, MAX_PLAYERS, NUM_CELLS
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

FACTS: Final = {
    "money": "dirhams",
    "poor5": "dirhams that he has less than 5",
    "poor10": "dirhams that he has less than 10",
    "poor20": "dirhams that he has less than 20",
    "squares": "visible squares",
    "edge": "of these, on the edge of the board, where rugs are covered less often",
    "corner": "of these, in a corner",
    "whole": "rugs with both halves visible: no single rug can cover them",
    "rent": "what a visitor owes him on an average square of the board",
    "cheap_toll": "expected toll of the next walk if the walker pays least: + got, - paid",
    "cheap_second": "expected toll of the walk after that, got or paid",
    "toll": "expected toll of the next walk if the walker steers as he is likely to, got or paid",
    "ruin": "probability that this walk bankrupts him",
    "second": "expected toll of the walk after that, got or paid",
    "second_ruin": "probability that the walk after that bankrupts him",
    "swing": "walker only: squares that his best rug will shift in his favour (1 to 4), expected",
    "growth": "walker only: largest patch of his next rug's colour near his landing, expected",
    "cover": "probability that the walker lands beside one of his squares",
    "cut": "largest patch of his beside the walker's landing, expected",
}
"""The facts of a player, in the order of the weights. The last nine go by the likely steering."""
NUM_FACTS: Final = len(FACTS)
_MONEY, _POOR5, _POOR10, _POOR20, _SQUARES, _EDGE, _CORNER, _WHOLE, _RENT = range(9)
_CHEAP_TOLL, _CHEAP_SECOND, _TOLL, _RUIN, _SECOND, _SECOND_RUIN = range(9, 15)
_SWING, _GROWTH, _COVER, _CUT = range(15, NUM_FACTS)
NUM_TERMS: Final = 1 + 2 * NUM_FACTS
"""Weights of one prediction: a constant, the player's own facts, the mean facts of the others."""

SHEET: Final = np.dtype(
    [
        ("facts", np.float64, (MAX_PLAYERS, NUM_FACTS)),
        ("sums", np.float64, (NUM_FACTS,)),  # of the facts over all players in the game
        ("bills", np.float64, (NUM_CELLS,)),  # what each cell costs the follower
        ("scores", np.float64, (MAX_PLAYERS,)),  # predicted final scores
        ("costs", np.float64, (2,)),  # least toll and least cost so far, of `likely_steering`
    ],
    align=True,
)

RUIN_COST: Final = 15
"""What a bankruptcy is taken to cost a player who chooses his way, beyond the money lost."""
WANT_SECOND, WANT_SWING, WANT_GROWTH, WANT_CUT = 0.7, 0.5, 0.2, 0.15
"""What the walker is taken to steer for, in dirhams of toll: a dirham that the follower will pay
him, a square of `swing`, a square of `growth`, a square of the largest patch he can cut into."""
MARGIN_WORTH: Final = 0.003
"""What a dirham of margin over the best other player is worth, in shares of the win."""
SOFT: Final = 1e-9

_ONE, _ROW = np.uint64(1), np.uint64(BOARD_SIZE)
_ALL_CELLS = np.uint64((1 << NUM_CELLS) - 1)


def _cells(chosen: Callable[[int, int], bool]) -> np.uint64:
    """The bitboard of the cells (x, y) that are chosen."""
    squares = (divmod(cell, BOARD_SIZE)[::-1] for cell in range(NUM_CELLS))
    return np.uint64(sum(1 << c for c, (x, y) in enumerate(squares) if chosen(x, y)))


def _around(distance: int) -> NDArray[np.uint64]:
    """For each cell, the bitboard of those at most `distance` steps away, itself left out."""
    squares = (divmod(cell, BOARD_SIZE)[::-1] for cell in range(NUM_CELLS))
    boards = [
        _cells(lambda x, y, cx=cx, cy=cy: 0 < abs(x - cx) + abs(y - cy) <= distance)  # type: ignore[misc]
        for cx, cy in squares
    ]
    return np.array(boards, np.uint64)


_LAST = BOARD_SIZE - 1
_EDGES = _cells(lambda x, y: x in (0, _LAST) or y in (0, _LAST))
_CORNERS = _cells(lambda x, y: x in (0, _LAST) and y in (0, _LAST))
_NOT_EAST_EDGE = _cells(lambda x, y: x < _LAST)
BESIDE: Final = _around(1)
NEAR: Final = _around(2)


@kernel
def value(
    state: Record,
    board: Record,
    player: Int,
    weights: NDArray[np.float64],
    spreads: NDArray[np.float64],
    sheet: Record,
) -> float:
    """What a position between two turns is worth to a player: about his share of the win.

    Args:
        state: The game, before a walk or over.
        board: Its patches.
        player: The seat that looks.
        weights: float64 (P, turns, `NUM_TERMS`), by turns since a player moved and turns left.
        spreads: float64 (turns,), the width of the softmax by turns left.
        sheet: Scratch.
    """
    if state.eliminated[player] or game.is_over(state):
        scores = sheet.scores
        for seat in range(state.num_players):
            scores[seat] = game.score(state, seat)
        share = 0.0 if state.eliminated[player] else game.winner_share(state, player)
        return float(share + MARGIN_WORTH * _margin(state, scores, player))
    fill_facts(state, board, sheet)
    predict_scores(state, weights, sheet)
    spread = spreads[min(turns_left(state), len(spreads) - 1)]
    scores = sheet.scores
    total = 0.0
    for seat in range(state.num_players):
        if not state.eliminated[seat]:
            total += np.exp((scores[seat] - scores[player]) / spread)
    return float(1 / total + MARGIN_WORTH * _margin(state, scores, player))


@kernel
def _margin(state: Record, scores: NDArray[np.float64], player: Int) -> Any:
    """A score minus the best one of the others in the game."""
    best: Any = 0.0
    for seat in range(state.num_players):
        if seat != player and not state.eliminated[seat]:
            best = max(best, scores[seat])
    return scores[player] - best


@kernel
def turns_since(state: Record, player: Int) -> Int:
    """How many turns ago a player moved, among those in the game: 0 for the last, n-1 the next."""
    ahead, found = 0, 0
    seat: Int = np.int64(state.player)
    for _ in range(state.num_players):
        if not state.eliminated[seat]:
            if seat == player:
                found = ahead
            ahead += 1
        seat = seat + 1 if seat + 1 < state.num_players else 0
    return ahead - 1 - found


@kernel
def predict_scores(state: Record, weights: NDArray[np.float64], sheet: Record) -> None:
    """Writes the predicted final scores into `sheet`, after `fill_facts`; 0 for the eliminated."""
    turns = min(turns_left(state), weights.shape[1] - 1)
    players = 0
    for k in range(NUM_FACTS):
        sheet.sums[k] = 0.0
    for seat in range(state.num_players):
        if not state.eliminated[seat]:
            players += 1
            for k in range(NUM_FACTS):
                sheet.sums[k] += sheet.facts[seat, k]
    for seat in range(state.num_players):
        sheet.scores[seat] = 0.0
        if not state.eliminated[seat]:
            since = turns_since(state, seat)
            own, others = weights[since, turns, 0], 0.0
            for k in range(NUM_FACTS):
                fact = sheet.facts[seat, k]
                own += weights[since, turns, 1 + k] * fact
                others += weights[since, turns, 1 + NUM_FACTS + k] * (sheet.sums[k] - fact)
            sheet.scores[seat] = own + others / max(1, players - 1)


@kernel
def fill_facts(state: Record, board: Record, sheet: Record) -> None:
    """Writes the facts of every player into `sheet`; the game is before a walk."""
    links = state.links_east | state.links_south
    for seat in range(state.num_players):
        facts = sheet.facts[seat]
        money = np.float64(state.money[seat])
        squares = game.board_of(state, seat)
        facts[_MONEY] = money
        facts[_POOR5] = max(0.0, 5 - money)
        facts[_POOR10] = max(0.0, 10 - money)
        facts[_POOR20] = max(0.0, 20 - money)
        facts[_SQUARES] = game.popcount(squares)
        facts[_EDGE] = game.popcount(squares & _EDGES)
        facts[_CORNER] = game.popcount(squares & _CORNERS)
        facts[_WHOLE] = game.popcount(squares & links)
        facts[_RENT] = board.rent[seat] / NUM_CELLS
        for k in range(_CHEAP_TOLL, NUM_FACTS):
            facts[k] = 0.0
    if turns_left(state) == 0:
        return
    walker, heading = np.int64(state.player), heading_of(state)
    follower = next_player(state, walker) if turns_left(state) > 1 else NOBODY
    if follower != NOBODY:
        fill_bills(state, board, follower, sheet)
    theirs = others_board(state, walker)
    likely, cheap = likely_steering(state, board, follower, theirs, sheet)
    for k in range(MAX_STEPS):
        chance = ROLL_CHANCE[k]
        landing = np.int64(LANDINGS[heading, cheap, k])
        add_toll(state, board, walker, landing >> 2, chance, sheet, _CHEAP_TOLL, NOBODY)
        if follower != NOBODY:
            add_second(state, board, follower, landing, chance, sheet, _CHEAP_SECOND, NOBODY)
        landing = np.int64(LANDINGS[heading, likely, k])
        add_toll(state, board, walker, landing >> 2, chance, sheet, _TOLL, _RUIN)
        if follower != NOBODY:
            add_second(state, board, follower, landing, chance, sheet, _SECOND, _SECOND_RUIN)
        add_reply(state, board, landing >> 2, theirs, chance, sheet)


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
def likely_steering(
    state: Record, board: Record, follower: Int, theirs: Bits, sheet: Record
) -> tuple[int, int]:
    """How the walker is likely to steer, and which steering costs him the least toll."""
    walker, heading = np.int64(state.player), heading_of(state)
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
        if toll < sheet.costs[0] - SOFT:
            cheap, sheet.costs[0] = steering, toll
        if toll - wants < sheet.costs[1] - SOFT:
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
        if sign * cost < least - SOFT:
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
def add_toll(
    state: Record,
    board: Record,
    payer: Int,
    cell: Int,
    chance: float,
    sheet: Record,
    toll: Int,
    ruin: Int,
) -> None:
    """Adds a landing that happens with some chance to the facts `toll` and, if any, `ruin`."""
    owner = np.int64(board.owner[cell])
    if owner != NOBODY and owner != payer:
        size, money = np.int64(board.size[cell]), np.int64(state.money[payer])
        sheet.facts[payer, toll] -= chance * min(size, money)
        sheet.facts[owner, toll] += chance * min(size, money)
        if ruin != NOBODY and size > money:
            sheet.facts[payer, ruin] += chance


@kernel
def add_second(
    state: Record,
    board: Record,
    follower: Int,
    heading: Int,
    chance: float,
    sheet: Record,
    toll: Int,
    ruin: Int,
) -> None:
    """Adds the follower's walk from a heading to the facts `toll` and `ruin`."""
    steering = second_steering(state, heading, sheet)
    for k in range(MAX_STEPS):
        cell = np.int64(LANDINGS[heading, steering, k] >> 2)
        add_toll(state, board, follower, cell, chance * ROLL_CHANCE[k], sheet, toll, ruin)


@kernel
def add_reply(
    state: Record, board: Record, cell: Int, theirs: Bits, chance: float, sheet: Record
) -> None:
    """Adds what the walker's rug may do after landing on a cell to the last four facts."""
    walker = np.int64(state.player)
    colour = state.colour_boards[state.next_colour[walker]]
    own = game.board_of(state, walker)
    sheet.facts[walker, _SWING] += chance * swing(state, cell, own, theirs)
    sheet.facts[walker, _GROWTH] += chance * largest_patch(board, NEAR[cell] & colour)
    beside = BESIDE[cell] & theirs
    if beside:
        for seat in range(state.num_players):
            squares = beside & game.board_of(state, seat)
            if seat != walker and squares:
                sheet.facts[seat, _COVER] += chance
                sheet.facts[seat, _CUT] += chance * largest_patch(board, squares)


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
