"""gather: solve every relation for its reduced variables, so that loops visit only points that count.

    sum[c, k, l | l*4 + k == o + p] x[c, l] * w[c, k]
 -> sum[c, l in max(0, ceil((o + p - K + 1)/4))..min(L, (o + p)//4 + 1)] x[c, l] * w[c, o + p - l*4]

Works for any system of equations: variables are eliminated one equation at a time (`relation.py`);
equations that cannot be solved (coefficients that are sizes) stay as conditions.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Expr, Pred, Reduce, Var, eq, map_children, map_index, walk
from convdsl.ir.index import Index
from convdsl.ir.interval import Interval, always, ranges_of
from convdsl.passes.names import Names
from convdsl.passes.relation import (
    Linear,
    bounds_from,
    inside,
    linear,
    solve_pair,
    solve_single,
    solve_unit,
)


def gather_piece(piece: Piece) -> Piece:
    """The piece with every reduction in it solved."""
    names = Names(_all_names(piece))
    value = _gather(piece.value, ranges_of(piece.vars), names)
    return replace(piece, value=value, origin="gather" if value != piece.value else piece.origin)


def _all_names(piece: Piece) -> set[str]:
    reduced = {v.name for e in walk(piece.value) if isinstance(e, Reduce) for v in e.vars}
    return reduced | {v.name for v in piece.vars}


def _gather(expr: Expr, ranges: Mapping[str, Interval], names: Names) -> Expr:
    if not isinstance(expr, Reduce):
        return map_children(expr, lambda e: _gather(e, ranges, names))
    inner = ranges_of(expr.vars, ranges)
    expr = replace(expr, body=_gather(expr.body, inner, names))
    if expr.otherwise is not None:
        expr = replace(expr, otherwise=_gather(expr.otherwise, ranges, names))
    return solve(expr, ranges, names)


def solve(reduction: Reduce, ranges: Mapping[str, Interval], names: Names) -> Reduce:
    """The same reduction with its equations solved; `ranges` of the names around it."""
    state = _State(reduction, names)
    while state.equations:
        state.solve_next()
    return state.finish(ranges)


class _State:
    """Equations still to solve, and what the solved ones have put in the place of variables."""

    def __init__(self, reduction: Reduce, names: Names) -> None:
        self.reduction = reduction
        self.names = names
        self.vars = {v.name: v for v in reduction.vars}
        self.equations = [p.index for p in reduction.constraints if p.kind == "eq"]
        self.conditions = [p for p in reduction.constraints if p.kind != "eq"]
        self.values: dict[str, Index] = {}

    def solve_next(self) -> None:
        forms = [(e, linear(e, self.vars)) for e in self.equations]
        equation, form = min(forms, key=lambda ef: _effort(ef[1]))
        self.equations.remove(equation)
        if form is None or not form.coefficients:
            self.conditions.append(eq(equation))
            return
        candidates = list(form.coefficients)
        units = [n for n in candidates if abs(form.coefficients[n]) == 1]
        if units:
            name = max(units, key=lambda n: self._visits_without(form, n))
            self._put({name: solve_unit(form, name)}, checked=(name,))
        elif len(candidates) == 1:
            value, divides = solve_single(form, candidates[0])
            self.conditions += [divides] if divides else []
            self._put({candidates[0]: value}, checked=(candidates[0],))
        else:
            pivot = max(candidates, key=lambda n: abs(form.coefficients[n]))
            step = min(
                (n for n in candidates if n != pivot), key=lambda n: abs(form.coefficients[n])
            )
            solution = solve_pair(form, pivot, self.vars[step], self.names.fresh(f"{step}_step"))
            self.conditions += solution.conditions
            self._put(solution.values, checked=(pivot,))
            if solution.fresh is not None:
                self.vars[solution.fresh.name] = solution.fresh

    def _visits_without(self, form: Linear, name: str) -> int:
        """How good it is to eliminate `name`: the fewer iterations remain, the higher."""
        rest = [n for n in form.coefficients if n != name]
        return max((abs(form.coefficients[n]) for n in rest), default=0)

    def _put(self, values: Mapping[str, Index], checked: tuple[str, ...]) -> None:
        """Replace variables; those in `checked` are not in range by construction."""
        for name, value in values.items():
            var = self.vars.pop(name)
            if name in checked:
                self.conditions += inside(var, value)
        self.values = {n: v.substitute(values) for n, v in self.values.items()} | dict(values)
        self.equations = [e.substitute(values) for e in self.equations]
        self.conditions = [Pred(p.kind, p.index.substitute(values)) for p in self.conditions]
        self.vars = {
            n: Var(n, v.low.substitute(values), v.high.substitute(values))
            for n, v in self.vars.items()
        }

    def finish(self, ranges: Mapping[str, Interval]) -> Reduce:
        """Relation loops outside, channel loops inside; conditions become bounds where they can."""
        related = {n for p in self.conditions for n in p.index.free}
        related |= {n for v in self.vars.values() for n in (v.low.free | v.high.free)}
        order = [v for v in self.vars.values() if v.name in related]
        order += [v for v in self.vars.values() if v.name not in related]
        order = _dependencies_first(order)
        known = ranges_of(order, ranges)
        conditions = [p for p in self.conditions if not always(p, known)]
        bounded: list[Var] = []
        for var in reversed(order):
            mine = [p for p in conditions if var.name in p.index.free]
            tight, left = bounds_from(mine, var)
            conditions = [p for p in conditions if p not in mine] + left
            bounded.insert(0, tight)
        return replace(
            self.reduction,
            vars=tuple(bounded),
            constraints=tuple(conditions),
            body=map_index(self.reduction.body, lambda i: i.substitute(self.values)),
        )


def _dependencies_first(variables: list[Var]) -> list[Var]:
    out: list[Var] = []
    left = list(variables)
    while left:
        waiting = {v.name for v in left}
        ready = next(v for v in left if not ((v.low.free | v.high.free) & (waiting - {v.name})))
        out.append(ready)
        left.remove(ready)
    return out


def _effort(form: Linear | None) -> int:
    """Which equation to solve first: those with a unit coefficient, then those with fewer variables."""
    if form is None:
        return 1000
    unit = any(abs(c) == 1 for c in form.coefficients.values())
    return len(form.coefficients) + (0 if unit else 100)
