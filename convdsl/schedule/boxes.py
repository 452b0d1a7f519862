"""What one thread reads of an operand, each element once: a box for a copy in registers.

    for j in 0..2                         x[t*4 + (e + 1)//2 - j] with e in 0..8, j in 0..2
      for e in 0..8                       is x[t*4 - 1 + u] with u in 0..6
        y[e] += x[..] * w[..]             copied once, and read as x_row[(e + 1)//2 - j + 1]

Neighbouring results share elements; a copy with one for each iteration would hold them many times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from convdsl.ir.expr import (
    Access,
    Expr,
    Guard,
    Load,
    Pred,
    Scalar,
    Var,
    map_children,
    map_index,
    walk,
)
from convdsl.ir.index import Index, const, floordiv, sym
from convdsl.ir.interval import Interval, always
from convdsl.ir.loop import LANES
from convdsl.passes.guards import reads_inside
from convdsl.passes.names import Names
from convdsl.schedule.box_axes import Axis, axes_of, distinct, iterations, widened
from convdsl.schedule.nest import Loop

MOST = 4096  # iterations that are looked at


@dataclass(frozen=True, slots=True)
class Box:
    """`value` over the box of `loops`, read where the `tests` hold; an iteration is at `place` in it.

    `met` are the conditions of terms that the tests stand for. The last loop has four iterations where
    whole vectors are read.
    """

    value: Expr
    loops: tuple[Loop, ...]
    place: Index
    tests: tuple[Pred, ...]
    met: tuple[Pred, ...]


def box_of(
    factor: Expr,
    moving: Sequence[Loop],
    conditions: Mapping[Pred, Pred],
    sure: Sequence[Pred],
    known: Mapping[str, Interval],
    names: Names,
) -> Box | None:
    """The box of a factor over the loops; None where each iteration reads for itself.

    The `conditions` of terms are given with what they are over the loops. Where one that is `sure`,
    of the moving loops alone, fails, there is no term in the text. Each axis is a sum of what the moving
    loops say and the others.
    """
    within = frozenset(x.name for x in moving)
    if any(isinstance(e, Guard | Scalar) and _free(e) & within for e in walk(factor)):
        return None
    counts = {x.name: x.extent.as_int() or 0 for x in moving}
    if prod(counts.values()) > MOST:
        return None
    live = list(iterations(counts, sure))
    axes = axes_of(factor, within, live)
    merged = _merged(factor, axes)
    if merged != factor:
        factor, axes = merged, axes_of(merged, within, live)
    if axes is None or not distinct(axes) or prod(a.extent for a in axes) > len(live):
        return None
    wide = widened(factor, axes)
    if wide is None and prod(a.extent for a in axes) == len(live):
        return None
    axes = wide or axes
    made: list[Var] = []
    place: list[Index] = []
    new: dict[Index, Index] = {}
    for axis in axes:
        new[axis.index] = axis.base
        for part in axis.parts:
            made.append(Var(names.fresh("u"), const(0), const(part.extent)))
            place.append(floordiv(part.place, const(part.step)) - part.low)
            new[axis.index] += (sym(made[-1].name) + part.low) * part.step
    tests: list[Pred] = []
    met: list[Pred] = []
    for pred, settled in conditions.items():
        index = _moved(settled.index, new, within)
        if index is not None:
            met.append(pred)
            tests.append(Pred(pred.kind, index))
    value = _replaced(factor, new)
    ranges = {**known, **{v.name: (0, (v.extent.as_int() or 1) - 1) for v in made}}
    own = {v.name for v in made}  # the other axes are as they are for each iteration
    tests += [p for p in reads_inside(value) if p.index.free & own and p not in tests]
    left = tuple(p for p in tests if not always(p, ranges))
    lane = names.fresh("lane") if wide is not None else None
    return _box(value, made, place, left, met, lane)


def _merged(factor: Expr, axes: list[Axis] | None) -> Expr:
    """The factor with the last dim merged into the one before, where all of it is read."""
    whole = {
        (a.index, a.extent)
        for a in axes or ()
        if len(a.parts) == 1 and a.parts[0].step == 1 and a.base + a.parts[0].low == 0
    }

    def put(value: Expr) -> Expr:
        if not isinstance(value, Load):
            return map_children(value, put)
        index, dims = list(value.access.index), list(value.access.dims)
        if len(index) < 2 or (index[-1], dims[-1].as_int()) not in whole:
            return value
        last, size = index.pop(), dims.pop()
        index[-1], dims[-1] = index[-1] * size + last, dims[-1] * size
        return Load(Access(value.access.tensor, tuple(index), tuple(dims)), value.dtype)

    return put(factor)


def _moved(index: Index, new: Mapping[Index, Index], moving: frozenset[str]) -> Index | None:
    """A condition's index over the box; None where the moving loops are in it in another way."""
    if not index.free & moving:
        return index
    for old, by in new.items():
        for sign in (1, -1):
            rest = index - old * sign
            if not rest.free & moving:
                return rest + by * sign
    return None


def _replaced(value: Expr, new: Mapping[Index, Index]) -> Expr:
    if isinstance(value, Load):
        index = tuple(new.get(i, i) for i in value.access.index)
        return Load(Access(value.access.tensor, index, value.access.dims), value.dtype)
    return map_children(value, lambda e: _replaced(e, new))


def _free(expr: Expr) -> frozenset[str]:
    match expr:
        case Guard(conditions, _, _):
            return frozenset().union(*(p.index.free for p in conditions))
        case Scalar(index, _):
            return index.free
    return frozenset()


def _box(
    value: Expr,
    made: Sequence[Var],
    place: Sequence[Index],
    tests: Sequence[Pred],
    met: Sequence[Pred],
    lane: str | None,
) -> Box:
    """The record; with a name for `lane` the last axis is read four elements at a time."""
    loops = [Loop(v.name, v.extent, False) for v in made]
    flat = const(0)
    for var, index in zip(made, place, strict=True):
        flat = flat * var.extent + index
    put: dict[str, Index] = {}
    if lane is not None:
        last = loops.pop()
        put = {last.name: sym(last.name) * LANES + sym(lane)}
        loops += [Loop(last.name, last.extent // LANES, False), Loop(lane, const(LANES), False)]

    def lanes(index: Index) -> Index:
        return index.substitute(put)

    moved = tuple(Pred(p.kind, lanes(p.index)) for p in tests)
    return Box(map_index(value, lanes), tuple(loops), flat, moved, tuple(met))
