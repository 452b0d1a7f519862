"""Lower a rewritten system to GPU kernels: one kernel a piece, tiled where it is a matrix product."""

from __future__ import annotations

from dataclasses import dataclass

from convdsl.ir.equation import Piece, System
from convdsl.ir.loop import Buffer, Kernel, LoopProgram
from convdsl.passes.contraction import contraction_of
from convdsl.passes.lower_gather import lower_gather
from convdsl.passes.lower_gemm import lower_gemm
from convdsl.passes.lower_numpy import MEMORY
from convdsl.passes.names import Names
from convdsl.passes.plan import Choice
from convdsl.passes.tiles import choose_tiles


@dataclass(frozen=True, slots=True)
class WorkgroupLimits:
    """What a workgroup may use: invocations, and bytes of workgroup memory."""

    threads: int
    bytes: int


def lower_wgsl(
    system: System, choices: dict[str, Choice], limits: WorkgroupLimits
) -> tuple[LoopProgram, dict[str, str]]:
    """The loop program, and the tiles of each kernel that has any."""
    taken = frozenset(
        {t.name for t in system.tensors} | {*system.sizes, *(n for n, _ in system.definitions)}
    )
    names = Names(taken)
    kernels: list[Kernel] = []
    tiles: dict[str, str] = {}
    for equation in system.equations:
        choice = choices.get(equation.tensor)
        for piece in equation.pieces:
            kernel, tile = _piece(names, taken, piece, choice, limits)
            kernels.append(kernel)
            if tile:
                tiles[kernel.name] = tile
    buffers = tuple(Buffer(t.name, t.dtype, t.dims, MEMORY[t.role]) for t in system.tensors)
    program = LoopProgram(system.name, system.sizes, system.definitions, buffers, tuple(kernels))
    return program, tiles


def _piece(
    names: Names,
    taken: frozenset[str],
    piece: Piece,
    choice: Choice | None,
    limits: WorkgroupLimits,
) -> tuple[Kernel, str]:
    tiled = piece.origin == "columns" or (choice is not None and choice.algorithm == "phases")
    contraction = contraction_of(piece) if tiled else None
    name = names.fresh(f"{piece.access.tensor}_{_kind(piece, contraction is not None)}")
    if contraction is None:
        return lower_gather(name, piece, min(256, limits.threads), taken), ""
    tiles = choose_tiles(contraction, limits.threads, limits.bytes)
    return lower_gemm(name, contraction, tiles, taken), str(tiles)


def _kind(piece: Piece, tiled: bool) -> str:
    """What a kernel makes, for its name."""
    if piece.origin == "definition":
        return "product" if tiled else "elements"
    return piece.origin
