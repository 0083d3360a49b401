"""Expectimax2Agent: expectimax that looks at the next player's turn as well, see `two_turns`.

Where at most two rugs are left to be laid by all together, the position is solved to its end
(`endings`). How much is looked at depends on the position alone, never on a clock.

Legend: `B` games, `A` = 15 actions.
"""

from __future__ import annotations

from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Final

import numpy as np

from marrakech_env.actions import NUM_ACTIONS
from marrakech_env.state import States, as_states

from .analysis import checked_count, checked_number
from .endings import solve_late
from .expectimax import ExpectimaxAgent
from .turn import FloatArray
from .two_turns import EFFORT, fill_two_turns


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is looked at again after the next player's turn; counts, never a clock.

    Attributes:
        placements: To lay: how many placements at most.
        placement_gap: How much less than the best one such a placement may be worth.
        steering_gap: The same for steerings.
        rugs: How many placements at most after each roll of such a steering.
        rug_gap: The same for these.
    """

    placements: int
    placement_gap: float
    steering_gap: float
    rugs: int
    rug_gap: float

    def __post_init__(self) -> None:
        """Checks the numbers.

        Raises:
            ValueError: A count below 1, a negative gap, or no number.
        """
        for name in ("placements", "rugs"):
            checked_count(name, getattr(self, name))
        for name in ("placement_gap", "steering_gap", "rug_gap"):
            checked_number(name, getattr(self, name))


USUAL: Final = {
    2: Effort(12, 0.3, 0.1, 2, 0.05),
    3: Effort(8, 0.15, 0.08, 3, 0.04),
    4: Effort(8, 0.15, 0.08, 3, 0.04),
}
"""By number of players: about 2 milliseconds a decision."""


class Expectimax2Agent(ExpectimaxAgent):
    """Chooses what is worth most after two turns, or draws at a temperature above 0.

    Attributes:
        version: Grows whenever it plays differently, see `load_agent`.
    """

    version = 2

    def __init__(
        self,
        weights: str | Path | None = None,
        temperature: float = 0.0,
        effort: Effort | None = None,
    ) -> None:
        """Reads the weights, as `ExpectimaxAgent` does.

        Args:
            weights: As there.
            temperature: As there.
            effort: How much is looked at again; None for the `USUAL` amount.

        Raises:
            ValueError: As there.
            OSError: As there.
        """
        super().__init__(weights, temperature)
        self._efforts = {
            players: np.array([astuple(effort or usual)], EFFORT)
            for players, usual in USUAL.items()
        }

    def action_values(self, states: States) -> FloatArray:
        """As `ExpectimaxAgent.action_values`."""
        states = as_states(states)
        values = np.full((len(states), NUM_ACTIONS), -np.inf)
        early = solve_late(states, values)
        if len(early):
            players = int(states["num_players"][0])
            fill_two_turns(states, early, self.mind_for(players), self._efforts[players], values)
        return values
