"""HTML and SVG as text, with every string escaped that was not made here."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

_VOID = {"meta", "br"}


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Child = str | Iterable["Child"]


def tag(name: str, /, *children: Child, **attributes: object) -> Markup:
    """An element; `class_` is the attribute class, `stroke_width` is stroke-width."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{escape(_value(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    inside = "".join(_children(children))
    return Markup(f"<{name}{shown}>" + ("" if name in _VOID else f"{inside}</{name}>"))


def join(parts: Iterable[Child]) -> Markup:
    """Pieces of markup one after the other."""
    return Markup("".join(_children(parts)))


def _children(children: Iterable[Child]) -> Iterable[str]:
    for child in children:
        if isinstance(child, Markup):
            yield child
        elif isinstance(child, str):
            yield escape(child, quote=False)
        else:
            yield from _children(child)


def _value(value: object) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)
