"""Give each iteration of a worker loop its own copy of what only that loop uses.

    for n worker                     worker acc
      acc[..] = 0           ->       for n worker
      acc[..] += ...                   acc[..] = 0
      y[n, ..] = acc[..]               ...

with `acc` a temporary of the program before, and one of the kernel, in worker memory, after.
"""

from __future__ import annotations

from dataclasses import replace

from convdsl.ir.loop import For, LoopProgram
from convdsl.ir.verify_site import Site, sites

Place = tuple[str, tuple[int, ...]]  # a kernel, and where in it


def privatise(program: LoopProgram) -> LoopProgram:
    """The program with temporaries that one worker loop alone uses as its own."""
    places: dict[str, set[Place | None]] = {}
    for site in sites(program):
        loop = _worker(site)
        for access in site.accesses():
            places.setdefault(access.tensor, set()).add(loop)
    owners: dict[str, str] = {}
    for buffer in program.buffers:
        match [*places.get(buffer.name, ())]:
            case [(kernel, _)] if buffer.memory == "temp":
                owners[buffer.name] = kernel
    kernels = []
    for k in program.kernels:
        mine = [
            replace(b, memory="worker") for b in program.buffers if owners.get(b.name) == k.name
        ]
        kernels.append(replace(k, locals=(*k.locals, *mine)))
    kept = tuple(b for b in program.buffers if b.name not in owners)
    return replace(program, buffers=kept, kernels=tuple(kernels))


def _worker(site: Site) -> Place | None:
    """The kernel and the place of the worker loop around a statement."""
    for depth, parent in enumerate(site.parents):
        if isinstance(parent, For) and parent.level == "worker":
            return site.kernel.name, site.path[: depth + 1]
    return None
