"""Copies of operands in workgroup memory and in registers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from convdsl.ir.expr import Access, Const, Expr, Guard, Load, Pred, Var, map_index
from convdsl.ir.index import Index, const, product, sym, total
from convdsl.ir.interval import Interval, always, implied, ranges_of
from convdsl.ir.loop import Buffer, Level, Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.guards import reads_inside
from convdsl.passes.names import Names
from convdsl.schedule.boxes import Box, box_of
from convdsl.schedule.nest import Loop, Nest, Stage, conditions_of, operands
from convdsl.schedule.rejoin import merged_loads, settled
from convdsl.schedule.windows import Window, window_of

VECTOR = 4
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
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    buffer: Buffer
    conditions: tuple[Pred, ...]
    bounds: tuple[Pred, ...] = ()
    spared: tuple[Pred, ...] = ()
    window: Window | None = None
    source: Copy | None = None
    box: Box | None = None

    @property
    def put(self) -> dict[str, Index]:
        """Values of loops that what is read at a place in the window is said with."""
        return self.window.put(_flat(self.columns)) if self.window is not None else {}

    def tests(self, pending: Sequence[Pred]) -> tuple[Pred, ...]:
        """What to test of an element, of the conditions those that are still pending."""
        if self.box is not None:
            return self.bounds
        mine = (p for p in self.conditions if p in pending)
        return (*(Pred(p.kind, p.index.substitute(self.put)) for p in mine), *self.bounds)

    def covers(self, pred: Pred) -> bool:
        """Whether a condition need not be tested of a term that is read from here."""
        return pred in self.conditions or pred in self.spared

    def access(self, lanes: tuple[Index, ...], filled: bool = False) -> Access:
        """The element for the current iteration of all loops, or of those that fill the copy."""
        windowed = self.window is not None and not filled
        column = self.window.place if self.window and windowed else _flat(self.columns)
        if self.box is not None and not filled:
            column = self.box.place
        return Access(self.buffer.name, (*lanes, _flat(self.rows), column), self.buffer.dims)

    def load(self, lanes: tuple[Index, ...]) -> Load:
        """Read it; `lanes` are the thread indices, used by copies in registers."""
        own = lanes if self.stage.memory == "register" else ()
        return Load(self.access(own), "i32" if self.buffer.dtype == "i32" else "f32")


@dataclass(frozen=True, slots=True)
class Extent:
    """The loops of a copy: `rows` x `columns`, the latter over a window where there is one."""

    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    window: Window | None
    box: Box | None = None

    @property
    def loops(self) -> tuple[Loop, ...]:
        return (*self.rows, *self.columns)


def extent_of(
    nest: Nest, stage: Stage, threads: Sequence[Loop], conditions: Sequence[Pred]
) -> Extent:
    """What a stage copies in one iteration of its loop."""
    moving = moving_loops(nest, stage, threads)
    own = _own(nest, stage, conditions)
    box = _box(nest, stage, moving, own)
    if box is not None:
        return Extent((), box.loops, None, box)
    window, spared = window_of(_value(nest, stage), moving), _of_results(nest)
    if window is None or not all(window.carries(p.index) or p in spared for p in own):
        rows, columns = (tuple(x for x in moving if x.reduced == r) for r in (True, False))
        return Extent(rows, columns, None)
    names = nest.names()
    quads = Loop(names.fresh(f"{stage.name}_quad"), const(-(-window.extent // VECTOR)), False)
    lanes = Loop(names.fresh(f"{stage.name}_lane"), const(VECTOR), False)
    rows = tuple(x for x in moving if x.name not in window.coefficients)
    return Extent(rows, (quads, lanes), window)


def _box(
    nest: Nest, stage: Stage, moving: Sequence[Loop], conditions: Sequence[Pred]
) -> Box | None:
    """What a copy in registers holds of an operand that no tile holds, where iterations share it."""
    tiles = {s.operand for s in nest.stages if s.memory == "workgroup"}
    if stage.memory == "workgroup" or stage.operand in tiles:
        return None
    known = ranges_of(Var(x.name, const(0), x.extent) for x in nest.loops)
    value = map_index(_factor(nest, stage), lambda i: _settled(nest, nest.put(i), known))
    tests = {p: Pred(p.kind, _settled(nest, p.index, known)) for p in conditions}
    sure = [t for p, t in tests.items() if written_out(nest, p, known)]
    tests = {p: t for p, t in tests.items() if t not in sure}
    return box_of(value, moving, tests, sure, known, nest.names())


def written_out(nest: Nest, pred: Pred, known: Mapping[str, Interval]) -> bool:
    """Whether a condition is known for each copy of the text, so that testing it costs nothing."""
    free = _settled(nest, pred.index, known).free
    return free <= {x.name for x in nest.loops if x.level in ("unroll", "vector")}


def _settled(nest: Nest, index: Index, known: Mapping[str, Interval]) -> Index:
    """An index over the loops, without those of one iteration and without needless divisions."""
    once = {x.name: const(0) for x in nest.loops if x.extent == 1}
    return settled(index.substitute(once), known)


def _factor(nest: Nest, stage: Stage) -> Expr:
    reduction = nest.reduction
    assert reduction is not None
    return operands(reduction)[stage.operand]


def _own(nest: Nest, stage: Stage, conditions: Sequence[Pred]) -> tuple[Pred, ...]:
    """The conditions that concern no loop but those that the operand depends on."""
    every, needed = {x.name for x in nest.loops}, nest.depends_on(_factor(nest, stage))
    return tuple(p for p in conditions if p.index.free & every <= needed)


def _of_results(nest: Nest) -> tuple[Pred, ...]:
    """Tails without which there are more results, which nobody stores."""
    summed = {x.name for x in nest.loops if x.reduced}
    return tuple(t.condition for t in nest.tails if t.condition.index.free.isdisjoint(summed))


def _value(nest: Nest, stage: Stage) -> Expr:
    """The operand in terms of the loops."""
    known = ranges_of(Var(x.name, const(0), x.extent) for x in nest.loops)
    return merged_loads(map_index(_factor(nest, stage), lambda i: settled(nest.put(i), known)))


def moving_loops(nest: Nest, stage: Stage, threads: Sequence[Loop]) -> tuple[Loop, ...]:
    """The loops inside a stage that its operand depends on; of a tile the thread loops too."""
    needed = nest.depends_on(_factor(nest, stage))
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
    value, needed = _value(nest, stage), nest.depends_on(_factor(nest, stage))
    mine = _own(nest, stage, conditions)
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
        return Copy(stage, box.value, (), box.loops, buffer, box.met, box.tests, box=box)
    spared = tuple(
        p for p in mine if p in _of_results(nest) and not (window and window.carries(p.index))
    )
    tested = tuple(p for p in mine if p not in spared)
    made = Copy(
        stage, value, extent.rows, extent.columns, buffer, tested, spared=spared, window=window
    )
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
    if copy.columns and copy.columns[-1].extent == VECTOR:
        loops[-1] = (loops[-1][0], "vector")
    return nested(loops, (Store(copy.access(lanes, filled=True), source),))


def _flat(loops: tuple[Loop, ...]) -> Index:
    """The row-major position of the current iteration within the loops."""
    parts: list[Index] = []
    stride = const(1)
    for loop in reversed(loops):
        parts.append(sym(loop.name) * stride)
        stride = stride * loop.extent
    return total(parts)
