"""Lower a scheduled nest to a GPU kernel in loop IR.

    grid loops
      free loops outside the sum
        acc[...] = 0                                  threads
        summed loops down to the innermost tile       the whole workgroup
          tile[...] = operand                         threads, zero where a condition fails
          part[...] += product                        threads, with the loops inside
          acc += part                                 threads, after each iteration of `partial`
        result = epilogue(acc)                        threads, guarded

Grid and thread loops stand outside all others whatever their place in the nest. A free loop inside
the first summed one is a dimension of the accumulator, which is kept in registers.
"""

from __future__ import annotations

from collections.abc import Sequence

from convdsl.ir.expr import (
    Access,
    Binary,
    Const,
    Expr,
    Load,
    Pred,
    Reduce,
    ValueType,
    Var,
    map_access,
    map_children,
    map_index,
    walk,
)
from convdsl.ir.index import Index, const, sym
from convdsl.ir.interval import always, ranges_of
from convdsl.ir.loop import Buffer, For, If, Kernel, Level, Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.names import Names
from convdsl.passes.phases import replace_reduction
from convdsl.passes.reduce_loops import ACCUMULATE, identity
from convdsl.passes.relation import bounds_from
from convdsl.schedule.check import check_nest, refuse_tail
from convdsl.schedule.copies import Copy, copy_of, fill_row, fill_tile
from convdsl.schedule.nest import Loop, Nest, factors, operands
from convdsl.schedule.rejoin import rejoin

Body = tuple[Stmt, ...]


def lower_nest(name: str, equation: str, nest: Nest, taken: frozenset[str] = frozenset()) -> Kernel:
    """The kernel of a nest; CdslError E063x where the loops cannot run as they are mapped.

    `taken` are names of the program that no buffer of the kernel may have.
    """
    check_nest(equation, nest)
    return _Lowering(equation, nest, taken).kernel(name)


class _Lowering:
    def __init__(self, equation: str, nest: Nest, taken: frozenset[str]) -> None:
        self.equation = equation
        self.nest = nest
        bound = {v.name for e in walk(nest.piece.value) if isinstance(e, Reduce) for v in e.vars}
        self.names = Names({x.name for x in nest.loops} | set(nest.values) | bound | taken)
        self.grid = [x for x in nest.loops if x.level == "grid"]
        self.threads = tuple(x for x in nest.loops if x.level == "thread")
        rest = [x for x in nest.loops if x.level not in ("grid", "thread")]
        first = next((n for n, x in enumerate(rest) if x.reduced), len(rest))
        self.outer, self.inner = rest[:first], rest[first:]
        self.registers = [x for x in self.inner if not x.reduced]
        self.lanes = tuple(sym(x.name) for x in self.threads)
        self.locals: list[Buffer] = []
        self.known = ranges_of(Var(x.name, const(0), x.extent) for x in nest.loops)

    # -- the kernel -------------------------------------------------------------------------------
    def kernel(self, name: str) -> Kernel:
        reduction = self.nest.reduction
        body: Body
        if reduction is None:
            body = (self.on_threads(self._around(self.outer, self._results(None))),)
        else:
            body = _Sum(self, reduction).body()
            for loop in reversed(self.outer):
                body = (For(Var(loop.name, const(0), loop.extent), "serial", body),)
        grid: list[tuple[Var, Level]] = [
            (Var(x.name, const(0), x.extent), "grid") for x in self.grid
        ]
        comment = f"{self.nest.piece.origin}: scheduled"
        return Kernel(name, tuple(self.locals), nested(grid, body), comment)

    def on_threads(self, body: Body) -> Stmt:
        loops: list[tuple[Var, Level]] = [
            (Var(x.name, const(0), x.extent), "thread") for x in self.threads
        ]
        return nested(loops, body)[0]

    def over_registers(self, body: Body) -> Body:
        """`body` for each element of the accumulator."""
        return self._around(self.registers, body, unroll=True)

    def _around(self, loops: Sequence[Loop], body: Body, unroll: bool = False) -> Body:
        levels: list[tuple[Var, Level]] = []
        for x in loops:
            level: Level = "unroll" if unroll and x.level == "serial" else x.level
            levels.append((Var(x.name, const(0), x.extent), level))
        return nested(levels, body)

    def register(self, wanted: str) -> Buffer:
        """A buffer with one accumulator for each thread and register loop."""
        lanes = tuple(x.extent for x in self.threads)
        dims = tuple(x.extent for x in self.registers)
        reduction = self.nest.reduction
        dtype = reduction.dtype if reduction is not None else "f32"
        made = Buffer(self.names.fresh(wanted), dtype, lanes + dims, "register", len(lanes))
        self.locals.append(made)
        return made

    def place(self, buffer: Buffer) -> Access:
        index = self.lanes + tuple(sym(x.name) for x in self.registers)
        return Access(buffer.name, index, buffer.dims)

    def put(self, value: Expr) -> Expr:
        """A value over the piece's variables in terms of the loops."""
        return map_index(value, self.put_index)

    def put_index(self, index: Index) -> Index:
        return rejoin(index.substitute(self.nest.values))

    def results(self, total: Buffer) -> Body:
        dtype: ValueType = "i32" if total.dtype == "i32" else "f32"
        return self.over_registers(self._results(Load(self.place(total), dtype)))

    def _results(self, total: Load | None) -> Body:
        """Store the result where it is one of the piece's."""
        piece = self.nest.piece
        value = piece.value
        if total is not None:
            hole = Load(Access("<sum>", (), ()), total.dtype)
            value = _fill(self.put(replace_reduction(value, lambda _: hole)), hole, total)
        else:
            value = self.put(value)
        body: Body = (Store(map_access(piece.access, self.put_index), value),)
        free = {x.name for x in self.nest.loops if not x.reduced}
        every = {x.name for x in self.nest.loops}
        tests = [t.condition for t in self.nest.tails if t.condition.index.free & every <= free]
        tests += [Pred(p.kind, self.put_index(p.index)) for p in piece.guards]
        tests = [p for p in tests if not always(p, self.known)]
        return (If(tuple(tests), body),) if tests else body


