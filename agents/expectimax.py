"""ExpectimaxAgent: exact lookahead of one full turn, then an evaluation of the position.

Steering tries the three steerings, the four rolls and every placement after each; laying tries
every placement (`heuristic.one_turn`). With two players the best two placements are valued again
after the opponent's reply (`heuristic.reply`). Positions right after a rug are valued by
`heuristic.evaluation` with the weights of `weights/expectimax.json`, which
`python -m marrakech_agents.training.fitting` fits.

Legend: `B` games, `P` players, `A` = 15 actions; *q* is the value of an action in shares of the
win.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from marrakech_env import game
from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.compile import kernel
from marrakech_env.state import Record, State, States, as_states, one_state

from .common.action_values import ActionValue, checked_temperature, choose_actions, ranked
from .heuristic.evaluation import EXPECTIMAX_WORKSPACE, margin, win_share, write_scores
from .heuristic.one_turn import NO_COLOUR, FloatArray, decide, write_q
from .heuristic.regions import map_regions
from .heuristic.reply import look_at_replies
from .heuristic.weights import WEIGHTS_FILE, read_fits


class ExpectimaxAgent:
    """Plays the action of highest value, the lowest of equal ones, or samples at a temperature.

    Threads may share one agent: its weights are read-only, and each call has its own workspace.

    Attributes:
        temperature: Sampling temperature; 0 always plays the best action.
        num_parameters: Number of weights, for all numbers of players.
    """

    def __init__(self, weights: str | Path | None = None, temperature: float = 0.0) -> None:
        """Read the weights for 2, 3 and 4 players.

        Args:
            weights: A file that `python -m marrakech_agents.training.fitting` wrote; None for the
                shipped one.
            temperature: 0 plays the best action; above, the chance of an action falls by the
                factor e for each `temperature` of q that it loses (0.05 plays noticeably
                weaker).

        Raises:
            ValueError: The file holds no weights, or weights for other facts than
                `evaluation.FACTS`, or a bad temperature.
            OSError: The file cannot be read.
        """
        self.temperature = checked_temperature(temperature)
        fits = read_fits(WEIGHTS_FILE if weights is None else Path(weights))
        self._weights = {players: fit.table() for players, fit in fits.items()}
        self.num_parameters = sum(fit.weights.size + fit.spread.size for fit in fits.values())

    def act(self, states: States, rng: np.random.Generator) -> NDArray[np.int64]:
        """Choose an action in each game.

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
        """Value of every action to the player to move.

        Args:
            states: STATE (B,), with one number of players.

        Returns:
            float64 (B, A), in shares of the win, -inf for illegal actions.

        Raises:
            ValueError: There are no weights for that number of players.
        """
        states = as_states(states)
        q = np.empty((len(states), NUM_ACTIONS))
        if len(states):
            _write_action_values(states, self.weights_for(int(states["num_players"][0])), q)
        return q

    def evaluate(self, states: States) -> tuple[FloatArray, FloatArray]:
        """Expected result of every seat: float64 (B, P), share of the win and margin.

        Args:
            states: STATE (B,), games in any phase; finished games get their exact result. The
                margin is the final score minus the best other one, in dirhams.

        Raises:
            ValueError: As `act`.
        """
        states = as_states(states).copy()  # the kernel ends their turns
        players = int(states["num_players"][0]) if len(states) else 0
        shares, margins = np.zeros((2, len(states), players))
        if len(states):
            _write_seat_values(states, self.weights_for(players), shares, margins)
        return shares, margins

    def analyse(self, state: State) -> list[ActionValue]:
        """The legal actions of one unfinished game with their q, the best first.

        Raises:
            ValueError: Not one state, or one without weights.
        """
        return ranked(self.action_values(one_state(state).reshape(1))[0])

    def weights_for(self, players: int) -> NDArray[np.void]:
        """The weights for a number of players: `evaluation.EVALUATION_WEIGHTS` (1,), read-only.

        Raises:
            ValueError: There are no weights.
        """
        if players not in self._weights:
            known = ", ".join(map(str, self._weights))
            raise ValueError(f"no weights for {players} players; there are some for: {known}")
        return self._weights[players]


@kernel
def _write_action_values(states: States, weights: NDArray[np.void], q: FloatArray) -> None:
    """Write the value of every action of every game, -inf for illegal actions."""
    workspaces = np.zeros(1, EXPECTIMAX_WORKSPACE)
    for i in range(len(states)):  # a record alone would not keep its array in memory
        write_q(states[i], weights[0], workspaces[0], q[i])
        look_at_replies(states[i], weights[0], workspaces[0], q[i])


@kernel
def _write_seat_values(
    states: States, weights: NDArray[np.void], shares: FloatArray, margins: FloatArray
) -> None:
    """Write the expected share of the win and final margin of every seat, exact in finished games.

    Inside a turn the mover takes what is best after one full turn; then the position is valued.
    """
    workspaces = np.zeros(1, EXPECTIMAX_WORKSPACE)
    for i in range(len(states)):
        _write_seats(states[i], weights[0], workspaces[0], shares[i], margins[i])


@kernel
def _write_seats(
    state: Record, weights: Record, work: Record, shares: FloatArray, margins: FloatArray
) -> None:
    """As `_write_seat_values`, for one game; its turn is ended in place."""
    while game.is_inside_turn(state):
        game.step(state, decide(state, weights, work), NO_COLOUR)
    map_regions(state, work.listed, work.regions)
    write_scores(state, work.regions, weights, work)
    for seat in range(state.num_players):
        shares[seat] = win_share(state, seat, weights, work)
        margins[seat] = margin(state, seat, work)
