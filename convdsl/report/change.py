"""The loops before and after a step, side by side, with the lines marked that differ."""

from __future__ import annotations

from difflib import SequenceMatcher

from convdsl.report.markup import Markup, tag


def change(name: str, before: str, after: str) -> Markup:
    """Two columns, or one where there is nothing on the other side."""
    if before == after:
        return tag("div", _side(name, [(x, "same") for x in after.split("\n")]), class_="pair")
    old, new = _marked(before.split("\n"), after.split("\n"))
    sides = []
    if before:
        sides.append(_side(f"{name} before", old))
    sides.append(_side(f"{name} after" if after else f"{name} is gone", new))
    return tag("div", *sides, class_="pair")


Marked = list[tuple[str, str]]


def _marked(before: list[str], after: list[str]) -> tuple[Marked, Marked]:
    """The lines with their class; a line that only moved inwards or outwards is none that changed."""
    old: Marked = []
    new: Marked = []
    matcher = SequenceMatcher(None, [x.strip() for x in before], [x.strip() for x in after], False)
    for what, i, j, k, m in matcher.get_opcodes():
        old += [(x, "same" if what == "equal" else "minus") for x in before[i:j]]
        new += [(x, "same" if what == "equal" else "plus") for x in after[k:m]]
    return old, new


def _side(head: str, lines: Marked) -> Markup:
    shown = [
        tag("span", line, class_=kind, style=f"--d:{len(line) - len(line.lstrip())}")
        for line, kind in lines
        if line
    ]
    return tag("div", tag("div", head, class_="head"), tag("pre", *shown))
