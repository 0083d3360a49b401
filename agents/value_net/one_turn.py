"""One full turn of exact lookahead with the value network: steering, die, payment, placement.

Legend: *worth* of a position for a seat = win + margin_weight * margin, see `value_net`. A *walk*
is one of the at most 12 headings where a turn's walk can end; walks that end alike are valued once.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.actions import FIRST_PLACEMENT, NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.spec import MAX_PLAYERS
from marrakech_env.state import LAY, OVER, STATE, STEER, STEER_AT_END, WALK, Int, Record, States
from marrakech_env.tables import DIE_PROBABILITY, FIRST_CELL, NUM_PLACEMENTS, SECOND_CELL

from .board import lay, look, next_walker, prepare
from .inputs import NUM_FACES, NUM_STEERINGS, WORK, Real
from .network import MAX_MARGIN, NET, SUMS, evaluate, start, write_final
from .tables import TABLE, TABLES

_WALKS = NUM_STEERINGS * NUM_FACES
TURN: Final = np.dtype(
    [
        ("worth", np.float64, (NUM_ACTIONS,)),  # by action, for the mover; -inf where not legal
        ("margin", np.float64, (NUM_ACTIONS,)),
        ("win", np.float64, (NUM_ACTIONS,)),
        ("best", np.int64),  # the action of the greatest worth
        ("seat_margin", np.float64, (MAX_PLAYERS,)),  # of all seats after the best action
        ("seat_win", np.float64, (MAX_PLAYERS,)),
        ("num_walks", np.int64),
        ("walk", np.int64, (_WALKS,)),  # the headings of the walks
        ("walk_of", np.int64, (NUM_STEERINGS, NUM_FACES)),  # the walk of a steering and roll - 1
        ("walk_placement", np.int64, (_WALKS,)),  # the best placement there, -1 without one
        ("walk_worth", np.float64, (_WALKS,)),  # for the mover
        ("walk_margin", np.float64, (_WALKS, MAX_PLAYERS)),  # by seat
        ("walk_win", np.float64, (_WALKS, MAX_PLAYERS)),
        ("rug_worth", np.float64, (NUM_PLACEMENTS,)),  # for the mover, -inf where not legal
        ("rug_margin", np.float64, (NUM_PLACEMENTS, MAX_PLAYERS)),  # by seat
        ("rug_win", np.float64, (NUM_PLACEMENTS, MAX_PLAYERS)),
        ("is_deep", np.int8, (NUM_ACTIONS,)),  # whether `deep` holds the action, see `value_deep`
        ("deep", np.float64, (NUM_ACTIONS, 2)),  # margin, win after the next player's turn too
        ("walk_is_deep", np.int8, (_WALKS,)),
        ("walk_deep", np.float64, (_WALKS, 2)),
    ],
    align=True,
)
"""What a lookahead finds out."""

WORKSPACE: Final = np.dtype(
    [
        ("work", WORK),
        ("other_work", WORK),  # for positions off the main line
        ("sums", SUMS),
        ("turn", TURN),
        ("after", STATE),  # the position after a walk
        ("trial", STATE),  # the position after a placement
    ],
    align=True,
)
"""What a lookahead writes on: one for each call, because threads may share an agent."""

EVALUATOR: Final = np.dtype([("net", NET), ("tables", TABLES)], align=True)
"""What a lookahead only reads: the weights and the look-up tables."""


@kernel
def look_ahead(state: Record, workspace: Record, evaluator: Record) -> None:
    """Values all actions of the player to move, into `workspace.turn`.

    Args:
        state: An unfinished game.
        workspace: WORKSPACE, overwritten.
        evaluator: EVALUATOR.
    """
    turn = workspace.turn
    for action in range(NUM_ACTIONS):
        turn.worth[action] = -np.inf
        turn.margin[action] = 0
        turn.win[action] = 0
    turn.num_walks = 0
    if state.phase == LAY:
        _value_lay_phase(state, workspace, evaluator)
    elif state.phase == STEER and state.flags & STEER_AT_END:
        _value_late_steering(state, workspace, evaluator)
    else:
        _value_walks(state, workspace, evaluator)


@kernel
def _prepare_rug(state: Record, work: Record) -> None:
    """Prepares the board for the mover's next rug."""
    mover = np.int64(state.player)
    laid = np.int64(state.next_colour[mover])
    if laid < 0:  # a player without a rug, from a text: he walks and lays nothing
        laid = 2 * mover if game.has_two_colours(state) else mover
    draw = draw_chance(state, laid)
    prepare(state, mover, next_walker(state, mover), laid, False, draw, work)


