"""What holds for all values of some names, as conditions on the other names.

    0 <= k < 16:   N - 1 - (16*b + k) >= 0   for all k, where   N - 16 - 16*b >= 0

Interval arithmetic, with indices for bounds. The conditions suffice; they need not be necessary.
"""

from __future__ import annotations

from collections.abc import Mapping

from convdsl.ir.atoms import Atom, Fn, Sym
from convdsl.ir.expr import Pred, ge
from convdsl.ir.index import Index, const, floordiv, maximum, minimum, modulo
from convdsl.ir.interval import Interval, interval


class Extremes:
    """`inside` are the names with their least and greatest values, `ranges` those of all others.

    A remainder is bounded where its values do not run past a multiple of the divisor: that is taken
    for granted and added to the conditions `when`.
    """

    def __init__(
        self, inside: Mapping[str, tuple[int, int]], ranges: Mapping[str, Interval]
    ) -> None:
        self._inside, self._ranges = inside, ranges
        self._least: dict[tuple[Index, ...], Index] = {}  # of a value and its divisor
        self.when: list[Pred] = []

    def for_all(self, pred: Pred) -> tuple[Pred, ...] | None:
        """Conditions that imply `pred` together with `when`; None where none are found."""
        low = self.extreme(pred.index, high=False)
        if low is None or pred.kind == "ne":
            return None
        if pred.kind == "ge":
            return (ge(low),)
        high = self.extreme(pred.index, high=True)
        return None if high is None else (ge(low), ge(-high))

    def extreme(self, index: Index, high: bool) -> Index | None:
        """A bound of the index: of the greatest value if `high`, else of the least one."""
        out = const(0)
        for monomial, coefficient in index.terms:
            moving = [a for a in monomial if not _free(a).isdisjoint(self._inside)]
            still = Index({tuple(a for a in monomial if a not in moving): coefficient})
            if not moving:
                out += still
                continue
            low, top = interval(still, self._ranges)
            positive, negative = low is not None and low >= 0, top is not None and top <= 0
            if len(moving) > 1 or not (positive or negative):
                return None
            found = self._atom(moving[0], high == positive)
            if found is None:
                return None
            out += still * found
        return out

    def straight(self, index: Index) -> Index:
        """The same where `when` holds, without the remainders and quotients that are in it."""
        out = const(0)
        for monomial, coefficient in index.terms:
            term = const(coefficient)
            for atom in monomial:
                term = term * self._straight(atom)
            out += term
        return out

    def _straight(self, atom: Atom) -> Index:
        if isinstance(atom, Fn) and atom.args in self._least:
            low, (value, divisor) = self._least[atom.args], atom.args
            if atom.op == "//":
                return floordiv(low, divisor)
            if atom.op == "%":
                return modulo(low, divisor) + self.straight(value) - low
        return Index({(atom,): 1})

    def _atom(self, atom: Atom, high: bool) -> Index | None:
        if isinstance(atom, Sym):
            return const(self._inside[atom.name][high])
        if atom.op in ("min", "max"):
            found = [self.extreme(a, high) for a in atom.args]
            known = [f for f in found if f is not None]
            pick = minimum if atom.op == "min" else maximum
            return pick(*known) if len(known) == len(found) else None
        value, divisor = atom.args
        if not divisor.free.isdisjoint(self._inside):
            return None
        if atom.op == "//":
            bound = self.extreme(value, high)
            return None if bound is None else floordiv(bound, divisor)
        return self._remainder(atom, high)

    def _remainder(self, atom: Fn, high: bool) -> Index | None:
        value, divisor = atom.args
        low, top = self.extreme(value, high=False), self.extreme(value, high=True)
        if low is None or top is None:
            return None
        start, width = modulo(low, divisor), top - low
        if atom.args not in self._least:
            self._least[atom.args] = low
            self.when.append(ge(divisor - 1 - start - width))
        return start + width if high else start


def _free(atom: Atom) -> frozenset[str]:
    return frozenset({atom.name}) if isinstance(atom, Sym) else Index({(atom,): 1}).free
