"""What is provable about the sign of an index: intervals, then elimination of name after name.

`T - 1 - t` with `t < T` is not negative although its interval is unbounded: putting the largest
value of `t` in leaves 0. Elimination takes the innermost name first, because bounds name outer
ones.
"""

from __future__ import annotations

from functools import reduce
from math import gcd

from convdsl.ir.atoms import Fn
from convdsl.ir.expr import Pred
from convdsl.ir.index import Index, const
from convdsl.ir.interval import Interval, always, interval, never

_DEPTH = 8  # names eliminated one after the other


class Ranges:
    """The half-open ranges of all names in sight. One without a range is a size: zero or more."""

    def __init__(self) -> None:
        self.intervals: dict[str, Interval] = {}
        self._bounds: dict[str, tuple[Index, Index | None, int]] = {}
        self._known: dict[Index, bool] = {}
        self._decided: dict[Pred, bool | None] = {}

    def bind(self, name: str, low: Index, high: Index | None) -> None:
        """A new name, with bounds over earlier ones."""
        bottom = interval(low, self.intervals)[0]
        top = None if high is None else interval(high, self.intervals)[1]
        self.intervals[name] = (bottom, None if top is None else top - 1)
        self._bounds[name] = (low, high, len(self._bounds))

    def natural(self, index: Index) -> bool:
        """Whether the index is provably zero or more."""
        known = self._known.get(index)
        if known is None:
            known = self._known[index] = self._natural(index, _DEPTH)
        return known

    def decide(self, pred: Pred) -> bool | None:
        """True or False when the condition is always or never so, else None."""
        if pred not in self._decided:
            self._decided[pred] = self._decide(pred)
        return self._decided[pred]

    def _decide(self, pred: Pred) -> bool | None:
        if always(pred, self.intervals):
            return True
        if never(pred, self.intervals):
            return False
        if pred.kind == "ge":
            if self.natural(pred.index):
                return True
            return False if self.natural(-pred.index - 1) else None
        return None

    def _natural(self, index: Index, depth: int) -> bool:
        low = interval(index, self.intervals)[0]
        if low is not None and low >= 0:
            return True
        name = self._innermost(index) if depth else None
        if name is None:
            return False
        low_bound, high_bound, _ = self._bounds[name]
        slope = index.coefficient(name)
        rest = index.without(name)
        if self._natural(slope, depth - 1):
            bounds = _pieces(low_bound, "max")
        elif high_bound is not None and self._natural(-slope, depth - 1):
            bounds = tuple(h - 1 for h in _pieces(high_bound, "min"))
        else:
            return False
        return any(self._natural(slope * bound + rest, depth - 1) for bound in bounds)

    def _innermost(self, index: Index) -> str | None:
        """The latest bound name that stands only as a plain factor, and in first power."""
        inside: set[str] = set()
        plain: set[str] = set()
        for monomial, _ in index.terms:
            for atom in monomial:
                if isinstance(atom, Fn):
                    inside.update(*(a.free for a in atom.args))
                elif monomial.count(atom) > 1:
                    inside.add(atom.name)
                else:
                    plain.add(atom.name)
        names = [n for n in plain - inside if n in self._bounds]
        return max(names, key=lambda n: self._bounds[n][2], default=None)


def tighten(pred: Pred) -> Pred:
    """The same, its number as large as divisibility allows: `4*q <= 93` is `4*q < 96`."""
    step = reduce(gcd, (c for m, c in pred.index.terms if m), 0)
    if pred.kind != "ge" or step < 2:
        return pred
    number = pred.index.constant
    return Pred("ge", pred.index + (number // step * step + step - 1 - number))


def _pieces(bound: Index, op: str) -> tuple[Index, ...]:
    """The arguments when the bound is one `max` (or `min`) plus a number, else the bound itself."""
    rest = bound - bound.constant
    if len(rest.terms) == 1 and rest.terms[0][1] == 1 and len(rest.terms[0][0]) == 1:
        atom = rest.terms[0][0][0]
        if isinstance(atom, Fn) and atom.op == op:
            return tuple(a + const(bound.constant) for a in atom.args)
    return (bound,)
