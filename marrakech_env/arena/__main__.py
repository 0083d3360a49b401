"""Run the command line of the arena: `python -m marrakech_env.arena`."""

from __future__ import annotations

import sys

from marrakech_env.command_line import run_module


def run() -> int:
    """Run the command, or tell which extra to install; return the exit code."""
    return run_module("marrakech_env.arena.cli", "arena")


if __name__ == "__main__":
    sys.exit(run())
