"""Windows: operands that summed loops shift along the free ones, so that one copy serves all shifts.

for j in 0..4                           x_tile[i - j + 3] of 64 + 3 elements
  for i in 0..64                        instead of x_tile[j, i] of 4 * 64
    y[i] += x[i - j + 3] * w[j]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod

from convdsl.ir.expr import Expr, indices_in
from convdsl.ir.index import Index, const, sym, total
from convdsl.ir.interval import interval
from convdsl.passes.relation import depends_through, linear
from convdsl.schedule.nest import Loop


@dataclass(frozen=True, slots=True)
class Window:
    """Element `place` of `extent` ones belongs to an iteration of the loops with these coefficients."""

    coefficients: Mapping[str, int]
    place: Index
    extent: int
    unit: str

    def put(self, at: Index) -> dict[str, Index]:
        """Values of the loops for which what depends on them through `place` alone is at `at`."""
        zeros = dict.fromkeys(self.coefficients, const(0))
        low = self.place.substitute(zeros)
        return zeros | {self.unit: (at - low) * self.coefficients[self.unit]}

    def carries(self, index: Index) -> bool:
        """Whether an index depends on the loops through `place` alone."""
        return depends_through(index, self.coefficients, self.unit)


def window_of(value: Expr, moving: Sequence[Loop]) -> Window | None:
    """The window that an operand over the loops is read in; None where no summed loop shifts it.

    It must depend on all free loops that move, and on the summed ones that shift it, through one sum,
    which has fewer values than the loops have iterations.
    """
    free = {x.name for x in moving if not x.reduced}
    extents = {x.name: x.extent.as_int() for x in moving}
    indices = indices_in(value)
    shifted = [i for i in indices if i.free & free and i.free & set(extents) - free]
    form = linear(shifted[0], list(extents)) if shifted else None
    if form is None or not free <= set(form.coefficients):
        return None
    coefficients = form.coefficients
    counts = {n: extents[n] or 0 for n in coefficients}
    whole = total(sym(n) * c for n, c in coefficients.items())
    low, high = interval(whole, {n: (0, count - 1) for n, count in counts.items()})
    units = [n for n, c in coefficients.items() if abs(c) == 1]
    if not units or not all(counts.values()) or low is None or high is None:
        return None
    if high - low + 1 >= prod(counts.values()):
        return None
    found = Window(coefficients, whole - low, high - low + 1, units[0])
    return found if all(found.carries(i) for i in indices) else None
