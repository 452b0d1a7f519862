"""What went wrong, said on stderr, and the exit code for it."""

from __future__ import annotations

import os
import sys
import tempfile
import traceback

import click

from convdsl.cli.output import diagnostic
from convdsl.diagnostics import CdslError, DeviceError, InternalError

USERS, USAGE, DEVICE, OURS, INTERRUPTED = 1, 2, 3, 70, 130
VARIABLE = "CONVDSL_TRACEBACK"


def report(error: Exception) -> int:
    """Say what went wrong; returns the exit code."""
    match error:
        case CdslError():
            diagnostic(str(error))
            return USERS
        case DeviceError():
            diagnostic(f"error: {error}")
            return DEVICE
        case click.exceptions.Exit():
            return error.exit_code
        case click.UsageError():
            error.show()
            return USAGE
        case click.Abort():
            return INTERRUPTED
        case BrokenPipeError():
            return _reader_left()
        case OSError() if _is_output(error):
            _give_up_output()
            diagnostic(f"error: cannot write the output: {error.strerror}")
            return USERS
        case MemoryError():
            diagnostic(
                "error: there is not enough memory"
                + (f": {error}" if str(error) else "")
                + "\n  = help: use smaller sizes"
            )
            return DEVICE
        case _:
            return _bug(error)


def _bug(error: Exception) -> int:
    ours = error if isinstance(error, InternalError) else InternalError(_one_line(error))
    text = "".join(traceback.format_exception(error))
    if os.environ.get(VARIABLE, "0") not in ("", "0"):
        diagnostic(text.rstrip())
        diagnostic(str(ours))
        return OURS
    place = _crash_file(text)
    where = f"the traceback is in {place}" if place else f"set {VARIABLE}=1 to see the traceback"
    diagnostic(f"{ours}\n  = {where}")
    return OURS


def _crash_file(text: str) -> str | None:
    try:
        handle, name = tempfile.mkstemp(prefix="convdsl-crash-", suffix=".txt", text=True)
        with os.fdopen(handle, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"convdsl {' '.join(sys.argv[1:])}\n\n{text}")
    except OSError:
        return None
    return name


def _one_line(error: Exception) -> str:
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def _is_output(error: OSError) -> bool:
    """Whether stdout itself cannot be written to; files are reported where they are used."""
    return error.filename is None and error.errno is not None


def _reader_left() -> int:
    """Whoever reads our output has seen enough: not an error, and nothing to say."""
    _give_up_output()
    return 0


def _give_up_output() -> None:
    """Let what is still buffered go nowhere, or the interpreter would complain at its end."""
    try:
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
    except (OSError, ValueError):
        pass
