"""Copies of operands in workgroup memory and in registers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from convdsl.ir.expr import Access, Const, Expr, Guard, Load, Pred, Var, map_index
from convdsl.ir.index import Index, const, product
from convdsl.ir.interval import always, implied, ranges_of
from convdsl.ir.loop import LANES, Buffer, Level, Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.guards import reads_inside
from convdsl.passes.names import Names
from convdsl.schedule.extents import (
    Extent,
    extent_of,
    factor_of,
    flat,
    of_results,
    own_conditions,
    value_of,
)
from convdsl.schedule.nest import Loop, Nest, Stage, conditions_of

Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """A stage with its buffer: rows over summed loops, columns over free ones or over a `window`.

    Or columns over the `box` of what is read, where several iterations share elements; its `bounds` are
    all that is tested then.

    `conditions` are those under which the operand is read; elsewhere the copy holds zero. `bounds` keep
    its reads inside of their tensors where other loops than its own do so in the sum. Where a `spared`
    condition fails it holds anything: no result is stored. `source` is the tile that a copy in registers
    is filled from, where there is one.
    """

    stage: Stage
    value: Expr
    extent: Extent
    buffer: Buffer
    conditions: tuple[Pred, ...]
    bounds: tuple[Pred, ...] = ()
    spared: tuple[Pred, ...] = ()
    source: Copy | None = None

    @property
    def rows(self) -> tuple[Loop, ...]:
        return self.extent.rows

    @property
    def columns(self) -> tuple[Loop, ...]:
        return self.extent.columns

    @property
    def put(self) -> dict[str, Index]:
        """Values of loops that what is read at a place in the window is said with."""
        window = self.extent.window
        return window.put(flat(self.columns)) if window is not None else {}

    def tests(self, pending: Sequence[Pred]) -> tuple[Pred, ...]:
        """What to test of an element, of the conditions those that are still pending."""
        if self.extent.box is not None:
            return self.bounds
        mine = (p for p in self.conditions if p in pending)
        return (*(Pred(p.kind, p.index.substitute(self.put)) for p in mine), *self.bounds)

    def covers(self, pred: Pred) -> bool:
        """Whether a condition need not be tested of a term that is read from here."""
        return pred in self.conditions or pred in self.spared

    def access(self, lanes: tuple[Index, ...], filled: bool = False) -> Access:
        """The element for the current iteration of all loops, or of those that fill the copy."""
        place = (flat(self.rows), flat(self.columns)) if filled else self.extent.place
        return Access(self.buffer.name, (*lanes, *place), self.buffer.dims)

    def load(self, lanes: tuple[Index, ...]) -> Load:
        """Read it; `lanes` are the thread indices, used by copies in registers."""
        own = lanes if self.stage.memory == "register" else ()
        return Load(self.access(own), "i32" if self.buffer.dtype == "i32" else "f32")


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


def fills_tested(nest: Nest) -> bool:
    """Whether conditions are tested when the copies of a nest are filled."""
    known = ranges_of(Var(x.name, const(0), x.extent) for x in nest.loops)
    pending = [p for p in conditions_of(nest) if not always(p, known)]
    threads = [x for x in nest.loops if x.level == "thread"]
    copies = copies_of(nest, threads, nest.names(), pending)
    return any(set(c.tests(pending)) - set(_ends(nest, c.stage)) for c in copies)


def _outermost_first(nest: Nest) -> list[Stage]:
    """The stages from the outermost loop to the innermost; at one loop the tile before registers."""
    return sorted(nest.stages, key=lambda s: (nest.place(s.at), s.memory == "register"))


def _copy(
    nest: Nest, stage: Stage, threads: Sequence[Loop], names: Names, conditions: Sequence[Pred]
) -> Copy:
    value, needed = value_of(nest, stage), nest.depends_on(factor_of(nest, stage))
    mine = own_conditions(nest, stage, conditions)
    extent = extent_of(nest, stage, threads, conditions)
    window = extent.window
    rows, columns = (product(x.extent for x in loops) for loops in (extent.rows, extent.columns))
    dims = rows, columns + stage.pad
    dtype = nest.reduction.dtype if nest.reduction is not None else "f32"
    if stage.memory == "workgroup":
        buffer = Buffer(names.fresh(f"{stage.name}_tile"), dtype, dims, "workgroup")
    else:
        own = tuple(x.extent for x in threads)
        buffer = Buffer(names.fresh(f"{stage.name}_row"), dtype, own + dims, "register", len(own))
    if extent.box is not None:
        box = extent.box
        return Copy(stage, box.value, extent, buffer, box.met, box.tests)
    spared = tuple(
        p for p in mine if p in of_results(nest) and not (window and window.carries(p.index))
    )
    tested = tuple(p for p in mine if p not in spared)
    made = Copy(stage, value, extent, buffer, tested, spared=spared)
    value = map_index(value, lambda i: i.substitute(made.put))
    bounds = _bounds(nest, made, value)
    if window is None and spared and bounds:
        made, bounds = replace(made, conditions=mine, spared=()), ()
    if window is None and not any(p.index.free & needed for p in conditions if p not in mine):
        bounds = ()  # the conditions keep its reads inside
    return replace(made, value=value, bounds=bounds)


def _bounds(nest: Nest, copy: Copy, value: Expr) -> tuple[Pred, ...]:
    """That each read is one of an element, where that is not known."""
    loops = dict.fromkeys((*nest.loops, *copy.columns))
    known = ranges_of(Var(x.name, const(0), x.extent) for x in loops)
    tested = copy.tests(copy.conditions)
    wanted = dict.fromkeys(reads_inside(value))
    ends = _ends(nest, copy.stage)
    return tuple(p for p in wanted if not implied(p, ends, known) and p not in tested)


def _ends(nest: Nest, stage: Stage) -> list[Pred]:
    """What loops around a copy see to: they end where it fails."""
    every = {x.name for x in nest.loops}
    around = nest.loops[: nest.place(stage.at) + 1]
    names = {x.name for x in around if x.level in ("grid", "serial")}
    cut = [t.condition for t in nest.tails if t.policy == "cut"]
    return [p for p in cut if p.index.free & every <= names]


def fill_row(copy: Copy, lanes: tuple[Index, ...], pending: Sequence[Pred]) -> Body:
    """One thread copies what it needs into registers, from the tile where there is one."""
    source = copy.value
    if copy.source is not None:
        source = map_index(copy.source.load(()), lambda i: i.substitute(copy.put))
    else:
        tests = copy.tests(pending)
        if tests:
            source = Guard(tests, source, Const(0, source.dtype))
    loops: list[tuple[Var, Level]] = [
        (Var(x.name, const(0), x.extent), "unroll") for x in (*copy.rows, *copy.columns)
    ]
    if copy.columns and copy.columns[-1].extent == LANES:
        loops[-1] = (loops[-1][0], "vector")
    return nested(loops, (Store(copy.access(lanes, filled=True), source),))
