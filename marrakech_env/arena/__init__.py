"""The arena: agents against each other in paired deals, and how strong that makes them.

`play` is the whole of it from Python, and `python -m marrakech_env.arena` the same as a command;
`docs/evaluation.md` explains what is measured. The table, the files and the picture are made by
`report`, which needs the extra `arena`; everything else needs NumPy alone.
"""

from marrakech_env.arena.interval import Estimate
from marrakech_env.arena.luck import Baseline
from marrakech_env.arena.match import IllegalActionError
from marrakech_env.arena.result import AgentSummary, LuckAdjusted, Pairing, Result
from marrakech_env.arena.tournament import Tournament, play

__all__ = [
    "AgentSummary",
    "Baseline",
    "Estimate",
    "IllegalActionError",
    "LuckAdjusted",
    "Pairing",
    "Result",
    "Tournament",
    "play",
]