@kernel
def draw_chance(state: Record, laid: Int) -> Real:
    """How likely the mover's rug after the next one, which is `laid`, has the same colour."""
    lower, upper = game.next_colour_weights(state)
    if lower + upper == 0:
        return np.float32(1)
    return np.float32(upper if laid & 1 else lower) / np.float32(lower + upper)


@kernel
def _value_walks(state: Record, workspace: Record, evaluator: Record) -> None:
    """A turn from its walk on: the mean over the die of the best placement."""
    turn = workspace.turn
    mover = np.int64(state.player)
    _prepare_rug(state, workspace.work)
    turn.best = -1
    for steering in range(NUM_STEERINGS):
        if state.phase == WALK and steering != 1:
            continue
        worth, margin, win = 0.0, 0.0, 0.0
        for steps in range(1, NUM_FACES + 1):
            walk = _value_walk(state, steering, steps, workspace, evaluator)
            turn.walk_of[steering, steps - 1] = walk
            chance = DIE_PROBABILITY[steps]
            worth += chance * turn.walk_worth[walk]
            margin += chance * turn.walk_margin[walk, mover]
            win += chance * turn.walk_win[walk, mover]
        turn.worth[steering] = worth
        turn.margin[steering] = margin
        turn.win[steering] = win
        if turn.best < 0 or worth > turn.worth[turn.best]:
            turn.best = steering
    for seat in range(MAX_PLAYERS):
        turn.seat_margin[seat] = 0
        turn.seat_win[seat] = 0
    for steps in range(1, NUM_FACES + 1):
        walk = turn.walk_of[turn.best, steps - 1]
        for seat in range(MAX_PLAYERS):
            turn.seat_margin[seat] += DIE_PROBABILITY[steps] * turn.walk_margin[walk, seat]
            turn.seat_win[seat] += DIE_PROBABILITY[steps] * turn.walk_win[walk, seat]


@kernel
def _value_walk(
    state: Record, steering: Int, steps: Int, workspace: Record, evaluator: Record
) -> Int:
    """The index in `workspace.turn` of a walk, valued if it is new."""
    turn, after = workspace.turn, workspace.after
    copy_state(state, after)
    game.step(after, steering, steps)
    heading = 4 * np.int64(after.assam) + after.facing
    for walk in range(turn.num_walks):
        if turn.walk[walk] == heading:
            return walk
    new = np.int64(turn.num_walks)
    turn.num_walks += 1
    turn.walk[new] = heading
    if after.phase == LAY:
        _value_placements(after, new, workspace, evaluator)
    else:
        _value_without_rug(state, new, workspace, evaluator)
    return new


@kernel
def copy_state(state: Record, to: Record) -> None:
    """Copies all that the rules look at."""
    for colour in range(4):
        to.colour_boards[colour] = state.colour_boards[colour]
        to.money[colour] = state.money[colour]
        to.rugs[colour] = state.rugs[colour]
        to.next_colour[colour] = state.next_colour[colour]
        to.eliminated[colour] = state.eliminated[colour]
    to.links_east = state.links_east
    to.links_south = state.links_south
    to.player = state.player
    to.phase = state.phase
    to.num_players = state.num_players
    to.assam = state.assam
    to.facing = state.facing
    to.colour_rule = state.colour_rule
    to.flags = state.flags


