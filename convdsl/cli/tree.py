"""A syntax tree as indented text: `convdsl compile --emit ast`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

_HIDDEN = ("span", "source")


def tree_text(node: object) -> str:
    """One line for each node and field, positions left out."""
    return "".join(line + "\n" for line in _lines("", node, ""))


def _lines(label: str, value: object, indent: str) -> Iterator[str]:
    head = indent + (f"{label}: " if label else "")
    if isinstance(value, tuple):
        if all(isinstance(v, str) for v in value):
            yield head + (" ".join(value) or "none")
            return
        yield head.rstrip()
        for item in value:
            yield from _lines("", item, indent + "  ")
    elif is_dataclass(value):
        shown = [(f.name, getattr(value, f.name)) for f in fields(value) if f.name not in _HIDDEN]
        name = type(value).__name__
        plain = [str(v) for _, v in shown if isinstance(v, str)]
        yield head + " ".join([name, *plain])
        for label_, inner in shown:
            if inner not in (None, ()) and not isinstance(inner, str):
                yield from _lines(label_, inner, indent + "  ")
    else:
        yield head + str(value)
