"""The command `convdsl`.

Exit codes: 0; 1 the user's program, data or file; 2 usage; 3 no adapter or device; 70 a bug of
ours; 130 interrupted. Everything heavy is imported inside `main`, where an interrupt is handled.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Sequence

INTERRUPTED = 130


def main() -> int:
    """Run the command on `sys.argv`; the process exits with what is returned."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _stop)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a name in any alphabet can be shown on any terminal
            stream.reconfigure(errors="backslashreplace")
    return run(sys.argv[1:])


def run(args: Sequence[str]) -> int:
    """Run the command on arguments; every failure is reported and becomes an exit code."""
    try:
        from convdsl.cli.app import app

        code = app.main(args=list(args), prog_name="convdsl", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from convdsl.cli.failure import report

        return report(error)
    return code if isinstance(code, int) else 0


def _stop(number: int, frame: object) -> None:
    """End at once, with no traceback and nothing half written.

    Not by an exception: code that is interrupted in a callback or in a native library could swallow
    it, and a thread that computes could not be stopped.
    """
    files = sys.modules.get("convdsl.files")
    if files is not None and hasattr(files, "drop_pending"):
        files.drop_pending()
    os._exit(128 + number)
