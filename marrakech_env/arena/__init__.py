"""The arena measures agents against each other in paired deals.

`play` is its function, and `python -m marrakech_env.arena` its command. `docs/evaluation.md`
explains the figures. The command, its tables and pictures need the extra `arena`.
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
