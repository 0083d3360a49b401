"""ExpectimaxAgent: one full turn ahead, exactly, and then an estimate of the position.

To steer it tries the three steerings, the four rolls and every placement after each; to lay, every
placement (`turn`), and with two players it looks at the rival's reply to the best two of them
(`reply`). What a position is worth right after a rug was laid says `evaluation.value`, with the
weights of `weights/expectimax.json`, which `python -m marrakech_agents.fit` makes.

Legend: `B` games, `P` players, `A` = 15 actions; *value*: about the share of the win, see
`evaluation`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.state import State, States, as_states, one_state

from .analysis import ActionValue, checked_temperature, choose_actions, ranked
from .evaluation import FACTS, MAX_TURNS, NUM_TERMS
from .forecast import forecast
from .reply import look_at_replies
from .turn import FloatArray, fill_values, new_mind

WEIGHTS_FILE: Final = Path(__file__).parent / "weights" / "expectimax.json"


class ExpectimaxAgent:
    """Chooses what is worth most, the lowest action among equals, or draws at a temperature.

    Attributes:
        temperature: 0 plays the best action; above, actions are drawn.
        num_parameters: Its weights, for all numbers of players.
    """

    def __init__(self, weights: str | Path | None = None, temperature: float = 0.0) -> None:
        """Reads the weights for 2, 3 and 4 players.

        Args:
            weights: A file as `python -m marrakech_agents.fit` writes it; None for the shipped one.
            temperature: 0 plays the best action; above, actions are drawn with a chance that
                falls by the factor e for each `temperature` of worth that they lose (0.05 is
                noticeably weaker).

        Raises:
            ValueError: The file was made for other facts than `evaluation.FACTS`, or a bad
                temperature.
            OSError: The file cannot be read.
        """
        self.temperature = checked_temperature(temperature)
        path = WEIGHTS_FILE if weights is None else Path(weights)
        data = json.loads(path.read_text(encoding="utf-8"))
        tables = read_weights(data, str(path))
        self._minds = {players: new_mind(*table) for players, table in tables.items()}
        fitted = (entry[key] for entry in data["players"].values() for key in ("weights", "spread"))
        self.num_parameters = sum(map(np.size, fitted))

    def act(self, states: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Chooses an action in each game.

        Args:
            states: STATE (B,), unfinished games.
            rng: Used at a temperature above 0; else equal states get equal actions.

        Returns:
            int64 (B,), legal actions (0 in a finished game).

        Raises:
            ValueError: Not an array of states with one number of players, or one without weights.
        """
        return choose_actions(self.action_values(as_states(states)), self.temperature, rng)

    def action_values(self, states: States) -> FloatArray:
        """What every action is worth to the player to move.

        Args:
            states: STATE (B,), with one number of players.

        Returns:
            float64 (B, A), about shares of the win, -inf where the action is not legal.

        Raises:
            ValueError: There are no weights for that number of players.
        """
        values = np.empty((len(states), NUM_ACTIONS))
        if len(states):
            _fill_batch(states, self.mind_for(int(states["num_players"][0])), values)
        return values

    def evaluate(self, states: States) -> tuple[FloatArray, FloatArray]:
        """What every seat can expect of a game: float64 (B, P), share of the win and margin.

        Args:
            states: STATE (B,), games in any phase, also finished ones, where it is exact. The
                margin is the final score minus the best other one, in dirhams.

        Raises:
            ValueError: As `act`.
        """
        states = as_states(states).copy()  # a scratch of the kernel
        players = int(states["num_players"][0]) if len(states) else 0
        shares, margins = np.zeros((2, len(states), players))
        if len(states):
            forecast(states, self.mind_for(players), shares, margins)
        return shares, margins

    def analyse(self, state: State) -> list[ActionValue]:
        """The legal actions of one unfinished game with their worth, the best first.

        Raises:
            ValueError: Not one state, or one without weights.
        """
        return ranked(self.action_values(one_state(state).reshape(1))[0])

    def mind_for(self, players: int) -> NDArray[np.void]:
        """Weights and scratch for a number of players: MIND (1,), see `turn`.

        Raises:
            ValueError: There are no weights.
        """
        if players not in self._minds:
            known = ", ".join(map(str, self._minds))
            raise ValueError(f"no weights for {players} players; there are some for: {known}")
        return self._minds[players]


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
            spreads_of(entry["spread"]),
        )
    return tables


def interpolate(at_knots: FloatArray, knots: NDArray[np.int64]) -> FloatArray:
    """Weights for 0..`MAX_TURNS` turns left, (P, turns, terms), from those at some numbers."""
    turns = np.clip(np.arange(MAX_TURNS + 1), knots[0], knots[-1])
    upper = np.clip(np.searchsorted(knots, turns), 1, len(knots) - 1)
    part = (turns - knots[upper - 1]) / (knots[upper] - knots[upper - 1])
    return np.ascontiguousarray(
        at_knots[:, upper - 1] * (1 - part)[:, None] + at_knots[:, upper] * part[:, None]
    )


def spreads_of(spread: Sequence[float]) -> FloatArray:
    """The width of the softmax for 0..`MAX_TURNS` turns left, of a constant and a slope."""
    constant, slope = spread
    widths: FloatArray = np.sqrt(constant + slope * np.arange(MAX_TURNS + 1))
    return widths


@kernel
def _fill_batch(states: States, minds: NDArray[np.void], values: FloatArray) -> None:
    """Writes the value of every action of every game, -inf for those that are not legal."""
    for i in range(len(states)):
        fill_values(states[i], minds[0], values[i])
        look_at_replies(states[i], minds[0], values[i])
