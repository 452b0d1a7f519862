"""Copies of operands in workgroup memory and in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from convdsl.ir.expr import Access, Const, Expr, Guard, Load, Pred, Var, map_index
from convdsl.ir.index import Index, const, product, sym, total
from convdsl.ir.interval import always, ranges_of
from convdsl.ir.loop import Buffer, Level, Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.guards import reads_inside
from convdsl.passes.names import Names
from convdsl.schedule.nest import Loop, Nest, Stage, operands

VECTOR = 4
Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """A stage with its buffer: rows over summed loops, columns over free ones.

    `conditions` are those under which the operand is read; elsewhere the copy holds zero. `bounds` keep
    its reads inside of their tensors where other loops than its own do so in the sum. `source` is the
    tile that a copy in registers is filled from, where there is one.
    """

    stage: Stage
    factor: Expr
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    buffer: Buffer
    conditions: tuple[Pred, ...]
    bounds: tuple[Pred, ...] = ()
    source: Copy | None = None

    def tests(self, pending: Sequence[Pred]) -> tuple[Pred, ...]:
        """What to test of an element, of the conditions those that are still pending."""
        return (*(p for p in self.conditions if p in pending), *self.bounds)

    def access(self, lanes: tuple[Index, ...]) -> Access:
        """The element for the current iteration of all loops."""
        return Access(
            self.buffer.name, (*lanes, _flat(self.rows), _flat(self.columns)), self.buffer.dims
        )

    def load(self, lanes: tuple[Index, ...]) -> Load:
        """Read it; `lanes` are the thread indices, used by copies in registers."""
        own = lanes if self.stage.memory == "register" else ()
        return Load(self.access(own), "i32" if self.buffer.dtype == "i32" else "f32")


def moving_loops(
    nest: Nest, stage: Stage, factor: Expr, threads: Sequence[Loop]
) -> tuple[Loop, ...]:
    """The loops inside a stage that its operand depends on; of a tile the thread loops too."""
    needed = nest.depends_on(factor)
    inside = {x.name for x in nest.loops[nest.place(stage.at) + 1 :] if x.level != "grid"}
    lanes = {x.name for x in threads}
    inside = inside | lanes if stage.memory == "workgroup" else inside - lanes
    return tuple(nest.loop(d) for d in nest.digits if d in inside and d in needed)


def copies_of(
    nest: Nest, threads: Sequence[Loop], names: Names, conditions: Sequence[Pred]
) -> list[Copy]:
    """The buffers that the stages need."""
    out = [_copy(nest, stage, threads, names, conditions) for stage in _outermost_first(nest)]
    tiles = {c.stage.operand: c for c in out if c.stage.memory == "workgroup"}
    for at, copy in enumerate(out):
        tile = tiles.get(copy.stage.operand)
        if copy.stage.memory == "register" and tile is not None and tile in out[:at]:
            out[at] = replace(copy, source=tile, conditions=tile.conditions)
    return out


def _outermost_first(nest: Nest) -> list[Stage]:
    """The stages from the outermost loop to the innermost; at one loop the tile before registers."""
    return sorted(nest.stages, key=lambda s: (nest.place(s.at), s.memory == "register"))


def _copy(
    nest: Nest, stage: Stage, threads: Sequence[Loop], names: Names, conditions: Sequence[Pred]
) -> Copy:
    reduction = nest.reduction
    assert reduction is not None
    factor = operands(reduction)[stage.operand]
    moving = moving_loops(nest, stage, factor, threads)
    rows = tuple(x for x in moving if x.reduced)
    columns = tuple(x for x in moving if not x.reduced)
    dims = (product(x.extent for x in rows), product(x.extent for x in columns) + stage.pad)
    every, needed = {x.name for x in nest.loops}, nest.depends_on(factor)
    mine = tuple(p for p in conditions if p.index.free & every <= needed)
    if stage.memory == "workgroup":
        buffer = Buffer(names.fresh(f"{stage.name}_tile"), reduction.dtype, dims, "workgroup")
    else:
        own = tuple(x.extent for x in threads)
        name = names.fresh(f"{stage.name}_row")
        buffer = Buffer(name, reduction.dtype, own + dims, "register", len(own))
    shared = any(p.index.free & needed for p in conditions if p not in mine)
    bounds = _bounds(nest, factor, mine) if shared else ()
    return Copy(stage, factor, rows, columns, buffer, mine, bounds)


def _bounds(nest: Nest, factor: Expr, conditions: Sequence[Pred]) -> tuple[Pred, ...]:
    """That each read is one of an element, where that is not known."""
    known = ranges_of(Var(x.name, const(0), x.extent) for x in nest.loops)
    wanted = dict.fromkeys(reads_inside(map_index(factor, nest.put)))
    return tuple(p for p in wanted if not always(p, known) and p not in conditions)


def fill_row(
    copy: Copy,
    lanes: tuple[Index, ...],
    put: Callable[[Expr], Expr],
    pending: Sequence[Pred],
) -> Body:
    """One thread copies what it needs into registers, from the tile where there is one."""
    if copy.source is not None:
        source: Expr = copy.source.load(())
    else:
        source = put(copy.factor)
        tests = copy.tests(pending)
        if tests:
            source = Guard(tests, source, Const(0, source.dtype))
    loops: list[tuple[Var, Level]] = [
        (Var(x.name, const(0), x.extent), "unroll") for x in (*copy.rows, *copy.columns)
    ]
    if copy.columns and copy.columns[-1].extent == VECTOR:
        loops[-1] = (loops[-1][0], "vector")
    return nested(loops, (Store(copy.access(lanes), source),))


def _flat(loops: tuple[Loop, ...]) -> Index:
    """The row-major position of the current iteration within the loops."""
    parts: list[Index] = []
    stride = const(1)
    for loop in reversed(loops):
        parts.append(sym(loop.name) * stride)
        stride = stride * loop.extent
    return total(parts)
