"""The tree of the agent `champion`: UCB, explicit chance, a value for every seat.

A node is a position before a walk, with a rug to lay, or (`steering=end`) with Assam to be turned.
When it is reached for the first time, the rest of the turn is looked at with the value network
(`value_search`). That gives every action with every outcome of chance a first estimate of
everybody's shares, and the actions their priors. A playout goes down from the root until it meets a
new position between two turns: by the action with the best upper bound for who moves there, and to
the outcome of chance that is furthest behind its probability. On the way back, the estimates on the
path are replaced by the values of the nodes they lead to; the value of a node is that of the action
which is worth most to its mover among those that were tried, with three and four players the mean
over these actions, weighted by their playouts; exactly over chance. So nothing is drawn by lot:
equal states get equal values.

Legend: `B` games, `N` nodes, `A` = 15 actions, `K` = 4 outcomes of chance (the rolls, or the lower
and upper next colour, or none), seats 0..3; node 0 is the root; *shares*: what a position is worth
to each seat, win + margin_weight * margin as in `value_net`.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.actions import FIRST_PLACEMENT, NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.spec import MAX_PLAYERS
from marrakech_env.state import LAY, OVER, STATE, Int, Record, States
from marrakech_env.tables import DIE_PROBABILITY, NUM_PLACEMENTS

from .inputs import NUM_FACES, NUM_STEERINGS
from .one_turn import look_ahead, new_workspaces

FloatArray = NDArray[np.float64]

NODE: Final = np.dtype(
    [
        ("child", np.int32, (NUM_ACTIONS, NUM_FACES)),  # node after an outcome, NO_NODE if none
        ("tries", np.int32, (NUM_ACTIONS, NUM_FACES)),  # playouts through it
        ("visits", np.int32, (NUM_ACTIONS,)),  # playouts through an action
        ("playouts", np.int64),  # playouts through the node
        ("chance", np.float64, (NUM_FACES,)),  # probability of each outcome
        ("shares", np.float64, (NUM_ACTIONS, NUM_FACES, MAX_PLAYERS)),  # present estimates
        ("worth", np.float64, (NUM_ACTIONS,)),  # for the mover, -inf where illegal
        ("first", np.float64, (NUM_ACTIONS,)),  # the same when the node was new
        ("prior", np.float64, (NUM_ACTIONS,)),  # adds up to 1
        ("value", np.float64, (MAX_PLAYERS,)),  # of the node, for each seat
    ],
    align=True,
)
NO_NODE: Final = -1
PRIOR_WIDTH: Final = 0.03
"""How much less an action is worth whose prior is smaller by the factor e."""
_MOST_NEW: Final = 3  # nodes of one playout: to lay, with steering=end to steer, and the last one


class Tree(NamedTuple):
    """What a search writes on, and what it values positions with.

    Attributes:
        nodes: NODE (N,).
        states: STATE (N,), their positions.
        path: int64 (N, 3), node, action and outcome on the way of a playout.
        workspaces: WORKSPACE (1,) or more, of which the first is used.
        evaluators: EVALUATOR (1,).
        exploration: See `new_tree`.
    """

    nodes: NDArray[Any]
    states: States
    path: NDArray[np.int64]
    workspaces: NDArray[Any]
    evaluators: NDArray[Any]
    exploration: float


def new_tree(playouts: int, exploration: float, evaluators: NDArray[np.void]) -> Tree:
    """A tree with room for some playouts.

    Args:
        playouts: How many for each root at most.
        exploration: How much the upper bound of a likely action that was rarely tried exceeds its
            worth.
        evaluators: EVALUATOR (1,).
    """
    size = _MOST_NEW * playouts + 1
    return Tree(
        np.zeros(size, NODE),
        np.zeros(size, STATE),
        np.zeros((size, 3), np.int64),
        new_workspaces(),
        evaluators,
        exploration,
    )


@kernel
def search(
    roots: States, chosen: NDArray[np.int64], playouts: Int, tree: Tree, values: FloatArray
) -> None:
    """Writes what every action of the chosen games is worth, -inf for those that are not legal.

    Args:
        roots: STATE (B,), unfinished games.
        chosen: int64 (N,), which games.
        playouts: How many for each game.
        tree: With room for them.
        values: float64 (B, A), overwritten in the rows of the chosen games. What was never tried
            is worth no more than anything that was tried.
    """
    for i in chosen:
        tree.states[0] = roots[i]
        _open(0, tree)
        count: Int = 1
        for _ in range(playouts):
            count = _play_out(count, tree)
        _write_worths(tree.nodes[0], values[i])


@kernel
def _play_out(count: Int, tree: Tree) -> Int:
    """One playout from the root of a tree with `count` nodes; returns how many it has then."""
    nodes, states, path = tree.nodes, tree.states, tree.path
    at: Int = 0
    depth = 0
    while True:
        node: Record = nodes[at]
        state: Record = states[at]
        if state.phase == OVER:
            break
        action = _best_bound(node, tree.exploration)
        outcome = _next_outcome(node, action)
        path[depth, 0], path[depth, 1], path[depth, 2] = at, action, outcome
        depth += 1
        at = np.int64(node.child[action, outcome])
        if at == NO_NODE:
            at = count
            count += 1
            node.child[action, outcome] = at
            new: Record = nodes[at]
            after: Record = states[at]
            states[at] = state
            game.step(after, action, _number_of(state, outcome))
            if after.phase == OVER:  # the estimate is exact
                new.value[:] = node.shares[action, outcome]
            else:
                _open(at, tree)
            if not game.is_inside_turn(after):
                break
    for back in range(depth - 1, -1, -1):
        below: Record = nodes[at]
        at = path[back, 0]
        above: Record = states[at]
        _back_up(nodes[at], path[back, 1], path[back, 2], below.value, above)
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
def _open(at: Int, tree: Tree) -> None:
    """Writes the first estimates of a new node, an unfinished game."""
    node: Record = tree.nodes[at]
    state: Record = tree.states[at]
    workspace, evaluator = tree.workspaces[0], tree.evaluators[0]
    look_ahead(state, workspace, evaluator)
    turn, margin_weight = workspace.turn, evaluator.net.margin_weight
    node.playouts = 0
    node.visits[:] = 0
    node.tries[:] = 0
    node.child[:] = NO_NODE
    node.chance[:] = 0.0
    node.chance[0] = 1.0
    node.worth[:] = turn.worth
    node.first[:] = turn.worth
    if state.phase == LAY:
        lower, upper = game.next_colour_weights(state)
        if lower + upper > 0:
            node.chance[0] = lower / (lower + upper)
            node.chance[1] = upper / (lower + upper)
        for placement in range(NUM_PLACEMENTS):
            for seat in range(MAX_PLAYERS):
                share = turn.rug_win[placement, seat]
                share += margin_weight * turn.rug_margin[placement, seat]
                node.shares[FIRST_PLACEMENT + placement, 0, seat] = share
                node.shares[FIRST_PLACEMENT + placement, 1, seat] = share
    elif game.is_inside_turn(state):
        for steering in range(NUM_STEERINGS):
            _write_walk(turn, steering, margin_weight, node.shares[steering, 0])
    else:
        for k in range(NUM_FACES):
            node.chance[k] = DIE_PROBABILITY[k + 1]
        for steering in range(NUM_STEERINGS):
            if turn.worth[steering] > -np.inf:
                for k in range(NUM_FACES):
                    walk = turn.walk_of[steering, k]
                    _write_walk(turn, walk, margin_weight, node.shares[steering, k])
    node.prior[:] = np.exp((node.worth - node.worth[turn.best]) / PRIOR_WIDTH)
    node.prior[:] /= node.prior.sum()
    for seat in range(MAX_PLAYERS):
        node.value[seat] = turn.seat_win[seat] + margin_weight * turn.seat_margin[seat]


@kernel
def _write_walk(turn: Record, walk: Int, margin_weight: float, shares: FloatArray) -> None:
    """Writes what a walk of the lookahead leaves each seat."""
    for seat in range(MAX_PLAYERS):
        shares[seat] = turn.walk_win[walk, seat] + margin_weight * turn.walk_margin[walk, seat]


@kernel
def _mean(node: Record, action: Int, seat: Int) -> float:
    """What an action is worth to a seat on average over chance."""
    worth: float = 0.0
    for k in range(NUM_FACES):
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
    for k in range(NUM_FACES):
        behind = node.chance[k] * (node.visits[action] + 1) - node.tries[action, k]
        if node.chance[k] > 0 and behind > most:
            best, most = k, behind
    return best


@kernel
def _back_up(node: Record, action: Int, outcome: Int, value: FloatArray, state: Record) -> None:
    """Takes the value of the node after an outcome into account; `state` is the node's position."""
    node.playouts += 1
    node.visits[action] += 1
    node.tries[action, outcome] += 1
    node.shares[action, outcome] = value
    node.worth[action] = _mean(node, action, np.int64(state.player))
    best = action
    for other in range(NUM_ACTIONS):
        if node.visits[other] > 0 and node.worth[other] > node.worth[best]:
            best = other
    node.value[:] = 0.0
    for other in range(NUM_ACTIONS):
        part = node.visits[other] / node.playouts
        if state.num_players == 2:  # with more, the mean played as well or better
            part = 1.0 if other == best else 0.0
        if part > 0:
            for seat in range(MAX_PLAYERS):
                node.value[seat] += part * _mean(node, other, seat)
