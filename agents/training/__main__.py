"""Run the command `train.py` where only the package is installed.

`python -m marrakech_agents.training` takes the same options.
"""

from __future__ import annotations

import sys

from marrakech_env.command_line import BAD_INPUT, run_command


def run() -> int:
    """Run the command, or tell which extra to install; return the exit code."""
    return run_command(_main)


def _main() -> int:
    try:
        from .command import main
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("marrakech"):
            raise
        print(
            f"train.py needs {error.name}: pip install 'marrakech-env[train]' "
            "(in a clone: pip install -e '.[train]')",
            file=sys.stderr,
        )
        return BAD_INPUT
    return main()


if __name__ == "__main__":
    sys.exit(run())
