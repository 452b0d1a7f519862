"""The command `convdsl`.

Exit codes: 0; 1 the user's program, data or file; 2 usage; 3 no adapter or device; 70 a bug of
ours; 130 interrupted. Everything else is imported inside `main`, where an interrupt is handled.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Sequence

BUG, INTERRUPTED = 70, 130
# What a command still says when it is interrupted; called in the main thread while its work goes on.
last_words: list[Callable[[], None]] = []
WAKE = 0.1  # seconds after which a signal is seen at the latest
STACK = 1 << 26  # bytes; some systems give threads little, and syntax trees are deep


def main() -> int:
    """Run the command on `sys.argv`; the process exits with what is returned."""
    return guarded(lambda: run(sys.argv[1:]))


def guarded(work: Callable[[], int]) -> int:
    """The exit code of some work, which Ctrl-C ends at once whatever it is doing."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name in any alphabet can be shown on any terminal
            stream.reconfigure(errors="backslashreplace")
    # In a thread, so that the main one is free to handle signals while native code computes.
    codes: list[int] = []
    threading.stack_size(STACK)
    worker = threading.Thread(target=lambda: codes.append(work()), daemon=True)
    worker.start()
    while worker.is_alive():  # a signal just before this waits, or to another thread, wakes nobody
        worker.join(WAKE)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # all is done: as it exits, its code still holds
    return codes[0] if codes else BUG


def run(args: Sequence[str]) -> int:
    """Run the command on arguments; every failure is reported and becomes an exit code."""
    return reported(lambda: _command(args))


def reported(work: Callable[[], int]) -> int:
    """The exit code of some work, or of its failure, which is said on stderr."""
    try:
        code = work()
        if sys.stdout is not None:
            sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from convdsl.cli.failure import report

        return report(error)
    return code


def _command(args: Sequence[str]) -> int:
    from convdsl.cli.app import app

    streams = sys.stdout, sys.stderr
    try:
        code = app.main(args=list(args), prog_name="convdsl", standalone_mode=False)
    except SystemExit as stop:
        if sys.stdout is not streams[0]:  # click's answer to a closed pipe: it wraps the streams
            sys.stdout, sys.stderr = streams
            raise BrokenPipeError from None
        code = stop.code
    return code if isinstance(code, int) else 0


def _stop(number: int, frame: object) -> None:
    """End at once, with no traceback and nothing half written.

    Not by an exception: code that is interrupted in a callback or in a native library could swallow
    it, and the thread that computes could not be stopped. A second signal ends what is still said.
    """
    signal.signal(number, signal.SIG_DFL)
    files = sys.modules.get("convdsl.files")
    if files is not None and hasattr(files, "drop_pending"):
        files.drop_pending()
    for stream in (sys.stdout, sys.stderr):
        if "rich.console" in sys.modules and stream is not None and stream.isatty():
            os.write(stream.fileno(), b"\x1b[?25h")  # a spinner hides the cursor
    try:
        for say in last_words:
            say()
    finally:
        os._exit(128 + number)
