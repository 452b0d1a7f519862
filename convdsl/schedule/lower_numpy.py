"""Lower a scheduled nest to a host program in loop IR: Python loops around NumPy statements.

    host loops over results
      acc[...] = empty                              slices
      host loops over terms
        part[...] = 0; part[...] += term            slices, or the roles of a matrix product
        acc[...] += part                            after each iteration of `partial`
      result = epilogue(acc)                        slices

Conditions become bounds of loops: no term is computed that the definition does not have, so special
values come out as defined. `acc` is the result itself where it can be (`schedule.numpy_results`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from convdsl.ir.expr import (
    Access,
    Binary,
    Const,
    Expr,
    Load,
    Pred,
    Reduce,
    Var,
    ge,
    map_index,
)
from convdsl.ir.index import Index, const, maximum, minimum
from convdsl.ir.interval import always, ranges_of, simplest
from convdsl.ir.loop import For, If, Let, Level, Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.numpy_cut import cut_product, cut_terms
from convdsl.passes.numpy_place import Context
from convdsl.passes.reduce_loops import ACCUMULATE, identity
from convdsl.passes.relation import bounds_from
from convdsl.schedule.check_numpy import check_numpy, refuse_condition
from convdsl.schedule.nest import Loop, Nest, conditions_of, product_factors, result_conditions
from convdsl.schedule.numpy_operands import copy_filled, filled_operand
from convdsl.schedule.numpy_results import Results, store_elements
from convdsl.schedule.regions import Region

Body = tuple[Stmt, ...]
Box = Mapping[str, Region]


def lower_nest(
    context: Context, equation: str, nest: Nest, inside: Mapping[str, Body], box: Box
) -> Body:
    """The statements of a nest.

    `inside` are statements to put first into the body of a loop: what is computed there. `box` limits
    variables of the piece to regions.
    """
    check_numpy(equation, nest, context.constants)
    for name, region in box.items():  # one element an iteration needs no loop
        loop = plain_loop(nest, name)
        if loop is not None and region.single:
            nest = nest.fixed(loop.name, region.low - nest.values[name].without(loop.name))
    return _Lowering(context, equation, nest, inside, box).body()


class _Lowering:
    def __init__(
        self, context: Context, equation: str, nest: Nest, inside: Mapping[str, Body], box: Box
    ) -> None:
        self.context = context
        self.equation = equation
        self.nest = nest
        self.inside = inside
        hosts = [x for x in nest.loops if x.on_host]
        lead = next((n for n, x in enumerate(hosts) if x.reduced), len(hosts))
        self.lead, self.rest = hosts[:lead], hosts[lead:]
        self.axes = [x for x in nest.loops if not x.on_host]
        self.known = ranges_of(Var(x.name, const(0), x.extent) for x in nest.loops)
        self.ranges = {x.name: Var(x.name, const(0), x.extent) for x in nest.loops}
        self.frames = dict(self.ranges)
        self.copies: Body = ()
        wanted = [p for v, region in box.items() for p in self._within(v, region)]
        self.free = [*self._open(result_conditions(nest)), *wanted]
        self.terms = [*self._open(conditions_of(nest)), *wanted]

    def _within(self, name: str, region: Region) -> list[Pred]:
        """Limit a variable to a region: by the range of its loop, or by conditions."""
        value = self.nest.values[name]
        if value == region.low:
            return []
        loop = plain_loop(self.nest, name)
        if loop is not None:
            low = region.low - value.without(loop.name)
            self.frames[loop.name] = Var(loop.name, low, low + region.extent)
            high = minimum(low + region.extent, loop.extent)
            part = Var(loop.name, *(simplest(i, self.known) for i in (maximum(low, 0), high)))
            self.ranges[loop.name] = self.frames[loop.name] if region.inside else part
            return []
        return [ge(value - region.low), ge(region.low + region.extent - 1 - value)]

    def _open(self, conditions: Sequence[Pred]) -> list[Pred]:
        return [p for p in dict.fromkeys(conditions) if not always(p, self.known)]

    # -- statements ---------------------------------------------------------------------------------
    def body(self) -> Body:
        nest, reduction = self.nest, self.nest.reduction
        lead = self.lead if reduction is not None else [*self.lead, *self.rest]
        items, left = self._hosts(lead, self.free, [])
        own = [x for x in (*self.rest, *self.axes) if not x.reduced]
        if reduction is None:
            return _wrap(items, store_elements(nest, self.axes, left, self.ranges))
        results = Results(self.context, nest, reduction, own, left, self.ranges, self.terms)
        self.results = results
        met = {p for p in self.free if p not in left}
        terms = [p for p in self.terms if p not in met]
        begin = self._first(results, reduction, terms)
        if begin is None:
            begin = results.fill(identity(reduction.op, reduction.dtype))
        work = self._sum(results.target, reduction, terms, self.lead, self.rest)
        return _wrap(items, (*self.copies, *begin, *work, *results.store()))

    def _first(
        self, results: Results, reduction: Reduce, conditions: Sequence[Pred]
    ) -> Body | None:
        """Begin with the first term of the one loop over terms, where there is one: no fill to add to.

        The loop then begins with the second one.
        """
        summed = [x for x in self.nest.loops if x.reduced]
        plain = results.hit is None and self.nest.partial is None
        if len(summed) != 1 or self.rest != summed or not plain:
            return None
        (loop,) = summed
        if not loop.extent.as_int() or any(x.level == "gemm" for x in self.axes):
            return None
        first = {loop.name: const(0)}

        def put(index: Index) -> Index:
            return self.nest.put(index).substitute(first)

        value = map_index(reduction.body, put)
        inner = self._open([Pred(p.kind, p.index.substitute(first)) for p in conditions])
        rest = Const(identity(reduction.op, reduction.dtype), reduction.dtype)
        self.ranges[loop.name] = Var(loop.name, const(1), loop.extent)
        return results.begin(inner, value, rest)

    def _sum(
        self,
        into: Access,
        reduction: Reduce,
        conditions: Sequence[Pred],
        outside: Sequence[Loop],
        hosts: Sequence[Loop],
    ) -> Body:
        """Add all terms of the host loops `hosts`, those of one iteration of `partial` apart."""
        at = next((n for n, x in enumerate(hosts) if x.name == self.nest.partial), None)
        if at is None:
            items, left = self._hosts(hosts, conditions, outside)
            return _wrap(items, self._terms(into, reduction, left))
        around, inner = hosts[: at + 1], hosts[at + 1 :]
        items, left = self._hosts(around, conditions, outside)
        part = self.results.buffer("part", "f32")
        work = self.results.set_all(part, Const(0.0, "f32"))
        work += self._sum(part, reduction, left, [*outside, *around], inner)
        work += self.results.set_all(into, Load(part, "f32"), accumulate=True)
        return _wrap(items, work)

    def _terms(self, target: Access, reduction: Reduce, conditions: Sequence[Pred]) -> Body:
        """One statement: a matrix product, or a sum over slices."""
        nest, names = self.nest, self.context.names
        filled = filled_operand(nest, conditions, self.context.constants)
        if filled is not None:
            conditions = [p for p in conditions if p not in filled.conditions]
        variables, left = self._bounds(self.axes, conditions)
        levels = self._roles(variables)
        op = ACCUMULATE[reduction.op]
        if levels is not None:
            pair, roles = levels
            copy: Body = ()
            if filled is not None:
                copy, read = copy_filled(self.context, nest, filled, variables, self.frames)
                pair = [read if e == map_index(filled.factor, nest.put) else e for e in pair]
                if not (self.rest or left):  # before the fill, which the product then replaces
                    self.copies, copy = copy, ()
            whole = {x.name: x.extent for x in self.axes}
            plain = all(_has_rows(e) for e in pair)
            cuts, roles, named = cut_product(names, roles, whole, plain)
            store = Store(target, Binary("*", *pair), op)
            body = nested(cuts, nested(roles, (store,)))
            body = body if named is None else (Let(named.name, named.value, body),)
            body = (*copy, *body)
        else:
            in_rows = reduction.op == "sum" and reduction.dtype == "f32"
            cuts, slices = cut_terms(names, variables, target, in_rows)
            store = Store(target, map_index(reduction.body, nest.put), op)
            body = nested(cuts, nested([(v, "slice") for v in slices], (store,)))
        body += self.results.mark(variables)
        return (If(tuple(left), body),) if left else body

    def _roles(self, variables: list[Var]) -> tuple[list[Expr], list[tuple[Var, Level]]] | None:
        """The operands of a matrix product and the roles of its loops; None for plain slices."""
        nest = self.nest
        if not any(x.level == "gemm" for x in self.axes):
            return None
        pair = product_factors(nest)
        assert pair is not None, "checked"
        uses = [nest.depends_on(factor) for factor in pair]
        ranks: dict[Level, int] = {"gemm.batch": 0, "gemm.m": 1, "gemm.n": 2, "gemm.k": 3}
        roles: list[tuple[Var, Level]] = []
        for var in variables:
            one, two = (var.name in used for used in uses)
            reduced = nest.loop(var.name).reduced
            level: Level = (
                ("gemm.k" if reduced else "gemm.batch")
                if one and two
                else ("gemm.m" if one else "gemm.n")
            )
            roles.append((var, level))
        roles.sort(key=lambda r: ranks[r[1]])
        return [map_index(factor, nest.put) for factor in pair], roles

    # -- loops --------------------------------------------------------------------------------------
    def _hosts(
        self, loops: Sequence[Loop], conditions: Sequence[Pred], outside: Sequence[Loop]
    ) -> tuple[list[_Host], list[Pred]]:
        """Host loops with their bounds, and the conditions left."""
        items: list[_Host] = []
        left = list(conditions)
        every = {x.name for x in self.nest.loops}
        seen = {x.name for x in outside}
        for loop in loops:
            seen.add(loop.name)
            mine = [p for p in left if loop.name in p.index.free and p.index.free & every <= seen]
            var, tests = self._within_bounds(loop, mine)
            left = [p for p in left if p not in mine]
            inside = self.inside.get(loop.name, ())
            items.append(_Host(var, loop.level_in_ir, tuple(tests), inside))
        return items, left

    def _within_bounds(self, loop: Loop, conditions: Sequence[Pred]) -> tuple[Var, list[Pred]]:
        """A loop that ends where conditions would fail, and those that are no bounds."""
        var, left = bounds_from(conditions, self.ranges[loop.name])
        low, high = (simplest(i, self.known) for i in (var.low, var.high))
        return Var(var.name, low, high), left

    def _bounds(
        self, loops: Sequence[Loop], conditions: Sequence[Pred]
    ) -> tuple[list[Var], list[Pred]]:
        """Slices within their conditions, each of which is a range of one slice; those of none.

        Of a part of a tensor (`box`) those may tie two slices, which is refused.
        """
        own = {x.name for x in loops}
        left = list(conditions)
        out: list[Var] = []
        for loop in loops:
            mine = [p for p in left if p.index.free & own == {loop.name}]
            var, tests = self._within_bounds(loop, mine)
            left = [*(p for p in left if p not in mine), *tests]
            out.append(var)
        for pred in left:
            if pred.index.free & own:
                refuse_condition(self.equation, self.nest, pred)
        return out, left


@dataclass(frozen=True, slots=True)
class _Host:
    """A loop in Python, the tests of an iteration, and what is computed in it."""

    var: Var
    level: Level
    tests: tuple[Pred, ...]
    inside: Body


def _wrap(items: Sequence[_Host], body: Body) -> Body:
    for host in reversed(items):
        body = (*host.inside, *body)
        body = (For(host.var, host.level, (If(host.tests, body),) if host.tests else body),)
    return body


def _has_rows(operand: Expr) -> bool:
    """Whether an operand is made, or read at elements that are neighbours."""
    if not isinstance(operand, Load) or not operand.access.index:
        return True
    last = operand.access.index[-1]
    return any(last.coefficient(n) == 1 for n in last.free)


def plain_loop(nest: Nest, variable: str) -> Loop | None:
    """The one loop over a variable, which is neither split nor fused."""
    value = nest.values[variable]
    for loop in nest.loops:
        if value.free & {x.name for x in nest.loops} == {loop.name}:
            return loop if value.coefficient(loop.name) == 1 else None
    return None
