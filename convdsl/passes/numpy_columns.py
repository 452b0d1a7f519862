"""columns: one large matrix product into a column buffer, then overlapping blocks are added up.

    sum[c, k, l | l*s + k*d == o + p] x[n, c, l] * w[c, m, k]
 -> col[l, m, k] = sum[c] x[n, c, l] * w[c, m, k]                   for each n
    y[n, m, o]   = sum[k, l | l*s + k*d == o + p] col[l, m, k]

Summing the variables that stand in no relation first is exact algebra: every product of the definition
is made once and no other one. The long data axis is cut so that the buffer stays below `CAP`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from convdsl.ir.equation import Equation, Piece, Tensor
from convdsl.ir.expr import Access, Binary, Const, Expr, Load, Reduce, Var, free_names
from convdsl.ir.index import Index, ceildiv, const, floordiv, maximum, minimum, product, sym
from convdsl.ir.loop import For, Let, Level, Stmt, Store, nest
from convdsl.passes.contraction import Contraction
from convdsl.passes.numpy_accumulate import at_points
from convdsl.passes.numpy_partial import add_up, wrap
from convdsl.passes.numpy_place import LONG_PHASES, Context, Place, blocked_place, fill_blocked
from convdsl.passes.phases import replace_reduction
from convdsl.passes.points import points_of
from convdsl.passes.reduce_loops import identity
from convdsl.passes.relation import linear

CAP = 64 * 2**20  # bytes of the column buffer
SHORT = 32  # a data axis below this length is merged with the others into one product


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


def lower_columns(context: Context, target: Place, piece: Piece, columns: Columns) -> list[Stmt]:
    """Statements that set `target` to the reduction by way of columns."""
    tied = (*columns.taps, *columns.data)
    merge = bool(columns.data) and (columns.data[0].extent.as_int() or SHORT) < SHORT
    hosted = columns.batch if merge else columns.batch + columns.outer
    rows = columns.outer + columns.data if merge else columns.data
    fixed = frozenset(v.name for v in hosted)

    dtype = columns.relation.dtype
    probe = Load(Access("<columns>", tuple(sym(v.name) for v in tied), ()), dtype)
    relation = replace(columns.relation, vars=tied, body=probe)
    free = tuple(v for v in piece.vars if v.name not in fixed)
    points = points_of(free, relation, context.names, context.data_first, True)
    blocked = blocked_place(context, target, points, fixed)

    flat = columns.inner + columns.taps
    walked = {v.name for v in points.slices}
    long_axis = next((v for v in columns.data if v.name in walked), None)
    length, cut = _block(context, long_axis, (*rows, *flat))
    extents = {v.name: v.high for v in (*rows, *flat)}
    if cut is not None and long_axis is not None:
        extents[long_axis.name] = length
    named = cut is not None and length.as_int() is None
    block = sym(context.names.fresh("block")) if named else length
    if cut is not None:
        cut = Var(cut.name, cut.low, ceildiv(cut.high, block))
    wide = all(p.split.period >= LONG_PHASES and p.dense for p in points.phases.values())
    order = (*rows, *flat) if points.phases and wide else (*flat, *rows)
    col = context.temp("columns", dtype, [extents[v.name] for v in order])

    def column(values: dict[str, Index]) -> Access:
        index = []
        for v in order:
            at = values.get(v.name, sym(v.name))
            if cut is not None and long_axis is not None and v.name == long_axis.name:
                at = at - sym(cut.name) * block
            index.append(at)
        return Access(col.name, tuple(index), col.dims)

    def narrowed(v: Var) -> Var:
        if cut is None or long_axis is None or v.name != long_axis.name:
            return v
        start = sym(cut.name) * block
        return Var(v.name, maximum(v.low, start), minimum(v.high, start + block))

    zero = identity("sum", dtype)
    body = _product(columns, column({}), [narrowed(v) for v in order])
    slices: list[tuple[Var, Level]] = [(narrowed(v), "slice") for v in points.slices]
    add = Store(
        at_points(blocked.place.access, points), Load(column(points.values), probe.dtype), "+"
    )
    names = [v.name for v in piece.vars]
    if add.value.dtype == "f32":
        body += add_up(context, points.host, nest(slices, (add,)), blocked.place.access, names)
    else:
        body += wrap(points.host, nest(slices, (add,)))
    if cut is not None:
        body = (For(cut, "host", body),)
    if blocked.spread:
        body = (fill_blocked(context, blocked, zero), *body, *blocked.spread)
    out: list[Stmt] = [] if blocked.covers else [target.fill(zero)]
    body = nest([(v, "host") for v in hosted], body)
    if named:
        body = (Let(str(block), length, body),)
    return [*out, *body]


def _product(columns: Columns, access: Access, order: list[Var]) -> tuple[Stmt, ...]:
    """`col = 0; col += a * b` as a matrix product over the depth; without depth an outer product."""
    contraction = columns.contraction
    in_x = {v.name for v in columns.outer + columns.data}
    levels: list[tuple[Var, Level]] = [(v, "gemm.m" if v.name in in_x else "gemm.n") for v in order]
    a, b = contraction.a.value, contraction.b.value
    if not any(n in free_names(a) for n in in_x):
        a, b = b, a
    plain: list[tuple[Var, Level]] = [(v, "slice") for v in order]
    if not columns.depth:
        return nest(plain, (Store(access, Binary("*", a, b)),))
    levels += [(v, "gemm.k") for v in columns.depth]
    clear = nest(plain, (Store(access, Const(0, contraction.reduction.dtype)),))
    return clear + nest(levels, (Store(access, Binary("*", a, b), "+"),))


def _block(context: Context, axis: Var | None, every: tuple[Var, ...]) -> tuple[Index, Var | None]:
    """How much of the data axis fits the cap, and if it is cut a loop variable over the whole axis."""
    known = (product(v.extent for v in every) * 4).as_int()
    if axis is None or (known is not None and known <= CAP):
        return const(0), None
    other = product(v.extent for v in every if v is not axis) * 4
    per = other.as_int()
    if per is not None:
        block = const(max(1, CAP // max(1, per)))
    else:
        block = maximum(1, minimum(axis.high, floordiv(const(CAP), maximum(1, other))))
    return block, Var(context.names.fresh("cut"), const(0), axis.high)


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
    equation = Equation(tensor.name, (Piece(own, (), access, inner, origin="columns"),))
    tied = tuple(v for v in reduction.vars if v not in columns.depth)
    outer = replace(reduction, vars=tied, body=Load(access, reduction.dtype))
    value = replace_reduction(piece.value, lambda _: outer)
    return tensor, equation, replace(piece, value=value, origin="columns")
