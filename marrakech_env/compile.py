"""The one decorator by which every kernel is compiled, and the rules of its cache.

Numba keeps compiled kernels beside the source, or in a folder of the user where the installation
is read-only; `NUMBA_CACHE_DIR` names another folder. Four things are added here. A kernel is
compiled anew when its source file changes, or one that this file imports (Numba looks only at the
kernel's own file, although kernels inline each other across files). A damaged or full cache costs
time, never the run. Of many processes that start with an empty cache, one compiles a kernel while
the others wait. A line on stderr tells the user what takes long.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar, cast

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.compiler_lock import global_compiler_lock
from numba.core.registry import CPUDispatcher

if sys.platform != "win32":  # there every process compiles for itself
    import fcntl

_config: Final[Any] = numba.config
if _config.DISABLE_JIT:
    # Plain Python cannot run the kernels: a field of a NumPy record is no attribute there.
    raise ImportError("marrakech_env needs its kernels compiled; unset NUMBA_DISABLE_JIT")

_Function = TypeVar("_Function", bound=Callable[..., Any])

PATIENCE: Final = 2.0
"""Seconds of compiling after which a line on stderr tells the user about it."""
REPEAT: Final = 30.0
"""Seconds of compiling after which another line tells that it goes on."""
LONGEST_WAIT: Final = 120.0
"""Seconds that a process waits for another one that compiles the same kernel, then it compiles."""


def kernel(function: _Function) -> _Function:
    """Compile a function to machine code at its first call; later processes load it from cache.

    The global interpreter lock is released while the kernel runs.
    """
    options = {"nopython": True, "error_model": "numpy", "nogil": True, "boundscheck": None}
    return cast(_Function, _Kernel(function, targetoptions=options))


def machine_code(kernel: Any, *arguments: Any) -> Callable[..., Any]:
    """Return what a kernel becomes for arguments of these types, to be called as the kernel is.

    Such a call does not find out the types again, which takes 50 to 100 nanoseconds an array, so
    all later arguments must have the very same types: the caller answers for that.
    """
    code: Callable[..., Any] = kernel.compile(tuple(map(numba.typeof, arguments)))
    return code


class _Kernel(CPUDispatcher):
    """A compiled function. However its compiling ends, the lock and the clock are released."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._cache = _PackageCache(self)

    def compile(self, sig: Any) -> Any:
        with global_compiler_lock, ExitStack() as self._cache.until_compiled:
            return super().compile(sig)


class _PackageCache(FunctionCache):
    """Numba's cache of one kernel, kept fresh by the stamp of its sources.

    Attributes:
        until_compiled: What is held while the kernel is compiled.
    """

    def __init__(self, kernel: _Kernel) -> None:
        self._kernel, self.until_compiled = kernel, ExitStack()
        try:
            super().__init__(kernel.py_func)
            file = Path(kernel.py_func.__code__.co_filename).resolve()
            stamp = _stamp(file, kernel.py_func.__module__.partition(".")[0])
            self._cache_file = _StampedFile(self._cache_path, self._impl.filename_base, stamp)
        except (RuntimeError, OSError):  # no folder can be written, or there is no source file
            self.disable()

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        loaded = self._load(sig, target_context)
        if loaded is None:
            self.until_compiled.enter_context(_clock.running(self._kernel, self._enabled))
            if self._enabled:
                self.until_compiled.enter_context(_locked(f"{self._cache_file._index_path}.lock"))
                loaded = self._load(sig, target_context)  # another process may have compiled it
        return loaded

    def _load(self, sig: Any, target_context: Any) -> Any:
        with _Surviving(Exception):  # a damaged file can raise anything from inside pickle
            return super().load_overload(sig, target_context)
        with _Surviving(OSError):
            self.flush()
        return None

    def save_overload(self, sig: Any, data: Any) -> None:
        with _Surviving(OSError):  # a full disk, or a folder that went away
            super().save_overload(sig, data)


class _StampedFile(IndexDataCacheFile):
    """A cache whose data carry the stamp too: an interrupted save leaves old data, new index."""

    def _save_data(self, name: str, data: Any) -> None:
        super()._save_data(name, (self._source_stamp, data))

    def _load_data(self, name: str) -> Any:
        stamp, data = super()._load_data(name)
        return data if stamp == self._source_stamp else None


class _Surviving(suppress):
    """Suppresses errors of the cache, not those of a signal handler, such as `TimeoutError()`."""

    def __exit__(self, *raised: Any) -> bool:
        is_foreign = isinstance(raised[1], OSError) and raised[1].errno is None
        return super().__exit__(*raised) and not is_foreign


