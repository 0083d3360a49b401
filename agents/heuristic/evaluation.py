"""What expectimax thinks of a position between two turns: everybody's predicted final score.

Right after a rug was laid, a few facts are found out about every player (`FACTS`). His final score
is predicted as a weighted sum of his own facts and of the mean of the others', with weights for
the number of turns that are left and for how long ago he moved. The predictions become shares of
the win by a softmax whose width shrinks with the turns that are left, and the value of the position
is the share of the player who looks, plus a little for his margin.

The facts look two walks ahead, those of the *walker*, who moves next, and of the *follower* after
him, as `walks` takes them to steer. How the walker may lay his rug then is told by the facts
`swing`, `growth`, `cover` and `cut`.

Legend: *board* is a record of `regions.PATCHES`, *sheet* one of `SHEET`, *weights* one of
`WEIGHTS`; amounts are dirhams; a *toll* is limited by the money of the one who pays.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.kernels.bitboards import board_of_others
from marrakech_env.spec import MAX_PLAYERS, NUM_CELLS
from marrakech_env.state import Bits, Int, Record
from marrakech_env.tables import BESIDE, CORNERS, EDGES

from .opponent_model import follower_of, largest_patch, likely_steering
from .regions import (
    LANDINGS,
    MAX_STEPS,
    NOBODY,
    NUM_STEERINGS,
    ROLL_CHANCE,
    heading_of,
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
"""The facts of a player, in the order of the weights. The last eight go by the likely steering."""
NUM_FACTS: Final = len(FACTS)
_MONEY, _POOR5, _POOR10, _POOR20, _SQUARES, _EDGE, _CORNER, _WHOLE, _RENT = range(9)
_CHEAP_TOLL, _CHEAP_SECOND, _TOLL, _RUIN, _SECOND, _SECOND_RUIN = range(9, 15)
_SWING, _GROWTH, _COVER, _CUT = range(15, NUM_FACTS)
NUM_TERMS: Final = 1 + 2 * NUM_FACTS
"""Weights of one prediction: a constant, the player's own facts, the mean facts of the others."""

MAX_TURNS: Final = 48
"""Turns left for which there are weights; where more are left, the last ones hold."""

WEIGHTS: Final = np.dtype(
    [
        # By turns since a player moved, and turns left:
        ("terms", np.float64, (MAX_PLAYERS, MAX_TURNS + 1, NUM_TERMS)),
        ("spreads", np.float64, (MAX_TURNS + 1,)),  # width of the softmax, by turns left
    ],
    align=True,
)
"""What was fitted for a number of players."""

SHEET: Final = np.dtype(
    [
        # What is found out about a position.
        ("facts", np.float64, (MAX_PLAYERS + 1, NUM_FACTS)),  # by seat, then of no player
        ("sums", np.float64, (NUM_FACTS,)),  # of the facts over all players in the game
        ("scores", np.float64, (MAX_PLAYERS,)),  # predicted final scores
        # What `walks` finds out about the walker's landings, by steering and roll.
        ("swing", np.int64, (NUM_STEERINGS, MAX_STEPS)),  # as the fact of this name
        ("growth", np.int64, (NUM_STEERINGS, MAX_STEPS)),
        ("cut", np.int64, (NUM_STEERINGS, MAX_STEPS)),  # largest patch of rivals beside it
        ("follows", np.int64, (NUM_STEERINGS, MAX_STEPS)),  # steering of the follower then
        ("income", np.float64, (NUM_STEERINGS, MAX_STEPS)),  # what it brings the walker
        ("swings", np.uint64, (4, 2)),  # see `bitboards.find_swings`
        ("bills", np.int64, (NUM_CELLS,)),  # see `walks.fill_bills`
        ("rival_sizes", np.int16, (NUM_CELLS + 1,)),  # of the patches of the walker's rivals
    ],
    align=True,
)

MARGIN_WORTH: Final = 0.003
"""What a dirham of margin over the best other player is worth, in shares of the win."""


@kernel
def value(state: Record, board: Record, player: Int, weights: Record, sheet: Record) -> float:
    """What a position between two turns is worth to a player: about his share of the win.

    Args:
        state: The game, before a walk or over.
        board: Its patches.
        player: The seat that looks.
        weights: Of `WEIGHTS`.
        sheet: Workspace: `share` tells from it what the position is worth to others.
    """
    if not game.is_over(state):
        fill_facts(state, board, sheet)
        predict_scores(state, weights, sheet)
    return share(state, player, weights, sheet)


@kernel
def share(state: Record, player: Int, weights: Record, sheet: Record) -> float:
    """As `value`, with the scores on the sheet as `value` left them there for another player.

    Where the game is over, and for an eliminated player, the scores of now count.
    """
    if state.eliminated[player] or game.is_over(state):
        won = 0.0 if state.eliminated[player] else game.winner_share(state, player)
        return float(won + MARGIN_WORTH * _present_margin(state, player))
    won = win_chance(state, player, weights, sheet)
    return float(won + MARGIN_WORTH * margin(state, sheet.scores, player))


@kernel
def _present_margin(state: Record, player: Int) -> float:
    """`margin` of the scores as they are now."""
    best = 0.0
    for seat in range(state.num_players):
        if seat != player and not state.eliminated[seat]:
            best = max(best, float(game.score(state, seat)))
    return float(game.score(state, player)) - best


@kernel
def win_chance(state: Record, player: Int, weights: Record, sheet: Record) -> float:
    """The share of the win that the predicted scores promise to a player still in the game."""
    scores, spread = sheet.scores, weights.spreads[min(turns_left(state), MAX_TURNS)]
    total = 0.0
    for seat in range(state.num_players):
        if seat == player:
            total += 1.0
        elif not state.eliminated[seat]:
            total += np.exp((scores[seat] - scores[player]) / spread)
    return 1 / total


