"""Interval arithmetic on indices: what is provable about a value from the ranges of its names."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from convdsl.ir.atoms import Fn, Sym
from convdsl.ir.expr import Pred, Var
from convdsl.ir.index import Index, maximum, minimum

Interval = tuple[int | None, int | None]  # inclusive; None is unbounded
UNBOUNDED: Interval = (None, None)
NATURAL: Interval = (0, None)


def interval(index: Index, ranges: Mapping[str, Interval]) -> Interval:
    """Bounds of an index. A name that is not in `ranges` is a size: zero or more."""
    low: int | None = 0
    high: int | None = 0
    for monomial, coefficient in index.terms:
        term: Interval = (coefficient, coefficient)
        for atom in monomial:
            if isinstance(atom, Sym):
                term = _times(term, ranges.get(atom.name, NATURAL))
            else:
                term = _times(term, _function(atom, ranges))
        low = None if low is None or term[0] is None else low + term[0]
        high = None if high is None or term[1] is None else high + term[1]
    return low, high


def ranges_of(
    variables: Iterable[Var], known: Mapping[str, Interval] | None = None
) -> dict[str, Interval]:
    """The interval of each variable, bounds that name earlier variables included."""
    out: dict[str, Interval] = dict(known or {})
    for var in variables:
        low = interval(var.low, out)[0]
        high = interval(var.high, out)[1]
        out[var.name] = (low, None if high is None else high - 1)
    return out


def always(pred: Pred, ranges: Mapping[str, Interval]) -> bool:
    """Whether the condition holds for all values in the ranges, as far as intervals can tell."""
    low, high = interval(pred.index, ranges)
    match pred.kind:
        case "ge":
            return low is not None and low >= 0
        case "eq":
            return low == 0 == high
        case "ne":
            return (low is not None and low > 0) or (high is not None and high < 0)


def implied(pred: Pred, by: Iterable[Pred], ranges: Mapping[str, Interval]) -> bool:
    """Whether a condition holds in the ranges wherever others do: it is a multiple of one, and more."""
    if always(pred, ranges):
        return True
    for other in by:
        if pred.kind != "ge" or other.kind != "ge":
            continue
        for name in pred.index.free & other.index.free:
            have, one = (p.index.coefficient(name).as_int() for p in (pred, other))
            if have and one and have % one == 0 and have // one > 0:
                rest = pred.index - other.index * (have // one)
                if always(Pred("ge", rest), ranges):
                    return True
    return False


def never(pred: Pred, ranges: Mapping[str, Interval]) -> bool:
    """Whether the condition holds for no value in the ranges, as far as intervals can tell."""
    low, high = interval(pred.index, ranges)
    match pred.kind:
        case "ge":
            return high is not None and high < 0
        case "eq":
            return (low is not None and low > 0) or (high is not None and high < 0)
        case "ne":
            return low == 0 == high


def simplest(index: Index, ranges: Mapping[str, Interval]) -> Index:
    """A minimum or maximum without the arguments that never decide it."""
    if len(index.terms) != 1 or index.terms[0][1] != 1 or len(index.terms[0][0]) != 1:
        return index
    atom = index.terms[0][0][0]
    if not isinstance(atom, Fn) or atom.op not in ("min", "max"):
        return index
    kept = [simplest(a, ranges) for a in atom.args]
    for arg in list(kept):
        others = [b for b in kept if b is not arg]
        ahead = ((b - arg if atom.op == "max" else arg - b) for b in others)
        if others and any(always(Pred("ge", d), ranges) for d in ahead):
            kept = others
    combine = maximum if atom.op == "max" else minimum
    out = kept[0]
    for other in kept[1:]:
        out = combine(out, other)
    return out


def _function(fn: Fn, ranges: Mapping[str, Interval]) -> Interval:
    args = [interval(a, ranges) for a in fn.args]
    lows, highs = [a[0] for a in args], [a[1] for a in args]
    match fn.op:
        case "min":
            known = [h for h in highs if h is not None]
            return (_all(min, lows), min(known) if known else None)
        case "max":
            bounds = [b for b in lows if b is not None]
            return (max(bounds) if bounds else None, _all(max, highs))
        case "%":
            divisor = highs[1]
            inside = lows[0] is not None and lows[0] >= 0 and highs[0] is not None
            top = None if divisor is None else divisor - 1
            if inside and highs[0] is not None and lows[1] is not None and highs[0] < lows[1]:
                return lows[0], highs[0]
            if lows[0] is not None and lows[0] >= 0 and highs[0] is not None:
                top = highs[0] if top is None else min(top, highs[0])
            return 0, top
        case "//":
            return _quotient(args[0], args[1])


def _quotient(a: Interval, b: Interval) -> Interval:
    small = max(b[0] if b[0] is not None else 1, 1)
    big = b[1]
    low: int | None = None
    if a[0] is not None:
        low = a[0] // small if a[0] < 0 else (0 if big is None or big <= 0 else a[0] // big)
    high: int | None = None
    if a[1] is not None:
        high = a[1] // small if a[1] >= 0 else (-1 if big is None or big <= 0 else a[1] // big)
    return low, high


def _all(pick: object, values: list[int | None]) -> int | None:
    known = [v for v in values if v is not None]
    if len(known) != len(values):
        return None
    return min(known) if pick is min else max(known)


def _times(a: Interval, b: Interval) -> Interval:
    if a == (0, 0) or b == (0, 0):
        return 0, 0
    if a[0] is not None and a[0] == a[1]:
        c = a[0]
        low, high = (b[0], b[1]) if c > 0 else (b[1], b[0])
        return (None if low is None else low * c, None if high is None else high * c)
    if None not in a and None not in b:
        corners = [x * y for x in a for y in b if x is not None and y is not None]
        return min(corners), max(corners)
    if a[0] is not None and a[0] >= 0 and b[0] is not None and b[0] >= 0:
        top = None if a[1] is None or b[1] is None else a[1] * b[1]
        return a[0] * b[0], top
    return UNBOUNDED
