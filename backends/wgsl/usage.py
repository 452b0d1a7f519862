"""Which global buffers and sizes a kernel uses."""

from __future__ import annotations

from dataclasses import dataclass

from convdsl.backends.wgsl.vectors import storage_vectors
from convdsl.diagnostics import InternalError
from convdsl.ir.expr import loads
from convdsl.ir.loop import Kernel, LoopProgram, Store, free_symbols, statements


@dataclass(frozen=True, slots=True)
class Usage:
    """Names of the global buffers that a kernel reads (and does not write), and that it writes.

    `vectors` are those of both that it reads and writes as vec4s.
    """

    reads: frozenset[str]
    writes: frozenset[str]
    vectors: frozenset[str]

    def uses(self, name: str) -> bool:
        return name in self.reads or name in self.writes


def usage(kernel: Kernel, program: LoopProgram) -> Usage:
    """The global buffers of a kernel, which does not read what it writes: no barrier is global."""
    memory = {b.name: b.memory for b in program.buffers}
    local = {b.name for b in kernel.locals}
    reads: set[str] = set()
    writes: set[str] = set()
    for stmt in statements(kernel.body):
        if isinstance(stmt, Store):
            writes.add(stmt.access.tensor)
            reads.update(load.access.tensor for load in loads(stmt.value))
    for name in sorted(reads & writes - local):
        raise InternalError(f"kernel {kernel.name} reads and writes the buffer {name}")
    for name in sorted(writes - local):
        if memory.get(name) in ("input", "constant"):
            raise InternalError(f"kernel {kernel.name} writes the {memory[name]} {name}")
    stored = tuple(b for b in program.buffers if b.memory != "constant")
    vectors = storage_vectors(kernel, stored)
    return Usage(frozenset(reads - local), frozenset(writes - local), vectors)


def free_sizes(program: LoopProgram) -> frozenset[str]:
    """The names that kernels use and no loop or let binds."""
    return frozenset[str]().union(*(free_symbols(kernel.body) for kernel in program.kernels))