@kernel
def margin(state: Record, scores: NDArray[np.float64], player: Int) -> Any:
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
def predict_scores(state: Record, weights: Record, sheet: Record) -> None:
    """Writes the predicted final scores into `sheet`, after `fill_facts`; 0 for the eliminated."""
    turns = min(turns_left(state), MAX_TURNS)
    players = 0
    for k in range(NUM_FACTS):
        sheet.sums[k] = 0.0
    for seat in range(state.num_players):
        sheet.scores[seat] = 0.0
        if not state.eliminated[seat]:
            players += 1
            for k in range(NUM_FACTS):
                sheet.sums[k] += sheet.facts[seat, k]
    since: Int = players  # turns ago, see `turns_since`
    mover: Int = np.int64(state.player)
    for _ in range(state.num_players):
        if not state.eliminated[mover]:
            since -= 1
            terms = weights.terms[since, turns]
            own, others = terms[0], 0.0
            for k in range(NUM_FACTS):
                fact = sheet.facts[mover, k]
                own += terms[1 + k] * fact
                others += terms[1 + NUM_FACTS + k] * (sheet.sums[k] - fact)
            sheet.scores[mover] = own + others / max(1, players - 1)
        mover = mover + 1 if mover + 1 < state.num_players else 0


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
        facts[_EDGE] = game.popcount(squares & EDGES)
        facts[_CORNER] = game.popcount(squares & CORNERS)
        facts[_WHOLE] = game.popcount(squares & links)
        facts[_RENT] = board.rent[seat] / NUM_CELLS
        for k in range(_CHEAP_TOLL, NUM_FACTS):
            facts[k] = 0.0
    if turns_left(state) == 0:
        return
    walker, heading = np.int64(state.player), heading_of(state)
    follower, theirs = follower_of(state), board_of_others(state, walker)
    likely, cheap = likely_steering(state, board, sheet)
    _add_walks(state, board, heading, likely, follower, sheet, _TOLL)
    for k in range(MAX_STEPS):
        cell = LANDINGS[heading, likely, k] >> 2
        add_reply(state, board, cell, theirs, ROLL_CHANCE[k], sheet)
        sheet.facts[walker, _SWING] += ROLL_CHANCE[k] * sheet.swing[likely, k]
        sheet.facts[walker, _GROWTH] += ROLL_CHANCE[k] * sheet.growth[likely, k]
    if cheap != likely:
        _add_walks(state, board, heading, cheap, follower, sheet, _CHEAP_TOLL)
        return
    for seat in range(state.num_players):
        sheet.facts[seat, _CHEAP_TOLL] = sheet.facts[seat, _TOLL]
        sheet.facts[seat, _CHEAP_SECOND] = sheet.facts[seat, _SECOND]


@kernel
def _add_walks(
    state: Record,
    board: Record,
    heading: Int,
    steering: Int,
    follower: Int,
    sheet: Record,
    toll: Int,
) -> None:
    """Adds the next two walks, the first one so steered, to the facts `_TOLL` or `_CHEAP_TOLL`.

    And to those that go with it.
    """
    walker, is_likely = np.int64(state.player), toll == _TOLL
    second = _SECOND if is_likely else _CHEAP_SECOND
    first_paid, first_ruin, second_paid, second_ruin = 0.0, 0.0, 0.0, 0.0
    for k in range(MAX_STEPS):
        chance, landing = ROLL_CHANCE[k], np.int64(LANDINGS[heading, steering, k])
        paid, ruin = pay(state, board, walker, landing >> 2, chance, sheet, toll)
        first_paid -= paid
        first_ruin += ruin
        if follower == NOBODY:
            continue
        choice = sheet.follows[steering, k]
        for j in range(MAX_STEPS):
            cell, both = np.int64(LANDINGS[landing, choice, j] >> 2), chance * ROLL_CHANCE[j]
            paid, ruin = pay(state, board, follower, cell, both, sheet, second)
            second_paid -= paid
            second_ruin += ruin
    sheet.facts[walker, toll] = first_paid
    if is_likely:
        sheet.facts[walker, _RUIN] = first_ruin
    if follower != NOBODY:
        sheet.facts[follower, second] = second_paid
        if is_likely:
            sheet.facts[follower, _SECOND_RUIN] = second_ruin


@kernel
def pay(
    state: Record,
    board: Record,
    payer: Int,
    cell: Int,
    chance: float,
    sheet: Record,
    toll: Int,
) -> tuple[float, float]:
    """Adds a landing that happens with some chance to the fact `toll` of the creditor.

    Returns:
        What the payer pays and how likely it bankrupts him, both times the chance.
    """
    owner, money = np.int64(board.owner[cell]), np.int64(state.money[payer])
    # Without a branch, which nobody could foretell: where nothing is due, it goes to no player.
    is_due = (owner != NOBODY) & (owner != payer)
    creditor = owner if is_due else MAX_PLAYERS
    size = np.int64(board.size[cell]) if is_due else np.int64(0)
    paid = chance * min(size, money)
    sheet.facts[creditor, toll] += paid
    return paid, chance if size > money else 0.0


@kernel
def add_reply(
    state: Record,
    board: Record,
    cell: Int,
    theirs: Bits,
    chance: float,
    sheet: Record,
) -> None:
    """Adds what the walker's rug may cover after landing on a cell to the last two facts."""
    walker = np.int64(state.player)
    beside = BESIDE[cell] & theirs
    if beside:
        for seat in range(state.num_players):
            squares = beside & game.board_of(state, seat)
            if seat != walker and squares:
                sheet.facts[seat, _COVER] += chance
                sheet.facts[seat, _CUT] += chance * largest_patch(board, squares)
