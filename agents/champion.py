"""ChampionAgent: the tree of `mcts` with more time."""

from __future__ import annotations

from .mcts import MctsAgent


class ChampionAgent(MctsAgent):
    """As `MctsAgent`, with nearly twice as many playouts: about 20 milliseconds on one core."""

    usual_name = "champion"
    usual_playouts = 140
    solved_turns = 3
    version = 3
