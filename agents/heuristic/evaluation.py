"""The value of a position between two turns: a prediction of every player's final score.

Right after a rug is laid, the evaluation computes `FACTS` about every player. A linear model
predicts each final score from the player's own facts and the mean facts of the others; its weights
depend on the turns left and on how long ago the player moved. A softmax turns the predictions into
shares of the win; it narrows as turns run out. The value of a position is a player's share, plus a
little for the margin.

The facts cover the next two walks, those of the *walker* and the *follower* of `opponent_model`.
The facts `swing`, `growth`, `cover` and `cut` tell how the walker may lay a rug.

Legend: `regions` is a record of `REGION_MAP`, `weights` of `EVALUATION_WEIGHTS`, `work` of
`EXPECTIMAX_WORKSPACE`; amounts are dirhams; a *toll* is limited by the money of its payer.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from marrakech_env import game
from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.game import NO_SEAT
from marrakech_env.kernels.bitboards import board_of_others
from marrakech_env.kernels.regions import REGIONS
from marrakech_env.spec import MAX_PLAYERS, NUM_CELLS
from marrakech_env.state import STATE, Bits, Int, Record
from marrakech_env.tables import (
    BESIDE,
    CORNERS,
    EDGES,
    LANDINGS,
    MAX_STEPS,
    NUM_STEERINGS,
    ROLL_CHANCE,
)

from .opponent_model import follower_of, likely_steering
from .regions import REGION_MAP, largest_region

FACTS: Final = {
    "money": "dirhams",
    "poor5": "dirhams below 5",
    "poor10": "dirhams below 10",
    "poor20": "dirhams below 20",
    "squares": "visible squares",
    "edge": "visible squares on the edge of the board, where rugs are covered less often",
    "corner": "visible squares in a corner",
    "whole": "rugs with both halves visible: no single rug can cover them",
    "rent": "toll of a visitor on an average square of the board",
    "cheap_toll": "expected toll of the next walk by the cheapest steering: + received, - paid",
    "cheap_second": "expected toll of the walk after that, received or paid",
    "toll": "expected toll of the next walk by the likely steering, received or paid",
    "ruin": "probability that this walk bankrupts the player",
    "second": "expected toll of the walk after that, received or paid",
    "second_ruin": "probability that the walk after that bankrupts the player",
    "swing": "walker only: expected squares that their best rug shifts in their favour (1 to 4)",
    "growth": "walker only: expected largest region of their next colour near their landing",
    "cover": "probability that the walker lands beside a square of the player",
    "cut": "expected size of the player's largest region beside the walker's landing",
}
"""The facts about a player, in the order of the weights. The last eight use the likely steering."""
NUM_FACTS: Final = len(FACTS)
_MONEY, _POOR5, _POOR10, _POOR20, _SQUARES, _EDGE, _CORNER, _WHOLE, _RENT = range(9)
# As np.int64 they have one type as arguments; a kernel compiles anew for each Python constant.
_CHEAP_TOLL, _CHEAP_SECOND, _TOLL, _RUIN, _SECOND, _SECOND_RUIN = map(np.int64, range(9, 15))
_SWING, _GROWTH, _COVER, _CUT = range(15, NUM_FACTS)
NUM_TERMS: Final = 1 + 2 * NUM_FACTS
"""Weights of one prediction: a constant, the player's own facts, the mean facts of the others."""

MAX_TURNS: Final = 48
"""Most turns left with weights of their own; the last weights serve above."""

EVALUATION_WEIGHTS: Final = np.dtype(
    [
        # By turns since a player moved, and turns left:
        ("terms", np.float64, (MAX_PLAYERS, MAX_TURNS + 1, NUM_TERMS)),
        ("spreads", np.float64, (MAX_TURNS + 1,)),  # width of the softmax, by turns left
    ],
    align=True,
)
"""The fitted weights for one number of players."""

