"""Kinds of names, told by their first letter, and suggestions for misspelt ones."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

from convdsl.diagnostics import CdslError, Span


def is_size(name: str) -> bool:
    """Whether the name is that of a size: its first letter is upper case."""
    return name[:1].isupper()


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A help line that names the closest known name, or lists the known ones when they are few."""
    names = sorted(set(known))
    close = get_close_matches(name, names, n=1, cutoff=0.6)
    if not close:
        close = [n for n in names if n.lower() == name.lower()][:1]
    if close:
        return f"did you mean `{close[0]}`?"
    if 0 < len(names) <= 8:
        return f"known names: {', '.join(names)}"
    return None


def unknown(kind: str, name: str, known: Iterable[str], span: Span | None, code: str) -> CdslError:
    """The error for a name that nothing declares."""
    return CdslError(code, f"unknown {kind} `{name}`", span, help=did_you_mean(name, known))


def quoted(names: Iterable[str]) -> str:
    """`a`, `b` and `c`."""
    marked = [f"`{n}`" for n in names]
    if len(marked) < 2:
        return "".join(marked)
    return f"{', '.join(marked[:-1])} and {marked[-1]}"
