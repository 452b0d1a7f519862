"""Lower a scheduled nest to a GPU kernel in loop IR.

    grid loops
      [outer free loops]
        acc[...] = 0                                     threads
        reduced loops, those outside a stage or flush: of the whole workgroup
          stage: tile[...] = operand                     threads, zero where a condition fails
          part[...] += product                           threads, with the inner loops
        acc += part                                      threads, after each iteration of the flush loop
        result = epilogue(acc)                           threads, guarded

A free loop inside the first reduced loop is a dimension of the accumulator, kept in registers.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from convdsl.ir.expr import (
    Access,
    Const,
    Expr,
    Guard,
    Load,
    Pred,
    Reduce,
    Var,
    map_access,
    map_children,
    map_index,
    walk,
)
from convdsl.ir.index import Index, ceildiv, const, floordiv, modulo, product, sym, total
from convdsl.ir.interval import always, ranges_of
from convdsl.ir.loop import Buffer, For, If, Kernel, Level, Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.names import Names
from convdsl.passes.phases import replace_reduction
from convdsl.passes.reduce_loops import ACCUMULATE, identity
from convdsl.passes.relation import bounds_from
from convdsl.schedule.nest import Loop, Nest, Stage, depends_on, factors, operands
from convdsl.schedule.rejoin import rejoin

VECTOR = 4
Body = tuple[Stmt, ...]


@dataclass
class Staged:
    """A stage with its buffer: rows over reduced loops, columns over free ones."""

    stage: Stage
    factor: Expr
    rows: tuple[Loop, ...]
    columns: tuple[Loop, ...]
    buffer: Buffer
    conditions: tuple[Pred, ...]

    def at(self, lanes: tuple[Index, ...] = ()) -> Access:
        """The element for the current iteration of all loops."""
        index = (_flat(self.rows), _flat(self.columns))
        return Access(self.buffer.name, lanes + index, self.buffer.dims)


def lower_nest(name: str, nest: Nest) -> Kernel:
    """The kernel of a nest; its grid loops are outermost, thread loops next."""
    return _Lowering(nest).kernel(name)


class _Lowering:
    def __init__(self, nest: Nest) -> None:
        reduction = nest.reduction
        assert reduction is not None
        self.nest = nest
        self.reduction = reduction
        bound = {v.name for e in walk(nest.piece.value) if isinstance(e, Reduce) for v in e.vars}
        self.names = Names({x.name for x in nest.loops} | set(nest.values) | bound)
        self.grid = [x for x in nest.loops if x.level == "grid"]
        self.threads = [x for x in nest.loops if x.level == "thread"]
        rest = [x for x in nest.loops if x.level not in ("grid", "thread")]
        first = next(n for n, x in enumerate(rest) if x.reduced)
        self.outer, self.inner = rest[:first], rest[first:]
        self.registers = [x for x in self.inner if not x.reduced]
        self.lanes = tuple(sym(x.name) for x in self.threads)
        self.lane_dims = tuple(x.extent for x in self.threads)
        self.locals: list[Buffer] = []
        self.acc = self._register("acc", [x.extent for x in self.registers])
        self.part = (
            self._register("part", [x.extent for x in self.registers])
            if nest.flush is not None
            else self.acc
        )
        self.pending = self._conditions()
        self.staged = [self._stage(s) for s in nest.stages]

    # -- pieces -----------------------------------------------------------------------------------
    def _register(self, wanted: str, dims: Sequence[Index]) -> Buffer:
        dtype = self.reduction.dtype
        made = Buffer(
            self.names.fresh(wanted), dtype, (*self.lane_dims, *dims), "register", len(self.lanes)
        )
        self.locals.append(made)
        return made

    def _conditions(self) -> list[Pred]:
        """What must hold for an iteration to be a term of the sum."""

        def put(p: Pred) -> Pred:
            return Pred(p.kind, rejoin(p.index.substitute(self.nest.values)))

        every = [*self.nest.guards, *(put(p) for p in self.reduction.constraints)]
        known = self._ranges()
        return [p for p in every if not always(p, known)]

    def _loops_in(self, pred: Pred) -> frozenset[str]:
        """The loops that a condition depends on (its other names are sizes)."""
        return pred.index.free & {x.name for x in self.nest.loops}

    def _ranges(self) -> dict[str, tuple[int | None, int | None]]:
        return ranges_of(Var(x.name, const(0), x.extent) for x in self.nest.loops)

    def _stage(self, stage: Stage) -> Staged:
        factor = operands(self.reduction)[stage.operand]
        needed = depends_on(self.nest, factor)
        at = [x.name for x in self.inner].index(stage.at)
        inside = {x.name for x in self.inner[at + 1 :]}
        if stage.memory == "workgroup":
            inside |= {x.name for x in self.threads}
        moving = [self.nest.loop(d) for d in self.nest.digits if d in inside and d in needed]
        rows = tuple(x for x in moving if x.reduced)
        columns = tuple(x for x in moving if not x.reduced)
        height, width = (product(x.extent for x in part) for part in (rows, columns))
        if stage.memory == "workgroup":
            dims: tuple[Index, ...] = (height, width + stage.pad)
            name = self.names.fresh(f"{stage.operand}_tile")
            buffer = Buffer(name, self.reduction.dtype, dims, "workgroup")
            mine = tuple(p for p in self.pending if self._loops_in(p) <= needed)
        else:
            dims = (*self.lane_dims, height, width + stage.pad)
            name = self.names.fresh(f"{stage.operand}_row")
            buffer = Buffer(name, self.reduction.dtype, dims, "register", len(self.lanes))
            mine = ()
        self.locals.append(buffer)
        return Staged(stage, factor, rows, columns, buffer, mine)

    # -- the kernel -------------------------------------------------------------------------------
    def kernel(self, name: str) -> Kernel:
        start = Const(identity(self.reduction.op, self.reduction.dtype), self.reduction.dtype)
        init = self._over_registers(lambda: (Store(self._place(self.acc), start),))
        if self.part is not self.acc:
            init += self._over_registers(lambda: (Store(self._place(self.part), start),))
        body: Body = (
            self._on_threads(init),
            *self._reduce(0),
            self._on_threads(self._results()),
        )
        for loop in reversed(self.outer):
            body = (For(Var(loop.name, const(0), loop.extent), "serial", body),)
        grid: list[tuple[Var, Level]] = [
            (Var(x.name, const(0), x.extent), "grid") for x in self.grid
        ]
        return Kernel(name, tuple(self.locals), nested(grid, body), self.nest.piece.origin)

    def _on_threads(self, body: Body) -> Stmt:
        loops: list[tuple[Var, Level]] = [
            (Var(x.name, const(0), x.extent), "thread") for x in self.threads
        ]
        return nested(loops, body)[0]

    def _place(self, buffer: Buffer) -> Access:
        index = self.lanes + tuple(sym(x.name) for x in self.registers)
        return Access(buffer.name, index, buffer.dims)

    def _over_registers(self, make: Callable[[], Body]) -> Body:
        loops: list[tuple[Var, Level]] = [
            (Var(x.name, const(0), x.extent), x.level if x.level == "vector" else "unroll")
            for x in self.registers
        ]
        return nested(loops, make())

    # -- the reduction ----------------------------------------------------------------------------
    def _deep(self) -> int:
        """How many of the inner loops the workgroup runs together."""
        marks = {s.stage.at for s in self.staged if s.stage.memory == "workgroup"}
        if self.nest.flush is not None and marks:
            marks.add(self.nest.flush)
        places = [n for n, x in enumerate(self.inner) if x.name in marks]
        return max(places) + 1 if places else 0

    def _reduce(self, depth: int) -> Body:
        """The loops from `depth` on, at the level of the workgroup while something is staged there."""
        if depth >= self._deep():
            return (self._on_threads(self._thread(depth)),)
        loop = self.inner[depth]
        var = self._bounded(loop, {x.name for x in self.inner[:depth]})
        inside: list[Stmt] = []
        for staged in self.staged:
            if staged.stage.at == loop.name and staged.stage.memory == "workgroup":
                inside.append(self._fill_tile(staged))
        inside += self._reduce(depth + 1)
        if self.nest.flush == loop.name:
            inside.append(self._on_threads(self._add_up()))
        return (For(var, "serial", tuple(inside)),)

    def _bounded(self, loop: Loop, known: set[str]) -> Var:
        """A serial loop stops where a guard that concerns only it and loops outside would fail."""
        var = Var(loop.name, const(0), loop.extent)
        mine = [
            p
            for p in self.nest.guards
            if loop.name in p.index.free and self._loops_in(p) <= known | {loop.name}
        ]
        tight, left = bounds_from(mine, var)
        self.pending = [p for p in self.pending if p not in mine or p in left]
        return tight

    def _thread(self, depth: int) -> Body:
        """The loops from `depth` on as one thread runs them."""
        if depth == len(self.inner):
            return self._update()
        loop = self.inner[depth]
        fills: Body = ()
        for staged in self.staged:
            if staged.stage.at == loop.name and staged.stage.memory == "register":
                fills += self._fill_row(staged)
        known = {x.name for x in (*self.grid, *self.threads, *self.outer, *self.inner[:depth])}
        plain = loop.level == "serial"
        var = self._bounded(loop, known) if plain else Var(loop.name, const(0), loop.extent)
        inside = fills + self._thread(depth + 1)
        if self.nest.flush == loop.name:
            inside += self._add_up()
        return (For(var, loop.level, inside),)

    def _update(self) -> Body:
        absorbed = {p for s in self.staged for p in s.conditions}
        left = tuple(p for p in self.pending if p not in absorbed)
        body: Body = (Store(self._place(self.part), self._value(), ACCUMULATE[self.reduction.op]),)
        return (If(left, body),) if left else body

    def _value(self) -> Expr:
        """The product, each staged factor read from its nearest copy."""
        nearest = {s.stage.operand: s for s in self.staged}
        out: Expr | None = None
        from convdsl.ir.expr import Binary, loads

        for factor in factors(self.reduction.body):
            reads = loads(factor)
            staged = nearest.get(reads[0].access.tensor) if reads else None
            value = self._copy(staged) if staged is not None else self._put(factor)
            out = value if out is None else Binary("*", out, value)
        assert out is not None
        return out

    def _copy(self, staged: Staged) -> Load:
        lanes = self.lanes if staged.stage.memory == "register" else ()
        return Load(staged.at(lanes), self.reduction.dtype)

    def _put(self, value: Expr) -> Expr:
        return map_index(value, lambda i: rejoin(i.substitute(self.nest.values)))

    def _add_up(self) -> Body:
        total_ = self._place(self.acc)
        part = self._place(self.part)
        zero = Const(0.0, "f32")
        return self._over_registers(
            lambda: (Store(total_, Load(part, "f32"), "+"),)
        ) + self._over_registers(lambda: (Store(part, zero),))

    # -- copies -----------------------------------------------------------------------------------
    def _fill_tile(self, staged: Staged) -> Stmt:
        """All threads together copy a tile, four neighbours along the columns at a time."""
        height = product(x.extent for x in staged.rows).as_int() or 1
        width = product(x.extent for x in staged.columns).as_int() or 1
        lanes = VECTOR if width % VECTOR == 0 else 1
        quads = width // lanes
        count = product(x.extent for x in self.threads).as_int() or 1
        u, v = self.names.fresh("u"), self.names.fresh("v")
        mine = const(0)
        for loop in self.threads:
            mine = mine * loop.extent + sym(loop.name)
        place = sym(u) * count + mine
        if self._along_rows(staged):
            row, quad = modulo(place, const(height)), floordiv(place, const(height))
        else:
            row, quad = floordiv(place, const(quads)), modulo(place, const(quads))
        digits = _digits(row, staged.rows) | _column_digits(quad, sym(v), lanes, staged.columns)

        def put(index: Index) -> Index:
            return rejoin(index.substitute(digits))

        value = map_index(self._put(staged.factor), put)
        conditions = tuple(
            Pred(p.kind, put(p.index)) for p in staged.conditions if p in self.pending
        )
        if conditions:
            value = Guard(conditions, value, Const(0.0, "f32"))
        target = Access(staged.buffer.name, (row, quad * lanes + sym(v)), staged.buffer.dims)
        body: Body = (Store(target, value),)
        body = (
            For(Var(v, const(0), const(lanes)), "vector" if lanes == VECTOR else "unroll", body),
        )
        if (height * quads) % count:
            from convdsl.ir.expr import ge

            body = (If((ge(const(height * quads - 1) - place),), body),)
        times = ceildiv(const(height * quads), count)
        return self._on_threads((For(Var(u, const(0), times), "unroll", body),))

    def _along_rows(self, staged: Staged) -> bool:
        """Whether neighbours in memory differ in a reduced loop rather than in a free one."""
        from convdsl.ir.expr import loads

        for load in loads(self._put(staged.factor)):
            last = load.access.index[-1].free if load.access.index else frozenset()
            if any(x.name in last for x in staged.rows) and not any(
                x.name in last for x in staged.columns
            ):
                return True
        return False

    def _fill_row(self, staged: Staged) -> Body:
        """One thread copies what it needs into registers, from a tile where there is one."""
        tile = next(
            (s for s in self.staged if s.stage.operand == staged.stage.operand and s is not staged),
            None,
        )
        value: Expr = self._copy(tile) if tile is not None else self._put(staged.factor)
        store = Store(staged.at(self.lanes), value)
        loops: list[tuple[Var, Level]] = [
            (Var(x.name, const(0), x.extent), x.level if x.level == "vector" else "unroll")
            for x in (*staged.rows, *staged.columns)
        ]
        last = staged.columns[-1] if staged.columns else None
        if last is not None and last.extent == VECTOR:
            loops[-1] = (loops[-1][0], "vector")
        return nested(loops, (store,))

    # -- results ----------------------------------------------------------------------------------
    def _results(self) -> Body:
        nest = self.nest
        acc = Load(self._place(self.acc), self.reduction.dtype)
        hole = Load(Access("<reduction>", (), ()), self.reduction.dtype)
        value = _fill(self._put(replace_reduction(nest.piece.value, lambda _: hole)), hole, acc)
        access = map_access(nest.piece.access, lambda i: rejoin(i.substitute(nest.values)))
        body: Body = (Store(access, value),)
        free = {x.name for x in nest.loops if not x.reduced}
        known = self._ranges()
        guards = [p for p in nest.guards if self._loops_in(p) <= free]
        guards += [Pred(p.kind, rejoin(p.index.substitute(nest.values))) for p in nest.piece.guards]
        guards = [p for p in guards if not always(p, known)]
        if guards:
            body = (If(tuple(guards), body),)
        loops: list[tuple[Var, Level]] = [
            (Var(x.name, const(0), x.extent), "unroll") for x in self.registers
        ]
        return nested(loops, body)


def _fill(value: Expr, hole: Load, by: Expr) -> Expr:
    return by if value == hole else map_children(value, lambda e: _fill(e, hole, by))


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