EXPECTIMAX_WORKSPACE: Final = np.dtype(
    [
        ("facts", np.float64, (MAX_PLAYERS + 1, NUM_FACTS)),  # by seat, then of no player
        ("sums", np.float64, (NUM_FACTS,)),  # of the facts over all players in the game
        ("since", np.int64, (MAX_PLAYERS,)),  # turns since a player moved, -1 for the eliminated
        ("scores", np.float64, (MAX_PLAYERS,)),  # predicted final scores
        # What `opponent_model` computes for the walker's landings, by steering and roll:
        ("swing", np.int64, (NUM_STEERINGS, MAX_STEPS)),  # as the fact of this name
        ("growth", np.int64, (NUM_STEERINGS, MAX_STEPS)),
        ("cut", np.int64, (NUM_STEERINGS, MAX_STEPS)),  # largest region of others beside it
        ("follows", np.int64, (NUM_STEERINGS, MAX_STEPS)),  # the follower's steering
        ("income", np.float64, (NUM_STEERINGS, MAX_STEPS)),  # the walker's income from it
        ("swings", np.uint64, (4, 2)),  # see `bitboards.find_swings`
        ("packed_tolls", np.int64, (NUM_CELLS,)),
        ("other_sizes", np.int16, (NUM_CELLS + 1,)),  # of the regions of the walker's opponents
        # The positions that `one_turn` and `reply` search, with their regions:
        ("listed", REGIONS),  # of the position surveyed last, as a list
        ("regions", REGION_MAP),  # of the position to decide, by square
        ("walked", STATE),  # after a walk
        ("laid", STATE),  # after a rug
        ("laid_regions", REGION_MAP),
        ("ended", STATE),  # after the turn
        ("answered", STATE),  # after a placement that the next player answers
        ("answered_regions", REGION_MAP),
        ("q", np.float64, (NUM_ACTIONS,)),  # of the actions of the position to decide
        ("walked_q", np.float64, (NUM_ACTIONS,)),  # of the actions after a walk
    ],
    align=True,
)
"""Workspace of one call. A record is passed by reference, without the cost of array arguments."""

MARGIN_Q: Final = 0.003
"""Value of a dirham of margin over the best other player, in shares of the win."""


@kernel
def position_value(
    state: Record, regions: Record, player: Int, weights: Record, work: Record
) -> float:
    """Value of a position before a walk, or of a finished game, to a player.

    `seat_value` then gives its value to other players.
    """
    write_scores(state, regions, weights, work)
    return seat_value(state, player, weights, work)


@kernel
def seat_value(state: Record, player: Int, weights: Record, work: Record) -> float:
    """Value to a player of the position that `position_value` saw last.

    For an eliminated player the present scores count.
    """
    if state.eliminated[player]:
        write_present_scores(state, work)
    share = win_share(state, player, weights, work)
    return float(share + MARGIN_Q * margin(state, player, work))


@kernel
def win_share(state: Record, player: Int, weights: Record, work: Record) -> float:
    """A player's share of the win by the scores in `work`, exact in a finished game."""
    if state.eliminated[player] or game.is_over(state):
        return game.winner_share(state, player)
    scores, spread = work.scores, weights.spreads[min(game.all_rugs_left(state), MAX_TURNS)]
    total = 0.0
    for seat in range(state.num_players):
        if seat == player:
            total += 1.0
        elif not state.eliminated[seat]:
            total += np.exp((scores[seat] - scores[player]) / spread)
    return 1 / total


@kernel
def margin(state: Record, player: Int, work: Record) -> float:
    """A player's score in `work` minus the best one of the others in the game."""
    best = 0.0
    for seat in range(state.num_players):
        if seat != player and not state.eliminated[seat]:
            best = max(best, work.scores[seat])
    return float(work.scores[player] - best)


@kernel
def write_scores(state: Record, regions: Record, weights: Record, work: Record) -> None:
    """Write everyone's predicted final score, the real one in a finished game; 0 if eliminated."""
    if game.is_over(state):
        write_present_scores(state, work)
        return
    write_facts(state, regions, work)
    turns = min(game.all_rugs_left(state), MAX_TURNS)
    players = 0
    for k in range(NUM_FACTS):
        work.sums[k] = 0.0
    for seat in range(state.num_players):
        work.scores[seat] = 0.0
        work.since[seat] = -1
        if not state.eliminated[seat]:
            players += 1
            for k in range(NUM_FACTS):
                work.sums[k] += work.facts[seat, k]
    since: Int = players
    mover: Int = np.int64(state.player)
    for _ in range(state.num_players):
        if not state.eliminated[mover]:
            since -= 1
            work.since[mover] = since
            terms = weights.terms[since, turns]
            own, others = terms[0], 0.0
            for k in range(NUM_FACTS):
                fact = work.facts[mover, k]
                own += terms[1 + k] * fact
                others += terms[1 + NUM_FACTS + k] * (work.sums[k] - fact)
            work.scores[mover] = own + others / max(1, players - 1)
        mover = mover + 1 if mover + 1 < state.num_players else 0


@kernel
def write_present_scores(state: Record, work: Record) -> None:
    """Write the scores as if the game ended now."""
    for seat in range(state.num_players):
        work.scores[seat] = game.score(state, seat)


