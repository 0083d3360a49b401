"""Compiling of kernels: cached as long as no source changes, told where it takes long.

Each test runs a small package of kernels of its own, in processes of their own.
"""

import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from test_imports import MODULES, imported_names

import marrakech_agents  # noqa: F401 - its files are looked at
from marrakech_env.compile import files_behind

SOURCES = {
    "__init__.py": "",
    "limits.py": "LIMIT = 7\n",
    "inner.py": """
        from marrakech_env.compile import kernel

        from .limits import LIMIT

        @kernel
        def limit(x):
            return x * LIMIT
    """,
    "outer.py": """
        from marrakech_env.compile import kernel

        from . import (
            inner,  # a comment with a ) in it
        )

        @kernel
        def total(x):
            return inner.limit(x) + x

        @kernel
        def at(array, index):
            return array[index]
    """,
    "other.py": "",
}
TOTAL = "from tiny import outer; print(outer.total(2))"
COUNT = """
import collections
from numba.core import event
compiled = collections.Counter()
class Counter(event.Listener):
    def on_start(self, event):
        compiled[event.data["dispatcher"].py_func.__name__] += 1
    def on_end(self, event):
        pass
event.register("numba:compile", Counter())
"""
COUNT_TOTAL = COUNT + TOTAL + "; print(sorted(compiled.items()))"
TELL_AT_ONCE = """
import io, sys, time
from marrakech_env import compile
compile.PATIENCE = compile.REPEAT = 0.02
def told():
    return sys.stderr.getvalue().count("compiling")
"""


@pytest.fixture
def tiny(tmp_path):
    """A folder with a package `tiny` of three kernels and an empty cache."""
    (tmp_path / "tiny").mkdir()
    for name, text in SOURCES.items():
        (tmp_path / "tiny" / name).write_text(textwrap.dedent(text))
    return tmp_path


def start(folder, code=TOTAL, **options):
    environment = {
        "PYTHONPATH": str(folder),
        "NUMBA_CACHE_DIR": str(folder / "cache"),
        **options.pop("environment", {}),
    }
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        **{"stderr": subprocess.PIPE, **options},
    )


def run(folder, code=TOTAL, **options):
    process = start(folder, code, **options)
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err
    return out.strip()


def write_unnoticed(path, text):
    """Changes a file but neither its size nor its time of change."""
    before = path.stat()
    path.write_text(text)
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert path.stat().st_size == before.st_size


def data_files(folder):
    return {path: path.read_bytes() for path in folder.rglob("*.nbc")}


def test_a_kernel_is_compiled_once_and_anew_when_a_file_that_it_imports_changed(tiny):
    assert run(tiny, COUNT_TOTAL) == "16\n[('limit', 1), ('total', 1)]"
    assert run(tiny, COUNT_TOTAL) == "16\n[]"
    (tiny / "tiny" / "other.py").write_text("not imported by a kernel")
    assert run(tiny, COUNT_TOTAL) == "16\n[]"
    write_unnoticed(tiny / "tiny" / "limits.py", "LIMIT = 8\n")
    assert run(tiny, COUNT_TOTAL) == "18\n[('limit', 1), ('total', 1)]"


def test_a_save_that_was_interrupted_leaves_no_older_code_in_use(tiny):
    assert run(tiny) == "16"
    old = data_files(tiny)
    (tiny / "tiny" / "limits.py").write_text("LIMIT = 10\n")
    assert run(tiny) == "22"
    for path, data in old.items():  # as after an end between the new index and the new data
        path.write_bytes(data)
    assert run(tiny) == "22"


@pytest.mark.parametrize("ending", ["nbi", "nbc"])
def test_a_damaged_cache_is_compiled_over(tiny, ending):
    run(tiny)
    for path in tiny.rglob(f"*.{ending}"):
        path.write_bytes(b"damaged")
    assert run(tiny, COUNT_TOTAL).startswith("16\n[('limit', 1)")
    assert run(tiny, COUNT_TOTAL) == "16\n[]"


