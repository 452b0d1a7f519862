"""Shapes of the pictures: boxes, lines, labels, in a drawing that scales with the page."""

from __future__ import annotations

from dataclasses import dataclass

from convdsl.report.markup import Child, Markup, tag


@dataclass(frozen=True, slots=True)
class Box:
    """A rectangle."""

    x: float
    y: float
    width: float
    height: float

    def part(self, left: float, top: float, right: float, bottom: float) -> Box:
        """A part of it, in fractions of its sides."""
        return Box(
            self.x + left * self.width,
            self.y + top * self.height,
            (right - left) * self.width,
            (bottom - top) * self.height,
        )


def rect(box: Box, kind: str) -> Markup:
    """A box; `kind` is its class in the style sheet."""
    return tag("rect", x=box.x, y=box.y, width=box.width, height=box.height, class_=kind)


def line(x1: float, y1: float, x2: float, y2: float, kind: str = "grid") -> Markup:
    return tag("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=kind)


def label(x: float, y: float, text: str, anchor: str = "start", kind: str = "label") -> Markup:
    """A line of text; `anchor` is start, middle or end."""
    return tag("text", text, x=x, y=y, text_anchor=anchor, class_=kind)


def turned(x: float, y: float, text: str, kind: str = "label") -> Markup:
    """A label that runs upwards, its middle at the place."""
    place = f"rotate(-90 {x:g} {y:g})"
    return tag("text", text, x=x, y=y, text_anchor="middle", class_=kind, transform=place)


def lattice(box: Box, rows: list[float], columns: list[float], kind: str = "grid") -> list[Markup]:
    """Lines across a box at fractions of its sides; none where they would stand too close."""
    out: list[Markup] = []
    if len(columns) * 3 <= box.width:
        for at in columns:
            x = box.x + at * box.width
            out.append(line(x, box.y, x, box.y + box.height, kind))
    if len(rows) * 3 <= box.height:
        for at in rows:
            y = box.y + at * box.height
            out.append(line(box.x, y, box.x + box.width, y, kind))
    return out


def drawing(width: float, height: float, title: str, *children: Child) -> Markup:
    """The whole drawing; its title is what a screen reader says."""
    return tag(
        "svg", tag("title", title), *children,
        viewBox=f"0 0 {width:g} {height:g}", role="img", style=f"max-width:{width * 1.3:g}px",
    )  # fmt: skip


def short(text: object, most: int = 26) -> str:
    """A text that fits a label."""
    shown = str(text)
    return shown if len(shown) <= most else shown[: most - 1] + "\N{HORIZONTAL ELLIPSIS}"
