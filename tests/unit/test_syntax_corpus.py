"""The grammar and its corpus of accepted and rejected texts."""

from __future__ import annotations

import re
from pathlib import Path

import lark
import pytest

import convdsl.codes
from convdsl.diagnostics import CdslError
from convdsl.syntax import ast
from convdsl.syntax.parser import build_lark, grammar_text, parse, parse_items
from convdsl.syntax.printer import format_text, print_program
from convdsl.syntax.words import words

CORPUS = Path(__file__).parents[2] / "grammar" / "corpus"
ACCEPT = sorted((CORPUS / "accept").glob("*.cdsl"))
REJECT = sorted((CORPUS / "reject").glob("*.cdsl"))


def _text(path: Path) -> str:
    return path.read_bytes().decode()  # line endings as they are


def test_the_corpus_is_there() -> None:
    """Parametrised tests over an empty folder would pass."""
    assert len(ACCEPT) >= 12
    assert len(REJECT) >= 25


@pytest.mark.parametrize("lexer", ["basic", "contextual"])
def test_the_grammar_is_strict_lalr(lexer: str) -> None:
    """No conflict between rules, no terminals that match the same text."""
    parser = lark.Lark(grammar_text(), parser="lalr", lexer=lexer, strict=True)
    for path in ACCEPT:
        parser.parse(_text(path))


@pytest.mark.parametrize("path", ACCEPT, ids=lambda p: p.stem)
def test_accepted(path: Path) -> None:
    """Accepted texts survive printing and formatting."""
    text = _text(path)
    tree = parse(text)
    assert parse(print_program(tree)) == tree
    formatted = format_text(text)
    assert parse(formatted) == tree
    assert format_text(formatted) == formatted
    assert formatted.count("#") == text.count("#")


@pytest.mark.parametrize("path", REJECT, ids=lambda p: p.stem)
def test_rejected(path: Path) -> None:
    """Rejected texts have the code and the place that their first line says."""
    text = _text(path)
    expected = re.match(r"# error: (E\d{4}) (\d+):(\d+)\n", text)
    assert expected
    with pytest.raises(CdslError) as caught:
        parse(text)
    span = caught.value.span
    assert span is not None
    line, column = span.source.position(span.start)
    assert (caught.value.code, line, column) == (expected[1], int(expected[2]), int(expected[3]))


@pytest.mark.parametrize("path", ACCEPT, ids=lambda p: p.stem)
def test_words_agree_with_the_lexer(path: Path) -> None:
    """The lexer of messages and formatter finds the parser's tokens."""
    text = _text(path)
    tokens = build_lark().lex(text)
    assert [(w.text, w.start) for w in words(text)] == [(str(t), t.start_pos) for t in tokens]


def test_spans() -> None:
    """A node's span is its text, parentheses of its own operands included."""
    text = "op f(a: f32[N], k: int) -> y: f32[N] {\n    y[n] = (a[n] + 1) * -max(a[n], 2)\n}\n"
    op = parse(text).ops[0]

    def of(node: ast.Expr | ast.Op | ast.Definition | ast.TensorDecl | ast.ScalarDecl) -> str:
        return text[node.span.start : node.span.end]

    assert of(op) == text.strip()
    assert [of(p) for p in op.params] == ["a: f32[N]", "k: int"]
    assert of(op.result) == "y[n] = (a[n] + 1) * -max(a[n], 2)"
    product = op.result.value
    assert isinstance(product, ast.Binary)
    assert of(product) == "(a[n] + 1) * -max(a[n], 2)"
    assert of(product.left) == "a[n] + 1"
    assert of(product.right) == "-max(a[n], 2)"


def test_precedence() -> None:
    """A reduction binds the product that follows; `else` belongs to it; minus binds tightest."""

    def value(text: str) -> ast.Expr:
        return parse(f"op f() -> y: f32[] {{ y[] = {text} }}").ops[0].result.value

    assert value("sum[k] a[k]*b[k] + c[]") == value("(sum[k] (a[k]*b[k])) + c[]")
    assert value("c[] - sum[k] a[k]/b[k] - d[]") == value("(c[] - (sum[k] (a[k]/b[k]))) - d[]")
    assert value("max[k] a[k] else 0*b[] + c[]") == value("(max[k] a[k] else (0*b[])) + c[]")
    assert value("-a[]*b[]") == value("(-a[])*b[]")
    assert value("-sum[k] a[k]*b[]") == value("-(sum[k] (a[k]*b[]))")
    assert value("a[] - b[] - c[]") != value("a[] - (b[] - c[])")


def test_schedule_steps_are_lines() -> None:
    """One step a line; names with dots are one word."""
    items = parse_items(
        "schedule f for wgsl {\n  map t.outer -> grid.x # c\n\n  order n, k\n}"
    ).items
    schedule = items[0]
    assert isinstance(schedule, ast.Schedule)
    assert [step.words for step in schedule.steps] == [
        ("map", "t.outer", "->", "grid.x"),
        ("order", "n", ",", "k"),
    ]


def test_every_code_is_explained_and_every_example_parses() -> None:
    """The operators in the long texts are operators."""
    sources = Path(__file__).parents[2].glob("convdsl/syntax/*.py")
    raised = {c for p in sources for c in re.findall(r'"(E\d{4})"', p.read_text("utf-8"))}
    explained = {name for name in convdsl.codes.CODES if name.startswith("E01")}
    assert raised == explained
    for name in explained:
        code = convdsl.codes.CODES[name]
        assert convdsl.codes.explain(name).startswith(f"{name}: {code.title}\n\n")
        for example in re.findall(r"^    op .*?\}$", code.text, re.MULTILINE | re.DOTALL):
            parse(example)
