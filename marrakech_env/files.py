"""Files that are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

TEMPORARY: Final = ".{name}.{process}.tmp"
"""Name of a file while it is written."""


def write_atomically(path: Path, data: bytes) -> None:
    """Writes a file so that at any moment either the old or the new content is there.

    A link stays one, the file that it points to is written. What is no ordinary file, such as a
    device or a pipe, is written to directly.

    Raises:
        OSError: It cannot be written; names the file. The old content is still there.
    """
    try:
        if _is_special(path):
            path.write_bytes(data)
            return
        target = Path(os.path.realpath(path))
        temporary = _temporary(target)
        try:
            with open(temporary, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def check_writable(path: Path) -> None:
    """Finds out whether `write_atomically` can write a file, and leaves everything as it is.

    Raises:
        OSError: It cannot.
    """
    if path.exists():
        with path.open("ab"):
            pass
    if not _is_special(path):
        temporary = _temporary(Path(os.path.realpath(path)))
        temporary.touch()
        temporary.unlink()


def _is_special(path: Path) -> bool:
    """Whether there is something else than an ordinary file; realpath cannot name every pipe."""
    return path.exists() and not path.is_file()


def _temporary(target: Path) -> Path:
    return target.with_name(TEMPORARY.format(name=target.name, process=os.getpid()))
