"""The schedule for NumPy of what is no matrix product: slices of a chunk of the results at a time.

    for chunk                                          worker: chunks in parallel
      for r                                            each phase of a short stride
        for j: acc[c, t] += x[c, t - j] * w[c, j, r]   each term, all slices of the chunk at once
        y[c, t*s + r] = acc[c, t]

A chunk stays in the caches, and the passes over it that NumPy does one by one run on several threads.
"""

from __future__ import annotations

from math import prod

from convdsl.machine.facts import Cpu
from convdsl.schedule.builder import Builder
from convdsl.schedule.nest import Loop, Nest, conditions_of
from convdsl.schedule.numpy_results import SHORT
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.split import Split

MOST_PASSES = 64  # terms and phases, each of which takes a pass in Python
PASSES = 2  # over the elements, for a term: it is multiplied and added
# Arrays of the size of a chunk that are in the near cache: operands, the sum, and room for others.
ARRAYS = 12


def sliced(builder: Builder, name: str, cpu: Cpu) -> bool:
    """Arrange an equation without steps in chunks; whether it is worthwhile."""
    phases = builder.dense(name) if builder.tied(name) else []
    if phases is None:
        return False
    nest = builder.state.nest(name)
    extents = {x.name: x.extent.as_int() for x in nest.loops}
    sizes = {n: e for n, e in extents.items() if e}
    if len(sizes) < len(extents):
        return False
    seconds = PASSES * cpu.copy * prod(sizes.values())
    if seconds < cpu.worth:
        return False
    made, blocks = {p.phase for p in phases}, {p.block for p in phases}
    summed = [x.name for x in nest.loops if x.reduced]
    passes = [n for n in sizes if n in made and sizes[n] < SHORT]
    free = [x for x in nest.loops if not x.reduced and x.name not in passes]
    free.sort(key=lambda x: (x.name in blocks, x.name in made))  # long runs of blocks innermost
    if not free or prod(sizes[n] for n in (*passes, *summed)) > MOST_PASSES:
        return False
    cut = _cut(nest, free, sizes, cpu, cpu.workers(seconds))
    if cut is None:
        return False
    loop, length = cut
    chunk, inside = loop.name, [x.name for x in free if x is not loop]
    before = [x.name for x in free[: free.index(loop)]]
    if length > 1:
        fresh = builder.names(name).fresh
        chunk, inner = fresh(f"{loop.name}_chunk"), fresh(f"{loop.name}_in")
        builder.do(Split(name, loop.name, length, chunk, inner))
        inside.insert(len(before), inner)
    builder.do(Order(name, (chunk, *passes, *summed, *inside)))
    builder.map(name, worker=[chunk], host=[*passes, *summed])
    return True


def _cut(
    nest: Nest, free: list[Loop], sizes: dict[str, int], cpu: Cpu, workers: int
) -> tuple[Loop, int] | None:
    """The slowest loop that can be cut into chunks, and how long they are.

    A pass over a chunk takes longer than NumPy takes to begin it.
    """
    tied = {n for p in conditions_of(nest) for n in p.index.free}
    for at, loop in enumerate(free):
        others = prod(sizes[x.name] for x in free if x is not loop)
        if loop.name in tied and at < len(free) - 1:
            continue
        length = max(1, cpu.near // (4 * ARRAYS) // others)
        length = min(length, -(-sizes[loop.name] // workers))
        if sizes[loop.name] > length and length * others * cpu.copy >= cpu.call:
            return loop, length
    return None
