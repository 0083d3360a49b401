"""The one decorator by which every kernel is compiled, and the rules of its cache.

Numba keeps compiled kernels beside the source, or in a folder of the user where the installation
is read-only; `NUMBA_CACHE_DIR` names another folder. Two things are added here: a kernel is
compiled anew when *any* source file of the package changed (Numba itself looks only at the
kernel's own file, although kernels inline each other across files), and a damaged or unwritable
cache costs time, never the run.
"""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import numba
from numba.core.caching import FunctionCache

_Function = TypeVar("_Function", bound=Callable[..., Any])

PATIENCE: Final = 2.0
"""Seconds of compiling after which a line on stderr tells the user what he is waiting for."""


def kernel(function: _Function) -> _Function:
    """Compiles a function to machine code at its first call; later processes load it from cache.

    The global interpreter lock is released while the kernel runs.
    """
    compiled: Any = numba.njit(error_model="numpy", nogil=True)(function)
    if compiled is not function:  # NUMBA_DISABLE_JIT leaves the function as it is
        try:
            compiled._cache = _PackageCache(function)
        except RuntimeError:  # no folder can be written: compile in every process instead
            pass
    return cast(_Function, compiled)


def _package_stamp(folder: Path) -> tuple[tuple[str, int, int], ...]:
    """Name, time of change (ns) and size of every source file below a folder."""
    stats = ((path, path.stat()) for path in sorted(folder.rglob("*.py")))
    return tuple((path.name, stat.st_mtime_ns, stat.st_size) for path, stat in stats)


class _CompileClock:
    """Tells the user once when compiling takes long, summed over all kernels."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._started = 0.0
        self._depth = 0
        self._told = False
        self._timer: threading.Timer | None = None

    def start(self) -> None:
        self._depth += 1
        if self._depth == 1:
            self._started = time.monotonic()
            if not self._told:
                self._timer = threading.Timer(max(0.0, PATIENCE - self._spent), self._tell)
                self._timer.daemon = True
                self._timer.start()

    def stop(self) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._spent += time.monotonic() - self._started
            if self._timer is not None:
                self._timer.cancel()

    def _tell(self) -> None:
        self._told = True
        print(
            "marrakech_env: compiling kernels that are not in the cache yet (some seconds) ...",
            file=sys.stderr,
            flush=True,
        )


class _PackageCache(FunctionCache):
    """Numba's cache of one kernel, kept fresh by the stamp of its whole package."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        folders = {_HERE, Path(function.__code__.co_filename).resolve().parent}
        for folder in folders - _stamps.keys():
            _stamps[folder] = _package_stamp(folder)
        self._cache_file._source_stamp = tuple(_stamps[folder] for folder in sorted(folders))

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        try:
            loaded = super().load_overload(sig, target_context)
        except Exception:  # a damaged file can raise anything from inside pickle
            loaded = None
            with contextlib.suppress(OSError):
                self.flush()
        if loaded is None:
            _clock.start()
        return loaded

    def save_overload(self, sig: Any, data: Any) -> None:
        _clock.stop()
        with contextlib.suppress(OSError):  # a full disk, or a folder that went away
            super().save_overload(sig, data)


_HERE: Final = Path(__file__).resolve().parent
_stamps: dict[Path, tuple[tuple[str, int, int], ...]] = {}
_clock: Final = _CompileClock()