def test_code_without_bounds_checks_is_not_used_where_they_are_wanted(tiny):
    code = "import numpy; from tiny import outer; print(outer.at(numpy.arange(3)[:2], 2))"
    assert run(tiny, code) == "2"
    process = start(tiny, code, environment={"NUMBA_BOUNDSCHECK": "1"})
    assert "IndexError" in process.communicate()[1]


def test_of_many_processes_with_an_empty_cache_one_compiles_each_kernel(tiny):
    processes = [start(tiny, COUNT_TOTAL) for _ in range(4)]
    printed = sorted(process.communicate()[0] for process in processes)
    assert printed == ["16\n[('limit', 1), ('total', 1)]\n", *["16\n[]\n"] * 3]


@pytest.mark.skipif(sys.platform == "win32", reason="no locks there")
def test_a_process_that_died_while_compiling_holds_nobody_up(tiny):
    killed = """
    import os
    from numba.core.caching import FunctionCache
    FunctionCache.save_overload = lambda *arguments: os._exit(0)
    """
    assert run(tiny, textwrap.dedent(killed) + TOTAL) == ""
    assert not data_files(tiny)
    assert run(tiny) == "16"


@pytest.mark.skipif(sys.platform == "win32", reason="no limit of a file's size there")
def test_a_full_disk_costs_time_only(tiny):
    full = """
    import resource, signal
    import marrakech_env.compile
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100))
    """
    assert run(tiny, textwrap.dedent(full) + TOTAL) == "16"
    assert run(tiny, COUNT_TOTAL) == "16\n[('limit', 1), ('total', 1)]"


# ------------------------------------------------------------------------ compiles that end early

WAIT_LONG = "from marrakech_env import compile; compile.LONGEST_WAIT = 1000; "
FAIL = (
    TELL_AT_ONCE
    + """
from numba.core.errors import TypingError
from tiny import outer
sys.stderr = io.StringIO()
try:
    outer.total(None)
except TypingError:
    time.sleep(0.05)  # a line that is being written
    before = told()
    time.sleep(0.2)
    print(told() - before, flush=True)
    sys.stdin.read()
"""
)


def test_a_compile_that_failed_tells_nothing_more_and_holds_nobody_up(tiny):
    failed = start(tiny, FAIL, stdin=subprocess.PIPE)
    assert failed.stdout.readline() == "0\n"
    assert run(tiny, WAIT_LONG + TOTAL) == "16"  # while the process that failed goes on
    failed.communicate()


INTERRUPT = (
    TELL_AT_ONCE
    + """
import signal
import numpy
from tiny import outer
outer.total(2)  # Numba is awake
error = {error}
def interrupt(*_):
    raise error
signal.signal(signal.SIGALRM, interrupt)
sys.stderr = io.StringIO()
interrupted = 0
for number, kind in enumerate("int8 int16 int32 uint8 uint16 uint32 float32 float64".split()):
    signal.setitimer(signal.ITIMER_REAL, 0.003 + 0.015 * number)
    try:
        outer.total(numpy.dtype(kind).type(2))
        time.sleep(0.5)
    except error:
        interrupted += 1
    time.sleep(0.05)  # a line that is being written
    before = told()
    time.sleep(0.06)
    assert told() == before, sys.__stderr__.write(sys.stderr.getvalue())
    if number < 7:  # the last one is left as it is
        assert outer.total(numpy.dtype(kind).type(2)) == 16
print(interrupted, flush=True)
sys.stdin.read()
"""
)


@pytest.mark.long  # its timers depend on the load of the machine
@pytest.mark.skipif(sys.platform == "win32", reason="no timer there")
@pytest.mark.parametrize("error", ["KeyboardInterrupt", "TimeoutError", "ZeroDivisionError"])
def test_a_compile_that_was_interrupted_can_be_repeated_by_this_process_and_others(tiny, error):
    interrupted = start(tiny, INTERRUPT.format(error=error), stdin=subprocess.PIPE)
    assert interrupted.stdout.readline() == "8\n", interrupted.stderr.read()
    assert run(tiny, WAIT_LONG + TOTAL.replace("2", "2j")) == "16j"
    interrupted.communicate()


# ------------------------------------------------------------------------------ what is told

