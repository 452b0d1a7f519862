"""Short constructors for Python's `ast` nodes, and bodies with comments between statements.

A body is a list of items: `ast` statements, comments, blank lines and suites (a compound statement
with items of its own). Expressions only ever come from `ast` nodes, so no name becomes code.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Comment:
    text: str


@dataclass(frozen=True, slots=True)
class Blank:
    pass


@dataclass(slots=True)
class Suite:
    """`header` is a For, If or FunctionDef without a body."""

    header: ast.For | ast.If | ast.FunctionDef
    body: list[Item] = field(default_factory=list)
    doc: str = ""
    orelse: list[Item] = field(default_factory=list)


Item = ast.stmt | Comment | Blank | Suite

_OPERATORS: dict[str, type[ast.operator]] = {
    "+": ast.Add,
    "-": ast.Sub,
    "*": ast.Mult,
    "/": ast.Div,
    "//": ast.FloorDiv,
    "%": ast.Mod,
    "**": ast.Pow,
}
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    "==": ast.Eq,
    "!=": ast.NotEq,
    "<": ast.Lt,
    "<=": ast.LtE,
    ">": ast.Gt,
    ">=": ast.GtE,
}


# -- expressions ----------------------------------------------------------------------------------
def name(text: str) -> ast.expr:
    return ast.Name(text, ast.Load())


def number(value: float | int) -> ast.expr:
    """A literal; negative numbers as a negation, infinities and NaN through NumPy."""
    if isinstance(value, float):
        if math.isnan(value):
            return np("nan")
        if math.isinf(value):
            return np("inf") if value > 0 else ast.UnaryOp(ast.USub(), np("inf"))
    if value < 0 or (value == 0 and math.copysign(1.0, value) < 0):
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)


def text(value: str) -> ast.expr:
    return ast.Constant(value)


def attribute(value: ast.expr, *names: str) -> ast.expr:
    for part in names:
        value = ast.Attribute(value, part, ast.Load())
    return value


def np(*names: str) -> ast.expr:
    """`np.name`."""
    return attribute(name("np"), *names)


def call(function: ast.expr | str, *args: ast.expr, **keywords: ast.expr) -> ast.expr:
    node = name(function) if isinstance(function, str) else function
    return ast.Call(node, list(args), [ast.keyword(k, v) for k, v in keywords.items()])


def method(value: ast.expr, what: str, *args: ast.expr, **keywords: ast.expr) -> ast.expr:
    return call(attribute(value, what), *args, **keywords)


def sequence(items: Iterable[ast.expr]) -> ast.expr:
    """A tuple."""
    return ast.Tuple(list(items), ast.Load())


def operate(left: ast.expr, operator: str, right: ast.expr) -> ast.expr:
    return ast.BinOp(left, _OPERATORS[operator](), right)


def negate(value: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.USub(), value)


def compare(left: ast.expr, operator: str, right: ast.expr) -> ast.expr:
    return ast.Compare(left, [_COMPARISONS[operator]()], [right])


def both(conditions: Sequence[ast.expr]) -> ast.expr:
    """`a and b and ...`."""
    return conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.And(), list(conditions))


def choose(condition: ast.expr, yes: ast.expr, no: ast.expr) -> ast.expr:
    return ast.IfExp(condition, yes, no)


def section(
    low: ast.expr | None = None, high: ast.expr | None = None, step: ast.expr | None = None
) -> ast.expr:
    """`low:high:step` in a subscript."""
    return ast.Slice(low, high, step)


def subscript(value: ast.expr, items: Sequence[ast.expr]) -> ast.expr:
    """`value[items]`."""
    if len(items) == 1:
        return ast.Subscript(value, items[0], ast.Load())
    return ast.Subscript(value, ast.Tuple(list(items), ast.Load()), ast.Load())


def ellipsis() -> ast.expr:
    return ast.Constant(...)


def none() -> ast.expr:
    return ast.Constant(None)


# -- statements -----------------------------------------------------------------------------------
def assign(target: ast.expr, value: ast.expr) -> ast.stmt:
    return ast.Assign([target], value, lineno=0)


def augment(target: ast.expr, operator: str, value: ast.expr) -> ast.stmt:
    if not isinstance(target, ast.Name | ast.Subscript | ast.Attribute):
        raise TypeError("no target of an assignment")
    return ast.AugAssign(target, _OPERATORS[operator](), value)


def evaluate(value: ast.expr) -> ast.stmt:
    return ast.Expr(value)


def bounds(low: ast.expr | None, high: ast.expr) -> list[ast.expr]:
    """The arguments of `range`."""
    return [high] if low is None else [low, high]


def loop(variable: str, bounds: Sequence[ast.expr], body: list[Item]) -> Suite:
    """`for variable in range(*bounds):`."""
    header = ast.For(name(variable), call("range", *bounds), [], [], lineno=0)
    return Suite(header, body)


def when(condition: ast.expr, body: list[Item], orelse: list[Item] | None = None) -> Suite:
    return Suite(ast.If(condition, [], []), body, orelse=orelse or [])


def function(name: str, arguments: Sequence[str], body: list[Item]) -> Suite:
    """`def name(arguments):`."""
    signature = ast.arguments([], [ast.arg(a) for a in arguments], None, [], [], None, [])
    return Suite(ast.FunctionDef(name, signature, [], [], lineno=0), body)


def fail(message: ast.expr) -> ast.stmt:
    return ast.Raise(call("ValueError", message), None)
