"""Types of values: f32, i32, and `int` for what adapts to its neighbour.

Integer literals, sizes and int parameters have no type of their own: `2 * x` is f32 for an f32 x
and i32 for an i32 x. Such expressions are exact integers (`Scalar`) until they meet a typed one.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from convdsl.diagnostics import CdslError, Note, Span
from convdsl.ir import expr as ir
from convdsl.ir.index import Index
from convdsl.sema.declarations import check_float

Kind = Literal["f32", "i32", "int"]


@dataclass(frozen=True, slots=True)
class Typed:
    """An expression with its kind. Of kind `int`, its leaves are `Scalar`."""

    expr: ir.Expr
    kind: Kind
    span: Span

    @property
    def index(self) -> Index | None:
        """The integer arithmetic that this is, else None."""
        if self.kind == "int" and isinstance(self.expr, ir.Scalar):
            return self.expr.index
        return None


def integer(index: Index, span: Span) -> Typed:
    """An adapting value."""
    return Typed(ir.Scalar(index, "i32"), "int", span)


def adapt(value: Typed, kind: Kind) -> Typed:
    """The value as `kind` if it adapts, else as it is."""
    if value.kind != "int" or kind == "int":
        return value
    return Typed(_retype(value.expr, kind, value.span), kind, value.span)


def _retype(expr: ir.Expr, dtype: Literal["f32", "i32"], span: Span) -> ir.Expr:
    match expr:
        case ir.Scalar(index, _):
            number = index.as_int()
            if number is None:
                return ir.Scalar(index, dtype)
            if dtype == "f32":
                check_float(float(number), "f32", span)
                return ir.Const(float(number), "f32")
            if not -(2**31) <= number < 2**31:
                raise CdslError("E0220", f"{number} does not fit i32", span)
            return ir.Const(number, "i32")
        case ir.Select(op, left, right, yes, no):  # the condition has types of its own
            return ir.Select(op, left, right, _retype(yes, dtype, span), _retype(no, dtype, span))
        case _:
            return ir.map_children(expr, lambda e: _retype(e, dtype, span))


def unify(a: Typed, b: Typed, what: str) -> tuple[Typed, Typed]:
    """Both values with one kind.

    Raises:
        CdslError: E0213 when one is f32 and the other i32.
    """
    if a.kind == b.kind:
        return a, b
    if a.kind == "int":
        return adapt(a, b.kind), b
    if b.kind == "int":
        return a, adapt(b, a.kind)
    whole = a if a.kind == "i32" else b
    raise CdslError(
        "E0213",
        f"{what} mixes f32 and i32",
        whole.span,
        notes=(Note("this side is f32", (b if whole is a else a).span),),
        help=f"convert the integer: `f32({_source(whole.span)})`",
    )


def floats(value: Typed, what: str) -> Typed:
    """The value as f32.

    Raises:
        CdslError: E0213 for an i32.
    """
    value = adapt(value, "f32")
    if value.kind != "f32":
        raise CdslError(
            "E0213",
            f"{what} works on floats, and this is i32",
            value.span,
            help=f"convert it: `f32({_source(value.span)})`",
        )
    return value


def stored(value: Typed, tensor: str, dtype: ir.DType, declared: bool) -> ir.Expr:
    """The value as a tensor of `dtype` holds it; rounding to f16 happens at the store.

    Raises:
        CdslError: E0213 when the value's type is another one.
    """
    wanted: Literal["f32", "i32"] = "i32" if dtype == "i32" else "f32"
    value = adapt(value, wanted)
    if value.kind == wanted:
        return value.expr
    if not declared:
        raise CdslError(
            "E0213",
            f"`{tensor}` is f32, being a `let` without a type, but its value is i32",
            value.span,
            help=f"write `let {tensor}: i32[...] = ...`, or convert the value with `f32(...)`",
        )
    raise CdslError(
        "E0213",
        f"`{tensor}` is {dtype}, but its value is {value.kind}",
        value.span,
        help=f"convert the value: `{wanted}(...)`"
        + (", which drops the fraction" if wanted == "i32" else ""),
    )


def _source(span: Span) -> str:
    text = " ".join(span.source.text[span.start : span.end].split())
    return text if 0 < len(text) <= 40 else "..."
