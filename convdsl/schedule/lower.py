"""Lower a scheduled nest to a GPU kernel in loop IR.

    grid loops
      free loops outside the sum
        acc[...] = 0                                  threads
        summed loops down to the innermost tile       the whole workgroup
          tile[...] = operand                         threads, zero where a condition fails
                                                      (`convdsl.schedule.filling`, `.prefetch`)
          part[...] += product                        threads, with the loops inside
          acc += part                                 threads, after each iteration of `partial`
        result = epilogue(acc)                        threads, guarded

Grid and thread loops stand outside all others whatever their place in the nest; without a tile the free
loops outside the sum run inside the threads. A free loop inside the first summed one is a dimension of
the accumulator, which is kept in registers (`convdsl.schedule.sums`).
"""

from __future__ import annotations

from collections.abc import Sequence

from convdsl.ir.expr import (
    Access,
    Const,
    DType,
    Expr,
    Load,
    Pred,
    Reduce,
    Select,
    ValueType,
    Var,
    map_access,
    map_children,
    map_index,
    walk,
)
from convdsl.ir.index import Index, const, sym
from convdsl.ir.interval import always, ranges_of
from convdsl.ir.loop import Buffer, If, Kernel, Let, Level, Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.lower_gather import lower_gather
from convdsl.passes.names import Names
from convdsl.passes.phases import replace_reduction
from convdsl.passes.relation import bounds_from
from convdsl.schedule.check import check_nest, refuse_tail
from convdsl.schedule.nest import Loop, Nest, conditions_of, result_conditions
from convdsl.schedule.rejoin import merged, merged_loads, settled
from convdsl.schedule.stores import interleave
from convdsl.schedule.sums import Sum
from convdsl.schedule.swizzle import places

Body = tuple[Stmt, ...]
Levels = list[tuple[Var, Level]]


def lower_nest(name: str, equation: str, nest: Nest, taken: frozenset[str] = frozenset()) -> Kernel:
    """The kernel of a nest; CdslError E063x where the loops cannot run as they are mapped.

    `taken` are names of the program that no buffer of the kernel may have.
    """
    check_nest(equation, nest)
    if nest.empty:
        return lower_gather(name, nest.piece, taken=taken)
    return Lowering(equation, nest.settled, taken).kernel(name)


