"""Results go to stdout, everything said about them to stderr."""

from __future__ import annotations

import json
import os
import sys
from typing import IO, Any

import click


def out(text: str = "", *, newline: bool = True) -> None:
    """A result."""
    click.echo(text, nl=newline)


def out_json(value: Any) -> None:
    """A result for a machine."""
    out(json.dumps(value, indent=2, allow_nan=False))


def err(text: str) -> None:
    """A line about the work."""
    click.echo(text, err=True)


def diagnostic(text: str) -> None:
    """An error or warning; in colour where it is read on a terminal."""
    err(_painted(text) if colourful(sys.stderr) else text)


def colourful(stream: IO[str]) -> bool:
    """Whether a stream is a terminal on which colour is welcome."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def _painted(text: str) -> str:
    head, *rest = text.split("\n")
    word, colon, message = head.partition(":")
    colour = "yellow" if word.startswith("warning") else "red"
    lines = [click.style(word, fg=colour, bold=True) + click.style(colon + message, bold=True)]
    for line in rest:
        if line.startswith("   |  ") and set(line[6:].strip()) == {"^"}:
            line = click.style(line, fg=colour, bold=True)
        elif line.startswith(("  --> ", "   |  ")):
            line = click.style(line[:6], fg="blue") + line[6:]
        elif line.startswith("  = help:"):
            line = "  = " + click.style("help", fg="cyan", bold=True) + line[8:]
        lines.append(line)
    return "\n".join(lines)
