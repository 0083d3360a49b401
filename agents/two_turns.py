"""What every action is worth once the next player has had his turn, too.

`turn` ranks the actions after one full turn. The best ones are then valued again after the next
player's whole turn, exact over his steerings, the die and his rugs; he plays what is best for him
by the same estimate (`second_turn`). To lay, this is done for some placements and both colours that
the mover's next rug may have; to steer, for some placements after each roll, with the likelier of
the two colours. What is not looked at again keeps its distance below the worst that was.

Legend: `B` games, `A` = 15 actions; scratch as in `turn` and `second_turn`, *turn* as there;
*mover* who decides, *walker* who moves after him; `games[0]` is a position in which the mover is to
lay (or with `steering=end` to steer), `boards[0]` are its patches.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.spec import MAX_PLAYERS
from marrakech_env.state import LAY, OVER, STATE, STEER, Int, Record, States

from .evaluation import SHEET, value
from .patches import MAX_STEPS, NUM_STEERINGS, PATCHES, ROLL_CHANCE, survey
from .second_turn import is_inside_turn, write_turn
from .turn import NUM_ACTIONS, FloatArray, fill_values, lay_rug

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
_LOWEST: Final = -1e9  # below every worth, above the -inf of what is not legal


def make_deep_scratch() -> tuple[
    NDArray[Any], NDArray[Any], NDArray[Any], FloatArray, States, FloatArray
]:
    """What `fill_two_turns` writes on."""
    return (
        np.zeros(6, STATE),
        np.zeros(4, PATCHES),
        np.zeros(1, SHEET),
        np.zeros(NUM_ACTIONS),
        np.zeros(1, STATE),
        np.zeros((NUM_STEERINGS, MAX_STEPS, MAX_PLAYERS)),
    )


@kernel
def fill_two_turns(
    states: States,
    chosen: NDArray[np.int64],
    weights: FloatArray,
    spreads: FloatArray,
    efforts: NDArray[Any],
    games: NDArray[Any],
    boards: NDArray[Any],
    sheets: NDArray[Any],
    rug_values: FloatArray,
    walked: States,
    turn: FloatArray,
    values: FloatArray,
) -> None:
    """Writes the value of every action of the chosen games, -inf for those that are not legal.

    Args:
        states: STATE (B,).
        chosen: int64 (N,), which games.
        weights: See `evaluation.value`.
        spreads: See `evaluation.value`.
        efforts: EFFORT (1,).
        games: Scratch, as all up to `turn`.
        boards: Scratch.
        sheets: Scratch.
        rug_values: Scratch.
        walked: Scratch.
        turn: Scratch.
        values: float64 (B, A), overwritten in the rows of the chosen games.
    """
    effort = efforts[0]
    for i in chosen:
        state = states[i]
        fill_values(state, weights, spreads, games, boards, sheets, values[i])
        if is_inside_turn(state):
            games[0] = state
            width, gap = effort.placements, effort.placement_gap
            _look_again(
                games, width, gap, True, boards, weights, spreads, sheets[0], turn, values[i]
            )
        elif state.phase == STEER:
            _look_at_steerings(
                state, effort, games, boards, weights, spreads, sheets, rug_values, walked, turn,
                values[i],
            )  # fmt: skip


@kernel
def _look_at_steerings(
    state: Record,
    effort: Record,
    games: NDArray[Any],
    boards: NDArray[Any],
    weights: FloatArray,
    spreads: FloatArray,
    sheets: NDArray[Any],
    rug_values: FloatArray,
    walked: States,
    turn: FloatArray,
    values: FloatArray,
) -> None:
    """Corrects the values of the steerings, those close to the best one by looking at them."""
    player = np.int64(state.player)
    floor = values.max() - effort.steering_gap
    looked, lowest, correction = np.uint32(0), np.inf, 0.0
    for steering in range(NUM_STEERINGS):
        if values[steering] < floor:
            continue
        worth = 0.0
        for k in range(MAX_STEPS):
            walked[0] = state
            game.step(walked[0], steering, k + 1)
            games[0] = walked[0]
            if walked[0].phase == LAY and walked[0].player == player:
                fill_values(walked[0], weights, spreads, games, boards, sheets, rug_values)
                width, gap = effort.rugs, effort.rug_gap
                _look_again(
                    games, width, gap, False, boards, weights, spreads, sheets[0], turn, rug_values
                )
                after = rug_values.max()
            else:
                survey(walked[0], boards[0])
                after = _value_after_turn(
                    games, 0, boards, 0, player, weights, spreads, sheets[0], turn
                )
            worth += ROLL_CHANCE[k] * after
        looked |= np.uint32(1) << np.uint32(steering)
        correction = worth - values[steering]
        lowest = min(lowest, worth)
        values[steering] = worth
    _settle(values, looked, correction, lowest)


@kernel
def _look_again(
    games: NDArray[Any],
    width: Int,
    gap: float,
    both: bool,
    boards: NDArray[Any],
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
    turn: FloatArray,
    values: FloatArray,
) -> None:
    """Corrects the values of the actions in `games[0]`, the best ones by looking at them.

    `width` and `gap` tell how many at most and how close to the best one; `both` whether both
    colours of the mover's next rug are tried.
    """
    survey(games[0], boards[0])
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
        worth = _worth_after_turn(games, top, both, boards, weights, spreads, sheet, turn)
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
def _worth_after_turn(
    games: NDArray[Any],
    action: Int,
    both: bool,
    boards: NDArray[Any],
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
    turn: FloatArray,
) -> float:
    """What an action in `games[0]` is worth to the mover after the next player's turn."""
    player = np.int64(games[0].player)
    if games[0].phase == STEER:
        games[1] = games[0]
        game.step(games[1], action, -1)
        return _value_after_turn(games, 1, boards, 0, player, weights, spreads, sheet, turn)
    lower, upper = game.next_colour_weights(games[0])
    if lower + upper == 0:
        return _worth_of_rug(games, action, -1, boards, weights, spreads, sheet, turn)
    if not both:
        lower, upper = (0, 1) if upper > lower else (1, 0)
    worth = 0.0
    for k in range(2):
        weight = upper if k else lower
        if weight > 0:
            colour = 2 * player + k
            worth += (
                weight
                / (lower + upper)
                * _worth_of_rug(games, action, colour, boards, weights, spreads, sheet, turn)
            )
    return worth