@kernel
def _value_placements(state: Record, walk: Int, workspace: Record, evaluator: Record) -> None:
    """All placements of a state to lay whose board is prepared in `workspace.work`."""
    turn, work, sums = workspace.turn, workspace.work, workspace.sums
    net, tables = evaluator.net, evaluator.tables
    legal = game.legal_placements(state)
    for slot in range(work.num_slots):
        work.money[slot] = state.money[work.seat_of_slot[slot]]
    heading = 4 * np.int64(state.assam) + state.facing
    late = (state.flags & STEER_AT_END) != 0
    for placement in range(NUM_PLACEMENTS):
        turn.rug_worth[placement] = -np.inf
    turn.walk_worth[walk] = -np.inf
    turn.walk_placement[walk] = -1
    for steering in range(NUM_STEERINGS if late else 1):
        turned: Int = heading
        if late:
            turned = (heading & ~3) | ((heading + steering + 3) & 3)
        look(work, tables, turned, late)
        start(work, tables, net, sums)
        for placement in range(NUM_PLACEMENTS):
            if not legal >> np.uint32(placement) & np.uint32(1):
                continue
            first = np.int64(FIRST_CELL[heading, placement])
            second = np.int64(SECOND_CELL[heading, placement])
            lay(work, tables, first, second)
            evaluate(work, tables, net, sums, first, second)
            worth = np.float64(sums.win[0] + net.margin_weight * sums.margin[0])
            if worth > turn.rug_worth[placement]:
                turn.rug_worth[placement] = worth
                _write_seats(work, sums, turn.rug_margin[placement], turn.rug_win[placement])
            if worth > turn.walk_worth[walk]:
                turn.walk_worth[walk] = worth
                turn.walk_placement[walk] = placement
    best = turn.walk_placement[walk]
    for seat in range(MAX_PLAYERS):
        turn.walk_margin[walk, seat] = turn.rug_margin[best, seat]
        turn.walk_win[walk, seat] = turn.rug_win[best, seat]


@kernel
def _write_seats(
    work: Record, sums: Record, margin: NDArray[np.float64], win: NDArray[np.float64]
) -> None:
    """Writes the values of all seats from those of the slots."""
    for seat in range(MAX_PLAYERS):
        margin[seat] = -MAX_MARGIN
        win[seat] = 0
    for slot in range(work.num_slots):
        seat = work.seat_of_slot[slot]
        margin[seat] = sums.margin[slot]
        win[seat] = sums.win[slot]


@kernel
def _value_without_rug(state: Record, walk: Int, workspace: Record, evaluator: Record) -> None:
    """A walk after which the mover lays nothing: he is out, or had no rug."""
    turn, after = workspace.turn, workspace.after
    mover = np.int64(state.player)
    turn.walk_placement[walk] = -1
    work, sums = workspace.other_work, workspace.sums
    value_between(after, mover, -1, np.float32(1), work, workspace, evaluator)
    _write_seats(work, sums, turn.walk_margin[walk], turn.walk_win[walk])
    turn.walk_worth[walk] = (
        turn.walk_win[walk, mover] + evaluator.net.margin_weight * turn.walk_margin[walk, mover]
    )


@kernel
def value_between(
    state: Record,
    mover: Int,
    laid: Int,
    draw: Real,
    work: Record,
    workspace: Record,
    evaluator: Record,
) -> None:
    """Value a position between two turns into `workspace.sums`, by the slots of `work`.

    Args:
        state: The game once `mover` has ended his turn, also a finished one.
        mover: The seat that had the last turn.
        laid: The colour he laid, -1 if none.
        draw: Chance that his next rug has that colour.
        work: Where to prepare it.
        workspace: WORKSPACE, overwritten.
        evaluator: EVALUATOR.
    """
    if laid < 0:
        laid = np.int64(state.next_colour[mover])
        if laid < 0:
            laid = 2 * mover if game.has_two_colours(state) else mover
    prepare(state, mover, np.int64(state.player), laid, True, draw, work)
    net, tables = evaluator.net, evaluator.tables
    look(work, tables, 4 * np.int64(state.assam) + state.facing, state.phase == WALK)
    if state.phase == OVER:
        write_final(work, workspace.sums)
    else:
        start(work, tables, net, workspace.sums)
        evaluate(work, tables, net, workspace.sums, -1, -1)