@contextmanager
def _locked(path: str) -> Iterator[None]:
    """Hold a lock that ends with the process; go on without it where none can be had in time.

    A kernel calls only kernels that do not call it, so nobody waits in a circle.
    """
    with ExitStack() as held:
        with _Surviving(OSError):  # a read-only folder, or no locks on this file system
            file = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
            held.callback(os.close, file)
            deadline = time.monotonic() + LONGEST_WAIT
            while sys.platform != "win32" and time.monotonic() < deadline:
                try:
                    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except (BlockingIOError, PermissionError):
                    time.sleep(0.05)
        yield


class _Clock:
    """Tells the user when compiling takes long, summed over all kernels, and that it goes on."""

    def __init__(self) -> None:
        self._spent = 0.0
        self._next = 0.0  # seconds of compiling at which the user is told again
        self._is_running = False

    @contextmanager
    def running(self, kernel: _Kernel, is_cached: bool) -> Iterator[None]:
        """Count the time of a kernel and of those that are compiled for it."""
        if self._is_running:
            yield
            return
        started, ended = time.monotonic(), threading.Event()
        thread = threading.Thread(target=self._tell, args=(kernel, is_cached, ended), daemon=True)
        try:
            self._is_running = True
            with suppress(RuntimeError):  # no thread can be had
                thread.start()
            yield
        finally:
            self._is_running = False
            ended.set()
            self._spent += time.monotonic() - started

    def _tell(self, kernel: _Kernel, is_cached: bool, ended: threading.Event) -> None:
        started = time.monotonic() - self._spent
        while not ended.wait(max(PATIENCE, self._next) + started - time.monotonic()):
            if not self._is_running:
                return
            spent = time.monotonic() - started
            self._next = spent + REPEAT
            parts = _with_called(kernel, set())
            ready = sum(bool(part.overloads) for part in parts)
            line = (
                f"marrakech_env: compiling {kernel.py_func.__name__} of {kernel.__module__}, "
                f"{ready} of {len(parts)} kernels ready, {spent:.0f} s so far"
            )
            if not is_cached:
                line += "; cannot be cached, compiles every time; set NUMBA_CACHE_DIR"
            with suppress(Exception):  # a stderr that is missing, closed or broken
                sys.stderr.write(line + " ...\n")
                sys.stderr.flush()


def _with_called(kernel: _Kernel, found: set[_Kernel]) -> set[_Kernel]:
    """A kernel and those that it calls, directly and indirectly, as its source names them."""
    if kernel not in found:
        found.add(kernel)
        names = kernel.py_func.__code__.co_names
        scope = kernel.py_func.__globals__
        scopes = [scope, *(vars(scope[n]) for n in names if isinstance(scope.get(n), ModuleType))]
        for value in (scope.get(name) for scope in scopes for name in names):
            if isinstance(value, _Kernel):
                _with_called(value, found)
    return found


@functools.cache
def _stamp(file: Path, package: str) -> bytes:
    """Digest of all that the kernels of a source file are made of."""
    sources = [_source(path)[0] for path in sorted(files_behind(file, package))]
    return hashlib.sha256(repr((_config.BOUNDSCHECK, sources)).encode()).digest()


def files_behind(file: Path, package: str) -> set[Path]:
    """A source file and all that it imports, directly and indirectly.

    A file counts as imported where an import statement contains its name. Left out are packages
    other than ours and the file's own, and what a top package defines beside its modules.
    """
    tops = {"marrakech_env", "marrakech_agents", package}
    if package == "marrakech_env":
        tops.remove("marrakech_agents")  # they do not know the agents
    folders = [getattr(sys.modules.get(top), "__path__", [file.parent])[0] for top in tops]
    known = [_modules(Path(folder).resolve()) for folder in folders]
    todo, found = [file], set[Path]()
    while todo:
        path = todo.pop()
        if path not in found:
            found.add(path)
            words = _source(path)[1]
            todo += [path for names in known for word in words for path in names.get(word, ())]
    return found


@functools.cache
def _modules(folder: Path) -> dict[str, list[Path]]:
    """The source files in a folder and in the packages below it, by the name that imports them."""
    found: dict[str, list[Path]] = {}
    for path in folder.iterdir():
        if path.suffix == ".py" and path.stem != "__init__":
            found.setdefault(path.stem, []).append(path)
        elif (path / "__init__.py").is_file():
            found.setdefault(path.name, []).append(path / "__init__.py")
            for name, files in _modules(path).items():
                found.setdefault(name, []).extend(files)
    return found


@functools.cache
def _source(path: Path) -> tuple[bytes, frozenset[str]]:
    """Digest of a source file, and the words of its import statements."""
    data = path.read_bytes()
    statements = " ".join(_IMPORT.findall(data.decode(errors="replace")))
    return hashlib.sha256(data).digest(), frozenset(re.findall(r"\w+", statements))


_IMPORT: Final = re.compile(
    r"^[ \t]*(?:from|import)\b(?:\\\n|[^\n(])*(?:\((?:[^)#]+|#.*)*)?", re.MULTILINE
)
_clock: Final = _Clock()