@kernel
def _worth_of_rug(
    games: NDArray[Any],
    action: Int,
    colour: Int,
    boards: NDArray[Any],
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
    turn: FloatArray,
) -> float:
    """`_worth_after_turn` of a placement where the mover's next rug has a known colour."""
    player = np.int64(games[0].player)
    lay_rug(games, 0, boards, 0, action - 3, colour)
    if not is_inside_turn(games[1]):
        return _value_after_turn(games, 1, boards, 1, player, weights, spreads, sheet, turn)
    worth = -np.inf
    for steering in range(NUM_STEERINGS):
        games[2] = games[1]
        game.step(games[2], steering, -1)
        after = _value_after_turn(games, 2, boards, 1, player, weights, spreads, sheet, turn)
        worth = max(worth, after)
    return worth


@kernel
def _value_after_turn(
    games: NDArray[Any],
    at: Int,
    boards: NDArray[Any],
    old: Int,
    player: Int,
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
    turn: FloatArray,
) -> float:
    """What `games[at]`, between two turns, is worth to a player after the walker's turn."""
    state: Record = games[at]
    if state.phase == OVER:
        return value(state, boards[old], player, weights, spreads, sheet)
    steering = write_turn(games, at, boards, old, weights, spreads, sheet, turn)
    worth = 0.0
    for k in range(MAX_STEPS):
        worth += ROLL_CHANCE[k] * turn[steering, k, player]
    return worth
