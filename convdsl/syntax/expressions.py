"""Documents for expressions, with the parentheses that the grammar needs and no others."""

from __future__ import annotations

from convdsl.syntax import ast
from convdsl.syntax.layout import Align, Doc, Group, Line, Nest, joined

# How tightly a place binds; an expression that binds less tightly takes parentheses there.
_SUM, _SUMMAND, _PRODUCT, _UNARY = range(4)


def size(expr: ast.Expr) -> Doc:
    """An integer expression: products are set tight, as in `(L - K)*2 // stride`."""
    return _expr(expr, _SUM, tight=True)


def value(expr: ast.Expr) -> Doc:
    """A value: products are set wide, as in `x[n, l] * w[l]`."""
    return _expr(expr, _SUM, tight=False)


def axes(items: tuple[ast.Axis, ...]) -> str:
    """`[n, (g, c)]`."""
    return f"[{', '.join(axis(item) for item in items)}]"


def axis(item: ast.Axis) -> str:
    """`n`, or `(g, c)`."""
    names = ", ".join(ref.name for ref in item.names)
    return names if len(item.names) == 1 else f"({names})"


def is_sum(expr: ast.Expr) -> bool:
    """Whether the outermost operation is `+` or `-`."""
    return isinstance(expr, ast.Binary) and expr.op in ("+", "-")


def _binds(expr: ast.Expr) -> int:
    match expr:
        case ast.Binary():
            return _SUM if is_sum(expr) else _PRODUCT
        case ast.Reduce():
            return _SUMMAND
        case _:
            return _UNARY


def _expr(expr: ast.Expr, place: int, *, tight: bool) -> Doc:
    if _binds(expr) < place:
        return ("(", Align(_expr(expr, _SUM, tight=tight)), ")")
    match expr:
        case ast.Number(text):
            return text
        case ast.Ref(name):
            return name
        case ast.Read(tensor, items):
            return tensor.name + axes(items)
        case ast.Negate(operand):
            # `-sum[k] a` is legal where a reduction is.
            bare = isinstance(operand, ast.Reduce) and place <= _SUMMAND
            return ("-", _expr(operand, _SUMMAND if bare else _UNARY, tight=tight))
        case ast.Binary():
            return _chain(expr, tight=tight)
        case ast.Call(name, args):
            return _call(name, args, tight=tight)
        case ast.Reduce():
            return Group(_reduce(expr))


def _chain(expr: ast.Binary, *, tight: bool) -> Doc:
    """A row of `+ -` or of `* / // %`: `((a + b) + c)` is one row."""
    total = is_sum(expr)
    row: list[ast.Binary] = []
    first: ast.Expr = expr
    while isinstance(first, ast.Binary) and is_sum(first) == total:
        row.append(first)
        first = first.left
    left, right = (_SUM, _SUMMAND) if total else (_PRODUCT, _UNARY)
    parts: list[Doc] = []
    for step in reversed(row):
        term = _summand(step.right, tight=tight) if total else None
        term = term or _expr(step.right, right, tight=tight)
        if tight and step.op == "*":
            parts.append(("*", term))
        else:
            parts.append((Line(), f"{step.op} ", term))
    head = _summand(first, tight=tight) if total else None
    return Group((head or _expr(first, left, tight=tight), Nest(tuple(parts))))


def _summand(expr: ast.Expr, *, tight: bool) -> Doc | None:
    """A reduction over a relation breaks before its body when the sum around it breaks."""
    if not tight and isinstance(expr, ast.Reduce) and expr.relations:
        return _reduce(expr)
    return None


def _call(name: str, args: tuple[ast.Expr | ast.Comparison, ...], *, tight: bool) -> Doc:
    docs: list[Doc] = []
    for arg in args:
        if isinstance(arg, ast.Comparison):
            left = _expr(arg.left, _SUM, tight=tight)
            docs.append((left, f" {arg.op} ", _expr(arg.right, _SUM, tight=tight)))
        else:
            docs.append(_expr(arg, _SUM, tight=tight))
    if not docs:
        return f"{name}()"
    return Group((name, "(", Nest((Line(""), joined(docs, (",", Line())))), Line(""), ")"))


def _reduce(expr: ast.Reduce) -> Doc:
    binders: list[Doc] = []
    for binder in expr.binders:
        if binder.low is None or binder.high is None:
            binders.append(binder.name.name)
        else:
            binders.append((f"{binder.name.name} in ", size(binder.low), "..", size(binder.high)))
    inside: list[Doc] = [Group(joined(binders, (",", Line())))]
    if expr.relations:  # one below the other, behind the indices if the first one fits there
        relations: list[Doc] = [(size(r.left), " == ", size(r.right)) for r in expr.relations]
        inside += [Line(own=True), "| ", Align(joined(relations, (",", Line())))]
    head = Group((expr.reducer, "[", Align(tuple(inside)), "]"))
    tail: list[Doc] = [Line(), _expr(expr.body, _PRODUCT, tight=False)]
    if expr.otherwise is not None:
        tail += [Line(), "else ", _expr(expr.otherwise, _PRODUCT, tight=False)]
    return Align((head, *tail), len(expr.reducer) + 1)  # the body under the first index
