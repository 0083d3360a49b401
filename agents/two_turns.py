"""What every action is worth once the next player has had his turn, too.

`turn` ranks the actions after one full turn. The best ones are then valued again after the next
player's whole turn, exact over his steerings, the die and his rugs; he plays what is best for him
by the same estimate (`second_turn`). To lay, this is done for some placements and both colours that
the mover's next rug may have; to steer, for some placements after each roll, with the likelier of
the two colours. What is not looked at again keeps its distance below the worst that was.

Legend: `B` games, `A` = 15 actions; *mind* as in `turn`; *mover* who decides, *walker* who moves
after him; `games[0]` is a position in which the mover is to lay (or with `steering=end` to steer),
`boards[0]` are its patches.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.actions import FIRST_PLACEMENT, NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.state import LAY, OVER, STEER, Int, Record, States

from .evaluation import value
from .patches import MAX_STEPS, NUM_STEERINGS, ROLL_CHANCE, likelier_colour, survey
from .second_turn import is_inside_turn, write_turn
from .turn import FloatArray, fill_values, lay_rug

EFFORT: Final = np.dtype(
    [
        ("placements", np.int64),
        ("placement_gap", np.float64),
        ("steering_gap", np.float64),
        ("rugs", np.int64),
        ("rug_gap", np.float64),
    ],
    align=True,
)
"""How much is looked at again, see `expectimax2.Effort`."""
_WALKED: Final = 6  # place of a position after the mover's walk, beyond those that follow it
_LOWEST: Final = -1e9  # below every worth, above the -inf of what is not legal


@kernel
def fill_two_turns(
    states: States,
    chosen: NDArray[np.int64],
    minds: NDArray[np.void],
    efforts: NDArray[np.void],
    values: FloatArray,
) -> None:
    """Writes the value of every action of the chosen games, -inf for those that are not legal.

    Args:
        states: STATE (B,).
        chosen: int64 (N,), which games.
        minds: MIND (1,).
        efforts: EFFORT (1,).
        values: float64 (B, A), overwritten in the rows of the chosen games.
    """
    mind, effort = minds[0], efforts[0]
    for i in chosen:
        state = states[i]
        fill_values(state, mind, values[i])
        if is_inside_turn(state):
            mind.games[0] = state
            _look_again(mind, effort.placements, effort.placement_gap, True, values[i])
        elif state.phase == STEER:
            _look_at_steerings(state, mind, effort, values[i])


@kernel
def _look_at_steerings(state: Record, mind: Record, effort: Record, values: FloatArray) -> None:
    """Corrects the values of the steerings, those close to the best one by looking at them."""
    player, walked = np.int64(state.player), mind.games[_WALKED]
    floor = values.max() - effort.steering_gap
    looked, lowest, correction = np.uint32(0), np.inf, 0.0
    for steering in range(NUM_STEERINGS):
        if values[steering] < floor:
            continue
        worth = 0.0
        for k in range(MAX_STEPS):
            mind.games[_WALKED] = state
            game.step(walked, steering, k + 1)
            mind.games[0] = walked
            if walked.phase == LAY and walked.player == player:
                fill_values(walked, mind, mind.values)
                _look_again(mind, effort.rugs, effort.rug_gap, False, mind.values)
                after = mind.values.max()
            else:
                survey(walked, mind.boards[0])
                after = _value_after_turn(mind, 0, 0, player)
            worth += ROLL_CHANCE[k] * after
        looked |= np.uint32(1) << np.uint32(steering)
        correction = worth - values[steering]
        lowest = min(lowest, worth)
        values[steering] = worth
    _settle(values, looked, correction, lowest)


@kernel
def _look_again(mind: Record, width: Int, gap: float, both: bool, values: FloatArray) -> None:
    """Corrects the values of the actions in `games[0]`, the best ones by looking at them.

    `width` and `gap` tell how many at most and how close to the best one; `both` whether both
    colours of the mover's next rug are tried.
    """
    survey(mind.games[0], mind.boards[0])
    floor = max(values.max() - gap, _LOWEST)
    looked, lowest, correction = np.uint32(0), np.inf, 0.0
    for _ in range(width):
        top = -1
        for action in range(NUM_ACTIONS):
            waits = not looked >> np.uint32(action) & np.uint32(1) and values[action] >= floor
            if waits and (top < 0 or values[action] > values[top]):
                top = action
        if top < 0:
            break
        worth = _worth_after_turn(mind, top, both)
        looked |= np.uint32(1) << np.uint32(top)
        correction = worth - values[top]
        lowest = min(lowest, worth)
        values[top] = worth
    _settle(values, looked, correction, lowest)


@kernel
def _settle(values: FloatArray, looked: Int, correction: float, lowest: float) -> None:
    """Shifts the values that were not looked at, so that none gets over those that were."""
    for action in range(NUM_ACTIONS):
        if not looked >> np.uint32(action) & np.uint32(1):
            values[action] = min(values[action] + correction, lowest)


@kernel
def _worth_after_turn(mind: Record, action: Int, both: bool) -> float:
    """What an action in `games[0]` is worth to the mover after the next player's turn."""
    games = mind.games
    player = np.int64(games[0].player)
    if games[0].phase == STEER:
        games[1] = games[0]
        game.step(games[1], action, -1)
        return _value_after_turn(mind, 1, 0, player)
    lower, upper = game.next_colour_weights(games[0])
    if lower + upper == 0 or not both:
        return _worth_of_rug(mind, action, likelier_colour(games[0]))
    worth = 0.0
    for k in range(2):
        weight = upper if k else lower
        if weight > 0:
            chance = weight / (lower + upper)
            worth += chance * _worth_of_rug(mind, action, 2 * player + k)
    return worth


@kernel
def _worth_of_rug(mind: Record, action: Int, colour: Int) -> float:
    """`_worth_after_turn` of a placement where the mover's next rug has a known colour."""
    games = mind.games
    player = np.int64(games[0].player)
    lay_rug(mind, 0, 0, action - FIRST_PLACEMENT, colour)
    if not is_inside_turn(games[1]):
        return _value_after_turn(mind, 1, 1, player)
    worth = -np.inf
    for steering in range(NUM_STEERINGS):
        games[2] = games[1]
        game.step(games[2], steering, -1)
        worth = max(worth, _value_after_turn(mind, 2, 1, player))
    return worth


@kernel
def _value_after_turn(mind: Record, at: Int, old: Int, player: Int) -> float:
    """What `games[at]`, between two turns, is worth to a player after the walker's turn."""
    state: Record = mind.games[at]
    if state.phase == OVER:
        return value(state, mind.boards[old], player, mind.sheet)
    steering = write_turn(mind, at, old)
    worth = 0.0
    for k in range(MAX_STEPS):
        worth += ROLL_CHANCE[k] * mind.turn[steering, k, player]
    return worth