class _Sum:
    """The part of a kernel that adds up the terms."""

    def __init__(self, kernel: _Lowering, reduction: Reduce) -> None:
        self.kernel = kernel
        self.nest = kernel.nest
        self.reduction = reduction
        self.inner = kernel.inner
        self.acc = kernel.register("acc")
        self.part = kernel.register("part") if self.nest.partial is not None else self.acc
        self.policies = {t.condition: t.policy for t in self.nest.tails}
        domain = [Pred(p.kind, kernel.put_index(p.index)) for p in reduction.constraints]
        every = [*self.policies, *domain]
        self.pending = [p for p in every if not always(p, kernel.known)]
        self.copies: list[Copy] = []
        for stage in self.nest.stages:
            made = copy_of(self.nest, stage, kernel.threads, kernel.names, self.pending)
            kernel.locals.append(made.buffer)
            self.copies.append(made)

    def body(self) -> Body:
        kernel = self.kernel
        start = Const(identity(self.reduction.op, self.reduction.dtype), self.reduction.dtype)
        init = kernel.over_registers((Store(kernel.place(self.acc), start),))
        if self.part is not self.acc:
            init += kernel.over_registers((Store(kernel.place(self.part), start),))
        if self._deep() == 0:
            return (kernel.on_threads(init + self._thread(0) + kernel.results(self.acc)),)
        steps = self._workgroup(0)
        return (kernel.on_threads(init), *steps, kernel.on_threads(kernel.results(self.acc)))

    def _deep(self) -> int:
        """How many of the inner loops the workgroup runs together."""
        marks = {c.stage.at for c in self.copies if c.stage.memory == "workgroup"}
        if marks and self.nest.partial is not None:
            marks.add(self.nest.partial)
        places = [n for n, x in enumerate(self.inner) if x.name in marks]
        return max(places) + 1 if places else 0

    def _workgroup(self, depth: int) -> Body:
        """The loops from `depth` on, run by the workgroup together while they hold a tile."""
        kernel = self.kernel
        if depth >= self._deep():
            return (kernel.on_threads(self._thread(depth)),)
        loop = self.inner[depth]
        var = self._bounded(loop, {x.name for x in (*kernel.outer, *self.inner[:depth])})
        inside: list[Stmt] = [
            kernel.on_threads(fill_tile(c, kernel.threads, kernel.names, kernel.put, self.pending))
            for c in self.copies
            if c.stage.at == loop.name and c.stage.memory == "workgroup"
        ]
        inside += self._workgroup(depth + 1)
        if self.nest.partial == loop.name:
            inside.append(kernel.on_threads(self._add_up()))
        return (For(var, "serial", tuple(inside)),)

    def _thread(self, depth: int) -> Body:
        """The loops from `depth` on as one thread runs them."""
        if depth == len(self.inner):
            return self._update()
        kernel, loop = self.kernel, self.inner[depth]
        var = Var(loop.name, const(0), loop.extent)
        if loop.level == "serial":
            outside = (*kernel.grid, *kernel.threads, *kernel.outer, *self.inner[:depth])
            var = self._bounded(loop, {x.name for x in outside})
        fills: Body = ()
        for c in self.copies:
            if c.stage.at == loop.name and c.stage.memory == "register":
                fills += fill_row(c, kernel.lanes, self._source(c))
        inside = fills + self._thread(depth + 1)
        if self.nest.partial == loop.name:
            inside += self._add_up()
        return (For(var, loop.level, inside),)

    def _bounded(self, loop: Loop, known: set[str]) -> Var:
        """A serial loop ends where a tail that concerns only it and loops outside it would fail."""
        var = Var(loop.name, const(0), loop.extent)
        names = {x.name for x in self.nest.loops}
        mine = [
            p
            for p in self.pending
            if p in self.policies
            and loop.name in p.index.free
            and p.index.free & names <= known | {loop.name}
        ]
        tight, left = bounds_from(mine, var)
        self.pending = [p for p in self.pending if p not in mine or p in left]
        return tight

    def _update(self) -> Body:
        """Add one term, tested for what no bound and no copy has taken care of."""
        absorbed = {p for c in self.copies for p in c.conditions}
        for pred in self.pending:
            policy = self.policies.get(pred)
            reduced = any(x.name in pred.index.free for x in self.nest.loops if x.reduced)
            if policy == "cut" or (policy == "pad" and reduced and pred not in absorbed):
                refuse_tail(self.kernel.equation, self.nest, pred, policy)
        left = tuple(p for p in self.pending if p not in absorbed)
        into = self.kernel.place(self.part)
        body: Body = (Store(into, self._term(), ACCUMULATE[self.reduction.op]),)
        return (If(left, body),) if left else body

    def _term(self) -> Expr:
        """The body of the sum, each staged factor read from its nearest copy."""
        nearest = {c.stage.operand: c for c in self.copies}
        if not nearest:
            return self.kernel.put(self.reduction.body)
        out: Expr | None = None
        staged = {id(f): n for n, f in operands(self.reduction).items()}
        for factor in factors(self.reduction.body):
            found = nearest.get(staged.get(id(factor), ""))
            value = found.load(self.kernel.lanes) if found is not None else self.kernel.put(factor)
            out = value if out is None else Binary("*", out, value)
        assert out is not None
        return out

    def _source(self, row: Copy) -> Expr:
        """What a row of registers is filled from: the tile of the same operand where there is one."""
        for c in self.copies:
            if c.stage.operand == row.stage.operand and c.stage.memory == "workgroup":
                return c.load(())
        return self.kernel.put(row.factor)

    def _add_up(self) -> Body:
        kernel = self.kernel
        add = Store(kernel.place(self.acc), Load(kernel.place(self.part), "f32"), "+")
        clear = Store(kernel.place(self.part), Const(0.0, "f32"))
        return kernel.over_registers((add,)) + kernel.over_registers((clear,))


def _fill(value: Expr, hole: Load, by: Expr) -> Expr:
    return by if value == hole else map_children(value, lambda e: _fill(e, hole, by))
