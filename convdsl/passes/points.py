"""How a NumPy program visits the points of a relation: a few host loops, and slices inside them.

For each group of coupled equations some variables become host loops (the short ones: taps), one pair is
walked along a common slice variable, and the rest follows. With phases (`relation.py`) the output is
addressed as [t, kappa], so that whole blocks of taps are one slice.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import gcd

from convdsl.ir.expr import Pred, Reduce, Var, eq, free_names, ge, loads
from convdsl.ir.index import Index, ceildiv, const, floordiv, maximum, minimum, modulo, sym
from convdsl.passes.names import Names
from convdsl.passes.relation import Linear, PhaseSplit, linear, solve_single, split_phases


@dataclass(frozen=True, slots=True)
class Loop:
    var: Var


@dataclass(frozen=True, slots=True)
class Name:
    name: str
    value: Index


@dataclass(frozen=True, slots=True)
class Test:
    conditions: tuple[Pred, ...]


HostItem = Loop | Name | Test


@dataclass(frozen=True, slots=True)
class Phase:
    """An output variable addressed as block `t` (from zero) and phase `kappa`."""

    split: PhaseSplit
    block: Index
    kappa: Index
    blocks: Index
    first: Index

    @property
    def dense(self) -> bool:
        """Whether [block, phase] in row-major order is the output itself, shifted."""
        return self.split.tap_stride == 1 and self.split.gap == 1


@dataclass
class Points:
    """`values` gives each variable of the op in terms of host names and slice variables."""

    host: list[HostItem] = field(default_factory=list)
    slices: list[Var] = field(default_factory=list)
    values: dict[str, Index] = field(default_factory=dict)
    phases: dict[str, Phase] = field(default_factory=dict)


def points_of(
    free: Sequence[Var], reduction: Reduce, names: Names, data_first: Sequence[str], phases: bool
) -> Points:
    """All points (free and reduced variables) at which the equations hold, each once."""
    points = Points()
    variables = {v.name: v for v in (*free, *reduction.vars)}
    outputs = {v.name for v in free}
    ranks = {n: _rank(n, reduction, data_first) for n in variables}
    groups = _coupled([p.index for p in reduction.constraints if p.kind == "eq"], variables)
    solver = _Solver(points, variables, outputs, ranks, names, free_names(reduction.body))
    for group in groups:
        solver.solve(group, phases)
    related = solver.done
    points.slices += [v for n, v in variables.items() if n not in related]
    points.values |= {n: sym(n) for n in variables if n not in points.values}
    return points


def _rank(name: str, reduction: Reduce, data_first: Sequence[str]) -> int:
    """Which tensor a variable indexes first; with unknown sizes the later ones are looped over."""
    found = [
        data_first.index(a.access.tensor)
        for a in loads(reduction.body)
        if name in a.access.free and a.access.tensor in data_first
    ]
    return min(found, default=len(data_first))


def _coupled(equations: list[Index], variables: dict[str, Var]) -> list[list[Index]]:
    """Equations grouped by the variables that they share."""
    groups: list[tuple[set[str], list[Index]]] = []
    for equation in equations:
        own = set(equation.free & variables.keys())
        joined = [equation]
        for group in [g for g in groups if g[0] & own]:
            groups.remove(group)
            own |= group[0]
            joined = group[1] + joined
        groups.append((own, joined))
    return [g[1] for g in groups]


class _Solver:
    def __init__(
        self,
        points: Points,
        variables: dict[str, Var],
        outputs: set[str],
        ranks: dict[str, int],
        names: Names,
        read: frozenset[str],
    ) -> None:
        self.points = points
        self.variables = variables
        self.outputs = outputs
        self.ranks = ranks
        self.names = names
        self.read = read
        self.done: set[str] = set()

    def solve(self, group: list[Index], phases: bool) -> None:
        if len(group) == 1:
            form = linear(group[0], self.variables)
            if form is not None and len(form.coefficients) >= 2:
                if not (phases and self._by_phases(form)):
                    self._by_pair(form)
                return
        for equation in group:
            self._by_loops(equation)

    def _by_phases(self, form: Linear) -> bool:
        out = [n for n in form.coefficients if n in self.outputs]
        reduced = [n for n in form.coefficients if n not in self.outputs]
        if len(out) != 1 or len(reduced) != 2 or out[0] in self.read:
            return False  # a block may begin before the output does, and nothing can be read there
        ways = [self._split(form, out[0], *pair) for pair in (reduced, reduced[::-1])]
        splits = [s for s in ways if s is not None and s.period > 1]
        if not splits:
            return False
        split = min(splits, key=self._taps_of)
        data, tap = split.data, split.tap
        j, kappa = self.names.fresh("j"), self.names.fresh("r")
        over = self.variables[tap].high
        width = split.phases
        if over.as_int() is None or (over.as_int() or 0) % split.period:
            width = minimum(width, over - sym(j) * split.period)
        span = self.variables[data].high - 1
        reach = split.taps - 1
        if reach.as_int() is None or reach == -1:  # there may be no taps at all
            reach = maximum(reach, 0)
        first = (const(0) if split.sign > 0 else -span) + reach * min(split.lag, 0)
        blocks = span + 1 + reach * abs(split.lag)
        block = sym(data) * split.sign + sym(j) * split.lag - first
        self.points.host.append(Loop(Var(j, const(0), split.taps)))
        self.points.slices += [self.variables[data], Var(kappa, const(0), width)]
        self.points.values |= {data: sym(data), tap: sym(j) * split.period + sym(kappa)}
        self.points.phases[out[0]] = Phase(split, block, sym(kappa), blocks, first)
        self.done |= {out[0], data, tap}
        return True

    def _split(self, form: Linear, out: str, data: str, tap: str) -> PhaseSplit | None:
        output, source, taps = (self.variables[n] for n in (out, data, tap))
        return split_phases(form, output, source, taps)

    def _taps_of(self, split: PhaseSplit) -> tuple[int, int]:
        """Sort key: few host loops over taps; with unknown sizes the larger step is the data's."""
        known = split.taps.as_int()
        return (known, 0) if known is not None else (2**31, -split.stride)

    def _by_pair(self, form: Linear) -> None:
        """All but two variables become host loops; the two are walked along one slice variable."""
        order = sorted(form.coefficients, key=self._length)
        looped, (u, v) = order[:-2], order[-2:]
        for name in looped:
            self._loop(name)
        units = [n for n in (u, v) if abs(form.coefficients[n]) == 1]
        if units:  # solve for the result's variable, and walk along the other
            solved = next((n for n in units if n in self.outputs), units[0])
            u, v = solved, v if solved == u else u
        a, b = form.coefficients[u], form.coefficients[v]
        rest = form.without(u, v)
        if a < 0:
            a, b, rest = -a, -b, -rest
        g = gcd(a, b)
        if g > 1:
            self.points.host.append(Test((eq(modulo(rest, const(g))),)))
        period = a // g
        start = const(0)
        if period > 1:
            start = sym(self.names.fresh(f"{v}_first"))
            inverse = pow(b // g, -1, period)
            value = modulo(floordiv(-rest, const(g)) * inverse, const(period))
            self.points.host.append(Name(str(start), value))
        walk = self.names.fresh(f"{v}_at") if period > 1 else v
        value_v = sym(walk) * period + start
        base = -(rest + start * b)
        value_u = (floordiv(base, const(a)) if a > 1 else base) - sym(walk) * (b // g)
        var_u, var_v = self.variables[u], self.variables[v]
        low, high = ceildiv(var_v.low - start, period), ceildiv(var_v.high - start, period)
        origin, slope = value_u.without(walk), -(b // g)
        if slope > 0:
            low = maximum(low, ceildiv(var_u.low - origin, slope))
            high = minimum(high, ceildiv(var_u.high - origin, slope))
        else:
            low = maximum(low, ceildiv(origin - var_u.high + 1, -slope))
            high = minimum(high, floordiv(origin - var_u.low, const(-slope)) + 1)
        self.points.slices.append(Var(walk, low, high))
        self.points.values |= {u: value_u, v: value_v}
        self.done |= {u, v}

    def _by_loops(self, equation: Index) -> None:
        """The general case: loop over all but one variable and solve for that one."""
        values = self.points.values
        equation = equation.substitute({n: values[n] for n in self.done if n in values})
        form = linear(equation, [n for n in self.variables if n not in self.done])
        if form is None:
            for name in [n for n in self.variables if n in equation.free and n not in self.done]:
                self._loop(name)
            self.points.host.append(Test((eq(equation),)))
            return
        if not form.coefficients:
            self.points.host.append(Test((eq(equation),)))
            return
        *looped, last = sorted(form.coefficients, key=self._length)
        for name in looped:
            self._loop(name)
        value, divides = solve_single(form, last)
        if divides is not None:
            self.points.host.append(Test((divides,)))
        var = self.variables[last]
        self.points.host.append(Name(last, value))
        self.points.host.append(Test((ge(sym(last) - var.low), ge(var.high - 1 - sym(last)))))
        values[last] = sym(last)
        self.done.add(last)

    def _loop(self, name: str) -> None:
        self.points.host.append(Loop(self.variables[name]))
        self.points.values[name] = sym(name)
        self.done.add(name)

    def _length(self, name: str) -> tuple[int, int]:
        """Sort key, shortest first; with unknown sizes results are long, and later tensors short."""
        extents = [self.variables[n].extent.as_int() for n in self.variables]
        if all(e is not None for e in extents):
            return (self.variables[name].extent.as_int() or 0, 0)
        return (1 if name in self.outputs else 0, -self.ranks[name])
