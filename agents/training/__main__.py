"""Runs the command `train.py` where only the package is installed.

`python -m marrakech_agents.training` takes the same options.
"""

from __future__ import annotations

import sys

from marrakech_env.command_line import run_module


def run() -> int:
    """Run the command, or tell which extra to install; return the exit code."""
    return run_module("marrakech_agents.training.command", "train")


if __name__ == "__main__":
    sys.exit(run())
