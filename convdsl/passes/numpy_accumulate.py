"""Accumulate all terms of a reduction: host loops over taps, one NumPy statement inside."""

from __future__ import annotations

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Access, Const, Expr, Reduce, ge, map_index
from convdsl.ir.index import Index
from convdsl.ir.loop import If, Stmt, Store, nest
from convdsl.passes.numpy_cut import cut_terms
from convdsl.passes.numpy_partial import add_up, wrap
from convdsl.passes.numpy_place import Context, Place, blocked_place, fill_blocked
from convdsl.passes.points import Points, points_of
from convdsl.passes.reduce_loops import ACCUMULATE, identity


def accumulate(
    context: Context,
    target: Place,
    piece: Piece,
    reduction: Reduce,
    hits: Place | None,
) -> list[Stmt]:
    """Statements that set `target` to the reduction (and mark in `hits` where it has a point)."""
    use_phases = reduction.op == "sum"
    points = points_of(piece.vars, reduction, context.names, context.data_first, use_phases)
    blocked = blocked_place(context, target, points, frozenset())
    start = identity(reduction.op, reduction.dtype)
    out: list[Stmt] = [] if blocked.covers else [target.fill(start)]
    if blocked.spread:
        out.append(fill_blocked(context, blocked, start))
    if hits is not None:
        out.append(hits.fill(0))

    access = at_points(blocked.place.access, points)
    update = Store(access, _put(reduction.body, points), ACCUMULATE[reduction.op])
    in_rows = reduction.op == "sum" and reduction.dtype == "f32"
    cuts, slices = cut_terms(context.names, points.slices, access, in_rows)
    inner = nest([(v, "slice") for v in slices], (update,))
    if hits is not None:
        inner += _mark(hits, points)
    body = nest(cuts, inner)
    if reduction.op == "sum" and reduction.dtype == "f32":
        outputs = [v.name for v in piece.vars]
        out += add_up(context, points.host, body, blocked.place.access, outputs)
    else:
        out += wrap(points.host, body)
    out += blocked.spread
    return out


def at_points(access: Access, points: Points) -> Access:
    """An access in terms of host names and slice variables."""
    index = tuple(i.substitute(points.values) for i in access.index)
    return Access(access.tensor, index, access.dims)


def _put(value: Expr, points: Points) -> Expr:
    def substitute(index: Index) -> Index:
        return index.substitute(points.values)

    return map_index(value, substitute)


def _mark(hits: Place, points: Points) -> tuple[Stmt, ...]:
    """Mark what this step reaches, provided that it has a point at all."""
    access = at_points(hits.access, points)
    along = [v for v in points.slices if v.name in access.free]
    others = [v for v in points.slices if v.name not in access.free]
    mark = nest([(v, "slice") for v in along], (Store(access, Const(1, "i32")),))
    return (If(tuple(ge(v.extent - 1) for v in others), mark),) if others else mark
