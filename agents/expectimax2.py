"""Expectimax2Agent: the next player's turn as well.

The candidates of `turn` are ranked after one full turn. The best ones are then valued again after
the next player's whole turn, exact over his steerings, the die and his rugs; he plays what is
best for him by the same estimate (`second_turn`). To lay, this is done for several placements and
both colours that the mover's next rug may have; to steer, for several placements after each roll.
Where at most `SOLVED_TURNS` rugs are left to be laid, the position is solved to the end instead.

How much is looked at depends on the position alone, not on a clock.

Legend: scratch as in `turn` and `second_turn`; *mover* who decides, *walker* who moves after him.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.state import LAY, OVER, STEER, STEER_AT_END, Int, Record, States

from .endings import solve_late
from .evaluation import value
from .expectimax import ExpectimaxAgent
from .patches import MAX_STEPS, NUM_STEERINGS, ROLL_CHANCE, survey
from .second_turn import write_turn
from .turn import NUM_ACTIONS, FloatArray, fill_values, lay_rug

EFFORT: Final = np.dtype(
    [
        ("placements", np.int64),
        ("placement_gap", np.float64),
        ("rugs", np.int64),
        ("rug_gap", np.float64),
        ("steering_gap", np.float64),
    ],
    align=True,
)


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is looked at again; counts and gaps, never a clock.

    Attributes:
        placements: To lay: how many placements at most.
        placement_gap: How much less than the best one such a placement may be worth.
        rugs: To steer: how many placements after each roll at most.
        rug_gap: The same for these.
        steering_gap: The same for steerings.
    """

    placements: int
    placement_gap: float
    rugs: int
    rug_gap: float
    steering_gap: float


USUAL: Final = Effort(8, 0.15, 3, 0.04, 0.08)


class Expectimax2Agent(ExpectimaxAgent):
    """Chooses what is worth most after two turns; ties go to the lowest action."""

    def __init__(self, effort: Effort = USUAL) -> None:
        super().__init__()
        self._effort = np.array([astuple(effort)], EFFORT)

    def act(self, states: States, rng: np.random.Generator) -> NDArray[np.int64]:
        values = np.zeros((len(states), 15))
        weights, spreads = self.weights_for(int(states["num_players"][0]))
        sc = make_scratch2()
        open_games = solve_late(states, values)
        _value_all(states, open_games, weights, spreads, self._effort, *sc, values)
        return values.argmax(1)


def make_scratch2():
    from .turn import make_scratch
    from marrakech_env.state import STATE
    from .patches import PATCHES
    games, boards, sheets, values = make_scratch()
    return (np.zeros(6, STATE), np.zeros(4, PATCHES), sheets, np.zeros(NUM_ACTIONS), np.zeros(1, STATE), np.zeros((3, 4, 4)))


@kernel
def _value_all(states, open_games, weights, spreads, effort, games, boards, sheets, values, walked, turn, out):
    for i in open_games:
            fill_two_turns(states[i], weights, spreads, effort[0], games, boards, sheets, values, walked, turn, out[i])


@kernel
def fill_two_turns(state, weights, spreads, effort, games, boards, sheets, values, walked, turn, out):
    """Writes the value of every action into `out`, -inf for those that are not legal."""
    fill_values(state, weights, spreads, games, boards, sheets, out)
    if state.phase == LAY or (state.phase == STEER and state.flags & STEER_AT_END):
        look_again(state, effort.placements, effort.placement_gap, True, weights, spreads, games, boards, sheets[0], turn, out)
    elif state.phase == STEER:
        _look_after_rolls(state, effort, weights, spreads, games, boards, sheets, values, walked, turn, out)


