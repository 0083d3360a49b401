"""The second turn of the value agent: close actions are judged after the next player's turn.

The lookahead of one turn (`value_search`) ranks the actions. Those close to the best one are looked
at again: the next player's whole turn is searched in the same way, exactly over his steerings, the
die and his placements, and the value is the one that remains for the mover once the next player has
taken what is best for himself. The mover's own next rug has its likelier colour meanwhile: both
colours would take twice the time for little. Which actions are looked at again depends on the
position alone, not on a clock.

Legend: as in `value_search`; `inner` is the workspace of the next player's turn.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.actions import FIRST_PLACEMENT, NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.state import LAY, OVER, STEER, STEER_AT_END, Int, Record, States
from marrakech_env.tables import DIE_PROBABILITY

from .inputs import NUM_FACES
from .one_turn import copy_state, look_ahead, value_between

MARGIN, WIN = range(2)
EFFORT: Final = np.dtype(
    [
        ("placements", np.int64),
        ("placement_gap", np.float64),
        ("steerings", np.int64),
        ("steering_gap", np.float64),
    ],
    align=True,
)
"""How many placements and steerings at most are looked at again, and how far their q may lie
below the best one."""
_LOWEST: Final = -1e9  # below every q, above the -inf of what is not legal


@kernel
def _look_further(
    state: Record, workspace: Record, inner: Record, evaluator: Record, effort: Record
) -> None:
    """Corrects the values of the best actions in `workspace.turn` by the next player's turn.

    The actions that are not looked at again keep their distance to the best one, so that none of
    them can overtake it.

    Args:
        state: The game that `look_ahead` has valued.
        workspace: Its values, which are changed.
        inner: WORKSPACE for the next player's turn.
        evaluator: EVALUATOR.
        effort: A record of EFFORT.
    """
    turn = workspace.turn
    if state.phase == LAY:
        if state.flags & STEER_AT_END:
            return
        width, gap = effort.placements, effort.placement_gap
    elif state.phase == STEER:
        width, gap = effort.steerings, effort.steering_gap
    else:
        return
    floor = max(turn.q[turn.best] - gap, _LOWEST)
    count = 0
    for action in range(NUM_ACTIONS):
        turn.is_deep[action] = False
        count += turn.q[action] >= floor
    if count < 2 or width < 2:
        return
    for walk in range(turn.num_walks):
        turn.walk_is_deep[walk] = False
    best, most = -1, -np.inf
    for _ in range(min(count, width)):
        action = -1
        for other in range(NUM_ACTIONS):
            if not turn.is_deep[other] and turn.q[other] >= floor:
                if action < 0 or turn.q[other] > turn.q[action]:
                    action = other
        turn.is_deep[action] = True
        if state.phase == LAY:
            _write_placement(
                state, action - FIRST_PLACEMENT, turn.deep[action], workspace, inner, evaluator
            )
        elif state.flags & STEER_AT_END:
            copy_state(state, workspace.after)
            game.step(workspace.after, action, -1)
            _write_turn(
                workspace.after, np.int64(state.player), turn.deep[action], inner, evaluator
            )
        else:
            _write_walks(state, action, turn.deep[action], workspace, inner, evaluator)
        q = turn.deep[action, WIN] + evaluator.net.margin_weight * turn.deep[action, MARGIN]
        if q > most:
            best, most = action, q
    _write_back(turn, best, most, evaluator.net.margin_weight)


@kernel
def _write_back(turn: Record, best: Int, most: float, margin_weight: float) -> None:
    """Puts the corrected values in the place of the others."""
    by_margin = turn.deep[best, MARGIN] - turn.margin[best]
    by_win = turn.deep[best, WIN] - turn.win[best]
    by_q = most - turn.q[best]
    for action in range(NUM_ACTIONS):
        if turn.is_deep[action]:
            turn.margin[action] = turn.deep[action, MARGIN]
            turn.win[action] = turn.deep[action, WIN]
            turn.q[action] = turn.win[action] + margin_weight * turn.margin[action]
        elif turn.q[action] > -np.inf:
            turn.margin[action] += by_margin
            turn.win[action] += by_win
            turn.q[action] += by_q
    turn.best = best


@kernel
def _write_walks(
    state: Record, steering: Int, deep: Record, workspace: Record, inner: Record, evaluator: Record
) -> None:
    """Writes a steering's mean over the die, each walk with its best placement."""
    turn, after = workspace.turn, workspace.after
    deep[MARGIN] = 0
    deep[WIN] = 0
    mover = np.int64(state.player)
    for steps in range(1, NUM_FACES + 1):
        walk = turn.walk_of[steering, steps - 1]
        if not turn.walk_is_deep[walk]:
            turn.walk_is_deep[walk] = True
            values = turn.walk_deep[walk]
            if turn.walk_placement[walk] < 0:
                values[MARGIN] = turn.walk_margin[walk, mover]
                values[WIN] = turn.walk_win[walk, mover]
            else:
                copy_state(state, after)
                game.step(after, steering, steps)
                _write_placement(
                    after, turn.walk_placement[walk], values, workspace, inner, evaluator
                )
        chance = DIE_PROBABILITY[steps]
        deep[MARGIN] += chance * turn.walk_deep[walk, MARGIN]
        deep[WIN] += chance * turn.walk_deep[walk, WIN]


@kernel
def _write_placement(
    state: Record, placement: Int, deep: Record, workspace: Record, inner: Record, evaluator: Record
) -> None:
    """Writes a placement, with the likelier colour of the mover's next rug, the lower of equals."""
    trial = workspace.trial
    copy_state(state, trial)
    game.step(trial, placement + FIRST_PLACEMENT, game.likelier_colour(state))
    _write_turn(trial, np.int64(state.player), deep, inner, evaluator)


@kernel
def _write_turn(state: Record, mover: Int, deep: Record, inner: Record, evaluator: Record) -> None:
    """Writes what remains for `mover` after the next player's turn."""
    turn = inner.turn
    if state.phase == OVER:
        sums, work = inner.sums, inner.other_work
        value_between(state, mover, -1, np.float32(1), work, inner, evaluator)
        slot = work.slot_of_seat[mover]
        deep[MARGIN] = sums.margin[slot]
        deep[WIN] = sums.win[slot]
    else:
        look_ahead(state, inner, evaluator)
        deep[MARGIN] = turn.seat_margin[mover]
        deep[WIN] = turn.seat_win[mover]


@kernel
def value_actions(
    states: States,
    chosen: NDArray[np.int64],
    workspaces: NDArray[np.void],
    evaluators: NDArray[np.void],
    effort: NDArray[np.void],
    out: NDArray[np.float64],
) -> None:
    """Values the actions of some games.

    Args:
        states: STATE (B,).
        chosen: The indices of unfinished ones.
        workspaces: WORKSPACE (2,).
        evaluators: EVALUATOR (1,).
        effort: EFFORT (1,).
        out: float64 (B, 15, 4) of `action_values.empty_table`, gets q, margin and win.
    """
    workspace, inner, evaluator = workspaces[0], workspaces[1], evaluators[0]
    turn = workspace.turn
    for i in chosen:
        look_ahead(states[i], workspace, evaluator)
        _look_further(states[i], workspace, inner, evaluator, effort[0])
        for action in range(NUM_ACTIONS):
            out[i, action, 0] = turn.q[action]
            out[i, action, 1] = turn.margin[action]
            out[i, action, 2] = turn.win[action]
