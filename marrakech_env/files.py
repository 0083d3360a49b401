"""Files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO, Final

TEMPORARY: Final = ".{name}.{process}.tmp"
"""Name of a file while it is written."""

_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)  # Windows has neither the flag nor named pipes


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file so that at any moment either the old or the new content is there.

    A symbolic link stays, and its target is written. An existing file keeps its permission bits.
    Of two processes that write one file, the content of one is left. A device, a pipe and the
    standard output are written to directly.

    Raises:
        OSError: The file cannot be written, or no process reads from the pipe; names the file. The
            old content is still there.
    """
    try:
        status = _status(path)
        if status is not None and _is_stream(status):
            with _open_stream(path, status) as stream:
                stream.write(data)
            return
        target = Path(os.path.realpath(path))
        temporary = _temporary(target)
        try:
            with open(temporary, "xb") as file:
                if status is not None:
                    os.chmod(temporary, stat.S_IMODE(status.st_mode))
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def check_writable(path: Path) -> None:
    """Check that `write_atomically` can write a file, and leave everything as it is.

    A named pipe is not opened: a process that waits at its other end would read the end of a file.

    Raises:
        OSError: The file cannot be written.
    """
    status = _status(path)
    if status is not None and stat.S_ISFIFO(status.st_mode):
        if not os.access(path, os.W_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
    elif status is not None:
        with path.open("ab"):
            pass
    if status is None or not _is_stream(status):
        temporary = _temporary(Path(os.path.realpath(path)))
        temporary.touch()
        temporary.unlink()


def _status(path: Path) -> os.stat_result | None:
    try:
        return os.stat(path)
    except FileNotFoundError:
        return None


def _is_stream(status: os.stat_result) -> bool:
    """Whether something is written to directly; a directory counts, and fails when it is opened."""
    return not stat.S_ISREG(status.st_mode) or _standard_stream(status) is not None


def _standard_stream(status: os.stat_result) -> int | None:
    """The number of the standard stream that a path like /dev/stdout stands for."""
    for number in (1, 2):
        with contextlib.suppress(OSError):  # it is closed
            if os.path.samestat(status, os.fstat(number)):
                return number
    return None


def _open_stream(path: Path, status: os.stat_result) -> BinaryIO:
    """Open a device, a pipe, or the standard output at the place where it stands."""
    standard = _standard_stream(status)
    if standard is not None:
        return os.fdopen(os.dup(standard), "wb")
    try:
        number = os.open(path, os.O_WRONLY | _NONBLOCK)
    except OSError as error:
        if error.errno == errno.ENXIO:
            raise OSError(errno.ENXIO, "no process reads from this pipe") from error
        raise
    if _NONBLOCK:
        os.set_blocking(number, True)
    return os.fdopen(number, "wb")


def _temporary(target: Path) -> Path:
    process = f"{os.getpid()}-{secrets.token_hex(4)}"
    return target.with_name(TEMPORARY.format(name=target.name, process=process))