@kernel
def write_facts(state: Record, regions: Record, work: Record) -> None:
    """Write the facts about every player; the game is before a walk."""
    links = state.links_east | state.links_south
    for seat in range(state.num_players):
        facts = work.facts[seat]
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
        facts[_RENT] = regions.rent[seat] / NUM_CELLS
        for k in range(_CHEAP_TOLL, NUM_FACTS):
            facts[k] = 0.0
    if game.all_rugs_left(state) == 0:
        return
    walker, heading = np.int64(state.player), game.heading_of(state)
    others = board_of_others(state, walker)
    likely, cheap = likely_steering(state, regions, work)
    _add_walks(state, regions, heading, likely, _TOLL, work)
    for k in range(MAX_STEPS):
        _add_reply(state, regions, LANDINGS[heading, likely, k] >> 2, others, ROLL_CHANCE[k], work)
        work.facts[walker, _SWING] += ROLL_CHANCE[k] * work.swing[likely, k]
        work.facts[walker, _GROWTH] += ROLL_CHANCE[k] * work.growth[likely, k]
    if cheap != likely:
        _add_walks(state, regions, heading, cheap, _CHEAP_TOLL, work)
        return
    for seat in range(state.num_players):
        work.facts[seat, _CHEAP_TOLL] = work.facts[seat, _TOLL]
        work.facts[seat, _CHEAP_SECOND] = work.facts[seat, _SECOND]


@kernel
def _add_walks(
    state: Record, regions: Record, heading: Int, steering: Int, toll: Int, work: Record
) -> None:
    """Add the next two walks, the first by one steering, to the facts about them.

    Args:
        state: The game.
        regions: Its regions.
        heading: Assam's heading.
        steering: The walker's steering.
        toll: `_TOLL` for the likely steering or `_CHEAP_TOLL` for the cheapest one.
        work: Gets the facts.
    """
    walker, follower, is_likely = np.int64(state.player), follower_of(state), toll == _TOLL
    second = _SECOND if is_likely else _CHEAP_SECOND
    first_paid, first_ruin, second_paid, second_ruin = 0.0, 0.0, 0.0, 0.0
    for k in range(MAX_STEPS):
        chance, landing = ROLL_CHANCE[k], np.int64(LANDINGS[heading, steering, k])
        paid, ruin = _pay(state, regions, walker, landing >> 2, chance, toll, work)
        first_paid -= paid
        first_ruin += ruin
        if follower == NO_SEAT:
            continue
        choice = work.follows[steering, k]
        for j in range(MAX_STEPS):
            cell, both = np.int64(LANDINGS[landing, choice, j] >> 2), chance * ROLL_CHANCE[j]
            paid, ruin = _pay(state, regions, follower, cell, both, second, work)
            second_paid -= paid
            second_ruin += ruin
    work.facts[walker, toll] = first_paid
    if is_likely:
        work.facts[walker, _RUIN] = first_ruin
    if follower != NO_SEAT:
        work.facts[follower, second] = second_paid
        if is_likely:
            work.facts[follower, _SECOND_RUIN] = second_ruin


@kernel
def _pay(
    state: Record, regions: Record, payer: Int, cell: Int, chance: float, toll: Int, work: Record
) -> tuple[float, float]:
    """Add a landing to the fact `toll` of the creditor.

    Returns:
        The toll paid and the probability that it bankrupts the payer, both times `chance`.
    """
    owner, money = np.int64(regions.owner[cell]), np.int64(state.money[payer])
    # Without a branch, which would be unpredictable: a toll of 0 goes to no player.
    is_due = (owner != NO_SEAT) & (owner != payer)
    creditor = owner if is_due else MAX_PLAYERS
    size = np.int64(regions.size[cell]) if is_due else np.int64(0)
    paid = chance * min(size, money)
    work.facts[creditor, toll] += paid
    return paid, chance if size > money else 0.0


@kernel
def _add_reply(
    state: Record, regions: Record, cell: Int, others: Bits, chance: float, work: Record
) -> None:
    """Add what the walker's rug may cover after landing on a cell to `cover` and `cut`."""
    walker = np.int64(state.player)
    beside = BESIDE[cell] & others
    if beside:
        for seat in range(state.num_players):
            squares = beside & game.board_of(state, seat)
            if seat != walker and squares:
                work.facts[seat, _COVER] += chance
                work.facts[seat, _CUT] += chance * largest_region(regions, squares)