LINE = re.compile(
    r"marrakech_env: compiling total of tiny\.outer, (\d) of 2 kernels ready, \d+ s so far \.\.\."
)
LINES = TELL_AT_ONCE + TOTAL.replace("; ", "\n") + "\n"


def test_the_line_names_the_kernel_and_counts_those_that_are_ready(tiny):
    process = start(tiny, LINES)
    out, err = process.communicate()
    assert out == "16\n"
    lines = [LINE.fullmatch(line) for line in err.splitlines()]
    assert all(lines)
    ready = [int(line[1]) for line in lines]
    assert len(ready) > 1
    assert ready == sorted(ready)
    assert 0 <= ready[0] <= ready[-1] <= 2
    assert "NUMBA_CACHE_DIR" not in err
    assert start(tiny, LINES).communicate() == ("16\n", "")


def test_where_no_folder_can_be_written_the_line_says_what_to_do(tiny):
    (tiny / "file").write_text("in the way of a folder")
    (tiny / "tiny" / "__pycache__").write_text("in the way of a folder")
    nowhere = dict.fromkeys(("NUMBA_CACHE_DIR", "HOME", "XDG_CACHE_HOME"), str(tiny / "file"))
    for _ in range(2):
        out, err = start(tiny, LINES, environment=nowhere).communicate()
        assert out == "16\n"
        assert "cannot be cached, compiles every time; set NUMBA_CACHE_DIR" in err


def test_an_install_that_cannot_be_written_is_cached_in_the_users_folder(tiny):
    (tiny / "tiny" / "__pycache__").write_text("in the way of a folder")
    home = {"NUMBA_CACHE_DIR": "", "XDG_CACHE_HOME": str(tiny / "home"), "HOME": str(tiny / "home")}
    assert run(tiny, environment=home) == "16"
    assert data_files(tiny / "home")


@pytest.mark.parametrize("stderr", ["closed", "nobody reads", "None", "full"])
def test_the_line_hurts_nobody_where_stderr_is_broken(tiny, stderr):
    code, options = LINES, {}
    if stderr == "closed":
        code = LINES.replace("from tiny", "sys.stderr.close()\nfrom tiny")
    elif stderr == "None":
        code = LINES.replace("from tiny", "sys.stderr = None\nfrom tiny")
    elif stderr == "nobody reads":
        reader, writer = os.pipe()
        os.close(reader)
        options = {"stderr": writer}
    elif Path("/dev/full").exists():
        options = {"stderr": os.open("/dev/full", os.O_WRONLY)}
    process = start(tiny, code + "import os; sys.stdout.flush(); os._exit(0)", **options)
    assert process.communicate()[0] == "16\n"
    assert process.returncode == 0


def test_switched_off_compiling_is_told_at_the_first_import_of_a_kernel(tiny):
    process = start(tiny, "import marrakech_env.batch", environment={"NUMBA_DISABLE_JIT": "1"})
    _, err = process.communicate()
    assert process.returncode == 1
    assert "unset NUMBA_DISABLE_JIT" in err


# ------------------------------------------------------------------------------ files of a kernel


def modules_behind(name):
    """All of our modules that a module imports, found in its syntax tree."""
    todo, found = [name], set()
    while todo:
        name = todo.pop()
        if name in MODULES and name not in found:
            found.add(name)
            todo += imported_names(name, MODULES[name])
    return found - {"marrakech_env", "marrakech_agents"}


def test_the_files_behind_a_kernel_are_all_that_its_file_imports():
    with_kernels = [name for name, path in MODULES.items() if "import kernel" in path.read_text()]
    assert len(with_kernels) > 20
    for name in with_kernels:
        found = files_behind(MODULES[name].resolve(), name.split(".")[0])
        missing = {MODULES[module].resolve() for module in modules_behind(name)} - found
        assert not missing, (name, missing)


def test_files_with_kernels_import_modules_alone_from_the_top_of_a_package():
    """What an `__init__` at the top defines does not make a kernel compile anew."""
    for name, path in MODULES.items():
        if "import kernel" in path.read_text():
            taken = set(imported_names(name, path)) & {"marrakech_env", "marrakech_agents"}
            assert not taken, name
