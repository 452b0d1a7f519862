"""rfactor: the blocks of one summed variable become an index of a tensor of partial results.

    y[m] = b[m] + sum[c in 0..C] f(c, m)
 -> part[p, m] = sum[c in 0..F | p*F + c < C] f(p*F + c, m)
    y[m] = b[m] + sum[p in 0..ceil(C / F)] part[p, m]

The partial results are a box: variables of the piece run from zero in it, and of its guards only those
stay that a read needs.
"""

from __future__ import annotations

from dataclasses import replace

from convdsl.ir.equation import Equation, Piece, Tensor
from convdsl.ir.expr import Access, Const, Expr, Load, Pred, Reduce, Var, ge, map_index
from convdsl.ir.index import Index, ceildiv, const, sym
from convdsl.ir.interval import always, ranges_of
from convdsl.passes.contraction import slowest_first
from convdsl.passes.guards import read_guards
from convdsl.passes.phases import replace_reduction
from convdsl.passes.reduce_loops import identity


def is_box(piece: Piece, reduction: Reduce) -> bool:
    """Whether the terms are all points of a box of sizes: if one block of it has none, no block has."""
    names = {v.name for v in (*piece.vars, *reduction.vars)}
    return not reduction.constraints and not any(
        (v.low.free | v.high.free) & names for v in reduction.vars
    )


def rfactor_equations(
    name: str, part: str, piece: Piece, reduction: Reduce, variable: str, length: int
) -> tuple[Tensor, Equation, Piece]:
    """The tensor of partial results, its equation, and the piece that reduces it.

    The extent of `variable` depends on sizes alone. A max or min with `else` is a box (`is_box`).
    """
    var = next(v for v in reduction.vars if v.name == variable)
    extent = var.extent.as_int()
    block = Var(variable, const(0), const(length if extent is None else min(length, extent)))
    parts = Var(part, const(0), ceildiv(var.extent, length))
    own = slowest_first(piece, piece.vars)
    free = tuple(Var(v.name, const(0), v.extent) for v in own)
    place = sym(part) * length + sym(variable)
    values = {v.name: sym(v.name) + v.low for v in own} | {variable: place + var.low}

    def put(index: Index) -> Index:
        return index.substitute(values)

    inner = map_index(replace(reduction, otherwise=None), put)
    assert isinstance(inner, Reduce)
    inner = replace(inner, vars=tuple(block if v.name == variable else v for v in inner.vars))
    conditions = [*inner.constraints]
    conditions += [Pred(p.kind, put(p.index)) for p in read_guards(piece, reduction)]
    otherwise = None
    filled = reduction.otherwise is None and not conditions and is_box(piece, reduction)
    if reduction.op in ("max", "min") and not filled:
        otherwise = Const(identity(reduction.op, reduction.dtype), reduction.dtype)
    if parts.high * length != var.extent:
        conditions.append(ge(var.extent - 1 - place))
    ranges = ranges_of(inner.vars, ranges_of((parts, *free)))
    kept = tuple(p for p in conditions if not always(p, ranges))
    inner = replace(inner, constraints=kept, otherwise=otherwise)

    dims = (parts.high, *(v.high for v in free))
    tensor = Tensor(name, reduction.dtype, tuple((d,) for d in dims), "let")
    target = Access(name, (sym(part), *(sym(v.name) for v in free)), dims)
    equation = Equation(name, (Piece((parts, *free), (), target, inner, origin="rfactor"),))
    read = Access(name, (sym(part), *(sym(v.name) - v.low for v in own)), dims)
    outer = _of_parts(reduction, parts, variable, Load(read, reduction.dtype))
    value = replace_reduction(piece.value, lambda _: outer)
    return tensor, equation, replace(piece, value=value, origin="rfactor")


def _of_parts(reduction: Reduce, parts: Var, variable: str, body: Expr) -> Reduce:
    """The reduction of the partial results; over none where the other variables have no points."""
    some: tuple[Pred, ...] = ()
    if reduction.otherwise is not None:
        others = [ge(v.extent - 1) for v in reduction.vars if v.name != variable]
        some = tuple(p for p in others if not always(p, {}))
    return Reduce(reduction.op, (parts,), some, body, reduction.otherwise)
