"""Building Python text: short constructors for `ast` nodes, comments between statements, wrapping.

A body is a list of items: `ast` statements, comments, blank lines and suites (a compound statement
with items of its own). Expressions only ever come from `ast` nodes, so no name becomes code.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

WIDTH = 100


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


def loop(variable: str, low: ast.expr | None, high: ast.expr, body: list[Item]) -> Suite:
    """`for variable in range(low, high):`."""
    bounds = [high] if low is None else [low, high]
    header = ast.For(name(variable), call("range", *bounds), [], [], lineno=0)
    return Suite(header, body)


def when(condition: ast.expr, body: list[Item], orelse: list[Item] | None = None) -> Suite:
    return Suite(ast.If(condition, [], []), body, orelse=orelse or [])


def fail(message: ast.expr) -> ast.stmt:
    return ast.Raise(call("ValueError", message), None)


# -- text -----------------------------------------------------------------------------------------
def render(items: Sequence[Item], indent: int = 0) -> list[str]:
    """The lines of a body."""
    pad, out = " " * indent, []
    for item in items:
        match item:
            case Comment(comment):
                out += [f"{pad}# {line}".rstrip() for line in printable(comment)]
            case Blank():
                out.append("")
            case Suite(header, body, doc, orelse):
                out += _wrap(_header(header), pad)
                inner = render(body, indent + 4)
                if doc:
                    inner = docstring(doc, " " * (indent + 4)) + inner
                out += inner or [f"{pad}    pass"]
                if orelse:
                    out += [f"{pad}else:", *render(orelse, indent + 4)]
            case _:
                out += _wrap(quoted(ast.unparse(item)), pad)
    return out


def quoted(line: str) -> str:
    """Single quotes to double ones, where that is all there is to it."""
    return line if '"' in line or "\\" in line else line.replace("'", '"')


def names_in(items: Sequence[Item]) -> set[str]:
    """All variables that a body mentions."""
    out: set[str] = set()
    for item in items:
        match item:
            case Suite(header, body, _, orelse):
                out |= names_in(body) | names_in(orelse) | _names(header)
            case ast.stmt():
                out |= _names(item)
            case _:
                pass
    return out


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _header(node: ast.For | ast.If | ast.FunctionDef) -> str:
    node.body = [ast.Pass()]
    return quoted(ast.unparse(node)).rsplit("\n", 1)[0]


def docstring(content: str, pad: str = "") -> list[str]:
    """Lines of a docstring, with nothing in it that could end it."""
    lines = [line.replace("\\", "/").replace('"', "'") for line in printable(content)]
    if len(lines) == 1:
        return [f'{pad}"""{lines[0]}"""']
    return [f'{pad}"""{lines[0]}', *((pad + line).rstrip() for line in lines[1:]), f'{pad}"""']


def printable(content: str) -> list[str]:
    """The lines of a text, control and other invisible characters replaced."""
    lines = content.splitlines() or [""]
    return ["".join(ch if ch.isprintable() else " " for ch in line) for line in lines]


def _wrap(line: str, pad: str) -> list[str]:
    """A statement over several lines where it is too long, checked to mean the same."""
    if "\n" in line:
        return [pad + part for part in line.split("\n")]
    if len(pad) + len(line) <= WIDTH:
        return [pad + line]
    lines = _split(line, len(pad))
    body = "\n".join(lines)
    tail = "\n    pass" if line.endswith(":") else ""
    if ast.dump(ast.parse(body + tail)) != ast.dump(ast.parse(line + tail)):
        return [pad + line]
    return [pad + part for part in lines]


def _split(line: str, used: int) -> list[str]:
    """Black's way: the content of the widest outer bracket on lines of its own, cut at commas."""
    spans = _brackets(line)
    spans = [s for s in spans if s[1] - s[0] > 2 and not (s[1] - s[0] < 12 and len(spans) > 1)]
    if used + len(line) <= WIDTH or not spans:
        return [line]
    start, end, commas = max(spans, key=lambda s: s[1] - s[0])
    head, tail, body = line[: start + 1], line[end:], line[start + 1 : end]
    if used + 4 + len(body) + (1 if commas else 0) <= WIDTH:
        return [head, f"    {body}", tail]
    cuts = [start, *commas, end]
    pieces = [line[a + 1 : b].strip() for a, b in zip(cuts, cuts[1:], strict=False)]
    trailing = "," if commas else ""
    out = [head]
    for piece in filter(None, pieces):
        out += ["    " + part for part in _split(piece + trailing, used + 4)]
    return [*out, tail]


def _brackets(line: str) -> list[tuple[int, int, list[int]]]:
    """Outermost bracket pairs with the positions of the commas directly inside."""
    out: list[tuple[int, int, list[int]]] = []
    depth, start, commas, quote = 0, 0, list[int](), ""
    skip = False
    for at, ch in enumerate(line):
        if skip:
            skip = False
        elif quote:
            skip, quote = ch == "\\", "" if ch == quote else quote
        elif ch in "'\"":
            quote = ch
        elif ch in "([{":
            if depth == 0:
                start, commas = at, []
            depth += 1
        elif ch in ")]}":
            depth -= 1
            if depth == 0:
                out.append((start, at, commas))
        elif ch == "," and depth == 1:
            commas.append(at)
    return out
