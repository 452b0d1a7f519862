"""Indices of reads as what the loops inside say and what the others say: the axes of a box.

t*4 + (e + 1)//2 - j          is t*4 and a place from -1 to 4
256*j + 4*r + e               is 4*r and two places, 256*j and e
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product as combinations
from math import gcd, prod

from convdsl.ir.atoms import Monomial
from convdsl.ir.expr import Expr, Pred, loads
from convdsl.ir.index import Index, const
from convdsl.ir.loop import LANES


@dataclass(frozen=True, slots=True)
class Part:
    """A part `place` of an index, a multiple of `step`: `low` steps and on, `extent` of them."""

    place: Index
    step: int
    low: int
    extent: int


@dataclass(frozen=True, slots=True)
class Axis:
    """An index as what other loops say, `base`, and what the moving loops do: its `parts`."""

    index: Index
    base: Index
    parts: tuple[Part, ...]

    @property
    def extent(self) -> int:
        return prod(p.extent for p in self.parts)

    @property
    def free(self) -> frozenset[str]:
        """The loops that move it."""
        return frozenset().union(*(p.place.free for p in self.parts))


def iterations(
    counts: Mapping[str, int], conditions: Sequence[Pred]
) -> Iterator[Mapping[str, int]]:
    """The iterations of loops in which conditions on them alone hold."""
    for values in combinations(*map(range, counts.values())):
        at = dict(zip(counts, values, strict=True))
        numbers = [(p.kind, p.index.evaluate(at)) for p in conditions]
        if all(n >= 0 if kind == "ge" else (n == 0) == (kind == "eq") for kind, n in numbers):
            yield at


def axes_of(
    factor: Expr, moving: frozenset[str], live: Sequence[Mapping[str, int]]
) -> list[Axis] | None:
    """The indices of reads that move, each once; None where one mixes moving loops with others."""
    out: dict[Index, Axis] = {}
    for load in loads(factor):
        for index in load.access.index:
            if index in out or not index.free & moving:
                continue
            place = Index({m: c for m, c in index.terms if Index({m: 1}).free & moving})
            if place.free - moving or not live:
                return None
            out[index] = Axis(index, index - place, _parts(place, live))
    return list(out.values())


def _parts(place: Index, live: Sequence[Mapping[str, int]]) -> tuple[Part, ...]:
    """An index as digits, where its values are not next to each other: 256*j + e as j and e."""
    one = _part(place, 1, live)
    terms = sorted(place.terms, key=lambda t: abs(t[1]))
    groups: list[list[tuple[Monomial, int]]] = []
    span = 0
    for monomial, coefficient in terms:
        if not groups or abs(coefficient) > span:
            groups.append([])
        groups[-1].append((monomial, coefficient))
        values = [sum((Index(dict(g)) for g in groups), const(0)).evaluate(at) for at in live]
        span = max(values) - min(values)
    parts = []
    for group in reversed(groups):
        step = gcd(*(c for _, c in group))
        parts.append(_part(Index(dict(group)), step, live))
    return (one,) if one.extent <= prod(p.extent for p in parts) else tuple(parts)


def _part(place: Index, step: int, live: Sequence[Mapping[str, int]]) -> Part:
    values = [place.evaluate(at) // step for at in live]
    return Part(place, step, min(values), max(values) - min(values) + 1)


def distinct(axes: Sequence[Axis]) -> bool:
    """Whether no loop moves along two axes: then the box has no elements that nobody reads."""
    seen: set[str] = set()
    for axis in axes:
        if axis.free & seen:
            return False
        seen |= axis.free
    return True


def widened(factor: Expr, axes: list[Axis]) -> list[Axis] | None:
    """With one axis from a multiple of four to another, read as whole vectors; None if none can be."""
    for axis in axes:
        reads = [x.access for x in loads(factor) if axis.index in x.access.index]
        last = all(a.index[-1] == axis.index and axis.index not in a.index[:-1] for a in reads)
        rows = all(all(c % LANES == 0 for _, c in a.dims[-1].terms) for a in reads)
        *others, part = axis.parts
        steps = [*(c for m, c in axis.base.terms if m), *(p.step for p in others)]
        if part.step != 1 or not last or not rows or any(c % LANES for c in steps):
            continue
        shift = axis.base.constant + sum(p.low * p.step for p in others) + part.low
        low = part.low - shift % LANES
        extent = -(-(part.low + part.extent - low) // LANES) * LANES
        if extent // LANES < part.extent:
            wide = replace(part, low=low, extent=extent)
            rest = [a for a in axes if a is not axis]
            return [*rest, replace(axis, parts=(*others, wide))]
    return None
