"""The tree of the agent `mcts`: UCB over the actions, explicit chance, a value for every seat.

A node is a position before a walk, with a rug to lay, or (`steering=end`) with Assam to be turned.
When it is reached for the first time, the rest of the turn is played out from it (`second_turn`).
That gives every action with every outcome of chance a first estimate of everybody's shares, and the
actions their priors. A playout goes down from the root until it meets a new position between two
turns: by the action with the best upper bound for who moves there, and to the outcome of chance
that is furthest behind its probability. On the way back, the estimates on the path are replaced by
the values of the nodes they lead to; the value of a node is the mean over its actions, weighted by
their playouts, and exactly over chance. So nothing is drawn by lot: equal states get equal values.

Legend: `B` games, `N` nodes, `A` = 15 actions, `K` = 4 outcomes of chance (the rolls, or the lower
and upper next colour, or none), seats 0..3; node 0 is the root; *shares* as in `second_turn`.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import MAX_PLAYERS
from marrakech_env.state import LAY, OVER, STATE, Int, Record, States
from marrakech_env.tables import NUM_PLACEMENTS

from .evaluation import SHEET
from .patches import MAX_STEPS, NUM_STEERINGS, PATCHES, ROLL_CHANCE, steerings_of, survey
from .second_turn import is_inside_turn, keep_better, write_rug, write_turn
from .turn import NUM_ACTIONS, FloatArray, lay_rug

NODE: Final = np.dtype(
    [
        ("child", np.int32, (NUM_ACTIONS, MAX_STEPS)),  # node after an outcome, NO_NODE if none
        ("tries", np.int32, (NUM_ACTIONS, MAX_STEPS)),  # playouts through it
        ("visits", np.int32, (NUM_ACTIONS,)),  # playouts through an action
        ("playouts", np.int64),  # playouts through the node
        ("chance", np.float64, (MAX_STEPS,)),  # probability of each outcome
        ("shares", np.float64, (NUM_ACTIONS, MAX_STEPS, MAX_PLAYERS)),  # present estimates
        ("worth", np.float64, (NUM_ACTIONS,)),  # for the mover, -inf where illegal
        ("first", np.float64, (NUM_ACTIONS,)),  # the same when the node was new
        ("prior", np.float64, (NUM_ACTIONS,)),  # adds up to 1
        ("value", np.float64, (MAX_PLAYERS,)),  # of the node, for each seat
    ],
    align=True,
)
NO_NODE: Final = -1
PRIOR_WIDTH: Final = 0.03
"""By how much less worth an action gets a prior smaller by the factor e."""
_MOST_NEW: Final = 3  # nodes of one playout: to lay, with steering=end to steer, and the last one


def make_tree(
    playouts: int,
) -> tuple[
    NDArray[Any],
    NDArray[Any],
    NDArray[Any],
    FloatArray,
    NDArray[Any],
    States,
    NDArray[np.int64],
]:
    """What `search` writes on: games, patches, a sheet, a turn, nodes, their positions, a path."""
    size = _MOST_NEW * playouts + 1
    return (
        np.zeros(6, STATE),
        np.zeros(4, PATCHES),
        np.zeros(1, SHEET),
        np.zeros((NUM_STEERINGS, MAX_STEPS, MAX_PLAYERS)),
        np.zeros(size, NODE),
        np.zeros(size, STATE),
        np.zeros((size, 3), np.int64),
    )


@kernel
def search(
    roots: States,
    chosen: NDArray[np.int64],
    playouts: Int,
    exploration: float,
    weights: FloatArray,
    spreads: FloatArray,
    games: NDArray[Any],
    boards: NDArray[Any],
    sheets: NDArray[Any],
    turn: FloatArray,
    nodes: NDArray[Any],
    states: States,
    path: NDArray[np.int64],
    values: FloatArray,
) -> None:
    """Writes what every action of the chosen games is worth, -inf for those that are not legal.

    Args:
        roots: STATE (B,), unfinished games.
        chosen: int64 (N,), which games.
        playouts: How many for each game.
        exploration: How much the upper bound of a likely action that was rarely tried exceeds its
            worth.
        weights: See `evaluation.value`.
        spreads: See `evaluation.value`.
        games: Scratch of `make_tree`, as are all up to `path`.
        boards: Scratch.
        sheets: Scratch.
        turn: Scratch.
        nodes: Scratch.
        states: Scratch.
        path: Scratch.
        values: float64 (B, A), overwritten in the rows of the chosen games. What was never tried
            is worth less than anything that was.
    """
    for i in chosen:
        states[0] = roots[i]
        _open(states[0], nodes[0], weights, spreads, games, boards, sheets[0], turn)
        count: Int = 1
        for _ in range(playouts):
            count = _play_out(
                count, exploration, weights, spreads, games, boards, sheets[0], turn, nodes, states,
                path,
            )  # fmt: skip
        _write_worths(nodes[0], values[i])


@kernel
def _play_out(
    count: Int,
    exploration: float,
    weights: FloatArray,
    spreads: FloatArray,
    games: NDArray[Any],
    boards: NDArray[Any],
    sheet: Record,
    turn: FloatArray,
    nodes: NDArray[Any],
    states: States,
    path: NDArray[np.int64],
) -> Int:
    """One playout from the root of a tree with `count` nodes; returns how many it has then."""
    at: Int = 0
    depth = 0
    while True:
        node: Record = nodes[at]
        state: Record = states[at]
        if state.phase == OVER:
            break
        action = _best_bound(node, exploration)
        outcome = _next_outcome(node, action)
        path[depth, 0], path[depth, 1], path[depth, 2] = at, action, outcome
        depth += 1
        at = np.int64(node.child[action, outcome])
        if at == NO_NODE:
            at = count
            count += 1
            node.child[action, outcome] = at
            states[at] = state
            game.step(states[at], action, _number_of(state, outcome))
            _open(states[at], nodes[at], weights, spreads, games, boards, sheet, turn)
            if not is_inside_turn(states[at]):
                break
    for back in range(depth - 1, -1, -1):
        below: Record = nodes[at]
        at = path[back, 0]
        above: Record = states[at]
        mover = np.int64(above.player)
        _back_up(nodes[at], path[back, 1], path[back, 2], below.value, mover)
    return count


@kernel
def _write_worths(root: Record, values: FloatArray) -> None:
    """Writes what the actions of the root are worth."""
    shift, lowest = _shift(root), np.inf
    for action in range(NUM_ACTIONS):
        if root.visits[action] > 0:
            lowest = min(lowest, root.worth[action])
    for action in range(NUM_ACTIONS):
        values[action] = root.worth[action]
        if root.visits[action] == 0:
            values[action] = min(root.worth[action] + shift, lowest)


@kernel
def _number_of(state: Record, outcome: Int) -> Int:
    """An outcome of chance as `game.step` wants it."""
    if state.phase != LAY:
        return outcome + 1
    lower, upper = game.next_colour_weights(state)
    return 2 * np.int64(state.player) + outcome if lower + upper > 0 else -1


@kernel
def _open(
    state: Record,
    node: Record,
    weights: FloatArray,
    spreads: FloatArray,
    games: NDArray[Any],
    boards: NDArray[Any],
    sheet: Record,
    turn: FloatArray,
) -> None:
    """Writes the first estimates of a new node."""
    mover = np.int64(state.player)
    node.playouts = 0
    node.visits[:] = 0
    node.tries[:] = 0
    node.child[:] = NO_NODE
    node.chance[:] = 0.0
    node.chance[0] = 1.0
    node.worth[:] = -np.inf
    games[0] = state
    survey(state, boards[0])
    if state.phase == OVER:
        keep_better(state, boards[0], mover, -np.inf, weights, spreads, sheet, node.value)
        return
    if state.phase == LAY:
        lower, upper = game.next_colour_weights(state)
        if lower + upper > 0:
            node.chance[0] = lower / (lower + upper)
            node.chance[1] = upper / (lower + upper)
        legal = game.legal_placements(state)
        for placement in range(NUM_PLACEMENTS):
            if legal >> np.uint32(placement) & np.uint32(1):
                # No fact asks for the colour of the next rug of who has just laid.
                lay_rug(games, 0, boards, 0, placement, -1)
                shares = node.shares[3 + placement]
                node.worth[3 + placement] = write_rug(
                    games, 1, mover, boards, 1, -np.inf, weights, spreads, sheet, shares[0]
                )
                shares[1] = shares[0]
    elif is_inside_turn(state):
        for steering in range(NUM_STEERINGS):
            games[1] = state
            game.step(games[1], steering, -1)
            shares = node.shares[steering]
            node.worth[steering] = keep_better(
                games[1], boards[0], mover, -np.inf, weights, spreads, sheet, shares[0]
            )
    else:
        node.chance[:] = ROLL_CHANCE
        write_turn(games, 0, boards, 0, weights, spreads, sheet, turn)
        first, last = steerings_of(state)
        for steering in range(first, last):
            node.shares[steering] = turn[steering]
            node.worth[steering] = _mean(node, steering, mover)
    best = np.argmax(node.worth)
    node.first[:] = node.worth
    node.prior[:] = np.exp((node.worth - node.worth[best]) / PRIOR_WIDTH)
    node.prior[:] /= node.prior.sum()
    for seat in range(MAX_PLAYERS):
        node.value[seat] = _mean(node, best, seat)


@kernel
def _mean(node: Record, action: Int, seat: Int) -> float:
    """What an action is worth to a seat on average over chance."""
    worth: float = 0.0
    for k in range(MAX_STEPS):
        if node.chance[k] > 0:  # the others hold nothing
            worth += node.chance[k] * node.shares[action, k, seat]
    return worth


@kernel
def _shift(node: Record) -> float:
    """By how much the actions that were tried have gained on their first estimates, on average."""
    gain: float = 0.0
    for action in range(NUM_ACTIONS):
        if node.visits[action] > 0:
            gain += node.visits[action] * (node.worth[action] - node.first[action])
    return float(gain / max(1, node.playouts))


@kernel
def _best_bound(node: Record, exploration: float) -> Int:
    """The action with the highest upper bound (the form of AlphaZero), the lowest among equals."""
    shift, spur = _shift(node), exploration * np.sqrt(node.playouts + 1.0)
    best, most = 0, -np.inf
    for action in range(NUM_ACTIONS):
        bound = node.worth[action] + spur * node.prior[action] / (1 + node.visits[action])
        if node.visits[action] == 0:
            bound += shift
        if bound > most:
            best, most = action, bound
    return best


@kernel
def _next_outcome(node: Record, action: Int) -> Int:
    """The outcome of chance that is furthest behind its probability, the first among equals."""
    best, most = 0, -np.inf
    for k in range(MAX_STEPS):
        behind = node.chance[k] * (node.visits[action] + 1) - node.tries[action, k]
        if node.chance[k] > 0 and behind > most:
            best, most = k, behind
    return best


@kernel
def _back_up(node: Record, action: Int, outcome: Int, value: FloatArray, mover: Int) -> None:
    """Takes the value of the node after an outcome into account."""
    node.playouts += 1
    node.visits[action] += 1
    node.tries[action, outcome] += 1
    node.shares[action, outcome] = value
    node.worth[action] = _mean(node, action, mover)
    node.value[:] = 0.0
    for other in range(NUM_ACTIONS):
        if node.visits[other] > 0:
            for seat in range(MAX_PLAYERS):
                part = node.visits[other] / node.playouts
                node.value[seat] += part * _mean(node, other, seat)
