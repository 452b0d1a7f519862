"""Solving relations: one affine equation between indices, and the ways to enumerate its points.

For `a*p + c*v + f*o + rest == 0` (p, v reduced, o free) there are three ways, none of which tests a
candidate and throws it away:

* *unit*: a variable with coefficient 1 or -1 is expressed by the others;
* *pair*: with g = gcd(a, c), v = (a/g)*j + kappa runs over the residue that makes p whole;
* *phases* (f = 1 or -1): o = |a|*t + c*kappa + e, v = s'*j + kappa, p = t - c'*j, where s' = |a|/g and
  c' = c/g: for each kappa in 0..s' a dense filter along t; positions that no kappa reaches are holes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import gcd

from convdsl.ir.expr import Pred, Var, eq, ge
from convdsl.ir.index import Index, ceildiv, const, floordiv, maximum, minimum, modulo, sym


@dataclass(frozen=True, slots=True)
class Linear:
    """`sum(coefficient * name) + rest == 0`, with integer coefficients."""

    coefficients: Mapping[str, int]
    rest: Index

    def without(self, *names: str) -> Index:
        """The left side with the terms of `names` left out."""
        out = self.rest
        for name, c in self.coefficients.items():
            if name not in names:
                out = out + sym(name) * c
        return out


def linear(index: Index, names: Iterable[str]) -> Linear | None:
    """`index` as an affine form in `names`; None if a coefficient is not an integer (yet)."""
    present = [n for n in names if n in index.free]
    if not index.is_affine_in(present):
        return None
    rest, coefficients = index, {}
    for name in present:
        c = index.coefficient(name).as_int()
        if c is None:
            return None
        if c:
            coefficients[name] = c
        rest = rest.without(name)
    return Linear(coefficients, rest)


def depends_through(index: Index, terms: Mapping[str, int], unit: str) -> bool:
    """Whether an index depends on names through their sum alone; `unit` has the factor 1 or -1 in it."""
    used = index.free & set(terms)
    form = linear(index, list(terms))
    if not used or form is None or form.rest.free & used:
        return not used
    factor = form.coefficients.get(unit, 0) * terms[unit]
    return all(form.coefficients.get(name, 0) == factor * c for name, c in terms.items())


@dataclass(frozen=True, slots=True)
class Step:
    """One variable `name` replaced by `value`; `fresh` takes its place when there is a new one."""

    values: Mapping[str, Index]
    fresh: Var | None
    conditions: tuple[Pred, ...]


def inside(var: Var, value: Index) -> tuple[Pred, Pred]:
    """The conditions that `value` is in the range of `var`."""
    return ge(value - var.low), ge(var.high - 1 - value)


def solve_unit(form: Linear, name: str) -> Index:
    """The value of a variable whose coefficient is 1 or -1."""
    a = form.coefficients[name]
    return form.without(name) * -a


def solve_single(form: Linear, name: str) -> tuple[Index, Pred | None]:
    """The value of a variable by exact division, and the condition that it divides."""
    a = form.coefficients[name]
    if abs(a) == 1:
        return solve_unit(form, name), None
    numerator = form.without(name) * (-1 if a > 0 else 1)
    return floordiv(numerator, const(abs(a))), eq(modulo(numerator, const(abs(a))))


def solve_pair(form: Linear, pivot: str, step: Var, fresh: str) -> Step:
    """Enumerate the points of `a*pivot + c*step + rest == 0` along one fresh variable.

    step = s'*fresh + kappa with 0 <= kappa < s', and pivot follows; both are affine in `fresh`.
    """
    a, c = form.coefficients[pivot], form.coefficients[step.name]
    rest = form.without(pivot, step.name)
    if a < 0:
        a, c, rest = -a, -c, -rest
    g = gcd(a, c)
    period = a // g
    conditions: tuple[Pred, ...] = (eq(modulo(rest, const(g))),) if g > 1 else ()
    inverse = pow(c // g, -1, period) if period > 1 else 0
    residue = modulo(floordiv(-rest, const(g)) * inverse, const(period))
    values = {
        step.name: sym(fresh) * period + residue,
        pivot: floordiv(-(rest + residue * c), const(a)) - sym(fresh) * (c // g),
    }
    low, high = ceildiv(step.low - residue, period), ceildiv(step.high - residue, period)
    if step.low == 0:
        low = const(0)  # 0 <= residue < period
    return Step(values, Var(fresh, low, high), conditions)


@dataclass(frozen=True, slots=True)
class PhaseSplit:
    """`o = stride*t + tap_stride*kappa + offset`, `v = period*j + kappa`, `p = sign*(t - lag*j)`.

    kappa runs over 0..phases, j over 0..taps, t over low..high; residues h in 1..gap (o - offset = h
    mod gap) and kappa in phases..period are holes that no term reaches.
    """

    output: str
    data: str
    tap: str
    stride: int
    tap_stride: int
    offset: Index
    period: int
    phases: Index
    taps: Index
    lag: int
    sign: int
    gap: int
    low: Index
    high: Index


def split_phases(form: Linear, output: Var, data: Var, tap: Var) -> PhaseSplit | None:
    """The phase form of an equation, or None where it does not apply.

    It needs exactly these three variables, a unit coefficient at `output`, and ranges from zero.
    """
    names = {output.name, data.name, tap.name}
    if set(form.coefficients) != names or abs(form.coefficients[output.name]) != 1:
        return None
    if any(v.low != 0 for v in (output, data, tap)):
        return None
    flip = -form.coefficients[output.name]
    a, c = form.coefficients[data.name] * flip, form.coefficients[tap.name] * flip
    offset = form.rest * flip
    g = gcd(a, c)
    period = abs(a) // g
    extent = tap.high.as_int()
    phases = const(period)
    if extent is not None and extent < period:
        phases = const(extent)
    last = c * (period - 1)
    low = ceildiv(-offset - max(last, 0), abs(a))
    high = floordiv(output.high - 1 - offset - min(last, 0), const(abs(a))) + 1
    return PhaseSplit(
        output.name, data.name, tap.name, abs(a), c, offset, period, phases,
        ceildiv(tap.high, period), c // g, 1 if a > 0 else -1, g, low, maximum(high, low),
    )  # fmt: skip


def bounds_from(conditions: Iterable[Pred], var: Var) -> tuple[Var, list[Pred]]:
    """Tighten a loop by the `>=` conditions that are affine in its variable; return the others too."""
    low, high, left = var.low, var.high, []
    for pred in conditions:
        form = linear(pred.index, [var.name])
        if pred.kind != "ge" or form is None or var.name not in form.coefficients:
            left.append(pred)
            continue
        a = form.coefficients[var.name]
        if a > 0:
            low = maximum(low, ceildiv(-form.rest, a))
        else:
            high = minimum(high, floordiv(form.rest, const(-a)) + 1)
    return Var(var.name, low, high), left
