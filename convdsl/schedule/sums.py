"""The part of a kernel that adds up the terms of a sum (or of a product, a maximum, a minimum)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from convdsl.ir.expr import Binary, Const, Expr, Load, Pred, Reduce, Var, eq, ge
from convdsl.ir.index import Index, const, floordiv, maximum, modulo, product, sym
from convdsl.ir.loop import Buffer, For, If, Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.reduce_loops import ACCUMULATE, FLUSH, identity
from convdsl.schedule.check import refuse_tail
from convdsl.schedule.copies import Copy, copies_of, fill_row
from convdsl.schedule.extents import written_out
from convdsl.schedule.filling import filling_of
from convdsl.schedule.nest import Loop, factors, operands, result_conditions
from convdsl.schedule.prefetch import Ahead, Prefetch, sequence

if TYPE_CHECKING:
    from convdsl.schedule.lower import Lowering

Body = tuple[Stmt, ...]


class Sum:
    """`acc` holds the total, `part` the partial sum where there is one, `hit` whether a term counted."""

    def __init__(self, kernel: Lowering, reduction: Reduce) -> None:
        self.kernel = kernel
        self.nest = kernel.nest
        self.reduction = reduction
        self.inner = kernel.inner
        self.acc = kernel.register("acc", reduction.dtype)
        self.part = self.acc
        if self.nest.partial is not None:
            self.part = kernel.register("part", reduction.dtype)
        self.hit: Buffer | None = None
        if reduction.otherwise is not None:
            self.hit = kernel.register("hit", "i32")
        self.copies = copies_of(self.nest, kernel.threads, kernel.names, kernel.pending)
        kernel.locals.extend(c.buffer for c in self.copies)
        self.together: list[Var] = []  # the loops around, as the workgroup runs them
        self.first: dict[int, Body] = {}  # what is read ahead before the loop at a depth

    def body(self) -> Body:
        kernel, deep = self.kernel, self._deep()
        outer = kernel.around(threads=deep == 0)
        start = Const(identity(self.reduction.op, self.reduction.dtype), self.reduction.dtype)
        init = self._set(self.acc, start)
        if self.part is not self.acc:
            init += self._set(self.part, start)
        if self.hit is not None:
            init += self._set(self.hit, Const(0, "i32"))
        rest = self._add_up(-1) if self._flush_tests() is not None else ()
        if deep == 0:
            run = init + self._thread(0) + rest + kernel.results(self.acc, self.hit)
            return (kernel.on_threads(nested(outer, run)),)
        steps = self._workgroup(0)
        last = kernel.on_threads(rest + kernel.results(self.acc, self.hit))
        return nested(outer, (kernel.on_threads(init), *steps, last))

    def _set(self, buffer: Buffer, value: Expr) -> Body:
        return self.kernel.over_registers((Store(self.kernel.place(buffer), value),))

    def _deep(self) -> int:
        """How many of the inner loops the workgroup runs together."""
        marks = {c.stage.at for c in self.copies if c.stage.memory == "workgroup"}
        if marks and self.nest.partial is not None:
            marks.add(self.nest.partial)
        places = [n for n, x in enumerate(self.inner) if x.name in marks]
        return max(places) + 1 if places else 0

    def _workgroup(self, depth: int, before: Body = ()) -> Body:
        """The loops from `depth` on, run by the workgroup together while they hold a tile.

        Each thread runs `before` first.
        """
        kernel = self.kernel
        if depth >= self._deep():
            return (kernel.on_threads(before + self._thread(depth)),)
        loop = self.inner[depth]
        var = kernel.bounded(loop, [*kernel.grid, *kernel.outer, *self.inner[:depth]])
        self.together.append(var)
        inside: list[Stmt] = [kernel.on_threads(before)] if before else []
        ahead: list[Ahead] = []
        for c in self.copies:
            if c.stage.at == loop.name and c.stage.memory == "workgroup":
                inside.append(kernel.on_threads(self._fill(c, ahead)))
        rows = self._rows(loop)
        inside += [kernel.on_threads(rows)] if rows else []
        inside += self._workgroup(depth + 1, self._read_ahead(ahead))
        if self.nest.partial == loop.name:
            inside.append(kernel.on_threads(self._flush(depth)))
        self.together.pop()
        first = self.first.pop(depth, ())
        return (*([kernel.on_threads(first)] if first else []), For(var, "serial", tuple(inside)))

    def _fill(self, copy: Copy, ahead: list[Ahead]) -> Body:
        """Fill a tile; from registers where it is one of those that are read ahead."""
        kernel = self.kernel
        filling = filling_of(copy, kernel)
        if not copy.stage.ahead:
            return filling.read(filling.target, {})
        elements = filling.step.extent * filling.lane.extent
        registers = kernel.own(f"{copy.stage.name}_next", copy.buffer.dtype, (elements,))
        ahead.append(Ahead(filling, registers, kernel.lanes))
        return ahead[-1].store()

    def _read_ahead(self, tiles: list[Ahead]) -> Body:
        """Read the next tiles; the first ones are left to the loop where the sequence begins."""
        if not tiles:
            return ()
        begin = sequence(self.together, self.kernel.known)
        prefetch = Prefetch(tuple(tiles), tuple(self.together[begin:]), self.kernel.known)
        self.first[begin] = self.first.get(begin, ()) + prefetch.first()
        return prefetch.next()

    def _thread(self, depth: int) -> Body:
        """The loops from `depth` on as one thread runs them."""
        if depth == len(self.inner):
            return self._update()
        kernel, loop = self.kernel, self.inner[depth]
        outside = [*kernel.grid, *kernel.threads, *kernel.outer, *self.inner[:depth]]
        var = kernel.bounded(loop, outside)
        inside = self._rows(loop) + self._thread(depth + 1)
        if self.nest.partial == loop.name:
            inside += self._flush(depth)
        return (For(var, loop.level_in_ir, inside),)

    def _rows(self, loop: Loop) -> Body:
        """Fill the copies in registers that are staged at a loop."""
        kernel = self.kernel
        out: Body = ()
        for c in self.copies:
            if c.stage.at == loop.name and c.stage.memory == "register":
                out += fill_row(c, kernel.lanes, kernel.pending)
        return out

    def _update(self) -> Body:
        """Add one term, tested for what no bound and no copy has taken care of."""
        kernel = self.kernel
        kernel.refuse_cut()
        left = tuple(p for p in kernel.pending if self._tested(p))
        op = ACCUMULATE[self.reduction.op]
        body: Body = (Store(kernel.place(self.part), self._term(), op),)
        if self.hit is not None:
            body += (Store(kernel.place(self.hit), Const(1, "i32")),)
        return (If(left, body),) if left else body

    def _tested(self, pred: Pred) -> bool:
        """Whether a term has to be tested for a condition; E0634 for a `pad` that is none."""
        if written_out(self.nest, pred, self.kernel.known):
            return True
        loops = pred.index.free & self.kernel.every
        depend = {n: self.nest.depends_on(f) for n, f in operands(self.reduction).items()}
        around = [n for n, on in depend.items() if loops <= on]
        nearest = self._nearest()
        covered = {n for n in nearest if nearest[n].covers(pred)}
        bounded = {n for n in nearest if nearest[n].extent.box is not None}
        if around and covered and set(around) <= covered | bounded:
            return False  # copies hold zero where it matters, and nothing else is read there
        if bounded == set(depend) and pred in result_conditions(self.nest):
            return False  # nothing is read there either, and what comes of it is no result
        if self.kernel.policies.get(pred) != "pad":
            return True
        reduced = any(x.name in loops for x in self.nest.loops if x.reduced)
        if all(loops.isdisjoint(on) for on in depend.values()):
            return reduced  # an axis of extent one; of a free one the store is tested
        if reduced:
            refuse_tail(self.kernel.equation, self.nest, pred, "pad")
        return True

    def _nearest(self) -> dict[str, Copy]:
        """The innermost copy of each staged operand."""
        return {c.stage.operand: c for c in self.copies}

    def _term(self) -> Expr:
        """The body of the sum, each staged factor read from its nearest copy."""
        nearest = self._nearest()
        if not nearest:
            return self.kernel.put(self.reduction.body)
        out: Expr | None = None
        staged = {f: n for n, f in operands(self.reduction).items()}
        for factor in factors(self.reduction.body):
            found = nearest.get(staged.get(factor, ""))
            value = found.load(self.kernel.lanes) if found is not None else self.kernel.put(factor)
            out = value if out is None else Binary("*", out, value)
        assert out is not None
        return out

    def _flush(self, depth: int) -> Body:
        """Add the partial sums to the totals, in those iterations in which enough terms came in."""
        add, tests = self._add_up(depth), self._flush_tests()
        return add if tests is None else tuple(If((test,), add) for test in tests)

    def _flush_tests(self) -> list[Pred] | None:
        """When partial sums are added up at the loop `partial`; None for in each iteration.

        A partial sum of few terms saves nothing: the total would be a plain sum of as many additions.
        So an iteration that brings fewer than `FLUSH` terms is added up with its neighbours, and a
        block of channels, where one block holds them all, with the taps around it.
        """
        if self.nest.partial is None:
            return None
        depth = [x.name for x in self.inner].index(self.nest.partial)
        loop, reduced = self.inner[depth], [x for x in self.inner if x.reduced]
        inside = {x.name for x in self.inner[depth + 1 :]}
        names = {x.name for x in self.nest.loops}
        own = {v.name: self.nest.values[v.name].free & names for v in self.reduction.vars}
        if {loop.name} in own.values():
            every = _every(v.extent for v in self.reduction.vars if own[v.name] <= inside)
            return None if every == 1 else [_at_end(loop, every)]
        around = [x for x in reduced[: reduced.index(loop)] if {x.name} in own.values()]
        block = inside | {loop.name}
        every = _every(v.extent for v in self.reduction.vars if own[v.name] <= block)
        if not around or every == 1:
            return None
        last = [eq(sym(x.name) - x.extent + 1) for x in around[-1:] if len(around) > 1]
        return [ge(loop.extent - 2 - sym(loop.name)), _at_end(around[-1], every), *last]

    def _add_up(self, depth: int) -> Body:
        """Add the partial sums to the totals, of the accumulators along the loops inside `depth`."""
        kernel = self.kernel
        along = [x for x in self.inner[depth + 1 :] if not x.reduced]
        add = Store(kernel.place(self.acc), Load(kernel.place(self.part), "f32"), "+")
        clear = Store(kernel.place(self.part), Const(0.0, "f32"))
        return kernel.over_registers((add,), along) + kernel.over_registers((clear,), along)


def _every(extents: Iterable[Index]) -> Index:
    """How many iterations of so many terms make up to `FLUSH` of them."""
    return maximum(1, floordiv(const(FLUSH), maximum(1, product(extents))))


def _at_end(loop: Loop, every: Index) -> Pred:
    """The last iteration of each `every`."""
    return eq(modulo(sym(loop.name), every) - every + 1)
