"""Where a scheduled nest of a host program adds up its results, and how they get to their tensor.

In place, where the loops walk whole axes of the tensor: `y[n, t*8 + r]` over all t and r is y as
[n, t, r]. Otherwise in a buffer with an axis a loop, in the order of the loops: with the phase `r` just
inside the block `t` it holds the results in their own order, and is copied at once; else a phase at a
time.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from convdsl.ir.atoms import Fn
from convdsl.ir.expr import (
    Access,
    Const,
    Expr,
    Guard,
    Load,
    Pred,
    Reduce,
    Select,
    ValueType,
    Var,
    ge,
    loads,
    map_access,
    map_children,
    map_index,
)
from convdsl.ir.index import Index, const, floordiv, modulo, sym
from convdsl.ir.interval import ranges_of
from convdsl.ir.loop import If, Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.numpy_place import Context
from convdsl.passes.phases import empty_value, replace_reduction
from convdsl.passes.sides import overlap
from convdsl.schedule.nest import Loop, Nest
from convdsl.schedule.numpy_slices import over, over_inner, with_rest
from convdsl.schedule.rejoin import rejoin

SHORT = 8  # neighbours
Body = tuple[Stmt, ...]
Put = Callable[[Index], Index]
_HOLE = Load(Access("<sum>", (), ()), "f32")


def store_elements(
    nest: Nest, own: Sequence[Loop], conditions: Sequence[Pred], ranges: Mapping[str, Var]
) -> Body:
    """A piece without a sum: each element stored over the loops `own`."""
    access = map_access(nest.piece.access, nest.put)
    value = map_index(nest.piece.value, nest.put)
    variables = [ranges[x.name] for x in own]
    lengths = {x.name: x.extent.as_int() for x in own}
    if isinstance(value, Guard) and not loads(value.otherwise):
        return with_rest(variables, conditions, value.conditions, access, value, lengths)
    return over(variables, conditions, Store(access, value), (), lengths)


class Results:
    """The sums of a nest over the loops `own`, where `conditions` hold: filled, added to, stored.

    `terms` are conditions of the terms: where a result has one of them, too, nothing is added outside.
    """

    def __init__(
        self,
        context: Context,
        nest: Nest,
        reduction: Reduce,
        own: Sequence[Loop],
        conditions: Sequence[Pred],
        ranges: Mapping[str, Var],
        terms: Sequence[Pred],
    ) -> None:
        self.context = context
        self.nest = nest
        self.reduction = reduction
        self.own = tuple(own)
        self.vars = tuple(ranges[x.name] for x in own)
        self.conditions = tuple(conditions)
        self.lengths = {x.name: x.extent.as_int() for x in own}
        names = set(self.lengths)
        self.ends = [p for p in conditions if p in terms and len(p.index.free & names) == 1]
        self.element = map_access(nest.piece.access, nest.put)
        same = context.system.tensor(self.element.tensor).dtype == reduction.dtype
        in_place = same and not nest.piece.guards and _walks_axes(self.element, self.own)
        self.target = self.element if in_place else self.buffer("acc", reduction.dtype)
        self.hit = None if reduction.otherwise is None else self.buffer("hit", "i32")

    def buffer(self, wanted: str, dtype: ValueType) -> Access:
        """A buffer with an axis for each loop, at the current iteration."""
        made = self.context.temp(wanted, dtype, [x.extent for x in self.own])
        return Access(made.name, tuple(sym(x.name) for x in self.own), made.dims)

    def set_all(self, access: Access, value: Expr, accumulate: bool = False) -> Body:
        """Store to all results, or to their places in a buffer."""
        store = Store(access, value, "+" if accumulate else None)
        if access == self.element:
            return over(self.vars, self.conditions, store, (), self.lengths)
        return over([Var(x.name, const(0), x.extent) for x in self.own], self.ends, store)

    def fill(self, value: float | int) -> Body:
        """Begin with this value, and nothing hit."""
        out = self.set_all(self.target, Const(value, self.reduction.dtype))
        if self.hit is not None:
            out += self.set_all(self.hit, Const(0, "i32"))
        return out

    def begin(self, inner: Sequence[Pred], first: Expr, rest: Const) -> Body:
        """Begin with a first term where it has one, else with the `rest`."""
        inner = [p for p in inner if p not in self.conditions]
        guard = Guard(tuple(inner), first, rest)
        if self.target == self.element:
            own, conditions = self.vars, list(self.conditions)
        else:
            own = tuple(Var(x.name, const(0), x.extent) for x in self.own)
            conditions = self.ends
        if not inner:
            return over(own, conditions, Store(self.target, first), (), self.lengths)
        return with_rest(own, conditions, inner, self.target, guard, self.lengths)

    def mark(self, variables: Sequence[Var]) -> Body:
        """Mark the results that a statement over these slices reaches, if it has a term at all."""
        if self.hit is None:
            return ()
        along = [v for v in variables if v.name in self.hit.free]
        others = [v for v in variables if v.name not in self.hit.free]
        body = nested([(v, "slice") for v in along], (Store(self.hit, Const(1, "i32")),))
        return (If(tuple(ge(v.extent - 1) for v in others), body),) if others else body

    def store(self) -> Body:
        """The results in their tensor, through what stands around the sum."""
        nest = self.nest
        around = map_index(replace_reduction(nest.piece.value, lambda _: _HOLE), nest.put)
        if around == _HOLE and self.target == self.element and self.hit is None:
            return ()
        joined = self._joined(around)
        if joined is not None:
            return joined
        value = _filled(around, self._total(self.target, self.hit, nest.put))
        apart = _interleaved(self.element, self.vars)
        store, known = Store(self.element, value), ranges_of(self._loops())
        return over_inner(self.vars, self.conditions, store, apart, self.lengths, known)

    def _loops(self) -> list[Var]:
        """All loops of the nest, those around as well."""
        return [Var(x.name, const(0), x.extent) for x in self.nest.loops]

    def _total(self, target: Access, hit: Access | None, put: Put) -> Expr:
        total: Expr = Load(target, self.reduction.dtype)
        if hit is None:
            return total
        none = map_index(empty_value(self.reduction), put)
        return Select("!=", Load(hit, "i32"), Const(0, "i32"), total, none)

    def _joined(self, around: Expr) -> Body | None:
        """One copy for neighbouring loops t, r that make up an axis as t*s + r with r in 0..s."""
        if self.target == self.element:
            return None
        for at, (outer, inner) in enumerate(zip(self.own, self.own[1:], strict=False)):
            for index, dim in zip(self.element.index, self.element.dims, strict=True):
                steps = index.coefficient(outer.name), index.coefficient(inner.name)
                if (inner.extent.as_int() or 0) > 0 and steps == (inner.extent, const(1)):
                    return self._join(around, at, index, dim)
        return None

    def _join(self, around: Expr, at: int, index: Index, dim: Index) -> Body | None:
        outer, inner = self.own[at], self.own[at + 1]
        width, span = inner.extent, outer.extent * inner.extent
        shift = index.without(outer.name).without(inner.name)
        name = self.context.names.fresh("o")
        flat = sym(name) - shift
        values = {outer.name: floordiv(flat, width), inner.name: modulo(flat, width)}

        def put(i: Index) -> Index:
            return rejoin(i.substitute(values))

        def flattened(access: Access) -> Access:
            place = (*access.index[:at], flat, *access.index[at + 2 :])
            return Access(access.tensor, place, (*access.dims[:at], span, *access.dims[at + 2 :]))

        hit = None if self.hit is None else flattened(self.hit)
        total = self._total(flattened(self.target), hit, lambda i: put(self.nest.put(i)))
        value = _filled(map_index(around, put), total)
        element = map_access(self.element, put)
        conditions = [Pred(p.kind, put(p.index)) for p in self.conditions]
        read = [i for load in loads(value) for i in load.access.index]
        if any(
            _in_function(i, name) for i in (*element.index, *read, *(p.index for p in conditions))
        ):
            return None
        conditions += [ge(flat), ge(span - 1 - flat)]
        loop = Var(name, const(0), dim)
        return over(
            (*self.vars[:at], loop, *self.vars[at + 2 :]), conditions, Store(element, value)
        )


def _interleaved(element: Access, variables: Sequence[Var]) -> list[str]:
    """Short runs of neighbours in the result, and what lies between others: stored one after the other.

    One strided copy for each of them is faster than one for all.
    """
    last = element.index[-1] if element.index else const(0)
    along = [v for v in variables if v.name in last.free and v.extent.as_int() is not None]
    along.sort(key=lambda v: v.extent.as_int() or 0)
    return [
        v.name
        for n, v in enumerate(along[:-1])
        if ((v.extent.as_int() or 0) < SHORT and last.coefficient(v.name) == 1)
        or any(overlap(last, v, other) for other in along[n + 1 :])
    ]


def _walks_axes(element: Access, own: Sequence[Loop]) -> bool:
    """Whether the loops of each axis are its digits, the fastest one with a step of one."""
    for index, dim in zip(element.index, element.dims, strict=True):
        mine = [x for x in own if x.name in index.free]
        if not index.is_affine_in([x.name for x in mine]):
            return False
        steps = {index.coefficient(x.name): x.extent for x in mine}
        step = const(1)
        while step in steps:
            step = step * steps.pop(step)
        whole = step == dim or len(mine) < 2
        if steps or not whole:
            return False
    return True


def _in_function(index: Index, name: str) -> bool:
    """Whether a name stands inside a quotient, remainder, minimum or maximum."""
    atoms = (atom for monomial, _ in index.terms for atom in monomial)
    return any(isinstance(a, Fn) and any(name in x.free for x in a.args) for a in atoms)


def _filled(value: Expr, by: Expr) -> Expr:
    return by if value == _HOLE else map_children(value, lambda e: _filled(e, by))
