"""How the threads of a workgroup fill a tile together, four neighbours along the columns at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from convdsl.ir.expr import Access, Const, Expr, Guard, Pred, Var, ge, loads, map_index
from convdsl.ir.index import Index, ceildiv, const, floordiv, modulo, product, sym
from convdsl.ir.interval import ranges_of
from convdsl.ir.loop import LANES, For, If, Let, Level, Stmt, Store
from convdsl.schedule.copies import Copy
from convdsl.schedule.extents import Extent
from convdsl.schedule.nest import Loop
from convdsl.schedule.rejoin import rejoin, settled
from convdsl.schedule.whole import whole_tile

if TYPE_CHECKING:
    from convdsl.schedule.lower import Lowering

WRITTEN_OUT = 16  # steps up to which they are unrolled
Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Whole:
    """Where `test`, called `name`, is zero or more, all conditions hold and the operand is `value`."""

    name: str
    test: Index
    value: Expr


@dataclass(frozen=True, slots=True)
class Filling:
    """What one thread does: in each step `step` it fills `lane.extent` neighbours, `target`.

    `value` belongs there where the `conditions` hold, and zero elsewhere; `there` is the test for
    steps that lead beyond the end of the tile.
    """

    step: Var
    lane: Var
    target: Access
    value: Expr
    conditions: tuple[Pred, ...]
    there: Pred | None
    whole: Whole | None = None

    def read(self, target: Access, values: Mapping[str, Index]) -> Body:
        """Read the elements into `target`, at these values of loops around."""

        def put(index: Index) -> Index:
            return index.substitute(values)

        plain = map_index(self.value, put)
        tests = tuple(Pred(p.kind, put(p.index)) for p in self.conditions)
        guarded = Guard(tests, plain, Const(0, plain.dtype)) if tests else plain
        each = self.each(Store(target, guarded))
        if self.whole is None:
            return each
        name, value = self.whole.name, map_index(self.whole.value, put)
        inside = If((ge(sym(name)),), self.each(Store(target, value)))
        outside = If((ge(-1 - sym(name)),), each)
        return (Let(name, put(self.whole.test), (inside, outside)),)

    def each(self, store: Store) -> Body:
        """The store for each element of the thread."""
        level: Level = "vector" if self.lane.extent == LANES else "unroll"
        body: Body = (For(self.lane, level, (store,)),)
        if self.there is not None:
            body = (If((self.there,), body),)
        short = (self.step.extent.as_int() or 0) <= WRITTEN_OUT
        return (For(self.step, "unroll" if short else "serial", body),)


def filling_of(copy: Copy, kernel: Lowering) -> Filling:
    """How a tile is filled; of its conditions those that are still pending are tested."""
    threads, names = kernel.threads, kernel.names
    height, width = _extents(copy.rows, copy.columns)
    lanes = _lanes(width)
    quads = width // lanes
    count = product(x.extent for x in threads).as_int() or 1
    u, v = names.fresh("u"), names.fresh("v")
    mine = const(0)
    for loop in threads:
        mine = mine * loop.extent + sym(loop.name)
    place = sym(u) * count + mine
    value = copy.value
    if _along_rows(copy, value):
        row, quad = modulo(place, const(height)), floordiv(place, const(height))
    else:
        row, quad = floordiv(place, const(quads)), modulo(place, const(quads))
    digits = _digits(row, copy.rows) | _column_digits(quad, sym(v), lanes, copy.columns)

    steps = Var(u, const(0), ceildiv(const(height * quads), count))
    known = ranges_of((steps, Var(v, const(0), const(lanes))), kernel.known)

    def at(index: Index) -> Index:
        return settled(rejoin(index.substitute(digits)), known)

    conditions = copy.tests(kernel.pending)
    whole = None
    if copy.stage.interior and conditions:
        found = whole_tile(copy, value, conditions, kernel.known)
        if found is not None:
            name = names.fresh(f"{copy.stage.name}_inside")
            whole = Whole(name, found[0], map_index(found[1], at))
    return Filling(
        steps,
        Var(v, const(0), const(lanes)),
        Access(copy.buffer.name, (row, quad * lanes + sym(v)), copy.buffer.dims),
        map_index(value, at),
        tuple(Pred(p.kind, at(p.index)) for p in conditions),
        ge(const(height * quads - 1) - place) if (height * quads) % count else None,
        whole,
    )


def steps_of(extent: Extent, threads: Sequence[Loop]) -> int:
    """How many steps a thread takes to fill its share of a tile."""
    height, width = _extents(extent.rows, extent.columns)
    count = product(x.extent for x in threads).as_int() or 1
    return -(-height * (width // _lanes(width)) // count)


def _extents(rows: Sequence[Loop], columns: Sequence[Loop]) -> tuple[int, int]:
    height, width = (product(x.extent for x in loops).as_int() or 1 for loops in (rows, columns))
    return height, width


def _lanes(width: int) -> int:
    return LANES if width % LANES == 0 else 1


def _along_rows(copy: Copy, value: Expr) -> bool:
    """Whether neighbours in memory differ in a summed loop rather than in a free one."""
    for load in loads(value):
        last = load.access.index[-1].free if load.access.index else frozenset()
        if any(x.name in last for x in copy.rows) and not any(x.name in last for x in copy.columns):
            return True
    return False


def _digits(position: Index, loops: tuple[Loop, ...]) -> dict[str, Index]:
    """The loops' values at a row-major position."""
    out: dict[str, Index] = {}
    rest = position
    for at in reversed(range(len(loops))):
        loop = loops[at]
        out[loop.name] = modulo(rest, loop.extent) if at else rest
        rest = floordiv(rest, loop.extent)
    return out


def _column_digits(
    quad: Index, lane: Index, lanes: int, loops: tuple[Loop, ...]
) -> dict[str, Index]:
    """The loops' values at position quad*lanes + lane; a fastest loop of `lanes` is the lane itself."""
    if lanes > 1 and loops[-1].extent == lanes:
        return _digits(quad, loops[:-1]) | {loops[-1].name: lane}
    return _digits(quad * lanes + lane, loops)
