"""What the commands share: exit codes, signals, and printing that never ends a command.

`run_command` runs the main function of a command, `run_module` one that needs an extra of the
package. Libraries that print use `printable`.
"""

from __future__ import annotations

import codecs
import contextlib
import importlib
import os
import signal
import sys
import threading
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, Final, TextIO

UNWRITTEN, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit codes besides 0: an output could not be written, wrong arguments, Ctrl-C."""
STOP_SIGNALS: Final = ("SIGINT", "SIGTERM", "SIGHUP")
"""Signals that stop a command, where the system has them; SIGINT is Ctrl-C."""
PLAIN_FORMS: Final = str.maketrans(
    {"±": "+-", "…": "...", "→": "->", "▲": "^", "▶": ">", "▼": "v", "◀": "<"}
    | dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼", "+")
    | dict.fromkeys("│╵╷┃", "|")
    | dict.fromkeys("─╴╶━╸╺—", "-")
)
"""What is printed for characters that the output's encoding lacks."""


class Stopped(KeyboardInterrupt):
    """A signal asks the command to stop. Its text names the signal, or is empty for Ctrl-C."""

    def __init__(self, number: int) -> None:
        super().__init__("" if number == signal.SIGINT else signal.Signals(number).name)
        self.exit_code = 128 + number


def exit_code(stopped: KeyboardInterrupt) -> int:
    """Return the exit code after Ctrl-C (130) or a signal (143 for SIGTERM)."""
    return stopped.exit_code if isinstance(stopped, Stopped) else INTERRUPTED


def printable(text: str, stream: TextIO | None = None) -> str:
    """Return a text with plain forms for the characters that a stream's encoding lacks.

    Args:
        text: What is to be printed.
        stream: Where it goes; the standard output where None.
    """
    encoding = getattr(sys.stdout if stream is None else stream, "encoding", None)
    return text if encoding is None else text.encode(encoding, _PLAIN).decode(encoding)


def run_command(main: Callable[[], int]) -> int:
    """Run a command's main function; signals stop it cleanly, and printing never ends it.

    Ctrl-C, SIGTERM and SIGHUP raise `Stopped`, a KeyboardInterrupt, in `main`. Python drops it
    where it arises inside a callback of another library, such as the compiler's; then any error
    counts as the stop, and `check_stopped` raises it. A standard output that is closed ends the
    printing and nothing else. A full disk behind it is an error in the end.

    Args:
        main: Returns the exit code. It may raise SystemExit and KeyboardInterrupt.

    Returns:
        The exit code: that of `main`; 130 or 143 where it was stopped; 1 where the standard output
        could not be written.
    """
    streams = sys.stdout, sys.stderr
    output, messages = (_SafeStream(stream) for stream in streams)
    sys.stdout, sys.stderr = output, messages
    with _signals():
        try:
            code = _exit_code_of(main)
            output.flush()
            if output.error is not None and not isinstance(output.error, BrokenPipeError):
                reason = output.error.strerror or output.error
                print(f"error: the standard output was not written: {reason}", file=sys.stderr)
                code = code or UNWRITTEN
            return code
        finally:
            output.flush()
            messages.flush()
            sys.stdout, sys.stderr = streams


def check_stopped() -> None:
    """Raise `Stopped` where a signal came, in case that nothing has noticed it."""
    if _stops:
        raise _stops[0]


@contextlib.contextmanager
def held_signals() -> Iterator[None]:
    """Let a signal wait while results are written; a second Ctrl-C does not wait."""
    _held.set()
    try:
        yield
    finally:
        _held.clear()


_stops: Final[list[Stopped]] = []
"""The signal that stops the command, once it came."""
_held: Final = threading.Event()


def run_module(module: str, extra: str) -> int:
    """Run the function `main` of a module with `run_command`.

    Args:
        module: Name of the module; its import may take long.
        extra: The extra of the package that the module needs.

    Returns:
        The exit code; 2 where a package of the extra is missing.
    """

    def main() -> int:
        try:
            command = importlib.import_module(module)
        except ModuleNotFoundError as error:
            if error.name is None or error.name.startswith("marrakech"):
                raise
            print(
                f"error: this command needs {error.name}: pip install 'marrakech-env[{extra}]' "
                f"(in a clone: pip install -e '.[{extra}]')",
                file=sys.stderr,
            )
            return BAD_INPUT
        code: int = command.main()
        return code

    return run_command(main)


def _exit_code_of(main: Callable[[], int]) -> int:
    try:
        try:
            return main()
        except Exception:  # an error that the signal caused in a library
            check_stopped()
            raise
    except SystemExit as error:  # after --help, or a wrong option
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return UNWRITTEN
    except KeyboardInterrupt as stopped:
        print(f"stopped by {str(stopped) or 'Ctrl-C'}", file=sys.stderr)
        return exit_code(stopped)


@contextlib.contextmanager
def _signals() -> Iterator[None]:
    """Let the signals raise `Stopped`, except those that are ignored, as under nohup."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    usual = (signal.SIG_DFL, signal.default_int_handler)
    known = [signal.Signals[name] for name in STOP_SIGNALS if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in known}
    ours = [number for number in known if before[number] in usual]
    unraisable = sys.unraisablehook

    def stop(number: int, frame: object) -> None:
        for other in ours:  # another one must not disturb the writing of results, but for Ctrl-C
            signal.signal(other, before[other] if other == signal.SIGINT else signal.SIG_IGN)
        _stops.append(Stopped(number))
        if not _held.is_set():
            check_stopped()

    def drop(dropped: sys.UnraisableHookArgs) -> None:
        if not isinstance(dropped.exc_value, Stopped):
            unraisable(dropped)

    try:
        sys.unraisablehook = drop
        for number in ours:
            signal.signal(number, stop)
        yield
    finally:
        for number in ours:
            signal.signal(number, before[number])
        sys.unraisablehook = unraisable
        _stops.clear()


class _SafeStream:
    """A text stream that prints what can be printed.

    Attributes:
        error: The first error of the stream; what is written afterwards is dropped.
    """

    def __init__(self, stream: TextIO | None) -> None:
        # A process that is started without a standard output has None there.
        self._stream = open(os.devnull, "w") if stream is None else stream  # noqa: SIM115
        self.error: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        self._try(self._stream.write, printable(text, self._stream))
        return len(text)

    def flush(self) -> None:
        self._try(self._stream.flush)

    def _try(self, action: Callable[..., object], *arguments: str) -> None:
        if self.error is None:
            try:
                action(*arguments)
            except OSError as error:
                self.error = error
                # What is still in the buffer cannot fail again.
                with contextlib.suppress(OSError), open(os.devnull, "w") as null:
                    os.dup2(null.fileno(), self._stream.fileno())


_PLAIN: Final = "marrakech_env.plain"


def _replace(error: UnicodeError) -> tuple[str, int]:
    """The error handler `_PLAIN`: plain forms for what cannot be encoded."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    told = ""
    for character in error.object[error.start : error.end]:
        plain = unicodedata.normalize("NFKD", character.translate(PLAIN_FORMS))
        told += (
            plain.encode("ascii", "ignore").decode()
            or character.encode("ascii", "backslashreplace").decode()
        )
    return told, error.end


codecs.register_error(_PLAIN, _replace)
