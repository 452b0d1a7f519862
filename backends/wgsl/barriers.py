"""Where a workgroup waits: between two statements that touch the same memory, one of them writing.

The pass runs along a workgroup-level sequence with the accesses since the last barrier in hand. A
loop may also run into its own next iteration, so it starts with what its end leaves behind.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from convdsl.backends.wgsl.threads import has_threads
from convdsl.ir.expr import loads
from convdsl.ir.loop import For, If, Kernel, Let, Stmt, Store, statements

_UNROLLED = 3  # copies of an unrolled loop that show everything its neighbours can do to each other


@dataclass(frozen=True, slots=True)
class Effects:
    """Names of shared buffers read and written."""

    reads: frozenset[str] = frozenset()
    writes: frozenset[str] = frozenset()

    def __or__(self, other: Effects) -> Effects:
        return Effects(self.reads | other.reads, self.writes | other.writes)

    def __le__(self, other: Effects) -> bool:
        return self.reads <= other.reads and self.writes <= other.writes

    def conflicts(self, later: Effects) -> frozenset[str]:
        """The buffers for which the order of the two matters."""
        return (self.writes & (later.reads | later.writes)) | (self.reads & later.writes)


NONE = Effects()


class Barriers:
    """Decides for one kernel: its workgroup buffers, and the results it accumulates in."""

    def __init__(self, kernel: Kernel) -> None:
        self.workgroup = frozenset(b.name for b in kernel.locals if b.memory == "workgroup")
        local = frozenset(b.name for b in kernel.locals)
        stores = [s for s in statements(kernel.body) if isinstance(s, Store)]
        summed = {s.access.tensor for s in stores if s.accumulate is not None}
        self._shared = self.workgroup | (summed - local)
        self._effects: dict[int, Effects] = {}

    def effects(self, stmt: Stmt) -> Effects:
        """What a statement reads and writes, all of its parts together."""
        found = self._effects.get(id(stmt))
        if found is None:
            found = self._effects[id(stmt)] = self._of(stmt)
        return found

    def _of(self, stmt: Stmt) -> Effects:
        if not isinstance(stmt, Store):
            return _union(map(self.effects, stmt.body))
        target = stmt.access.tensor
        read = {load.access.tensor for load in loads(stmt.value)}
        if stmt.accumulate is not None:
            read.add(target)
        return Effects(frozenset(read) & self._shared, frozenset({target}) & self._shared)

    def after(self, stmt: Stmt, before: Effects) -> tuple[frozenset[str], Effects]:
        """For a thread nest: the buffers it has to wait for, and the state behind it."""
        own = self.effects(stmt)
        waits = before.conflicts(own)
        return waits, (own if waits else before | own)

    def entry(self, loop: For, before: Effects) -> tuple[frozenset[str], Effects]:
        """For a loop around thread nests: what a barrier before it waits for, and its first state.

        The barrier goes in front, not inside, where it would otherwise be repeated for nothing.
        """
        inside, inside_count = self._closure(loop, NONE)
        through, through_count = self._closure(loop, before)
        if through_count > inside_count:
            return before.conflicts(self.effects(loop)), inside
        return frozenset(), through

    def _closure(self, loop: For, start: Effects) -> tuple[Effects, int]:
        state = start
        while True:
            leave, count = self._run(loop.body, state)
            if leave <= state:
                return state, count
            state |= leave

    def _run(self, body: tuple[Stmt, ...], state: Effects) -> tuple[Effects, int]:
        """The state at the end of a sequence, and how many barriers it has."""
        total = 0
        for stmt in body:
            count = 0
            if not has_threads(stmt) or (isinstance(stmt, For) and stmt.level == "thread"):
                waits, state = self.after(stmt, state)
                count = bool(waits)
            else:
                match stmt:
                    case For(level="unroll"):
                        for _ in range(_UNROLLED):
                            state, more = self._run(stmt.body, state)
                            count += more
                    case For():
                        waits, entry = self.entry(stmt, state)
                        leave, count = self._run(stmt.body, entry)
                        count += bool(waits)
                        state = (NONE if waits else state) | leave
                    case If():
                        leave, count = self._run(stmt.body, state)
                        state = state | leave
                    case Let():
                        state, count = self._run(stmt.body, state)
                    case Store():
                        pass
            total += count
        return state, total


def _union(parts: Iterable[Effects]) -> Effects:
    out = NONE
    for part in parts:
        out |= part
    return out
