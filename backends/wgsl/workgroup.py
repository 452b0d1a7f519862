"""Statements of a workgroup as a whole: thread nests in sequence, with barriers between them."""

from __future__ import annotations

from convdsl.backends.wgsl.barriers import NONE, Barriers, Effects
from convdsl.backends.wgsl.environment import Environment
from convdsl.backends.wgsl.index_text import IndexText
from convdsl.backends.wgsl.lines import Block
from convdsl.backends.wgsl.memory import Memory
from convdsl.backends.wgsl.statements import Statements
from convdsl.backends.wgsl.threads import has_threads, thread_nest
from convdsl.backends.wgsl.values import Values
from convdsl.diagnostics import InternalError
from convdsl.ir.expr import Pred
from convdsl.ir.index import sym
from convdsl.ir.loop import For, If, Kernel, Stmt, Store, statements


class Workgroup(Statements):
    """Statements around thread nests are run alike by all threads: barriers may stand in them.

    One without thread loops beside nests is run by one thread, unless it only sets registers.
    """

    def __init__(
        self,
        kernel: Kernel,
        env: Environment,
        index: IndexText,
        memory: Memory,
        values: Values,
        threads: tuple[str, ...],
    ) -> None:
        super().__init__(env, index, memory, values)
        self._kernel, self._threads = kernel, threads
        self._barriers = Barriers(kernel)
        self._state: Effects = NONE
        self._inside = not threads  # a workgroup of one has nothing to wait for
        memory.threads = frozenset(threads)

    def statement(self, stmt: Stmt) -> None:
        if self._inside:
            super().statement(stmt)
        elif isinstance(stmt, For) and stmt.level == "thread":
            self._wait_for(stmt)
            self._nest(stmt)
        elif not has_threads(stmt):
            self._wait_for(stmt)
            self._alone(stmt)
        else:
            self._around(stmt)

    # -- thread nests -----------------------------------------------------------------------------
    def _nest(self, stmt: For) -> None:
        loops, body = thread_nest(stmt)
        values = self.env.values
        before = {loop.var.name: values.get(loop.var.name) for loop in loops}
        for loop, name in zip(loops, self._threads, strict=True):
            values[loop.var.name] = sym(name)
        self._inside = True
        self.body(body)
        self._inside = False
        for name, value in before.items():
            if value is None:
                del values[name]
            else:
                values[name] = value

    def _alone(self, stmt: Stmt) -> None:
        stores = [s.access.tensor for s in statements((stmt,)) if isinstance(s, Store)]
        memories = {self.memory.places[name].buffer.memory for name in stores}
        outer, self.values.block = self.values.block, Block()
        self._inside = True
        super().statement(stmt)
        self._inside = False
        inner, self.values.block = self.values.block, outer
        if memories <= {"register"}:
            self.values.block.items += inner.items
            return
        if "register" in memories:
            raise InternalError(
                f"kernel {self._kernel.name} sets registers and memory outside its threads"
            )
        self.index.used.update(self._threads)
        self.values.block.nest(f"if ({' && '.join(f'{t} == 0' for t in self._threads)})", inner)

    # -- the loops and conditions around them -----------------------------------------------------
    def _around(self, stmt: Stmt) -> None:
        match stmt:
            case For(level="serial"):
                waits, entry = self._barriers.entry(stmt, self._state)
                self._barrier(waits)
                before = NONE if waits else self._state
                self._state = entry
                super().statement(stmt)
                self._state |= before
            case If(conditions):
                if any(self._uneven(p) for p in conditions):
                    raise InternalError(
                        f"a barrier of {self._kernel.name} may be under a thread's condition"
                    )
                before = self._state
                super().statement(stmt)
                self._state |= before
            case _:
                super().statement(stmt)

    def _uneven(self, pred: Pred) -> bool:
        return not self.env.resolve(pred.index).free.isdisjoint(self._threads)

    def _wait_for(self, stmt: Stmt) -> None:
        waits, self._state = self._barriers.after(stmt, self._state)
        self._barrier(waits)

    def _barrier(self, waits: frozenset[str]) -> None:
        if waits & self._barriers.workgroup:
            self.values.block.line("workgroupBarrier();")
        if waits - self._barriers.workgroup:
            self.values.block.line("storageBarrier();")
