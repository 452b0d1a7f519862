"""Lower a scheduled system to GPU kernels: one kernel a piece.

A piece whose loops a schedule arranged runs as arranged; every other one gets one thread an element.
"""

from __future__ import annotations

from convdsl.ir.equation import Piece
from convdsl.ir.loop import Kernel, LoopProgram
from convdsl.passes.lower_gather import lower_gather
from convdsl.passes.lower_numpy import buffer_of
from convdsl.passes.names import Names
from convdsl.passes.tiles import WorkgroupLimits
from convdsl.schedule.lower import lower_nest
from convdsl.schedule.state import State


def lower_wgsl(state: State, limits: WorkgroupLimits) -> LoopProgram:
    """The loop program of a scheduled system."""
    system = state.system
    taken = frozenset(
        {t.name for t in system.tensors} | {*system.sizes, *(n for n, _ in system.definitions)}
    )
    names = Names(taken)
    kernels: list[Kernel] = []
    for label, piece in state.pieces().items():
        nest = state.nests.get(label)
        name = names.fresh(f"{piece.access.tensor}_{_kind(piece, nest is not None)}")
        if nest is not None:
            kernels.append(lower_nest(name, label, nest, taken))
        else:
            kernels.append(lower_gather(name, piece, min(256, limits.threads), taken))
    buffers = tuple(map(buffer_of, system.tensors))
    return LoopProgram(system.name, system.sizes, system.definitions, buffers, tuple(kernels))


def _kind(piece: Piece, scheduled: bool) -> str:
    """What a kernel makes, for its name."""
    if piece.origin == "definition":
        return "product" if scheduled else "elements"
    return piece.origin
