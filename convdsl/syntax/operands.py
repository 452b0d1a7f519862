"""Rules for expressions that the grammar leaves open: sizes are integers, values are not."""

from __future__ import annotations

import math

from convdsl.diagnostics import CdslError, Span
from convdsl.syntax import ast
from convdsl.syntax.walk import walk
from convdsl.syntax.words import words

MAX_INTEGER = 2**63 - 1


def size(root: ast.Expr, place: str) -> None:
    """Refuse what has no meaning among integers; `place` says where ("an axis")."""
    for node in walk(root):
        match node:
            case ast.Binary("/"):
                raise CdslError(
                    "E0113",
                    f"`/` is not an operation on integers, and {place} is made of them",
                    _at_operator(node),
                    help="write `//` for the quotient rounded down, `%` for the remainder",
                )
            case ast.Number(text) if not text.isdigit():
                raise CdslError(
                    "E0113", f"{place} is made of integers, and `{text}` is not one", node.span
                )
            case ast.Read(tensor):
                raise CdslError(
                    "E0113",
                    f"{place} cannot depend on the values of `{tensor.name}`",
                    node.span,
                    help="use integers, sizes and `int` parameters; masks are passed as tensors",
                )
            case ast.Reduce(reducer):
                raise CdslError(
                    "E0113",
                    f"`{reducer}[...]` cannot stand in {place}",
                    node.span,
                    help="`max(a, b)` and `min(a, b)` work on integers",
                )
            case ast.Call(name) if name not in ("max", "min"):
                raise CdslError(
                    "E0113",
                    f"`{name}` does not work on integers, and {place} is made of them",
                    node.span,
                    notes=("integers have `+ - * // %`, `max(a, b)` and `min(a, b)`",),
                )


def value(root: ast.Expr) -> None:
    """Refuse `//` and `%` among values."""
    for node in walk(root):
        if isinstance(node, ast.Binary) and node.op in ("//", "%"):
            raise CdslError(
                "E0114",
                f"`{node.op}` works on sizes only",
                _at_operator(node),
                help="write `/` to divide values; `//` and `%` belong in axes, `where` and ranges",
            )


def call(name: ast.Ref, args: tuple[ast.Expr | ast.Comparison, ...]) -> None:
    """`sum(` for `sum[`, and comparisons outside the condition of a `select`."""
    if name.name in ("sum", "prod"):
        raise CdslError(
            "E0110",
            f"`{name.name}` takes its indices in square brackets",
            name.span,
            help=f"write `{name.name}[k] a[k]*b[k]`: the index, then the product that it reduces",
        )
    for position, arg in enumerate(args):
        if isinstance(arg, ast.Comparison) and (name.name != "select" or position > 0):
            raise CdslError(
                "E0121",
                "a comparison stands only as the first argument of `select`",
                arg.span,
                help="write `select(a < b, x, y)`: x where the comparison holds, else y",
            )


def literal(value: ast.Expr, span: Span) -> None:
    """A default is a number, with at most one sign."""
    inner = value.operand if isinstance(value, ast.Negate) else value
    if not isinstance(inner, ast.Number):
        raise CdslError(
            "E0113",
            "a default is a plain number",
            span,
            help="write a number like `1` or `-0.5`; a value that depends on others belongs in\n"
            "the definition, or in `where`",
        )


def whole(default: ast.Number | ast.Negate, name: str) -> None:
    """The default of an `int` is one."""
    digits = default.operand if isinstance(default, ast.Negate) else default
    if isinstance(digits, ast.Number) and not digits.text.isdigit():
        raise CdslError(
            "E0113",
            f"`{name}` is an integer, and `{digits.text}` is not",
            default.span,
            help=f"write an integer, or declare `{name}: float`",
        )


def number(node: ast.Number) -> None:
    """An integer fits 64 bits, a float is finite."""
    if node.text.isdigit():
        digits = node.text.lstrip("0")
        if len(digits) > 19 or int(digits or "0") > MAX_INTEGER:
            raise CdslError(
                "E0119",
                "this integer is too large",
                node.span,
                notes=(f"the largest integer is {MAX_INTEGER}",),
                help="a large value is written as a float, like `1e20`",
            )
    elif not math.isfinite(float(node.text)):
        raise CdslError(
            "E0119", "this number is too large", node.span, notes=("the largest is near 1.8e308",)
        )


def _at_operator(node: ast.Binary) -> Span:
    """The place of a binary operator's sign, found between its operands."""
    start, end = node.left.span.end, node.right.span.start
    for word in words(node.span.source.text[start:end]):
        if word.text == node.op:
            return Span(node.span.source, start + word.start, start + word.end)
    return node.span
