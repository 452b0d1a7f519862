"""Tiles that are read ahead: the next ones come into registers while the current ones are used.

    registers = first tiles                 where there are some
    for c                                   the loops around the tiles, as one sequence of iterations
      tiles = registers
      registers = next tiles                where there are some
      use of the tiles

The next iteration is that of the innermost loop; after its last one it is the first one in the next
iteration of the loop around it, and so on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from convdsl.ir.expr import Access, Load, Pred, Var, eq, ge
from convdsl.ir.index import Index, const, maximum, sym
from convdsl.ir.interval import Interval, always, interval
from convdsl.ir.loop import Buffer, If, Stmt, Store
from convdsl.schedule.filling import Filling

Body = tuple[Stmt, ...]
Values = Mapping[str, Index]


@dataclass(frozen=True, slots=True)
class Ahead:
    """A tile that is read ahead: `registers` hold the share of each thread."""

    filling: Filling
    registers: Buffer
    lanes: tuple[Index, ...]

    def store(self) -> Body:
        """Put what was read ahead into the tile."""
        value = Load(self._place(), "i32" if self.registers.dtype == "i32" else "f32")
        return self.filling.each(Store(self.filling.target, value))

    def read(self, values: Values) -> Body:
        """Read the tile that belongs to these values of the loops."""
        return self.filling.read(self._place(), values)

    def _place(self) -> Access:
        step, lane = self.filling.step, self.filling.lane
        index = sym(step.name) * lane.extent + sym(lane.name)
        return Access(self.registers.name, (*self.lanes, index), self.registers.dims)


@dataclass(frozen=True, slots=True)
class Prefetch:
    """The tiles staged at the innermost of `loops`; `ranges` are those of all names."""

    tiles: tuple[Ahead, ...]
    loops: tuple[Var, ...]
    ranges: Mapping[str, Interval]

    def first(self) -> Body:
        """Read the tiles of the first iteration of all; before the outermost loop."""
        return self._read([ge(self.loops[0].extent - 1)], self._start(0, {}))

    def next(self) -> Body:
        """Read the tiles of the next iteration.

        Where the first tile of an outer iteration lies behind the last one of the inner loop, as it
        does when the two were one loop before a split, the same text reads both.
        """
        found: list[tuple[list[Pred], Values]] = []
        last: list[Pred] = []
        joined: list[Var] = []
        for n in reversed(range(len(self.loops))):
            var = self.loops[n]
            more, on = var.high - 2 - sym(var.name), self._start(n + 1, _after(var))
            if joined and self._continues(found[-1][1], joined, var, on):
                (*tests, goes_on), values = found[-1]
                found[-1] = [*tests, ge(maximum(goes_on.index, more))], values
            else:
                found.append(([*last, ge(more)], on))
                joined = []
            joined.append(var)
            last.append(eq(sym(var.name) + 1 - var.high))
        out: Body = ()
        for tests, values in found:
            out += self._read(tests, values)
        return out

    def _continues(self, values: Values, inner: Sequence[Var], outer: Var, on: Values) -> bool:
        """Whether `values`, at the end of the `inner` loops, mean the same tiles as `on`."""
        low, high = self.ranges[outer.name]
        ranges = {**self.ranges, outer.name: (low, None if high is None else high - 1)}
        ends: dict[str, Index] = {}
        for var in inner:
            least, most = interval(var.high, ranges)
            if least is None or least != most:
                return False
            ends[var.name] = const(least - 1)
        at_end = ends | {name: value.substitute(ends) for name, value in values.items()}
        return all(tile.read(at_end) == tile.read(on) for tile in self.tiles)

    def _start(self, at: int, values: Values) -> dict[str, Index]:
        """`values`, and the loops from `at` on in their first iteration."""
        out = dict(values)
        for var in self.loops[at:]:
            out[var.name] = var.low.substitute(out)
        return out

    def _read(self, tests: Sequence[Pred], values: Values) -> Body:
        body: Body = ()
        for tile in self.tiles:
            body += tile.read(values)
        left = tuple(p for p in tests if not always(p, self.ranges))
        return (If(left, body),) if left else body


def _after(var: Var) -> dict[str, Index]:
    return {var.name: sym(var.name) + 1}


def sequence(loops: Sequence[Var], ranges: Mapping[str, Interval]) -> int:
    """Where the longest sequence of iterations begins that ends with the innermost of the loops.

    A loop that may have no iterations is the outermost of its sequence: which one comes after an
    iteration could not be said otherwise.
    """
    at = len(loops) - 1
    while at > 0 and always(ge(loops[at].extent - 1), ranges):
        at -= 1
    return at
