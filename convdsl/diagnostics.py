"""Positions in source text and the three families of errors.

`CdslError` is the user's (program, data or file), `DeviceError` the machine's, `InternalError` ours.
The command line maps them to the exit codes 1, 3 and 70.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Source:
    """A text with the name it is shown under in diagnostics."""

    text: str
    name: str = "<string>"

    def position(self, offset: int) -> tuple[int, int]:
        """The 1-based line and column of a 0-based character offset."""
        before = self.text[:offset]
        line = before.count("\n") + 1
        return line, offset - (before.rfind("\n") + 1) + 1

    def line(self, number: int) -> str:
        """The text of a 1-based line, without its newline."""
        lines = self.text.split("\n")
        return lines[number - 1].rstrip("\r") if number <= len(lines) else ""


@dataclass(frozen=True, slots=True)
class Span:
    """A half-open range of characters of one source."""

    source: Source = field(repr=False)
    start: int
    end: int

    def join(self, other: Span) -> Span:
        """The smallest span that holds both."""
        return Span(self.source, min(self.start, other.start), max(self.end, other.end))


@dataclass(frozen=True, slots=True)
class Note:
    """One `= note` line of a diagnostic, or a second marked place when it has a span."""

    text: str
    span: Span | None = None


class CdslError(Exception):
    """A mistake in the user's program, data or files.

    Attributes: `code` (E0101 ...), `message` (one sentence), `span` (or None when no source text is
    involved), `notes` (the numbers), `help` (the remedy, or None).
    """

    def __init__(
        self,
        code: str,
        message: str,
        span: Span | None = None,
        *,
        notes: tuple[Note | str, ...] = (),
        help: str | None = None,
    ) -> None:
        super().__init__(code, message, span, notes, help)
        self.code = code
        self.message = message
        self.span = span
        self.notes = tuple(n if isinstance(n, Note) else Note(n) for n in notes)
        self.help = help

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (self.code, self.message, self.span, self.notes, self.help))

    def __str__(self) -> str:
        return render(self)


def _rebuild(
    code: str, message: str, span: Span | None, notes: tuple[Note, ...], help: str | None
) -> CdslError:
    return CdslError(code, message, span, notes=notes, help=help)


class DeviceError(Exception):
    """The machine is at fault: no adapter, a lost device, memory or limits too small."""

    def __init__(self, message: str, *, help: str | None = None) -> None:
        super().__init__(message if help is None else f"{message}\n  = help: {help}")
        self.message = message
        self.help = help

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild_device, (self.message, self.help))


def _rebuild_device(message: str, help: str | None) -> DeviceError:
    return DeviceError(message, help=help)


class InternalError(Exception):
    """A bug of convdsl. The message says so and how to report it."""

    def __init__(self, message: str) -> None:
        super().__init__(
            f"internal error: {message}\n"
            "  = this is a bug in convdsl, not in your program; please report it with the program,\n"
            "    its sizes and parameters, and the output of `convdsl --version` and `convdsl devices`"
        )
        self.message = message

    def __reduce__(self) -> tuple[object, ...]:
        return (InternalError, (self.message,))


def render(error: CdslError) -> str:
    """The whole diagnostic as text: code, place, marked source, notes and help."""
    out = [f"error[{error.code}]: {error.message}"]
    if error.span is not None:
        out += _excerpt(error.span)
    for note in error.notes:
        first, *rest = note.text.split("\n")
        out.append(f"  = {first}")
        out += [f"    {line}" for line in rest]
        if note.span is not None:
            out += _excerpt(note.span)
    if error.help is not None:
        first, *rest = error.help.split("\n")
        out.append(f"  = help: {first}")
        out += [f"    {line}" for line in rest]
    return "\n".join(out)


_WIDTH = 160


def _excerpt(span: Span) -> list[str]:
    line_no, column = span.source.position(span.start)
    text = span.source.line(line_no)
    length = max(1, min(span.end, span.start - column + 1 + len(text)) - span.start)
    shift = 0
    if len(text) > _WIDTH:  # a very long line: show the part around the mark
        shift = max(0, column - 1 - _WIDTH // 2)
        text = text[shift : shift + _WIDTH]
    length = max(1, min(length, len(text) - (column - 1 - shift) or 1))
    pad = "".join("\t" if ch == "\t" else " " for ch in text[: column - 1 - shift])
    return [
        f"  --> {span.source.name}:{line_no}:{column}",
        f"   |  {_printable(text)}",
        f"   |  {pad}{'^' * length}",
    ]


def _printable(text: str) -> str:
    return "".join(
        ch if ch == "\t" or ch.isprintable() else "\N{REPLACEMENT CHARACTER}" for ch in text
    )
