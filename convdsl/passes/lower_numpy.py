"""Lower an equation that no schedule arranges for NumPy: host loops over taps, slices inside.

No term is computed that the definition does not have, so special values (NaN, inf) come out exactly as
defined. An equation becomes: fill with the empty value, accumulate, then the epilogue in place.
"""

from __future__ import annotations

from convdsl.ir.equation import Equation, Piece, Role, System, Tensor
from convdsl.ir.expr import Const, Expr, Reduce, Select, walk
from convdsl.ir.index import as_name
from convdsl.ir.loop import Buffer, Memory, Stmt, Store, nest
from convdsl.passes.numpy_accumulate import accumulate
from convdsl.passes.numpy_place import Context, hits_for, place_for
from convdsl.passes.phases import empty_value, replace_reduction, the_reduction

Body = tuple[Stmt, ...]
MEMORY: dict[Role, Memory] = {
    "input": "input", "let": "temp", "output": "output", "constant": "constant",
}  # fmt: skip


def buffer_of(tensor: Tensor) -> Buffer:
    """Where a tensor is kept while a program runs."""
    memory = MEMORY[tensor.role]
    return Buffer(tensor.name, tensor.dtype, tensor.dims, memory, values=tensor.values)


def all_names(system: System) -> set[str]:
    """Every name of a system: tensors, sizes, free and reduced variables."""
    out = {t.name for t in system.tensors} | set(system.sizes) | {n for n, _ in system.definitions}
    for piece in (p for q in system.equations for p in q.pieces):
        out |= {v.name for v in piece.vars}
        out |= {v.name for e in walk(piece.value) if isinstance(e, Reduce) for v in e.vars}
    return out


def as_stated(equation: Equation) -> bool:
    """Whether an equation has such a form: its relations are still to be solved, or it has none."""
    piece = equation.pieces[0]
    if len(equation.pieces) > 1 or piece.guards:
        return False
    if any(v.low != 0 for v in piece.vars):
        return False
    if [as_name(i) for i in piece.access.index] != [v.name for v in piece.vars]:
        return False  # a step has made two indices of one
    reduction = the_reduction(piece.value)
    if reduction is None:
        return True
    names = {v.name for v in (*piece.vars, *reduction.vars)}
    boxed = all(not (v.low.free | v.high.free) & names for v in reduction.vars)
    return boxed and all(p.kind == "eq" for p in reduction.constraints)


def lower_equation(context: Context, equation: Equation) -> Body:
    """The statements of an equation whose loops no schedule arranges."""
    (piece,) = equation.pieces
    reduction = the_reduction(piece.value)
    if reduction is None:
        return (_elementwise(piece, piece.value),)
    return tuple(_reduced(context, piece, reduction))


def _elementwise(piece: Piece, value: Expr) -> Stmt:
    return nest([(v, "slice") for v in piece.vars], (Store(piece.access, value),))[0]


def _reduced(context: Context, piece: Piece, reduction: Reduce) -> list[Stmt]:
    target = place_for(context, context.system.tensor(piece.access.tensor), piece, reduction)
    hits = hits_for(context, piece, reduction) if reduction.otherwise is not None else None
    out = accumulate(context, target, piece, reduction, hits)
    result: Expr = target.load()
    if hits is not None:
        result = Select("!=", hits.load(), Const(0, "i32"), target.load(), empty_value(reduction))
    value = replace_reduction(piece.value, lambda _: result)
    if value != target.load() or not target.is_tensor:
        out.append(_elementwise(piece, value))
    return out
