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
from collections.abc import Callable
from typing import Any, Final, NoReturn, TextIO

UNWRITTEN, BAD_INPUT, INTERRUPTED = 1, 2, 130
"""Exit codes besides 0: an output could not be written, wrong arguments, Ctrl-C."""
STOP_SIGNALS: Final = ("SIGTERM", "SIGHUP")
"""Signals that stop a command as Ctrl-C does, where the system has them."""
PLAIN_FORMS: Final = str.maketrans(
    {"±": "+-", "…": "...", "→": "->", "▲": "^", "▶": ">", "▼": "v", "◀": "<"}
    | dict.fromkeys("╭╮╰╯┌┐└┘├┤┬┴┼", "+")
    | dict.fromkeys("│╵╷┃", "|")
    | dict.fromkeys("─╴╶━╸╺—", "-")
)
"""What is printed for characters that the output's encoding lacks."""


class Stopped(KeyboardInterrupt):
    """A signal asks the command to stop. Its text names the signal."""

    def __init__(self, number: int) -> None:
        super().__init__(signal.Signals(number).name)
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

    SIGTERM and SIGHUP raise `Stopped`, a KeyboardInterrupt, in `main`. A standard output that is
    closed ends the printing and nothing else. A full disk behind it does too, and is an error in
    the end.

    Args:
        main: Returns the exit code. It may raise SystemExit and KeyboardInterrupt.

    Returns:
        The exit code: that of `main`; 130 or 143 where it was stopped; 1 where the standard output
        could not be written.
    """
    streams = sys.stdout, sys.stderr
    output, messages = (_SafeStream(stream) for stream in streams)
    sys.stdout, sys.stderr = output, messages
    handlers = _handle_signals()
    try:
        code = _exit_code_of(main)
        output.flush()
        if output.error is not None and not isinstance(output.error, BrokenPipeError):
            reason = output.error.strerror or output.error
            print(f"error: the standard output was not written: {reason}", file=sys.stderr)
            code = code or UNWRITTEN
        return code
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        output.flush()
        messages.flush()
        sys.stdout, sys.stderr = streams


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
        return main()
    except SystemExit as error:  # after --help, or a wrong option
        if error.code is None or isinstance(error.code, int):
            return error.code or 0
        print(error.code, file=sys.stderr)
        return UNWRITTEN
    except KeyboardInterrupt as stopped:
        print(f"stopped by {str(stopped) or 'Ctrl-C'}", file=sys.stderr)
        return exit_code(stopped)


def _handle_signals() -> dict[signal.Signals, Any]:
    """Let the signals raise `Stopped`, except those that are ignored, as under nohup."""
    if threading.current_thread() is not threading.main_thread():
        return {}
    known = [signal.Signals[name] for name in STOP_SIGNALS if hasattr(signal, name)]
    ours = [number for number in known if signal.getsignal(number) == signal.SIG_DFL]

    def stop(number: int, frame: object) -> NoReturn:
        for other in ours:  # one is enough: the next must not disturb the writing of results
            signal.signal(other, signal.SIG_IGN)
        raise Stopped(number)

    return {number: signal.signal(number, stop) for number in ours}


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
        if self.error is None:
            try:
                self._stream.write(printable(text, self._stream))
            except OSError as error:
                self._fail(error)
        return len(text)

    def writelines(self, lines: Any) -> None:
        self.write("".join(lines))

    def flush(self) -> None:
        if self.error is None:
            try:
                self._stream.flush()
            except OSError as error:
                self._fail(error)

    def _fail(self, error: OSError) -> None:
        self.error = error
        with contextlib.suppress(OSError):  # what is still in the buffer fails no second time
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, self._stream.fileno())
            os.close(null)


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
