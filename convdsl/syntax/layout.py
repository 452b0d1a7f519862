"""Documents that know where they may break: a small pretty printer after Wadler.

A `Group` is set on one line if it fits, else its own `Line`s become newlines; groups inside decide
for themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

WIDTH = 100
_DEEPEST = 60  # deeper nesting does not indent further: a line would be nothing but spaces


@dataclass(frozen=True, slots=True)
class Line:
    """A newline, or `flat` where the group fits on one line.

    In a group that does not, an `own` one is still `flat` if what follows it fits.
    """

    flat: str = " "
    own: bool = False


@dataclass(frozen=True, slots=True)
class Nest:
    """Newlines inside are indented four further."""

    doc: Doc


@dataclass(frozen=True, slots=True)
class Align:
    """Newlines inside return to the column where this starts, plus `extra`."""

    doc: Doc
    extra: int = 0


@dataclass(frozen=True, slots=True)
class Group:
    """Set on one line where it fits, unless `broken`."""

    doc: Doc
    broken: bool = False


Doc = str | tuple["Doc", ...] | Line | Nest | Align | Group

_Task = tuple[int, bool, Doc]  # indent, whether flat, what to set


def joined(items: list[Doc], comma: Doc) -> Doc:
    """The items with a separator between them."""
    parts: list[Doc] = []
    for item in items:
        parts += [comma, item] if parts else [item]
    return tuple(parts)


def render(doc: Doc, indent: int = 0, column: int = 0) -> str:
    """The text of a document that starts at a column."""
    out: list[str] = []
    tasks: list[_Task] = [(indent, False, doc)]
    while tasks:
        indent, flat, doc = tasks.pop()
        match doc:
            case str():
                out.append(doc)
                column += len(doc)
            case tuple():
                tasks += [(indent, flat, part) for part in reversed(doc)]
            case Line():
                flat = flat or (doc.own and _fits(doc.flat, tasks, WIDTH - column))
                out.append(doc.flat if flat else "\n" + " " * indent)
                column = column + len(doc.flat) if flat else indent
            case Nest():
                tasks.append((min(indent + 4, _DEEPEST), flat, doc.doc))
            case Align():
                tasks.append((min(column + doc.extra, _DEEPEST), flat, doc.doc))
            case Group():
                wide = doc.broken or not _fits(doc.doc, tasks, WIDTH - column)
                tasks.append((indent, flat or not wide, doc.doc))
    return "".join(out)


def _fits(doc: Doc, after: list[_Task], room: int) -> bool:
    """Whether a flat document and what follows it up to the next newline fit."""
    rest = len(after)
    tasks: list[tuple[bool, Doc]] = [(True, doc)]
    while room >= 0:
        if not tasks:
            if rest == 0:
                return True
            rest -= 1
            tasks.append((after[rest][1], after[rest][2]))
        flat, doc = tasks.pop()
        match doc:
            case str():
                room -= len(doc)
            case tuple():
                tasks += [(flat, part) for part in reversed(doc)]
            case Line():
                if not flat:
                    return True
                room -= len(doc.flat)
            case Nest() | Align():
                tasks.append((flat, doc.doc))
            case Group():  # one that follows is to stay whole too, unless it cannot
                tasks.append((flat or not doc.broken, doc.doc))
    return False
