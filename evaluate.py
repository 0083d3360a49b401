"""Measure agents against each other: `python evaluate.py AGENT AGENT ... [options]`.

    python evaluate.py runs/NAME greedy                  one trained agent against another agent
    python evaluate.py my_agent.py:act --field random,greedy,expectimax
    python evaluate.py greedy expectimax --players 4 --plot strength.png
    python evaluate.py runs/NAME --field expectimax --luck-adjusted
    python evaluate.py --endgames greedy expectimax      late positions with true answers
    python evaluate.py --leaderboard --budget 60         all agents against each other, for an hour

`--help` explains every option. `marrakech_env.arena` does the work: `cli` reads the options,
`tournament` draws up the line-ups, `match` plays the deals, `luck` measures the dice, `interval`
and `rating` compute the figures, and `report` writes them. `python -m marrakech_env.arena` is the
same command in an installed package, and `marrakech_env.arena.play` the same from Python.
"""

import sys

from marrakech_env.arena.__main__ import run

if __name__ == "__main__":
    sys.exit(run())
