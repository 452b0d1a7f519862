"""Text to loop programs and equation systems: the inverse of `convdsl.ir.text`.

What reads back equal is every program whose names and dtypes `convdsl.ir.verify` accepts. A mistake
in the text is a `CdslError` E04xx with its place.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from functools import cache
from importlib.resources import files
from typing import TypeVar

from lark import Lark, Token
from lark.exceptions import UnexpectedCharacters, UnexpectedInput, UnexpectedToken
from lark.indenter import DedentError, Indenter

from convdsl.diagnostics import CdslError, Source, Span
from convdsl.ir.equation import System
from convdsl.ir.loop import LoopProgram
from convdsl.ir.reader_build import build_program, build_system
from convdsl.ir.reader_expr import ExprReader, Node

T = TypeVar("T")

_LOCK = threading.Lock()  # the parser's indenter has a state


def read_program(text: str, name: str = "<string>") -> LoopProgram:
    """The loop program that `print_program` wrote."""
    return _read("program", build_program, Source(text, name))


def read_system(text: str, name: str = "<string>") -> System:
    """The equation system that `print_system` wrote."""
    return _read("system", build_system, Source(text, name))


def grammar_text() -> str:
    """The grammar as shipped."""
    return files("convdsl.grammar").joinpath("loop.lark").read_text("utf-8")


class _Indenter(Indenter):
    # Lark's names for these attributes are not ours to choose.
    NL_type = "_NL"
    OPEN_PAREN_types = ["LPAR", "LSQB", "LBRACE"]  # noqa: RUF012
    CLOSE_PAREN_types = ["RPAR", "RSQB", "RBRACE"]  # noqa: RUF012
    INDENT_type = "_INDENT"
    DEDENT_type = "_DEDENT"
    tab_len = 8

    def handle_NL(self, token: Token) -> Iterator[Token]:
        try:
            yield from super().handle_NL(token)
        except DedentError:
            raise _BadIndentError(token.end_pos or 0) from None


class _BadIndentError(Exception):
    """A line that is indented like none of the blocks around it."""

    def __init__(self, place: int) -> None:
        super().__init__(place)
        self.place = place


@cache
def build_lark(strict: bool = False) -> Lark:
    """The parser. Contextual: a word is a keyword only where a keyword may stand."""
    return Lark(
        grammar_text(),
        parser="lalr",
        lexer="contextual",
        start=["program", "system"],
        postlex=_Indenter(),
        propagate_positions=True,
        maybe_placeholders=False,
        strict=strict,
    )


def _read(start: str, build: Callable[[ExprReader, Node], T], source: Source) -> T:
    try:
        with _LOCK:
            # The last line needs its line break; offsets stay those of the source.
            tree = build_lark().parse(source.text + "\n", start)
        return build(ExprReader(source), tree)
    except UnexpectedInput as error:
        raise _explain(error, source) from None
    except _BadIndentError as error:
        message = "this line is indented like none of the blocks around it"
        raise CdslError("E0401", message, Span(source, error.place, error.place + 1)) from None
    except RecursionError:
        raise CdslError("E0405", f"{source.name} nests too deep to be read") from None


_SPELLING = {
    "_NL": "the end of the line",
    "_INDENT": "an indented line",
    "_DEDENT": "the end of the block",
    "$END": "the end of the text",
    "NAME": "a name",
    "INT": "an integer",
    "FLOAT": "a number",
}


def _explain(error: UnexpectedInput, source: Source) -> CdslError:
    if isinstance(error, UnexpectedToken):
        token = error.token
        end = len(source.text)
        start = end if token.type == "$END" else min(token.start_pos or 0, end)
        found = _SPELLING.get(token.type, f"`{token}`") if token.type != "NAME" else f"`{token}`"
        # A block ends, for the parser, where the next line begins.
        span = Span(source, start, start + (len(token) if found.startswith("`") else 1))
        expected = error.accepts or error.expected
    else:
        assert isinstance(error, UnexpectedCharacters)
        place = error.pos_in_stream or 0
        found = f"`{source.text[place : place + 1]}`"
        span = Span(source, place, place + 1)
        expected = error.allowed
    expected = set(expected or ())
    if "NAME" in expected:  # many keywords are names too
        expected -= {t.name for t in build_lark().terminals if t.pattern.value.isalnum()}
    words = sorted(map(_spell, expected))
    wanted = (f"expected {', '.join(words)}",) if words else ()
    return CdslError("E0401", f"{found} does not fit here", span, notes=wanted)


def _spell(terminal: str) -> str:
    if terminal in _SPELLING:
        return _SPELLING[terminal]
    for known in build_lark().terminals:
        if known.name == terminal and known.pattern.type == "str":
            return f"`{known.pattern.value}`"
    return {"COMMENT": "a comment", "SPECIAL": "`+inf`"}.get(terminal, terminal)
