"""Text of the parts that both IRs share: conditions, accesses and value expressions.

    pred    o < LO, n == 0, l*4 + k == o
    access  x[n, c, l]            or with a view      x<N, C, L>[n, c, l]
    const   1.5 (f32), 3 (i32), +inf, -inf, +nan
    scalar  f32{K - 1}            an integer expression used as a value
    param   $slope
    cast    f16(x[n])
    guard   guard(l >= 0, l < L: x[l] else 0.0)
    reduce  sum[c in 0..C, k in 0..K | l*4 + k == o](x[c, l] * w[c, k])

`grammar/loop.lark` reads it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from convdsl.ir.expr import (
    Access,
    Binary,
    Call,
    Cast,
    Const,
    Expr,
    Guard,
    Load,
    Param,
    Pred,
    Reduce,
    Scalar,
    Select,
    Var,
)
from convdsl.ir.index import Index

# The dims each tensor or buffer is declared with: an access prints its view only when it differs.
Dims = Mapping[str, tuple[Index, ...]]

_LEVEL = {"+": 1, "-": 1, "*": 2, "/": 2}
_HIGHEST = 3


def comma(parts: Iterable[object]) -> str:
    """The parts joined by commas."""
    return ", ".join(map(str, parts))


def pred_text(pred: Pred) -> str:
    """The condition with its terms moved to the sides where they are positive: `l < L`."""
    positive, negative, constant = _sides(pred.index)
    if pred.kind != "ge":
        left = positive if positive.terms else -negative
        return f"{left} {'==' if pred.kind == 'eq' else '!='} {left - pred.index}"
    if not negative.terms:
        return f"{positive} >= {-constant}"
    if constant == 0 and positive.terms:
        return f"{negative} <= {positive}"
    return f"{negative} < {positive + (constant + 1)}"


def _sides(index: Index) -> tuple[Index, Index, int]:
    """`p, q, c` with index == p - q + c, and only positive coefficients in p and q."""
    positive = Index({m: c for m, c in index.terms if m and c > 0})
    negative = Index({m: -c for m, c in index.terms if m and c < 0})
    return positive, negative, index.constant


def preds_text(preds: Iterable[Pred]) -> str:
    return comma(map(pred_text, preds))


def var_text(var: Var) -> str:
    return f"{var.name} in {var.low}..{var.high}"


def access_text(access: Access, dims: Dims) -> str:
    """The access, with its view when that is not the declared one."""
    view = ""
    if dims.get(access.tensor, access.dims) != access.dims:
        view = f"<{comma(access.dims)}>"
    return f"{access.tensor}{view}[{comma(access.index)}]"


def expr_text(expr: Expr, dims: Dims, level: int = 0) -> str:
    """The expression; parentheses where its operator binds less than `level`."""
    match expr:
        case Const(value, dtype):
            return number_text(value, dtype)
        case Scalar(index, dtype):
            return f"{dtype}{{{index}}}"
        case Param(name):
            return f"${name}"
        case Load(access):
            return access_text(access, dims)
        case Binary("max" | "min" as op, left, right):
            return f"{op}({expr_text(left, dims)}, {expr_text(right, dims)})"
        case Binary(op, left, right):
            own = _LEVEL[op]
            text = f"{expr_text(left, dims, own)} {op} {expr_text(right, dims, own + 1)}"
            return f"({text})" if own < level else text
        case Call(name, args):
            return f"{name}({comma(expr_text(a, dims) for a in args)})"
        case Cast(to, value):
            return f"{to}({expr_text(value, dims)})"
        case Select(op, left, right, yes, no):
            a, b, y, n = (expr_text(e, dims) for e in (left, right, yes, no))
            return f"select({a} {op} {b}, {y}, {n})"
        case Guard(conditions, value, otherwise):
            y, n = expr_text(value, dims), expr_text(otherwise, dims)
            return f"guard({preds_text(conditions)}: {y} else {n})"
        case Reduce():
            return _reduce_text(expr, dims)


def _reduce_text(expr: Reduce, dims: Dims) -> str:
    binders = comma(map(var_text, expr.vars))
    relation = f" | {preds_text(expr.constraints)}" if expr.constraints else ""
    otherwise = "" if expr.otherwise is None else f" else {expr_text(expr.otherwise, dims)}"
    return f"{expr.op}[{binders}{relation}]({expr_text(expr.body, dims)}{otherwise})"


def number_text(value: float, dtype: str) -> str:
    """The shortest text that reads back as the same number of the same dtype."""
    if dtype == "i32":
        return str(int(value))
    text = repr(float(value))
    return "+" + text if text in ("inf", "nan") else text
