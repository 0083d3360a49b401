"""What `analyse` of the agents returns: a table of actions, the best first."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ActionValue:
    """What a legal action is worth to the player to move.

    Attributes:
        action: The action.
        worth: What the agent compares, about a share of the win.
        margin: Expected final score minus the best among the others, in dirhams; None where the
            agent does not estimate it by itself.
        win: Expected share of the win; None where the agent does not estimate it by itself.
    """

    action: int
    worth: float
    margin: float | None = None
    win: float | None = None


def best_first(rows: Iterable[ActionValue]) -> list[ActionValue]:
    """The table: by worth, equal ones by action."""
    return sorted(rows, key=lambda row: (-row.worth, row.action))