@kernel
def _look_after_rolls(state, effort, weights, spreads, games, boards, sheets, values, walked, turn, out):
    player = np.int64(state.player)
    floor = out.max() - effort.steering_gap
    lowest, correction = np.inf, 0.0
    looked = 0
    top = -np.inf
    for steering in range(NUM_STEERINGS):
        if out[steering] < floor:
            continue
        total = 0.0
        for k in range(MAX_STEPS):
            walked[0] = state
            game.step(walked[0], steering, k + 1)
            if walked[0].phase == LAY and walked[0].player == player:
                fill_values(walked[0], weights, spreads, games, boards, sheets, values)
                look_again(walked[0], effort.rugs, effort.rug_gap, False, weights, spreads, games, boards, sheets[0], turn, values)
                worth = values.max()
            else:
                games[0] = walked[0]
                survey(games[0], boards[0])
                worth = value_after_turn(games, 0, boards, 0, player, weights, spreads, sheets[0], turn)
            total += ROLL_CHANCE[k] * worth
        looked |= 1 << steering
        if out[steering] > top:
            top = out[steering]
            correction = total - top
        lowest = min(lowest, total)
        out[steering] = total
    for steering in range(NUM_STEERINGS):
        if not looked >> steering & 1:
            out[steering] = min(out[steering] + correction, lowest)


@kernel
def look_again(state, width, gap, both, weights, spreads, games, boards, sheet, turn, values):
    survey(state, boards[0])
    games[0] = state
    floor = values.max() - gap
    looked, lowest, correction = np.uint32(0), np.inf, 0.0
    for _ in range(width):
        top = -1
        for action in range(NUM_ACTIONS):
            if not looked >> np.uint32(action) & np.uint32(1) and values[action] >= floor:
                if top < 0 or values[action] > values[top]:
                    top = action
        if top < 0:
            break
        if looked == 0:
            second = -np.inf
            for action in range(NUM_ACTIONS):
                if action != top:
                    second = max(second, values[action])
            if both and second < floor:
                return
        looked |= np.uint32(1) << np.uint32(top)
        worth = _worth_after_turn(games, top, both, boards, weights, spreads, sheet, turn)
        correction = worth - values[top]
        values[top] = worth
        lowest = min(lowest, worth)
        floor = max(floor, -np.inf)
    for action in range(NUM_ACTIONS):
        if not looked >> np.uint32(action) & np.uint32(1):
            values[action] = min(values[action] + correction, lowest)


@kernel
def _worth_after_turn(games, action, both, boards, weights, spreads, sheet, turn):
    state = games[0]
    player = np.int64(state.player)
    if state.phase == STEER:
        games[1] = state
        game.step(games[1], action, -1)
        return value_after_turn(games, 1, boards, 0, player, weights, spreads, sheet, turn)
    lower, upper = game.next_colour_weights(state)
    total, weight = 0.0, 0
    for k in range(2):
        chance = lower if k == 0 else upper
        if lower + upper == 0:
            chance = 1 - k
        elif not both:
            chance = 1 if (k == 1) == (upper > lower) else 0
        if chance > 0:
            lay_rug(games, 0, boards, 0, action - 3, 2 * player + k if lower + upper > 0 else -1)
            if games[1].phase == STEER and games[1].flags & STEER_AT_END:
                worth = -np.inf
                for steering in range(NUM_STEERINGS):
                    games[2] = games[1]
                    game.step(games[2], steering, -1)
                    worth = max(worth, value_after_turn(games, 2, boards, 1, player, weights, spreads, sheet, turn))
            else:
                worth = value_after_turn(games, 1, boards, 1, player, weights, spreads, sheet, turn)
            total += chance * worth
            weight += chance
    return total / weight


@kernel
def value_after_turn(games, at, boards, old, player, weights, spreads, sheet, turn):
    if games[at].phase == OVER:
        return value(games[at], boards[old], player, weights, spreads, sheet)
    steering = write_turn(games, at, boards, old, weights, spreads, sheet, turn)
    worth = 0.0
    for k in range(MAX_STEPS):
        worth += ROLL_CHANCE[k] * turn[steering, k, player]
    return worth