@kernel
def _value_lay_phase(state: Record, workspace: Record, evaluator: Record) -> None:
    """A rug to lay: every placement is an action."""
    turn = workspace.turn
    mover = np.int64(state.player)
    _prepare_rug(state, workspace.work)
    turn.num_walks = 1
    _value_placements(state, 0, workspace, evaluator)
    for placement in range(NUM_PLACEMENTS):
        action = placement + FIRST_PLACEMENT
        turn.worth[action] = turn.rug_worth[placement]
        if turn.worth[action] > -np.inf:
            turn.margin[action] = turn.rug_margin[placement, mover]
            turn.win[action] = turn.rug_win[placement, mover]
    turn.best = turn.walk_placement[0] + FIRST_PLACEMENT
    for seat in range(MAX_PLAYERS):
        turn.seat_margin[seat] = turn.walk_margin[0, seat]
        turn.seat_win[seat] = turn.walk_win[0, seat]


@kernel
def _value_late_steering(state: Record, workspace: Record, evaluator: Record) -> None:
    """Steering at the end of a turn: three positions between two turns, kept like walks."""
    turn, after, work, sums = workspace.turn, workspace.after, workspace.work, workspace.sums
    mover = np.int64(state.player)
    turn.best = 0
    for steering in range(NUM_STEERINGS):
        copy_state(state, after)
        game.step(after, steering, -1)
        value_between(after, mover, -1, np.float32(1), work, workspace, evaluator)
        _write_seats(work, sums, turn.walk_margin[steering], turn.walk_win[steering])
        margin, win = turn.walk_margin[steering, mover], turn.walk_win[steering, mover]
        turn.margin[steering] = margin
        turn.win[steering] = win
        turn.worth[steering] = win + evaluator.net.margin_weight * margin
        if turn.worth[steering] > turn.worth[turn.best]:
            turn.best = steering
    for seat in range(MAX_PLAYERS):
        turn.seat_margin[seat] = turn.walk_margin[turn.best, seat]
        turn.seat_win[seat] = turn.walk_win[turn.best, seat]


@kernel
def value_seats(
    states: States,
    workspaces: NDArray[np.void],
    evaluators: NDArray[np.void],
    shares: NDArray[np.float64],
    margins: NDArray[np.float64],
) -> None:
    """Writes what all seats can expect if the mover does what is worth most to him.

    Args:
        states: STATE (B,); finished games are left out.
        workspaces: WORKSPACE (1,) or more, of which the first is used.
        evaluators: EVALUATOR (1,).
        shares: float64 (B, P), the shares of the win.
        margins: float64 (B, P), in dirhams.
    """
    turn = workspaces[0].turn
    for i in range(len(states)):
        if states[i].phase != OVER:
            look_ahead(states[i], workspaces[0], evaluators[0])
            for seat in range(states[i].num_players):
                shares[i, seat] = turn.seat_win[seat]
                margins[i, seat] = turn.seat_margin[seat]


def new_workspaces() -> NDArray[np.void]:
    """WORKSPACE (2,): for a turn, and for the next player's turn."""
    return np.zeros(2, WORKSPACE)


def new_evaluator(net: NDArray[np.void]) -> NDArray[np.void]:
    """EVALUATOR (1,) with the weights of a NET (1,)."""
    evaluator = np.zeros(1, EVALUATOR)
    evaluator["net"], evaluator["tables"] = net, TABLE
    return evaluator
