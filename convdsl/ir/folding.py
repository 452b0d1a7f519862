"""What of a loop program depends on some of its inputs alone.

Once those inputs are constants (`Kernel.bind`), such kernels need to run only once: they *fold*.

    v = f(w)                       a fold of {w}
    y = g(x, v)                    runs in every call

Kernels that need the same inputs and sizes make up one fold. Folds run before all other kernels, in
order; their results are only read by what follows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from convdsl.ir.expr import loads
from convdsl.ir.loop import Kernel, LoopProgram, Store, free_symbols, statements
from convdsl.ir.text import print_kernel

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Fold:
    """Kernels (by number, in order) that depend on `inputs` and on the numbers of `sizes` alone.

    `results` are the buffers that other kernels read. Folds of two variants of a program that have
    the same `key` compute the same.
    """

    inputs: Names
    sizes: Names
    kernels: tuple[int, ...]
    results: tuple[str, ...]
    key: str


@dataclass(frozen=True, slots=True)
class _Use:
    """The global buffers that a kernel reads and writes, and the sizes that it mentions."""

    reads: Names
    writes: Names
    sizes: Names


def folds(program: LoopProgram) -> tuple[Fold, ...]:
    """The folds of a program, each before those that read its results.

    What needs every input is none, and neither is what writes the output: that belongs to a call.
    """
    uses = [_use(kernel) for kernel in program.kernels]
    everything = frozenset(b.name for b in program.buffers if b.memory == "input")
    own = {b.name: frozenset([b.name]) for b in program.buffers if b.memory == "input"}
    own |= {
        b.name: everything for b in program.buffers if b.memory == "output" or _reused(b.name, uses)
    }
    inputs = _needs(uses, own, lambda use: frozenset())
    sizes = _needs(uses, {}, lambda use: sizes_behind(use.sizes, program))
    groups: dict[tuple[Names, Names], list[int]] = {}
    for number, needed in enumerate(inputs):
        if needed < everything:
            groups.setdefault((needed, sizes[number]), []).append(number)
    out: list[Fold] = []
    for (needed, numbers), kernels in sorted(
        groups.items(), key=lambda g: (len(g[0][0]) + len(g[0][1]), g[1])
    ):
        others = [use for number, use in enumerate(uses) if number not in kernels]
        read = frozenset[str]().union(*(use.reads for use in others))
        written = frozenset[str]().union(*(uses[k].writes for k in kernels))
        results = tuple(b.name for b in program.buffers if b.name in written & read)
        key = _key(program, kernels, uses, out)
        out.append(Fold(needed, numbers, tuple(kernels), results, key))
    return tuple(out)


def _use(kernel: Kernel) -> _Use:
    reads: set[str] = set()
    writes: set[str] = set()
    for stmt in statements(kernel.body):
        if isinstance(stmt, Store):
            writes.add(stmt.access.tensor)
            reads.update(load.access.tensor for load in loads(stmt.value))
    local = {b.name for b in kernel.locals}
    symbols = free_symbols(kernel.body).union(*(d.free for b in kernel.locals for d in b.dims))
    return _Use(frozenset(reads - local), frozenset(writes - local), symbols)


def _reused(buffer: str, uses: list[_Use]) -> bool:
    """Whether a kernel writes the buffer after another one has read it."""
    read = False
    for use in uses:
        if buffer in use.writes and read:
            return True
        read = read or (buffer in use.reads and buffer not in use.writes)
    return False


def _needs(
    uses: list[_Use], own: Mapping[str, Names], start: Callable[[_Use], Names]
) -> list[Names]:
    """What each kernel needs, by way of all that it reads, and all that writes what it writes."""
    buffers = dict(own)
    while True:
        needs = [
            start(use).union(*(buffers.get(b, frozenset()) for b in use.reads | use.writes))
            for use in uses
        ]
        grown = dict(buffers)
        for use, needed in zip(uses, needs, strict=True):
            for buffer in use.writes:
                grown[buffer] = grown.get(buffer, frozenset()) | needed
        if grown == buffers:
            return needs
        buffers = grown


def sizes_behind(names: Iterable[str], program: LoopProgram) -> Names:
    """The sizes behind some names of sizes and definitions."""
    out = set(names)
    for name, value in reversed(program.definitions):
        if name in out:
            out.remove(name)
            out |= value.free
    return frozenset(out)


def _key(
    program: LoopProgram, kernels: list[int], uses: list[_Use], earlier: Iterable[Fold]
) -> str:
    """The text of a fold, and of those whose results it reads."""
    read = frozenset[str]().union(*(uses[k].reads for k in kernels))
    touched = read.union(*(uses[k].writes for k in kernels))
    names = frozenset[str]().union(*(uses[k].sizes for k in kernels))
    lines = [fold.key for fold in earlier if read & frozenset(fold.results)]
    for name, value in reversed(program.definitions):
        if name in names:
            names |= value.free
            lines.append(f"{name} = {value}")
    lines += [repr(b) for b in program.buffers if b.name in touched]
    return "\n".join([*lines, *(print_kernel(program.kernels[k], program) for k in kernels)])
