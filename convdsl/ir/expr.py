"""Value expressions, shared by the equation IR and the loop IR.

    expr  = Const | Scalar | Load | Binary | Call | Cast | Select | Guard | Reduce
    pred  = index >= 0 | index == 0 | index != 0

A `Load` reads a tensor through a row-major view: `dims` are the extents of the view, whose product is
the size of the tensor, so a composite axis `(g, c)` is two dims and an index over the whole axis is one.
`Reduce` occurs in equations only, `Guard` mainly in loops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from convdsl.ir.index import Index, total

DType = Literal["f32", "f16", "i32"]
BinaryOp = Literal["+", "-", "*", "/", "max", "min"]
CompareOp = Literal["==", "!=", "<", "<=", ">", ">="]
Reducer = Literal["sum", "prod", "max", "min"]
ValueType = Literal["f32", "i32"]  # of a value in flight; a stored f16 reads as f32

# Unary functions, except leaky_relu(x, slope) and pow(x, y).
FUNCTIONS = (
    "abs", "sqrt", "exp", "log", "sin", "cos", "tanh", "sigmoid", "relu", "gelu", "leaky_relu", "pow",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Access:
    """An element of a tensor or buffer: one index a dim of the row-major view `dims`."""

    tensor: str
    index: tuple[Index, ...]
    dims: tuple[Index, ...]

    @property
    def free(self) -> frozenset[str]:
        """Names in the index (not in the extents)."""
        return frozenset().union(*(i.free for i in self.index))

    def offset(self) -> Index:
        """The linear element offset, row major."""
        terms, stride = [], Index({(): 1})
        for i, extent in zip(reversed(self.index), reversed(self.dims), strict=True):
            terms.append(i * stride)
            stride = stride * extent
        return total(terms)


@dataclass(frozen=True, slots=True)
class Pred:
    """A condition on integers: `index >= 0` (ge), `index == 0` (eq) or `index != 0` (ne)."""

    kind: Literal["ge", "eq", "ne"]
    index: Index

    def __str__(self) -> str:
        return f"{self.index} {dict(ge='>=', eq='==', ne='!=')[self.kind]} 0"


def ge(index: Index) -> Pred:
    return Pred("ge", index)


def eq(index: Index) -> Pred:
    return Pred("eq", index)


@dataclass(frozen=True, slots=True)
class Var:
    """A variable over the half-open range low..high; the bounds may name earlier variables."""

    name: str
    low: Index
    high: Index

    @property
    def extent(self) -> Index:
        return self.high - self.low


@dataclass(frozen=True, slots=True)
class Unit:
    """A variable of extent one that was dropped, and the one that it came after; only a name."""

    name: str
    after: str | None


@dataclass(frozen=True, slots=True)
class Const:
    value: float | int
    dtype: ValueType


@dataclass(frozen=True, slots=True)
class Scalar:
    """An integer expression over sizes and parameters, used as a value (`x / f32(K)`)."""

    index: Index
    dtype: ValueType


@dataclass(frozen=True, slots=True)
class Param:
    """A float parameter that has no number yet (only before parameters are substituted)."""

    name: str
    dtype: Literal["f32"] = "f32"


@dataclass(frozen=True, slots=True)
class Load:
    """A read. `dtype` is that of the value: a stored f16 reads as f32."""

    access: Access
    dtype: ValueType


@dataclass(frozen=True, slots=True)
class Binary:
    op: BinaryOp
    left: Expr
    right: Expr

    @property
    def dtype(self) -> ValueType:
        return self.left.dtype


@dataclass(frozen=True, slots=True)
class Call:
    """A function of `FUNCTIONS`; values are f32 (abs and relu also i32)."""

    name: str
    args: tuple[Expr, ...]

    @property
    def dtype(self) -> ValueType:
        return self.args[0].dtype


@dataclass(frozen=True, slots=True)
class Cast:
    """A conversion. To f16: rounds to half precision, the value stays an f32. To i32: truncates."""

    to: DType
    value: Expr

    @property
    def dtype(self) -> ValueType:
        return "i32" if self.to == "i32" else "f32"


@dataclass(frozen=True, slots=True)
class Select:
    """`yes` where the comparison holds, else `no`; both have values."""

    op: CompareOp
    left: Expr
    right: Expr
    yes: Expr
    no: Expr

    @property
    def dtype(self) -> ValueType:
        return self.yes.dtype


@dataclass(frozen=True, slots=True)
class Guard:
    """`value` where all conditions hold, else `otherwise`; `value` is not evaluated elsewhere."""

    conditions: tuple[Pred, ...]
    value: Expr
    otherwise: Expr

    @property
    def dtype(self) -> ValueType:
        return self.value.dtype


@dataclass(frozen=True, slots=True)
class Reduce:
    """A reduction of `body` over the points of `vars` at which all constraints hold.

    Over no points: 0 for sum, 1 for prod, `otherwise` for max and min (None: proved non-empty, or
    checked when sizes are known). `units` are variables that were dropped because they have one value.
    """

    op: Reducer
    vars: tuple[Var, ...]
    constraints: tuple[Pred, ...]
    body: Expr
    otherwise: Expr | None = None
    units: tuple[Unit, ...] = field(default=(), compare=False, repr=False)

    @property
    def dtype(self) -> ValueType:
        return self.body.dtype


Expr = Const | Scalar | Param | Load | Binary | Call | Cast | Select | Guard | Reduce


def children(expr: Expr) -> tuple[Expr, ...]:
    """The direct subexpressions."""
    match expr:
        case Binary(_, a, b):
            return (a, b)
        case Call(_, args):
            return args
        case Cast(_, a):
            return (a,)
        case Select(_, a, b, c, d):
            return (a, b, c, d)
        case Guard(_, a, b):
            return (a, b)
        case Reduce(body=body, otherwise=otherwise):
            return (body,) if otherwise is None else (body, otherwise)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and all of its subexpressions, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def loads(expr: Expr) -> tuple[Load, ...]:
    """All reads in it, in order of appearance."""
    return tuple(e for e in walk(expr) if isinstance(e, Load))


def map_children(expr: Expr, f: Callable[[Expr], Expr]) -> Expr:
    """The same node with `f` applied to each direct subexpression."""
    match expr:
        case Binary(op, a, b):
            return Binary(op, f(a), f(b))
        case Call(name, args):
            return Call(name, tuple(f(a) for a in args))
        case Cast(to, a):
            return Cast(to, f(a))
        case Select(op, a, b, c, d):
            return Select(op, f(a), f(b), f(c), f(d))
        case Guard(conditions, a, b):
            return Guard(conditions, f(a), f(b))
        case Reduce(body=body, otherwise=otherwise):
            return replace(
                expr, body=f(body), otherwise=None if otherwise is None else f(otherwise)
            )
        case _:
            return expr


def map_index(expr: Expr, f: Callable[[Index], Index]) -> Expr:
    """The expression with `f` applied to every integer expression in it, extents included."""
    match expr:
        case Scalar(index, dtype):
            return Scalar(f(index), dtype)
        case Load(access, dtype):
            return Load(map_access(access, f), dtype)
        case Guard(conditions, a, b):
            mapped = tuple(Pred(p.kind, f(p.index)) for p in conditions)
            return Guard(mapped, map_index(a, f), map_index(b, f))
        case Reduce():
            return replace(
                expr,
                vars=tuple(Var(v.name, f(v.low), f(v.high)) for v in expr.vars),
                constraints=tuple(Pred(p.kind, f(p.index)) for p in expr.constraints),
                body=map_index(expr.body, f),
                otherwise=None if expr.otherwise is None else map_index(expr.otherwise, f),
            )
        case _:
            return map_children(expr, lambda e: map_index(e, f))


def indices_in(expr: Expr) -> list[Index]:
    """Every integer expression in it."""
    found: dict[Index, None] = {}

    def note(index: Index) -> Index:
        found[index] = None
        return index

    map_index(expr, note)
    return list(found)


def map_access(access: Access, f: Callable[[Index], Index]) -> Access:
    return Access(access.tensor, tuple(map(f, access.index)), tuple(map(f, access.dims)))


def free_names(expr: Expr) -> frozenset[str]:
    """Index names an expression depends on, those it binds itself excluded."""
    match expr:
        case Scalar(index, _):
            return index.free
        case Load(access, _):
            return access.free
        case Guard(conditions, a, b):
            own: frozenset[str] = frozenset().union(*(p.index.free for p in conditions))
            return own | free_names(a) | free_names(b)
        case Reduce():
            inner = free_names(expr.body).union(*(p.index.free for p in expr.constraints))
            inner = inner.union(*(v.low.free | v.high.free for v in expr.vars))
            inner -= {v.name for v in expr.vars}
            return inner | (
                free_names(expr.otherwise) if expr.otherwise is not None else frozenset()
            )
        case _:
            return frozenset().union(*(free_names(c) for c in children(expr)))
