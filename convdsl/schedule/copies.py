"""Copies of operands in workgroup memory and in registers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from convdsl.ir.expr import Access, Const, Expr, Guard, Load, Pred, Var, ge, loads, map_index
from convdsl.ir.index import Index, ceildiv, const, floordiv, modulo, product, sym, total
from convdsl.ir.loop import Buffer, For, If, Level, Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.names import Names
from convdsl.schedule.nest import Loop, Nest, Stage, operands
from convdsl.schedule.rejoin import rejoin

VECTOR = 4
WRITTEN_OUT = 16  # steps of filling a tile up to which they are unrolled
Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Copy:
    """A stage with its buffer: rows over summed loops, columns over free ones.

    `conditions` are those under which the operand is read; elsewhere the copy holds zero. `source` is
    the tile that a copy in registers is filled from, where there is one.
    """

    stage: Stage
    factor: Expr
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    buffer: Buffer
    conditions: tuple[Pred, ...]
    source: Copy | None = None

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
        buffer = Buffer(names.fresh(f"{_plain(stage)}_tile"), reduction.dtype, dims, "workgroup")
    else:
        own = tuple(x.extent for x in threads)
        name = names.fresh(f"{_plain(stage)}_row")
        buffer = Buffer(name, reduction.dtype, own + dims, "register", len(own))
    return Copy(stage, factor, rows, columns, buffer, mine)


def _plain(stage: Stage) -> str:
    return stage.operand.replace(".", "_")


def fill_tile(
    copy: Copy,
    threads: Sequence[Loop],
    names: Names,
    put: Callable[[Expr], Expr],
    pending: Sequence[Pred],
) -> Body:
    """All threads together fill a tile, four neighbours along the columns at a time."""
    height = product(x.extent for x in copy.rows).as_int() or 1
    width = product(x.extent for x in copy.columns).as_int() or 1
    lanes = VECTOR if width % VECTOR == 0 else 1
    quads = width // lanes
    count = product(x.extent for x in threads).as_int() or 1
    u, v = names.fresh("u"), names.fresh("v")
    mine = const(0)
    for loop in threads:
        mine = mine * loop.extent + sym(loop.name)
    place = sym(u) * count + mine
    if _along_rows(copy, put):
        row, quad = modulo(place, const(height)), floordiv(place, const(height))
    else:
        row, quad = floordiv(place, const(quads)), modulo(place, const(quads))
    digits = _digits(row, copy.rows) | _column_digits(quad, sym(v), lanes, copy.columns)

    def at(index: Index) -> Index:
        return rejoin(index.substitute(digits))

    value = map_index(put(copy.factor), at)
    conditions = tuple(Pred(p.kind, at(p.index)) for p in copy.conditions if p in pending)
    if conditions:
        value = Guard(conditions, value, Const(0, value.dtype))
    target = Access(copy.buffer.name, (row, quad * lanes + sym(v)), copy.buffer.dims)
    level: Level = "vector" if lanes == VECTOR else "unroll"
    body: Body = (For(Var(v, const(0), const(lanes)), level, (Store(target, value),)),)
    if (height * quads) % count:
        body = (If((ge(const(height * quads - 1) - place),), body),)
    times = ceildiv(const(height * quads), count)
    short = (times.as_int() or 0) <= WRITTEN_OUT
    return (For(Var(u, const(0), times), "unroll" if short else "serial", body),)


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
        conditions = tuple(p for p in copy.conditions if p in pending)
        if conditions:
            source = Guard(conditions, source, Const(0, source.dtype))
    loops: list[tuple[Var, Level]] = [
        (Var(x.name, const(0), x.extent), "unroll") for x in (*copy.rows, *copy.columns)
    ]
    if copy.columns and copy.columns[-1].extent == VECTOR:
        loops[-1] = (loops[-1][0], "vector")
    return nested(loops, (Store(copy.access(lanes), source),))


def _along_rows(copy: Copy, put: Callable[[Expr], Expr]) -> bool:
    """Whether neighbours in memory differ in a summed loop rather than in a free one."""
    for load in loads(put(copy.factor)):
        last = load.access.index[-1].free if load.access.index else frozenset()
        if any(x.name in last for x in copy.rows) and not any(x.name in last for x in copy.columns):
            return True
    return False


def _flat(loops: tuple[Loop, ...]) -> Index:
    """The row-major position of the current iteration within the loops."""
    parts: list[Index] = []
    stride = const(1)
    for loop in reversed(loops):
        parts.append(sym(loop.name) * stride)
        stride = stride * loop.extent
    return total(parts)


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
