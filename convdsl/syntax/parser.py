"""Text to syntax tree: `parse` and `load`. Every refusal is a `CdslError` with a place."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path

import lark
import lark.lexer
from lark.exceptions import UnexpectedInput

from convdsl.diagnostics import CdslError, Source
from convdsl.syntax import ast, checks
from convdsl.syntax.build import Builder
from convdsl.syntax.limits import MAX_BYTES, check_text, too_large

_MARK = "\N{ZERO WIDTH NO-BREAK SPACE}"  # the byte order mark, dropped at the start of a text
_LOCK = threading.RLock()  # one parser serves all threads, one text at a time


def parse(text: str, name: str = "<string>") -> ast.Program:
    """The syntax tree of a `.cdsl` text; `name` is shown in diagnostics."""
    program = parse_items(text, name)
    checks.operators(program)
    return program


def parse_schedules(text: str, name: str = "<string>") -> tuple[ast.Schedule, ...]:
    """The schedules of a text that need not define operators, like a `--schedule` file."""
    items = parse_items(text, name).items
    return tuple(item for item in items if isinstance(item, ast.Schedule))


def load(path: str | PathLike[str]) -> ast.Program:
    """The syntax tree of a `.cdsl` file."""
    return parse(read_source(path), str(Path(path)))


def read_source(path: str | PathLike[str]) -> str:
    """The text of a file: at most `MAX_BYTES` of UTF-8, a byte order mark dropped."""
    where = Path(path)
    try:
        with where.open("rb") as file:
            data = file.read(MAX_BYTES + 4)  # never more, whatever the file's size
    except (OSError, ValueError) as error:  # ValueError: a NUL inside the path
        reason = getattr(error, "strerror", None) or str(error)
        raise CdslError("E0105", f"cannot read `{where}`: {reason}") from None
    if len(data.removeprefix(b"\xef\xbb\xbf")) > MAX_BYTES:
        raise too_large(str(where))
    try:
        return data.decode("utf-8").removeprefix(_MARK)
    except UnicodeDecodeError as error:
        raise _not_utf8(str(where), data, error) from None


def _not_utf8(name: str, data: bytes, error: UnicodeDecodeError) -> CdslError:
    line = data[: error.start].count(b"\n") + 1
    return CdslError(
        "E0104",
        f"`{name}` is not UTF-8 text",
        notes=(
            f"byte {error.start}, on line {line}, is 0x{data[error.start]:02X}: {error.reason}",
        ),
        help="save the file as UTF-8",
    )


def parse_items(text: str, name: str = "<string>") -> ast.Program:
    """The tree of a text that may hold schedules alone, or nothing: what the formatter needs."""
    source = Source(text.removeprefix(_MARK), name)
    check_text(source)
    with _LOCK:
        parser, builder = _parser()
        builder.source = source
        try:
            # The builder is Lark's embedded transformer: `start` returns the program itself.
            program: object = parser.parse(source.text)
        except UnexpectedInput as error:
            from convdsl.syntax.errors import explain  # most texts are right

            raise explain(error, source, parser) from None
        finally:
            builder.source = Source("")  # do not keep the last text alive
    assert isinstance(program, ast.Program)
    return program


@cache
def _parser() -> tuple[lark.Lark, Builder]:
    builder = Builder()
    return build_lark(builder), builder


def grammar_text() -> str:
    """The grammar as shipped."""
    return files("convdsl.grammar").joinpath("convdsl.lark").read_text("utf-8")


def build_lark(builder: Builder | None = None) -> lark.Lark:
    """The parser, which without a builder makes Lark's own trees."""
    # Basic lexer: what a word is does not depend on what would fit, so errors name what stands
    # there.
    # Nothing is cached on disk: Lark's cache is a pickle.
    with _unchecked_terminals():
        return lark.Lark(
            grammar_text(),
            parser="lalr",
            lexer="basic",
            transformer=builder,
            keep_all_tokens=True,
            maybe_placeholders=False,
        )


@contextmanager
def _unchecked_terminals() -> Iterator[None]:
    """Leave out Lark's search for colliding terminals.

    Lark makes it whenever interegular can be imported, which a developer's environment has for the
    strict test of the grammar; it would then take most of the time of `convdsl compile`.
    """
    before = lark.lexer.has_interegular
    lark.lexer.has_interegular = False
    try:
        yield
    finally:
        lark.lexer.has_interegular = before
