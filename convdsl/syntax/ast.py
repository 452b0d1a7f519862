"""The surface syntax tree: what the parser makes and the printer prints.

    program  = items: (op | schedule)*
    op       = name, params: (tensor_param | scalar_param)*, output: tensor_decl, where: chain*,
               lets: let*, result: definition
    let      = dtype?, definition                    definition = tensor[axis, ...] = expr
    axis     = name | (name, ...)                    one axis of a tensor access
    expr     = number | ref | read | binary | negate | call | reduce          values
    size     = number | ref | binary | negate | call                          integers
    chain    = size (== | != | < | <= | > | >=) size ...                      a `where` clause
    reduce   = sum|prod|max|min [binder, ... | equation, ...] body (else other)?

`span` never takes part in comparison, so `parse(print(tree)) == tree` holds. It is the last field,
and given by keyword where fields with defaults come before it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from convdsl.diagnostics import Source, Span

DType = Literal["f32", "f16", "i32"]
Reducer = Literal["sum", "prod", "max", "min"]
Compare = Literal["==", "!=", "<", "<=", ">", ">="]


@dataclass(frozen=True, slots=True)
class Number:
    """A literal, kept as written (`1`, `0.5`, `1e-3`) so that it prints unchanged."""

    text: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Ref:
    """A size, a parameter, or (in a relation) an index."""

    name: str
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binary:
    """`+ - * /` in values; `+ - * // %` in sizes."""

    op: Literal["+", "-", "*", "/", "//", "%"]
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Negate:
    operand: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Call:
    """A function (`relu(x)`, `max(a, b)`), a cast (`f32(x)`), or `select(cond, a, b)`."""

    name: str
    args: tuple[Expr | Comparison, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Comparison:
    """The condition of a `select`; two values."""

    op: Compare
    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Axis:
    """One axis of an access: a bare index (one name) or a composite `(a, b)` (two or more)."""

    names: tuple[Ref, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Read:
    """`x[n, (g, c), l]`; no axes for a tensor of rank 0: `s[]`."""

    tensor: Ref
    axes: tuple[Axis, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Binder:
    """`k`, or `k in low..high` (half open)."""

    name: Ref
    low: Expr | None = None
    high: Expr | None = None
    span: Span = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Relation:
    """One affine equation of a reduction: `l*stride + k*dilation == o + pad`."""

    left: Expr
    right: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Reduce:
    """`sum[k, l | relations] body`, and for max and min an optional `else otherwise`."""

    reducer: Reducer
    binders: tuple[Binder, ...]
    relations: tuple[Relation, ...]
    body: Expr
    otherwise: Expr | None = None
    span: Span = field(kw_only=True, compare=False, repr=False)


Expr = Number | Ref | Binary | Negate | Call | Read | Reduce


@dataclass(frozen=True, slots=True)
class Chain:
    """A `where` clause: `0 <= out_pad < max(stride, dilation)`."""

    operands: tuple[Expr, ...]
    ops: tuple[Compare, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class TensorDecl:
    """`x: f32[N, groups*C, L]`; `default` only on inputs (`b: f32[M] = 0`)."""

    name: Ref
    dtype: DType
    axes: tuple[Expr, ...]
    default: Number | Negate | None = None
    span: Span = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class ScalarDecl:
    """`stride: int = 1` or `slope: float = 0.1`; `default` may be missing."""

    name: Ref
    kind: Literal["int", "float"]
    default: Number | Negate | None = None
    span: Span = field(kw_only=True, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Definition:
    """`y[n, (g, m), o] = value`."""

    tensor: Ref
    axes: tuple[Axis, ...]
    value: Expr
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Let:
    """`let h[n, o] = value`, or `let h: f16[n, o] = value`; f32 unless declared."""

    dtype: DType | None
    definition: Definition
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Op:
    name: Ref
    params: tuple[TensorDecl | ScalarDecl, ...]
    output: TensorDecl
    where: tuple[Chain, ...]
    lets: tuple[Let, ...]
    result: Definition
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Step:
    """One line of a schedule, kept as its tokens until verbs exist to interpret them."""

    words: tuple[str, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Schedule:
    op: Ref
    target: Ref
    steps: tuple[Step, ...]
    span: Span = field(compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Program:
    """A parsed `.cdsl` text: operators and schedules in order of appearance."""

    items: tuple[Op | Schedule, ...]
    source: Source = field(compare=False, repr=False)

    @property
    def ops(self) -> tuple[Op, ...]:
        return tuple(item for item in self.items if isinstance(item, Op))
