"""columns: one large matrix product into a column buffer, then overlapping blocks are added up.

    sum[c, k, l | l*s + k*d == o + p] x[n, c, l] * w[c, m, k]
 -> col[l, m, k] = sum[c] x[n, c, l] * w[c, m, k]                   for each n
    y[n, m, o]   = sum[k, l | l*s + k*d == o + p] col[l, m, k]

Summing the variables that stand in no relation first is exact algebra: every product of the definition
is made once and no other one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from convdsl.ir.equation import Equation, Piece, Tensor
from convdsl.ir.expr import Access, Expr, Load, Reduce, Var, free_names
from convdsl.ir.index import sym
from convdsl.passes.contraction import Contraction
from convdsl.passes.phases import replace_reduction
from convdsl.passes.relation import linear


@dataclass(frozen=True, slots=True)
class Columns:
    """The roles of the variables: `data` and `taps` are those of the relations."""

    contraction: Contraction
    batch: tuple[Var, ...]
    outer: tuple[Var, ...]
    data: tuple[Var, ...]
    inner: tuple[Var, ...]
    taps: tuple[Var, ...]
    depth: tuple[Var, ...]
    relation: Reduce


def columns_of(contraction: Contraction) -> Columns | None:
    """The roles for the columns form, or None where a relation touches the product's own indices."""
    reduction, piece = contraction.reduction, contraction.piece
    equations = [p.index for p in reduction.constraints]
    related = {n for e in equations for n in e.free}
    in_a = free_names(contraction.a.value)
    in_b = free_names(contraction.b.value)
    if not equations or any(p.kind != "eq" for p in reduction.constraints):
        return None
    if any(v.name in related and v.name in in_a | in_b for v in piece.vars):
        return None
    tied = [v for v in reduction.vars if v.name in related]
    depth = tuple(v for v in reduction.vars if v.name not in related)
    if any((v.name in in_a) == (v.name in in_b) for v in tied):
        return None
    if not all(v.name in in_a and v.name in in_b for v in depth):
        return None
    first = linear(equations[0], [v.name for v in tied])
    if first is None or not first.coefficients:
        return None
    lengths = {v.name: v.extent.as_int() or 0 for v in tied}  # not the order of the factors
    lead = max(
        first.coefficients,
        key=lambda n: (abs(first.coefficients[n]), lengths[n], n in in_a),
    )
    a_is_data = lead in in_a
    x, w = (in_a, in_b) if a_is_data else (in_b, in_a)
    free = [v for v in piece.vars if v.name not in related]
    return Columns(
        contraction,
        batch=tuple(v for v in free if v.name in x and v.name in w),
        outer=tuple(v for v in free if v.name in x and v.name not in w),
        data=tuple(v for v in tied if v.name in x),
        inner=tuple(v for v in free if v.name in w and v.name not in x),
        taps=tuple(v for v in tied if v.name in w),
        depth=depth,
        relation=reduction,
    )


def column_equations(name: str, piece: Piece, columns: Columns) -> tuple[Tensor, Equation, Piece]:
    """The same as equations: the column tensor, its product, and the piece that sums it up."""
    reduction = columns.relation
    own = (*columns.batch, *columns.outer, *columns.data, *columns.inner, *columns.taps)
    index, dims = tuple(sym(v.name) for v in own), tuple(v.high for v in own)
    tensor = Tensor(name, reduction.dtype, tuple((d,) for d in dims), "let")
    access = Access(tensor.name, index, dims)
    inner: Expr = reduction.body
    if columns.depth:
        inner = replace(reduction, vars=columns.depth, constraints=())
    equation = Equation(tensor.name, (Piece(own, (), access, inner, "columns", piece.units),))
    tied = tuple(v for v in reduction.vars if v not in columns.depth)
    outer = replace(reduction, vars=tied, body=Load(access, reduction.dtype))
    value = replace_reduction(piece.value, lambda _: outer)
    return tensor, equation, replace(piece, value=value, origin="columns")
