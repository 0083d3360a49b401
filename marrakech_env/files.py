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
    target = _target(path)
    try:
        if _is_special(target):
            target.write_bytes(data)
            return
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
    target = _target(path)
    if target.exists():
        with target.open("ab"):
            pass
    if not _is_special(target):
        temporary = _temporary(target)
        temporary.touch()
        temporary.unlink()


def _target(path: Path) -> Path:
    """Where a path leads in the end; the file need not exist."""
    return Path(os.path.realpath(path))


def _is_special(target: Path) -> bool:
    return target.exists() and not target.is_file()


def _temporary(target: Path) -> Path:
    return target.with_name(TEMPORARY.format(name=target.name, process=os.getpid()))
