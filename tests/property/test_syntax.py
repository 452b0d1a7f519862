"""Any tree prints and parses back; any text parses or is refused with a place."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.lark import from_lark

from convdsl.diagnostics import CdslError
from convdsl.syntax import ast
from convdsl.syntax.parser import build_lark, parse, parse_items, read_source
from convdsl.syntax.printer import format_text, print_program
from tests.property.syntax_trees import programs

CORPUS = Path(__file__).parents[2] / "grammar" / "corpus" / "accept"
TEXTS = [path.read_bytes().decode() for path in sorted(CORPUS.glob("*.cdsl"))]
MARKS = [
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "=",
    "==",
    "|",
    "+",
    "-",
    "*",
    "/",
    "//",
    "%",
    "<",
    "->",
    "..",
    "#",
    ".",
    ";",
    "^",
]
WORDS = [
    "op",
    "sum",
    "prod",
    "max",
    "min",
    "let",
    "else",
    "where",
    "in",
    "for",
    "schedule",
    "select",
    "f32",
    "f64",
    "int",
    "0",
    "1.5",
    "9e999",
]
PIECES = [*MARKS, *WORDS, "\n", "\r", "\t", "\0"]


def _error(text: str) -> CdslError | None:
    try:
        parse_items(text)
    except CdslError as error:
        return error
    return None


def _survives(text: str) -> None:
    """It parses, and formatting keeps its tree; or it is refused with a place inside it."""
    error = _error(text)
    if error is not None:
        assert error.span is not None
        assert 0 <= error.span.start <= error.span.end <= len(error.span.source.text)
        assert str(error).startswith(f"error[{error.code}]: ")
        return
    formatted = format_text(text)
    assert parse_items(formatted) == parse_items(text)
    assert format_text(formatted) == formatted


@given(programs())
def test_print_then_parse(tree: ast.Program) -> None:
    """Printing loses nothing, and the printed text is already formatted."""
    text = print_program(tree)
    assert parse(text) == tree
    assert format_text(text) == text
    assert all(len(line) < 2000 for line in text.split("\n"))


@given(programs(), st.randoms(use_true_random=False))
def test_spacing_and_comments(tree: ast.Program, random: Random) -> None:
    """Comments between any two words: the tree stays, each comment survives, in order."""
    tree = ast.Program(tree.ops, tree.source)  # the lines of a schedule are part of it
    words = print_program(tree).split()
    count = 0
    for at in sorted(random.sample(range(len(words) + 1), min(5, len(words))), reverse=True):
        start = random.choice(["", "\n", "\n\n", "   "])
        words.insert(at, f"{start}# c{count}{random.choice(chr(10) * 2 + ' ')}\n")
        count += 1
    text = " ".join(words)
    formatted = format_text(text)
    assert parse(formatted) == parse(text) == tree
    assert format_text(formatted) == formatted
    places = [formatted.find(f"# c{n}\n") for n in reversed(range(count))]
    assert -1 not in places
    assert formatted.count("#") == count


@given(from_lark(build_lark()))
def test_texts_of_the_grammar(text: str) -> None:
    """Joined tokens without spaces: mostly nonsense, which must not crash anything."""
    _survives(text)


@given(st.text(max_size=300) | st.lists(st.sampled_from(PIECES)).map(" ".join))
@example("")
@example("op f() -> y: f32[] { y[] = 1")
def test_any_text(text: str) -> None:
    """Refused with a place inside the text, or parsed."""
    _survives(text)


@given(st.data())
def test_mutations(data: st.DataObject) -> None:
    """Valid texts with pieces cut out, doubled, or put in."""
    text = data.draw(st.sampled_from(TEXTS))
    for _ in range(data.draw(st.integers(1, 3))):
        start = data.draw(st.integers(0, len(text)))
        end = data.draw(st.integers(start, min(len(text), start + 30)))
        piece = data.draw(st.sampled_from(["", text[start:end] * 2, *PIECES]) | st.characters())
        text = text[:start] + piece + text[end:]
    _survives(text)


@given(st.binary(max_size=200) | st.text(max_size=50).map(lambda t: t.encode("utf-16")))
def test_any_bytes(tmp_path_factory: pytest.TempPathFactory, data: bytes) -> None:
    """Any file is read or refused."""
    path = tmp_path_factory.getbasetemp() / "bytes.cdsl"
    path.write_bytes(data)
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode()
    except UnicodeDecodeError:
        with pytest.raises(CdslError, match="not UTF-8"):
            read_source(path)
        return
    assert read_source(path) == text
    _survives(text)
