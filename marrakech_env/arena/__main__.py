"""Run the command line of the arena: `python -m marrakech_env.arena`."""

from __future__ import annotations

import sys


def run() -> int:
    """Run the command, or print which extra to install; return the exit code."""
    try:
        from marrakech_env.arena.cli import main
    except ModuleNotFoundError as error:
        if error.name is None or error.name.startswith("marrakech"):
            raise
        print(
            f"error: the arena's command line needs {error.name}: "
            "pip install 'marrakech-env[arena]' (in a clone: pip install -e '.[arena]')",
            file=sys.stderr,
        )
        return 2
    return main()


if __name__ == "__main__":
    sys.exit(run())
