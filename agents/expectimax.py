"""ExpectimaxAgent: one full turn ahead, exactly, and then an estimate of the position.

To steer it tries the three steerings, the four rolls and every placement after each; to lay, every
placement. What a position is worth right after the rug was laid says `evaluation.value`, with the
weights of `weights/expectimax.json`, which `python -m marrakech_agents.fit` makes.

Legend: `B` games, `P` players; *value*: about the share of the win, see `evaluation`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.compile import kernel
from marrakech_env.state import (
    LAY,
    STATE,
    STEER,
    STEER_AT_END,
    WALK,
    Int,
    Record,
    State,
    States,
    as_states,
    one_state,
)
from marrakech_env.tables import FIRST_CELL, NUM_PLACEMENTS, SECOND_CELL

from .analysis import ActionValue, best_first
from .evaluation import FACTS, NUM_TERMS, SHEET, value
from .patches import MAX_STEPS, NUM_STEERINGS, PATCHES, ROLL_CHANCE, heading_of, relay, survey

NUM_ACTIONS: Final = NUM_STEERINGS + NUM_PLACEMENTS
WEIGHTS_FILE: Final = Path(__file__).parent / "weights" / "expectimax.json"

FloatArray = NDArray[np.float64]


class ExpectimaxAgent:
    """Chooses what is worth most after one full turn; ties go to the lowest action."""

    def __init__(self, weights: str | Path | None = None) -> None:
        """Reads the weights for 2, 3 and 4 players.

        Args:
            weights: A file as `python -m marrakech_agents.fit` writes it; None for the shipped one.

        Raises:
            ValueError: The file was made for other facts than `evaluation.FACTS`.
            OSError: The file cannot be read.
        """
        path = WEIGHTS_FILE if weights is None else Path(weights)
        self._tables = read_weights(json.loads(path.read_text(encoding="utf-8")), str(path))

    def act(self, states: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Chooses an action in each game.

        Args:
            states: STATE (B,), unfinished games.
            rng: Not used: equal states get equal actions.

        Returns:
            int64 (B,), legal actions (0 in a finished game).

        Raises:
            ValueError: Not an array of states with one number of players, or one without weights.
        """
        states = as_states(states)
        actions = np.empty(len(states), np.int64)
        if len(states):
            weights, spreads = self.weights_for(int(states["num_players"][0]))
            _choose(states, weights, spreads, *make_scratch(), actions)
        return actions

    def analyse(self, state: State) -> list[ActionValue]:
        """The legal actions of one unfinished game with their worth, the best first.

        Raises:
            ValueError: Not one state, or one without weights.
        """
        record = one_state(state)
        weights, spreads = self.weights_for(int(record["num_players"]))
        scratch = make_scratch()
        fill_values(record, weights, spreads, *scratch)
        values = scratch[-1]
        return best_first(
            ActionValue(int(action), float(values[action]))
            for action in np.flatnonzero(values > -np.inf)
        )

    def weights_for(self, players: int) -> tuple[FloatArray, FloatArray]:
        """Weights and spreads for a number of players, see `read_weights`.

        Raises:
            ValueError: There are none.
        """
        if players not in self._tables:
            known = ", ".join(map(str, self._tables))
            raise ValueError(f"no weights for {players} players; there are some for: {known}")
        return self._tables[players]


def read_weights(data: dict[str, Any], where: str) -> dict[int, tuple[FloatArray, FloatArray]]:
    """The weights and the spreads of each number of players, by the number of turns left.

    Raises:
        ValueError: They were made for other facts; `where` is named.
    """
    if data.get("facts") != list(FACTS):
        raise ValueError(
            f"{where} holds weights for the facts {data.get('facts')}, not for {list(FACTS)}"
        )
    tables = {}
    for players, entry in data["players"].items():
        knots = np.array(entry["knots"])
        at_knots = np.array(entry["weights"], np.float64)
        if at_knots.shape != (int(players), len(knots), NUM_TERMS):
            raise ValueError(f"{where}: weights for {players} players of shape {at_knots.shape}")
        tables[int(players)] = (
            interpolate(at_knots, knots),
            np.sqrt(entry["spread"][0] + entry["spread"][1] * np.arange(knots[-1] + 1)),
        )
    return tables


def interpolate(at_knots: FloatArray, knots: NDArray[np.int64]) -> FloatArray:
    """Weights for 0, 1, 2 ... turns left, (P, turns, terms), from those at some numbers of them."""
    turns = np.clip(np.arange(knots[-1] + 1), knots[0], None)
    upper = np.clip(np.searchsorted(knots, turns), 1, len(knots) - 1)
    part = (turns - knots[upper - 1]) / (knots[upper] - knots[upper - 1])
    return np.ascontiguousarray(
        at_knots[:, upper - 1] * (1 - part)[:, None] + at_knots[:, upper] * part[:, None]
    )


