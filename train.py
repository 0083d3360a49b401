"""Trains an agent for Marrakech, then measures how strong it is.

    python train.py                          five minutes, two players, then the table
    python train.py --minutes 60 --players 4
    python train.py --algorithm value        a value network from self-play, stronger than PPO
    python train.py --resume runs/NAME       continues after a kill, a crash or a Ctrl-C

`--help` explains every option. Everything of a run lies in its folder runs/NAME: config.json,
metrics.csv with learning_curve.png, checkpoint.pt for --resume, tensorboard/, past/ with earlier
versions of the agent, and in the end the model (model.json with its weights) and evaluation.json.
`python evaluate.py runs/NAME greedy` measures it again.

The work is done in `agents/training/`: `command` runs a training from start to end, `loop` is the
training loop, and `ppo_learner` and `value_learner` are the two algorithms. Where the package is
installed without this file, `python -m marrakech_agents.training` is the same command.
"""

import sys

from marrakech_agents.training.__main__ import run

if __name__ == "__main__":
    sys.exit(run())
