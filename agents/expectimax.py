"""ExpectimaxAgent: one full turn ahead, exactly, and then an estimate of the position.

To steer it tries the three steerings, the four rolls and every placement after each; to lay, every
placement (`turn`), and with two players it looks at the rival's reply to the best two of them
(`reply`). What a position is worth right after a rug was laid says `evaluation.value`, with the
weights of `weights/expectimax.json`, which `python -m marrakech_agents.fit` makes.

Legend: `B` games, `P` players, `A` = 15 actions; *value*: about the share of the win, see
`evaluation`.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.state import State, States, as_states, one_state

from .common.action_values import ActionValue, checked_temperature, choose_actions, ranked
from .heuristic.one_turn import MIND, FloatArray, fill_values
from .heuristic.reply import look_at_replies
from .heuristic.seat_values import forecast
from .heuristic.weights import WEIGHTS_FILE, read_fits


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
            ValueError: The file holds no weights, or some for other facts than
                `evaluation.FACTS`, or a bad temperature.
            OSError: The file cannot be read.
        """
        self.temperature = checked_temperature(temperature)
        path = WEIGHTS_FILE if weights is None else Path(weights)
        fits = read_fits(path)
        self._weights = {players: fit.table() for players, fit in fits.items()}
        self.num_parameters = sum(fit.weights.size + fit.spread.size for fit in fits.values())

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
        states = as_states(states)
        values = np.empty((len(states), NUM_ACTIONS))
        if len(states):
            weights = self.weights_for(int(states["num_players"][0]))
            _fill_batch(states, weights, np.zeros(1, MIND), values)
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
            forecast(states, self.weights_for(players), np.zeros(1, MIND), shares, margins)
        return shares, margins

    def analyse(self, state: State) -> list[ActionValue]:
        """The legal actions of one unfinished game with their worth, the best first.

        Raises:
            ValueError: Not one state, or one without weights.
        """
        return ranked(self.action_values(one_state(state).reshape(1))[0])

    def weights_for(self, players: int) -> NDArray[np.void]:
        """The weights for a number of players: WEIGHTS (1,), read-only, see `evaluation`.

        Raises:
            ValueError: There are no weights.
        """
        if players not in self._weights:
            known = ", ".join(map(str, self._weights))
            raise ValueError(f"no weights for {players} players; there are some for: {known}")
        return self._weights[players]


@kernel
def _fill_batch(
    states: States, weights: NDArray[np.void], minds: NDArray[np.void], values: FloatArray
) -> None:
    """Writes the value of every action of every game, -inf for those that are not legal."""
    for i in range(len(states)):
        fill_values(states[i], weights[0], minds[0], values[i])
        look_at_replies(states[i], weights[0], minds[0], values[i])