class Lowering:
    """What all parts of a kernel share; `pending` are the conditions that still have to be tested."""

    def __init__(self, equation: str, nest: Nest, taken: frozenset[str]) -> None:
        self.equation = equation
        self.nest = nest
        bound = {v.name for e in walk(nest.piece.value) if isinstance(e, Reduce) for v in e.vars}
        self.names = Names(nest.taken | bound | taken)
        self.every = {x.name for x in nest.loops}
        self.grid = [x for x in nest.loops if x.level == "grid"]
        self.threads = tuple(x for x in nest.loops if x.level == "thread")
        if not self.threads:  # a result without axes: one thread
            self.threads = (Loop(self.names.fresh("thread"), const(1), False, "thread"),)
        rest = [x for x in nest.loops if x.level not in ("grid", "thread")]
        first = next((n for n, x in enumerate(rest) if x.reduced), len(rest))
        self.outer, self.inner = rest[:first], rest[first:]
        self.registers = [x for x in self.inner if not x.reduced]
        self.lanes = tuple(sym(x.name) for x in self.threads)
        self.locals: list[Buffer] = []
        self.known = ranges_of(Var(x.name, const(0), x.extent) for x in nest.loops)
        self.policies = {t.condition: t.policy for t in nest.tails}
        self.pending = [p for p in conditions_of(nest) if not always(p, self.known)]
        self.met: set[Pred] = set()  # by the bounds of loops around the whole sum

    # -- the kernel -------------------------------------------------------------------------------
    def kernel(self, name: str) -> Kernel:
        reduction = self.nest.reduction
        body: Body
        if reduction is None:
            outer = self.around(threads=True)
            self.refuse_cut()
            body = (self.on_threads(nested(outer, self.results(None))),)
        else:
            body = Sum(self, reduction).body()
        comment = f"{self.nest.piece.origin}: scheduled"
        return Kernel(name, tuple(self.locals), self.on_grid(body), comment)

    def on_grid(self, body: Body) -> Body:
        """`body` in each workgroup; two loops of the grid are one where their order is another."""
        loops, order = self.grid, self.nest.swizzle
        if order is not None:
            rows, columns = (self.nest.loop(n) for n in order.loops)
            made = Loop(self.names.fresh("group"), rows.extent * columns.extent, False, "grid")
            found = places(sym(made.name), rows.extent, columns.extent, order.height)
            for loop, value in zip((columns, rows), reversed(found), strict=True):
                body = (Let(loop.name, value, body),)
            at = max(loops.index(rows), loops.index(columns))
            loops = [*loops[:at], made, *loops[at + 1 :]]
            loops = [x for x in loops if x not in (rows, columns)]
        levels: Levels = [(Var(x.name, const(0), x.extent), "grid") for x in loops]
        return nested(levels, body)

    def around(self, threads: bool) -> Levels:
        """The free loops outside the sum, inside the thread loops or around them."""
        outside = [*self.grid, *(self.threads if threads else ())]
        placed = frozenset().union(*(self.put_index(i).free for i in self.nest.piece.access.index))
        out: Levels = []
        for loop in self.outer:
            before = self.pending
            level: Level = loop.level_in_ir if threads else "serial"
            out.append((self.bounded(loop, outside), level))
            met = set(before) - set(self.pending)
            # Without a place of its own in the result, each thread still has to ask.
            self.met |= {p for p in met if p.index.free & self.every <= placed}
            outside.append(loop)
        return out

    def bounded(self, loop: Loop, outside: Sequence[Loop]) -> Var:
        """A serial loop ends where a tail that concerns only it and loops outside it would fail."""
        var = Var(loop.name, const(0), loop.extent)
        if loop.level != "serial":
            return var
        names = {x.name for x in outside} | {loop.name}
        mine = [
            p
            for p in self.pending
            if p in self.policies
            and loop.name in p.index.free
            and p.index.free & self.every <= names
        ]
        tight, left = bounds_from(mine, var)
        self.pending = [p for p in self.pending if p not in mine or p in left]
        return tight

    def refuse_cut(self) -> None:
        """E0634 for a tail that was to end a loop and did not."""
        for pred in self.pending:
            if self.policies.get(pred) == "cut":
                refuse_tail(self.equation, self.nest, pred, "cut")

    def on_threads(self, body: Body) -> Stmt:
        loops: Levels = [(Var(x.name, const(0), x.extent), "thread") for x in self.threads]
        return nested(loops, body)[0]

    def over_registers(self, body: Body, loops: Sequence[Loop] | None = None) -> Body:
        """`body` for each element of the accumulator, or for those along some loops."""
        levels: Levels = [
            (Var(x.name, const(0), x.extent), "unroll" if x.level == "serial" else x.level_in_ir)
            for x in (self.registers if loops is None else loops)
        ]
        return nested(levels, body)

    def register(self, wanted: str, dtype: ValueType) -> Buffer:
        """A buffer with one element for each thread and register loop."""
        return self.own(wanted, dtype, tuple(x.extent for x in self.registers))

    def own(self, wanted: str, dtype: DType, dims: tuple[Index, ...]) -> Buffer:
        """A buffer in registers, with these dims for each thread."""
        lanes = tuple(x.extent for x in self.threads)
        made = Buffer(self.names.fresh(wanted), dtype, lanes + dims, "register", len(lanes))
        self.locals.append(made)
        return made

    def place(self, buffer: Buffer) -> Access:
        index = self.lanes + tuple(sym(x.name) for x in self.registers)
        return Access(buffer.name, index, buffer.dims)

    def read(self, buffer: Buffer) -> Load:
        return Load(self.place(buffer), "i32" if buffer.dtype == "i32" else "f32")

    def put(self, value: Expr) -> Expr:
        """A value over the piece's variables in terms of the loops."""
        return merged_loads(map_index(value, self.put_index))

    def put_index(self, index: Index) -> Index:
        return settled(self.nest.put(index), self.known)

    def results(self, total: Buffer | None, hit: Buffer | None = None) -> Body:
        """Store the result where it is one of the piece's; without a hit the one for no terms."""
        piece, reduction = self.nest.piece, self.nest.reduction
        if total is None or reduction is None:
            value = self.put(piece.value)
        else:
            by: Expr = self.read(total)
            if hit is not None and reduction.otherwise is not None:
                none = self.put(reduction.otherwise)
                by = Select("!=", self.read(hit), Const(0, "i32"), by, none)
            hole = Load(Access("<sum>", (), ()), reduction.dtype)
            value = _fill(self.put(replace_reduction(piece.value, lambda _: hole)), hole, by)
        target = merged(map_access(piece.access, self.put_index))
        every = result_conditions(self.nest)
        left = [p for p in every if p not in self.met and not always(p, self.known)]
        tests = [Pred(p.kind, settled(p.index, self.known)) for p in left]
        order = interleave(self.registers, target.offset(), self.known, self.names)
        if order is not None:
            target = merged(map_access(target, order.put))
            value = map_index(value, order.put)
            tests = [Pred(p.kind, order.put(p.index)) for p in tests]
        body: Body = (Store(target, value),)
        body = (If(tuple(tests), body),) if tests else body
        return self.over_registers(body) if order is None else nested(list(order.loops), body)


def _fill(value: Expr, hole: Load, by: Expr) -> Expr:
    return by if value == hole else map_children(value, lambda e: _fill(e, hole, by))
