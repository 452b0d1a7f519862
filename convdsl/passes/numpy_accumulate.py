"""Accumulate all terms of a reduction: host loops over taps, one NumPy statement inside."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Access, Binary, Const, Expr, Reduce, Var, free_names, ge, map_index
from convdsl.ir.index import (
    Index,
    ceildiv,
    const,
    floordiv,
    maximum,
    minimum,
    product,
    sym,
)
from convdsl.ir.interval import interval
from convdsl.ir.loop import If, Let, Level, Stmt, Store, nest
from convdsl.passes.contraction import Contraction
from convdsl.passes.numpy_partial import ROW, add_up, row_block, wrap
from convdsl.passes.numpy_place import Context, Place, blocked_place, fill_blocked
from convdsl.passes.points import Name, Points, points_of
from convdsl.passes.reduce_loops import ACCUMULATE, identity

SMALL_PRODUCT = 2**21  # multiplications
NARROW_PRODUCT = 8  # rows or columns
TERMS = 2**22  # elements of a temporary that is about to be summed


def accumulate(
    context: Context,
    target: Place,
    piece: Piece,
    reduction: Reduce,
    contraction: Contraction | None,
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
    roles = _roles(points, access, contraction)
    cuts: list[tuple[Var, Level]] = []
    named: Name | None = None
    if roles is None:
        in_rows = reduction.op == "sum" and reduction.dtype == "f32"
        cuts, slices = _cut(context, points.slices, access, in_rows)
        inner = nest([(v, "slice") for v in slices], (update,))
    else:
        a, b, levels = roles
        whole = {v.name: v.extent for v in (*piece.vars, *reduction.vars)}
        cuts, levels, named = _cut_product(context, levels, whole)
        inner = nest(levels, (replace(update, value=Binary("*", a, b)),))
    if hits is not None:
        inner += _mark(hits, points)
    body = nest(cuts, inner)
    if named is not None:
        body = (Let(named.name, named.value, body),)
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


def _roles(
    points: Points, access: Access, contraction: Contraction | None
) -> tuple[Expr, Expr, list[tuple[Var, Level]]] | None:
    """The operands and the gemm roles of the slice variables; None where slices do as well."""
    if contraction is None:
        return None
    a, b = _put(contraction.a.value, points), _put(contraction.b.value, points)
    in_a, in_b, in_c = free_names(a), free_names(b), access.free
    roles: list[tuple[Var, Level]] = []
    depth = const(1)
    for var in points.slices:
        one, two, three = (var.name in s for s in (in_a, in_b, in_c))
        if one and two:
            roles.append((var, "gemm.batch" if three else "gemm.k"))
            depth = depth if three else depth * var.extent
        elif three:
            roles.append((var, "gemm.m" if one else "gemm.n"))
        else:
            return None
    if depth == 1:
        return None
    ranks: dict[Level, int] = {"gemm.batch": 0, "gemm.m": 1, "gemm.n": 2, "gemm.k": 3}
    roles.sort(key=lambda r: ranks[r[1]])
    return a, b, roles


def _cut(
    context: Context, slices: list[Var], access: Access, in_rows: bool
) -> tuple[list[tuple[Var, Level]], list[Var]]:
    """Host loops over blocks, so that terms waiting to be summed stay below `TERMS`.

    `in_rows`: the terms of one result are cut too, so that no plain sum grows long.

    A sum over slices that are not in the result exists for a moment as an array of all its terms.
    """
    if all(v.name in access.free for v in slices):
        return [], slices
    cuts: list[tuple[Var, Level]] = []
    out = list(slices)
    for at, var in enumerate(slices if in_rows else ()):
        row = row_block(_most(var)) if var.name not in access.free else None
        if row is not None:
            cut = Var(context.names.fresh("row"), const(0), ceildiv(var.extent, row))
            start = var.low + sym(cut.name) * row
            cuts.append((cut, "host"))
            out[at] = Var(var.name, start, minimum(start + row, var.high))
    for at, var in sorted(enumerate(slices), key=lambda av: -(_most(av[1]).as_int() or 2**62)):
        if var.name not in access.free:
            continue
        others = product(_most(v) for n, v in enumerate(out) if n != at)
        count = (others * _most(out[at])).as_int()
        if count is not None and count <= TERMS:
            break
        block = maximum(1, floordiv(const(TERMS), maximum(1, others)))
        cut = Var(context.names.fresh("cut"), const(0), ceildiv(var.extent, block))
        start = var.low + sym(cut.name) * block
        cuts.append((cut, "host"))
        out[at] = Var(var.name, start, minimum(start + block, var.high))
        if count is None:
            break
    return cuts, out


def _most(var: Var) -> Index:
    """The largest extent that a slice may have, where that is known."""
    high = interval(var.extent, {})[1]
    return var.extent if high is None else const(max(high, 0))


def _cut_product(
    context: Context, levels: list[tuple[Var, Level]], whole: Mapping[str, Index]
) -> tuple[list[tuple[Var, Level]], list[tuple[Var, Level]], Name | None]:
    """Host loops over blocks of terms where BLAS would add them up one after the other.

    It blocks large products by itself; small and narrow ones run through kernels that do not. `whole`
    are the extents of the variables, which a slice may narrow. With unknown sizes the length of a
    block is a name, worked out when the program runs.
    """
    sizes: dict[str, Index] = dict.fromkeys(("gemm.batch", "gemm.m", "gemm.n", "gemm.k"), const(1))
    for var, level in levels:
        if var.name not in whole:
            return [], levels, None
        sizes[level] = sizes[level] * whole[var.name]
    summed = [n for n, (_, level) in enumerate(levels) if level == "gemm.k"]
    at = max(summed, key=lambda n: whole[levels[n][0].name].as_int() or 2**31)
    var = levels[at][0]
    work = sizes["gemm.m"] * sizes["gemm.n"] * sizes["gemm.k"]
    m, n, k = (sizes[f"gemm.{role}"].as_int() for role in "mnk")
    named: Name | None = None
    if m is not None and n is not None and k is not None:
        if k <= 2 * ROW or (m * n * k > SMALL_PRODUCT and min(m, n) >= NARROW_PRODUCT):
            return [], levels, None
        block = const(max(1, ROW * (whole[var.name].as_int() or 1) // k))
    else:
        extent = whole[var.name]
        all_of_it = floordiv(work, const(SMALL_PRODUCT)) * extent
        named = Name(context.names.fresh("rows"), maximum(ROW, minimum(extent, all_of_it)))
        block = sym(named.name)
    cut = Var(context.names.fresh("row"), const(0), ceildiv(var.extent, block))
    start = var.low + sym(cut.name) * block
    out = list(levels)
    out[at] = (Var(var.name, start, minimum(start + block, var.high)), "gemm.k")
    return [(cut, "host")], out, named
