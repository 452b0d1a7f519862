"""Lower a system to loops for NumPy: host loops over taps, slices and matrix products inside.

No term is computed that the definition does not have, so special values (NaN, inf) come out exactly as
defined. Each equation becomes: fill with the empty value, accumulate, then the epilogue in place.
"""

from __future__ import annotations

from convdsl.ir.equation import Equation, Piece, System
from convdsl.ir.expr import Const, Expr, Reduce, Select, walk
from convdsl.ir.loop import Buffer, Kernel, LoopProgram, Memory, Stmt, Store, nest
from convdsl.passes.contraction import contraction_of
from convdsl.passes.name_bounds import name_bounds
from convdsl.passes.names import Names
from convdsl.passes.numpy_accumulate import accumulate
from convdsl.passes.numpy_columns import columns_of, lower_columns
from convdsl.passes.numpy_place import Context, hits_for, place_for
from convdsl.passes.phases import empty_value, replace_reduction, the_reduction
from convdsl.passes.plan import Choice

MEMORY: dict[str, Memory] = {"input": "input", "let": "temp", "output": "output"}


def lower_numpy(system: System, choices: dict[str, Choice]) -> LoopProgram:
    """The loop program; `choices` says how to treat each equation, by its tensor's name."""
    context = Context(system, Names(all_names(system)), tuple(t.name for t in system.inputs))
    kernels = [_equation(context, q, choices[q.tensor]) for q in system.equations]
    buffers = [Buffer(t.name, t.dtype, t.dims, MEMORY[t.role]) for t in system.tensors]
    every = (*buffers, *context.temps)
    program = LoopProgram(system.name, system.sizes, system.definitions, every, tuple(kernels))
    return name_bounds(program, context.names)


def all_names(system: System) -> set[str]:
    """Every name of a system: tensors, sizes, free and reduced variables."""
    out = {t.name for t in system.tensors} | set(system.sizes) | {n for n, _ in system.definitions}
    for piece in (p for q in system.equations for p in q.pieces):
        out |= {v.name for v in piece.vars}
        out |= {v.name for e in walk(piece.value) if isinstance(e, Reduce) for v in e.vars}
    return out


def _equation(context: Context, equation: Equation, choice: Choice) -> Kernel:
    (piece,) = equation.pieces
    reduction = the_reduction(piece.value)
    if reduction is None:
        body: tuple[Stmt, ...] = (_elementwise(piece, piece.value),)
    else:
        body = tuple(_reduced(context, piece, reduction, choice))
    return Kernel(equation.tensor, (), body, f"{equation.tensor}: {choice.algorithm}")


def _elementwise(piece: Piece, value: Expr) -> Stmt:
    return nest([(v, "slice") for v in piece.vars], (Store(piece.access, value),))[0]


def _reduced(context: Context, piece: Piece, reduction: Reduce, choice: Choice) -> list[Stmt]:
    target = place_for(context, context.system.tensor(piece.access.tensor), piece, reduction)
    contraction = contraction_of(piece, related=True)
    columns = columns_of(contraction) if contraction is not None else None
    hits = None
    if choice.algorithm == "columns" and columns is not None:
        out = lower_columns(context, target, piece, columns)
    else:
        if reduction.otherwise is not None:
            hits = hits_for(context, piece, reduction)
        product = contraction if choice.algorithm == "phases" else None
        out = accumulate(context, target, piece, reduction, product, hits)
    result: Expr = target.load()
    if hits is not None:
        result = Select("!=", hits.load(), Const(0, "i32"), target.load(), empty_value(reduction))
    value = replace_reduction(piece.value, lambda _: result)
    if value != target.load() or not target.is_tensor:
        out.append(_elementwise(piece, value))
    return out
