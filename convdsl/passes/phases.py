"""phases: turn relations into dense filters, so that a reduction becomes an implicit matrix product.

    y[n, m, o] = b[m] + sum[c, k, l | l*s + k*d == o + p] x[n, c, l] * w[c, m, k]
 -> y[n, m, t*s + r*d - p] = b[m] + sum[c, j] x[n, c, t - d'*j] * w[c, m, j*s' + r]
                                                     where 0 <= t - d'*j < L and j*s' + r < K

with the phase r a loop of its own (`convdsl.passes.relation`). Where a reduced variable has coefficient
1 and eliminating it visits fewer points (a convolution: l = o*s + k*d - p), that is done instead.
Positions that no tap reaches become pieces of their own, which hold the empty sum.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from convdsl.ir.equation import Piece
from convdsl.ir.expr import (
    Const,
    Expr,
    Pred,
    Reduce,
    Var,
    ge,
    loads,
    map_access,
    map_children,
    map_index,
)
from convdsl.ir.index import Index, ceildiv, const, modulo, product, sym
from convdsl.ir.interval import always, ranges_of
from convdsl.passes.names import Names
from convdsl.passes.relation import Linear, PhaseSplit, inside, linear, solve_unit, split_phases
from convdsl.passes.simplify import without_units


@dataclass(frozen=True, slots=True)
class _Way:
    """One way to treat an equation; `visits` counts the points of the box that it leaves."""

    unit: str | None
    split: PhaseSplit | None
    visits: Index


@dataclass(frozen=True, slots=True)
class Solved:
    """The relation with `name` was solved for it."""

    name: str


@dataclass(frozen=True, slots=True)
class Phased:
    """The relation between `output` and `tap` was split: new names for block, phase and tap block."""

    output: str
    tap: str
    block: str
    phase: str
    taps: str


@dataclass(frozen=True, slots=True)
class DenseForm:
    """The dense piece first, then its holes; `ways` says how each equation was treated."""

    pieces: tuple[Piece, ...]
    ways: tuple[Solved | Phased, ...]


def dense_form(
    piece: Piece, data_first: Sequence[str], data: frozenset[str] = frozenset()
) -> DenseForm | None:
    """All relations of a piece made dense, or None where some equation has no such form.

    `data_first` lists tensors in the order of the op's signature: with unknown sizes, the variable of
    the earlier tensor is taken to be the long one, unless `data` names the long ones.
    """
    reduction = the_reduction(piece.value)
    if reduction is None:
        return None
    names = Names({v.name for v in piece.vars} | {v.name for v in reduction.vars})
    pieces: tuple[Piece, ...] = (piece,)
    ways: list[Solved | Phased] = []
    while (found := next_equation(pieces[0])) is not None:
        way = _best_way(pieces[0], *found, data_first, data)
        if way is None:
            return None
        if way.unit is not None:
            ways.append(Solved(way.unit))
            pieces = (simplified(_eliminate(pieces[0], *found, way.unit)), *pieces[1:])
            continue
        assert way.split is not None
        fresh = (names.fresh("t"), names.fresh("r"), names.fresh("j"))
        ways.append(Phased(way.split.output, way.split.tap, *fresh))
        dense, holes = _split(pieces[0], *found, way.split, fresh, names)
        pieces = (simplified(dense), *pieces[1:], *(simplified(h) for h in holes))
    return DenseForm(pieces, tuple(ways))


def solve_for(piece: Piece, name: str) -> Piece | None:
    """The relation of a reduced variable solved for it; None where its coefficient is not 1 or -1."""
    found = equation_with(piece, name)
    if found is None:
        return None
    form = linear(found[1].index, [v.name for v in (*piece.vars, *found[0].vars)])
    if form is None or abs(form.coefficients.get(name, 0)) != 1:
        return None
    return simplified(_eliminate(piece, *found, name))


def split_relation(
    piece: Piece, output: str, tap: str, fresh: tuple[str, str, str], taken: Iterable[str]
) -> tuple[Piece, ...] | None:
    """The relation between `output` and `tap` split into phases: the dense piece and its holes.

    `fresh` are new names for block, phase and tap block; `taken` are names that no index may have.
    """
    found = split_of(piece, output, tap)
    if found is None:
        return None
    reduction, pred, split = found
    variables = {v.name for v in (*piece.vars, *reduction.vars)}
    names = Names({*variables, *fresh, *taken})
    dense, holes = _split(piece, reduction, pred, split, fresh, names)
    return (simplified(dense), *(simplified(h) for h in holes))


def split_of(piece: Piece, output: str, tap: str) -> tuple[Reduce, Pred, PhaseSplit] | None:
    """The reduction, its relation between `output` and `tap`, and the phases of that."""
    found = equation_with(piece, output, tap)
    if found is None:
        return None
    reduction, pred = found
    variables = {v.name: v for v in (*piece.vars, *reduction.vars)}
    form = linear(pred.index, variables)
    if form is None or len(form.coefficients) != 3:
        return None
    (data,) = set(form.coefficients) - {output, tap}
    if data not in {v.name for v in reduction.vars}:
        return None
    split = split_phases(form, variables[output], variables[data], variables[tap])
    return None if split is None else (reduction, pred, split)


def rewritten(
    piece: Piece, pred: Pred, reads: tuple[Pred, ...], fresh: Var, values: dict[str, Index]
) -> Piece:
    """The piece with reduced variables replaced by `fresh`, and a relation by what it still asks for."""
    dense = with_vars(without(piece, pred, reads), tuple(values), (fresh,))
    return simplified(substituted(dense, values, piece.vars))


def equation_with(piece: Piece, *names: str) -> tuple[Reduce, Pred] | None:
    """The reduction and its first equation that has all these variables."""
    reduction = the_reduction(piece.value)
    if reduction is None:
        return None
    return next(
        (
            (reduction, p)
            for p in reduction.constraints
            if p.kind == "eq" and all(n in p.index.free for n in names)
        ),
        None,
    )


def next_equation(piece: Piece) -> tuple[Reduce, Pred] | None:
    """The reduction with its first equation that is still to be solved."""
    return equation_with(piece)


def the_reduction(value: Expr) -> Reduce | None:
    """The only reduction of a value, not nested; None when there are none or several different ones."""
    found: list[Reduce] = []

    def visit(e: Expr) -> Expr:
        if isinstance(e, Reduce):
            if e not in found:
                found.append(e)
            return e
        return map_children(e, visit)

    visit(value)
    return found[0] if len(found) == 1 else None


def replace_reduction(value: Expr, by: Callable[[Reduce], Expr]) -> Expr:
    """The value with each outermost reduction replaced."""
    if isinstance(value, Reduce):
        return by(value)
    return map_children(value, lambda e: replace_reduction(e, by))


def empty_value(reduction: Reduce) -> Expr:
    """The reduction over no points."""
    dtype = reduction.dtype
    match reduction.op:
        case "sum":
            return Const(0, dtype)
        case "prod":
            return Const(1, dtype)
        case _:
            return reduction.otherwise or Const(0, dtype)


def _best_way(
    piece: Piece,
    reduction: Reduce,
    pred: Pred,
    data_first: Sequence[str],
    data: frozenset[str],
) -> _Way | None:
    index = pred.index
    form = linear(index, [v.name for v in piece.vars + reduction.vars])
    if form is None:
        return None
    extents = {v.name: v for v in piece.vars + reduction.vars}
    reduced = [v for v in reduction.vars if v.name in form.coefficients]
    free = [v for v in piece.vars if v.name in form.coefficients]
    others = [p for p in reduction.constraints if p.index != index]
    coupled = any(v.name in p.index.free for p in others for v in reduced)
    ways = [
        _Way(v.name, None, product(extents[n].extent for n in form.coefficients if n != v.name))
        for v in reduced
        if abs(form.coefficients[v.name]) == 1
    ]
    if len(reduced) == 2 and len(free) == 1 and not coupled:
        for source, tap in (reduced, reduced[::-1]):
            split = split_phases(form, free[0], source, tap)
            if split is not None:
                visits = (split.high - split.low) * split.phases * split.taps
                ways.append(_Way(None, split, visits))
    if not ways:
        return None
    if all(w.visits.as_int() is not None for w in ways):
        return min(ways, key=lambda w: w.visits.as_int() or 0)
    return max(ways, key=lambda w: _likely(w, form, reduction, data_first, data))


def _likely(
    way: _Way,
    form: Linear,
    reduction: Reduce,
    data_first: Sequence[str],
    data: frozenset[str],
) -> tuple[int, int]:
    """With unknown sizes: solve for the variable of the earliest tensor; a plain unit way first."""
    solved = way.unit if way.unit is not None else way.split.data if way.split else ""
    ranks = {
        name: -1 if name in data else min(
            (data_first.index(a.access.tensor) for a in loads(reduction.body)
             if name in a.access.free and a.access.tensor in data_first),
            default=len(data_first),
        )
        for name in form.coefficients
    }  # fmt: skip
    stride = max(abs(c) for c in form.coefficients.values())
    if way.unit is not None and stride > 1 and abs(form.coefficients[way.unit]) < stride:
        others = [
            n for n in form.coefficients if n != way.unit and n in {v.name for v in reduction.vars}
        ]
        if any(abs(form.coefficients[n]) > 1 for n in others):
            return (
                -1,
                0,
            )  # the other variable steps over most of this one's range: phases are denser
    return (-ranks.get(solved, 0), 1 if way.unit is not None else 0)


def without(piece: Piece, pred: Pred, extra: tuple[Pred, ...] = ()) -> Piece:
    """The piece with one condition of its reduction dropped and others added."""

    def change(r: Reduce) -> Expr:
        return replace(r, constraints=tuple(p for p in r.constraints if p != pred) + extra)

    return replace(piece, value=replace_reduction(piece.value, change))


def with_vars(piece: Piece, gone: tuple[str, ...], more: tuple[Var, ...] = ()) -> Piece:
    """The piece with reduced variables replaced."""

    def change(r: Reduce) -> Expr:
        return replace(r, vars=tuple(v for v in r.vars if v.name not in gone) + more)

    return replace(piece, value=replace_reduction(piece.value, change))


def _eliminate(piece: Piece, reduction: Reduce, pred: Pred, name: str) -> Piece:
    form = linear(pred.index, [v.name for v in (*piece.vars, *reduction.vars)])
    assert form is not None
    value = solve_unit(form, name)
    var = next(v for v in reduction.vars if v.name == name)
    solved = with_vars(without(piece, pred, inside(var, sym(name))), (name,))
    return substituted(solved, {name: value}, piece.vars)


def _split(
    piece: Piece,
    reduction: Reduce,
    pred: Pred,
    split: PhaseSplit,
    fresh: tuple[str, str, str],
    names: Names,
) -> tuple[Piece, list[Piece]]:
    out = next(v for v in piece.vars if v.name == split.output)
    data = next(v for v in reduction.vars if v.name == split.data)
    tap = next(v for v in reduction.vars if v.name == split.tap)
    t, r, j = fresh
    position = sym(t) * split.stride + sym(r) * split.tap_stride + split.offset
    values = {
        split.output: position,
        split.tap: sym(j) * split.period + sym(r),
        split.data: (sym(t) - sym(j) * split.lag) * split.sign,
    }
    reads = (*inside(data, sym(data.name)), ge(tap.high - 1 - sym(tap.name)))
    dense = with_vars(
        without(piece, pred, reads), (data.name, tap.name), (Var(j, const(0), split.taps),)
    )
    along = Var(t, split.low, split.high)
    variables = replace_var(piece.vars, out.name, (along, Var(r, const(0), split.phases)))
    dense = substituted(dense, values, variables)
    dense = replace(dense, guards=dense.guards + inside(out, position), origin="phases")

    empty = replace(piece, value=replace_reduction(piece.value, empty_value), origin="hole")
    holes: list[Piece] = []
    if split.phases != split.period:
        unreached = Var(r, split.phases, const(split.period))
        hole = substituted(
            empty, {out.name: position}, replace_var(piece.vars, out.name, (along, unreached))
        )
        holes.append(replace(hole, guards=hole.guards + inside(out, position)))
    if split.gap > 1:
        q, h = names.fresh(f"{t}_gap"), names.fresh(f"{r}_gap")
        place = sym(q) * split.gap + modulo(sym(h) + split.offset, const(split.gap))
        between = (
            Var(q, const(0), ceildiv(out.high, split.gap)),
            Var(h, const(1), const(split.gap)),
        )
        hole = substituted(empty, {out.name: place}, replace_var(piece.vars, out.name, between))
        holes.append(replace(hole, guards=(*hole.guards, ge(out.high - 1 - place))))
    return dense, holes


def substituted(piece: Piece, values: dict[str, Index], variables: tuple[Var, ...]) -> Piece:
    """The piece over other variables, which give the values of old ones."""

    def put(i: Index) -> Index:
        return i.substitute(values)

    return replace(
        piece,
        vars=variables,
        guards=tuple(Pred(p.kind, put(p.index)) for p in piece.guards),
        access=map_access(piece.access, put),
        value=map_index(piece.value, put),
    )


def replace_var(variables: tuple[Var, ...], name: str, by: tuple[Var, ...]) -> tuple[Var, ...]:
    """The variables with others in the place of one."""
    at = [v.name for v in variables].index(name)
    return variables[:at] + by + variables[at + 1 :]


def simplified(piece: Piece) -> Piece:
    """Drop conditions that always hold, and summed variables of extent one that no relation needs."""
    ranges = ranges_of(piece.vars)

    def clean(r: Reduce) -> Expr:
        inner = ranges_of(r.vars, ranges)
        kept = replace(r, constraints=tuple(p for p in r.constraints if not always(p, inner)))
        return without_units(
            kept, {n for p in kept.constraints if p.kind == "eq" for n in p.index.free}
        )

    return replace(
        piece,
        guards=tuple(p for p in piece.guards if not always(p, ranges)),
        value=replace_reduction(piece.value, clean),
    )
