"""Measures agents against each other: `python evaluate.py AGENT AGENT ... [options]`.

    python evaluate.py runs/NAME greedy                  one trained agent against another agent
    python evaluate.py my_agent.py:act --field random,greedy,expectimax
    python evaluate.py greedy expectimax --players 4 --plot strength.png
    python evaluate.py runs/NAME --field expectimax --luck-adjusted
    python evaluate.py --endgames greedy expectimax      late positions with true answers
    python evaluate.py --leaderboard --budget 60         everybody against everybody, for an hour

`--help` explains every option. The work is done by `marrakech_env.arena`: `tournament` draws up who
meets whom, `match` plays the deals, `luck` measures the dice, `interval` and `rating` say what can
be known from it all, and `report` prints it. `python -m marrakech_env.arena` is the same command
where the package is installed without this file, and `marrakech_env.arena.play` the same from
Python.
"""

import sys

from marrakech_env.arena.__main__ import run

if __name__ == "__main__":
    sys.exit(run())