def make_scratch() -> tuple[NDArray[Any], NDArray[Any], NDArray[Any], FloatArray]:
    """What the kernels write on: games, patches, a sheet, and values of the 15 actions."""
    return np.zeros(4, STATE), np.zeros(2, PATCHES), np.zeros(1, SHEET), np.zeros(NUM_ACTIONS)


@kernel
def _choose(
    states: States,
    weights: FloatArray,
    spreads: FloatArray,
    games: NDArray[Any],
    boards: NDArray[Any],
    sheets: NDArray[Any],
    values: FloatArray,
    actions: NDArray[np.int64],
) -> None:
    """Writes the decision of every game into `actions`."""
    for i in range(len(states)):
        actions[i] = decide(states[i], weights, spreads, games, boards, sheets, values)


@kernel
def decide(
    state: Record,
    weights: FloatArray,
    spreads: FloatArray,
    games: NDArray[Any],
    boards: NDArray[Any],
    sheets: NDArray[Any],
    values: FloatArray,
) -> Int:
    """The action of highest value; `values` holds all of them then."""
    fill_values(state, weights, spreads, games, boards, sheets, values)
    best = 0
    for action in range(NUM_ACTIONS):
        if values[action] > values[best]:
            best = action
    return best


@kernel
def fill_values(
    state: Record,
    weights: FloatArray,
    spreads: FloatArray,
    games: NDArray[Any],
    boards: NDArray[Any],
    sheets: NDArray[Any],
    values: FloatArray,
) -> None:
    """Writes the value of every action into `values`, -inf for those that are not legal."""
    player = np.int64(state.player)
    for action in range(NUM_ACTIONS):
        values[action] = -np.inf
    games[0] = state
    if state.phase == WALK:
        values[1] = 0.0
        return
    survey(state, boards[0])
    if state.phase == LAY:
        legal = game.legal_placements(state)
        for placement in range(NUM_PLACEMENTS):
            if legal >> np.uint32(placement) & np.uint32(1):
                values[3 + placement] = _placement_value(
                    games, 0, placement, player, boards, weights, spreads, sheets[0]
                )
    elif state.phase == STEER and state.flags & STEER_AT_END:
        for steering in range(NUM_STEERINGS):
            values[steering] = _handover_value(
                games, 0, steering, player, boards[0], weights, spreads, sheets[0]
            )
    elif state.phase == STEER:
        for steering in range(NUM_STEERINGS):
            values[steering] = 0.0
            for k in range(MAX_STEPS):
                games[1] = state
                game.step(games[1], steering, k + 1)
                values[steering] += ROLL_CHANCE[k] * _landing_value(
                    games, player, boards, weights, spreads, sheets[0]
                )


@kernel
def _landing_value(
    games: NDArray[Any],
    player: Int,
    boards: NDArray[Any],
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
) -> float:
    """The value of `games[1]` after the player's walk: the best placement if he may lay."""
    state = games[1]
    if state.phase != LAY or state.player != player:
        survey(state, boards[1])  # whoever went bankrupt owns no patches any more
        return value(state, boards[1], player, weights, spreads, sheet)
    best = -np.inf
    legal = game.legal_placements(state)
    for placement in range(NUM_PLACEMENTS):
        if legal >> np.uint32(placement) & np.uint32(1):
            worth = _placement_value(games, 1, placement, player, boards, weights, spreads, sheet)
            best = max(best, worth)
    return best


@kernel
def _placement_value(
    games: NDArray[Any],
    at: Int,
    placement: Int,
    player: Int,
    boards: NDArray[Any],
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
) -> float:
    """The value of laying in `games[at]`, whose patches are `boards[0]`."""
    heading = heading_of(games[at])
    games[at + 1] = games[at]
    after = games[at + 1]
    # The colour of the next rug is not drawn: no fact asks for the one of who has just laid.
    game.step(after, 3 + placement, -1)
    boards[1] = boards[0]
    first, second = FIRST_CELL[heading, placement], SECOND_CELL[heading, placement]
    relay(after, np.int64(first), np.int64(second), boards[1])
    if after.phase == STEER and after.player == player and after.flags & STEER_AT_END:
        best = -np.inf
        for steering in range(NUM_STEERINGS):
            worth = _handover_value(
                games, at + 1, steering, player, boards[1], weights, spreads, sheet
            )
            best = max(best, worth)
        return best
    return value(after, boards[1], player, weights, spreads, sheet)


@kernel
def _handover_value(
    games: NDArray[Any],
    at: Int,
    steering: Int,
    player: Int,
    board: Record,
    weights: FloatArray,
    spreads: FloatArray,
    sheet: Record,
) -> float:
    """With `steering=end`: the value of turning Assam in `games[at]` for the next player."""
    games[at + 1] = games[at]
    game.step(games[at + 1], steering, -1)
    return value(games[at + 1], board, player, weights, spreads, sheet)
