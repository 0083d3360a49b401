"""The heuristic evaluation of `expectimax` and what `greedy` uses of it."""
