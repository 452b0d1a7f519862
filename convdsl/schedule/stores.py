"""The order in which a thread stores its results: four neighbours in memory at a time.

for t in 0..4                           for t, m in 0..2
  for m, r in 0..2                        for lane in 0..4                   t*2 + lane/2, lane%2
    y[m*L + t*2 + r] = acc[t, m*2 + r]      y[m*L + t*4 + lane] = acc[t*2 + lane/2, m*2 + lane%2]

The results of a strided relation alternate between phases: neighbours belong to different accumulators.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from convdsl.ir.expr import Var
from convdsl.ir.index import Index, const, floordiv, modulo, sym
from convdsl.ir.interval import Interval, ranges_of
from convdsl.ir.loop import LANES, Level
from convdsl.passes.names import Names
from convdsl.schedule.nest import Loop
from convdsl.schedule.rejoin import rejoin, settled

HALF = 2


@dataclass(frozen=True, slots=True)
class Interleave:
    """Loops instead of those over the accumulators, and the values of these."""

    loops: tuple[tuple[Var, Level], ...]
    values: Mapping[str, Index]
    known: Mapping[str, Interval]

    def put(self, index: Index) -> Index:
        """An index over the accumulators in terms of the loops."""
        return settled(rejoin(index.substitute(self.values)), self.known)


def interleave(
    registers: Sequence[Loop], address: Index, known: Mapping[str, Interval], names: Names
) -> Interleave | None:
    """Loops in which four neighbours follow each other; None where they do already, or cannot."""
    fast = registers[-1] if registers else None
    if fast is None or fast.level != "vector" or fast.extent != LANES:
        return None
    if _together(address, {fast.name: 1}):
        return None
    bits = [names.fresh(f"{fast.name}_{n}") for n in ("pair", "bit")]
    for slow in registers[:-1]:
        extent = slow.extent.as_int()
        if extent is None or extent % HALF:
            continue
        more = [names.fresh(f"{slow.name}_{n}") for n in ("pair", "bit")]
        pairs = (Var(more[0], const(0), const(extent // HALF)), Var(bits[0], const(0), const(HALF)))
        inner = [Var(n, const(0), const(HALF)) for n in (more[1], bits[1])]
        digits = {
            slow.name: sym(more[0]) * HALF + sym(more[1]),
            fast.name: sym(bits[0]) * HALF + sym(bits[1]),
        }
        ranges = ranges_of((*pairs, *inner), known)
        if not _together(settled(address.substitute(digits), ranges), {bits[1]: 1, more[1]: HALF}):
            continue
        lane = names.fresh("lane")
        order = {more[1]: floordiv(sym(lane), const(HALF)), bits[1]: modulo(sym(lane), const(HALF))}
        loops: list[tuple[Var, Level]] = [
            (pairs[0] if x is slow else Var(x.name, const(0), x.extent), "unroll")
            for x in registers[:-1]
        ]
        loops += [(pairs[1], "unroll"), (Var(lane, const(0), const(LANES)), "vector")]
        values = {n: v.substitute(order) for n, v in digits.items()}
        return Interleave(tuple(loops), values, ranges_of((v for v, _ in loops), known))
    return None


def _together(address: Index, lanes: Mapping[str, int]) -> bool:
    """Whether the address is a multiple of four and the sum of these names with these factors."""
    rest = address
    for name, factor in lanes.items():
        if rest.coefficient(name) != factor:
            return False
        rest = rest.without(name)
    return rest.free.isdisjoint(lanes) and all(c % LANES == 0 for _, c in rest.terms)
