"""The one decorator by which every kernel is compiled, and the rules of its cache.

Numba keeps compiled kernels beside the source, or in a folder of the user where the installation
is read-only; `NUMBA_CACHE_DIR` names another folder. Two things are added here: a kernel is
compiled anew when *any* source file of the package changed (Numba itself looks only at the
kernel's own file, although kernels inline each other across files), a damaged or unwritable cache
costs time, never the run, and of many processes that start at once with an empty cache one compiles
a kernel while the others wait for it.
"""

from __future__ import annotations

import contextlib
import os
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
from numba.core.caching import FunctionCache

if sys.platform != "win32":  # there every process compiles for itself
    import fcntl

if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]  # set from the environment at run time
    # Plain Python cannot run the kernels: a field of a NumPy record is no attribute there.
    raise ImportError("marrakech_env needs its kernels compiled; unset NUMBA_DISABLE_JIT")

_Function = TypeVar("_Function", bound=Callable[..., Any])

PATIENCE: Final = 2.0
"""Seconds of compiling after which a line on stderr tells the user what he is waiting for."""
REPEAT: Final = 30.0
"""Seconds of compiling after which another line tells him that it goes on."""
LONGEST_WAIT: Final = 120.0
"""Seconds that a process waits for another one that compiles the same kernel, then it compiles."""


def kernel(function: _Function) -> _Function:
    """Compiles a function to machine code at its first call; later processes load it from cache.

    The global interpreter lock is released while the kernel runs.
    """
    compiled: Any = numba.njit(error_model="numpy", nogil=True)(function)
    # No folder can be written: compile in every process instead.
    with contextlib.suppress(RuntimeError):
        compiled._cache = _PackageCache(function)
    return cast(_Function, compiled)


def machine_code(kernel: Any, *arguments: Any) -> Callable[..., Any]:
    """What a kernel becomes for arguments of these types, to be called as the kernel is.

    Such a call does not find out the types again, which takes 50 to 100 nanoseconds an array, so
    all later arguments must have the very same types: the caller answers for that.
    """
    signature = tuple(numba.typeof(argument) for argument in arguments)
    kernel.compile(signature)
    code: Callable[..., Any] = kernel.overloads[signature].entry_point
    return code


def _package_stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, time of change (ns) and size of every source file below a folder."""
    stats = ((path, path.stat()) for path in sorted(folder.rglob("*.py")))
    return tuple((path.name, stat.st_mtime_ns, stat.st_size) for path, stat in stats)


class _CompileClock:
    """Tells the user when compiling takes long, summed over all kernels, and that it goes on."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._started = 0.0
        self._depth = 0
        self._next = PATIENCE  # seconds of compiling at which he is told again
        self._timer: threading.Timer | None = None

    def start(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._started = time.monotonic()
            self._wait(max(0.0, self._next - self._spent))

    def _wait(self, seconds: float) -> None:
        self._timer = threading.Timer(seconds, self._tell)
        self._timer.daemon = True
        self._timer.start()

    def stop(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.monotonic() - self._started
            if self._timer is not None:
                self._timer.cancel()

    def _tell(self) -> None:
        if self._depth == 0:  # the compiling ended while this thread was starting
            return
        spent = self._spent + time.monotonic() - self._started
        self._next = spent + REPEAT
        print(
            "marrakech_env: compiling kernels that are not in the cache yet, once "
            f"({spent:.0f} s so far) ...",
            file=sys.stderr,
            flush=True,
        )
        self._wait(REPEAT)


class _Lock:
    """What one process holds while it compiles a kernel; gone with the process that holds it.

    A kernel calls only kernels that do not call it, so nobody waits in a circle.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: int | None = None

    def acquire(self) -> None:
        """Waits for the lock, at most `LONGEST_WAIT`; goes on without it where none can be had."""
        if sys.platform == "win32" or self._file is not None:
            return
        deadline = time.monotonic() + LONGEST_WAIT
        with contextlib.suppress(OSError):  # a read-only folder, or no locks on this file system
            file = os.open(self._path, os.O_RDWR | os.O_CREAT, 0o644)
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self._file = file
                    return
                except BlockingIOError:
                    if time.monotonic() > deadline:
                        break
                    time.sleep(0.05)
                except OSError:
                    break
            os.close(file)

    def release(self) -> None:
        """Lets the next process go on."""
        if self._file is not None:
            os.close(self._file)
            self._file = None


class _PackageCache(FunctionCache):
    """Numba's cache of one kernel, kept fresh by the stamp of its whole package."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        folders = {_HERE, Path(function.__code__.co_filename).resolve().parent}
        for folder in folders - _stamps.keys():
            _stamps[folder] = _package_stamp(folder)
        self._cache_file._source_stamp = tuple(_stamps[folder] for folder in sorted(folders))
        self._lock = _Lock(Path(self._cache_file._index_path + ".lock"))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        loaded = self._load(sig, target_context)
        if loaded is None:
            _clock.start()
            self._lock.acquire()
            loaded = self._load(sig, target_context)  # another process may have compiled it
            if loaded is not None:
                self._lock.release()
                _clock.stop()
        return loaded

    def _load(self, sig: Any, target_context: Any) -> Any:
        try:
            return super().load_overload(sig, target_context)
        except Exception:  # a damaged file can raise anything from inside pickle
            with contextlib.suppress(OSError):
                self.flush()
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        _clock.stop()
        with contextlib.suppress(OSError):  # a full disk, or a folder that went away
            super().save_overload(sig, data)
        self._lock.release()


_HERE: Final = Path(__file__).resolve().parent
_stamps: dict[Path, tuple[tuple[str, int, int], ...]] = {}
_clock: Final = _CompileClock()
