"""Pad an index of an equation to a multiple: tiles then have no rest, and no read of one is tested.

    z[t] = sum[c in 0..C] a[c, t] * b[c]        with a and b tensors that other equations make
 -> z[t] = sum[c in 0..C'] a[c, t] * b[c]       where a and b have C' = ceil(C / f) * f elements along c,
                                                zero from C on

A free index makes the result longer as well; nothing reads what is added.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from convdsl.ir.equation import Equation, Piece, System, Tensor, accesses
from convdsl.ir.expr import (
    Access,
    Const,
    Expr,
    Guard,
    Load,
    Pred,
    Reduce,
    Var,
    ge,
    loads,
    map_children,
)
from convdsl.ir.index import Index, ceildiv, sym
from convdsl.passes.contraction import flat_factors
from convdsl.passes.phases import the_reduction

Axes = dict[str, int]


def padded_axes(system: System, tensor: str, name: str) -> Axes | str:
    """The axis of each tensor that gets longer when an index of an equation does; or why none can."""
    equation = next(q for q in system.equations if q.tensor == tensor)
    piece = equation.pieces[0]
    reduction = the_reduction(piece.value)
    summed = {v.name: v for v in reduction.vars} if reduction is not None else {}
    free = {v.name: v for v in piece.vars}
    var = summed.get(name) or free.get(name)
    whole = len(equation.pieces) == 1 and not piece.guards
    if var is None or (name in free and not whole):
        return f"`{name}` is no index of a plain equation"
    if (
        reduction is None
        or reduction.op != "sum"
        or any(name in p.index.free for p in reduction.constraints)
    ):
        return f"`{name}` stands in a condition, or there is no sum"
    factors = flat_factors(reduction.body)
    if name in summed and not all(isinstance(f, Load) and name in f.access.free for f in factors):
        return f"it is no sum of products of elements along `{name}`, so that zeros add nothing"
    reads = [load.access for load in loads(piece.value) if name in load.access.free]
    if name in free:
        reads.append(piece.access)
    axes: Axes = {}
    for access in reads:
        why = _why_not(system, tensor, access, var)
        if why is not None:
            return why
        (axis,) = (n for n, i in enumerate(access.index) if name in i.free)
        if axes.setdefault(access.tensor, axis) != axis:
            return f"`{access.tensor}` is read along `{name}` in two ways"
    return axes if axes else f"nothing is read along `{name}`"


def _why_not(system: System, tensor: str, access: Access, var: Var) -> str | None:
    """Why a tensor that the equation reads (or makes) cannot be longer along an index."""
    found = system.tensor(access.tensor)
    along = [n for n, i in enumerate(access.index) if var.name in i.free]
    if found.role != "let":
        return f"`{found.name}` is no tensor that the program makes"
    if len(along) != 1 or access.index[along[0]] != sym(var.name) or access.dims != found.dims:
        return f"`{found.name}` is not read an element an index of `{var.name}`"
    if var.low != 0 or access.dims[along[0]] != var.high:
        return f"`{var.name}` is not the whole of an axis of `{found.name}`"
    made = next(q for q in system.equations if q.tensor == found.name).pieces
    uses = {
        (q.tensor, a.dims)
        for q in system.equations
        for p in q.pieces
        for a in accesses(p)
        if a.tensor == found.name
    }
    if any(dims != found.dims for _, dims in uses):
        return f"`{found.name}` is read in several shapes"
    if len(made) > 1 or made[0].guards or not _plain(made[0].access.index[along[0]], made[0]):
        return f"`{found.name}` is not made an element an index"
    if found.name != tensor and {t for t, _ in uses} - {tensor, found.name}:
        return f"`{found.name}` is read by other equations, too"
    return None


def _plain(index: Index, piece: Piece) -> bool:
    return any(index == sym(v.name) and v.low == 0 for v in piece.vars)


def pad_index(system: System, tensor: str, name: str, multiple: int, axes: Axes) -> System:
    """The system with the index padded."""
    dims = {t: system.tensor(t).dims[axis] for t, axis in axes.items()}
    longer = {t: ceildiv(d, multiple) * multiple for t, d in dims.items()}

    def grown(t: Tensor) -> Tensor:
        if t.name not in axes:
            return t
        extents = list(t.dims)
        extents[axes[t.name]] = longer[t.name]
        return replace(t, axes=tuple((e,) for e in extents))

    def equation(q: Equation) -> Equation:
        pieces = tuple(_regrown(p, axes, longer) for p in q.pieces)
        if q.tensor == tensor:
            pieces = (_widened(pieces[0], name, multiple), *pieces[1:])
        elif q.tensor in axes:
            pieces = (_zeroed(pieces[0], axes[q.tensor], dims[q.tensor], longer[q.tensor]),)
        return Equation(q.tensor, pieces)

    return replace(
        system,
        tensors=tuple(grown(t) for t in system.tensors),
        equations=tuple(equation(q) for q in system.equations),
    )


def _regrown(piece: Piece, axes: Axes, longer: Mapping[str, Index]) -> Piece:
    """Every access to a longer tensor with its new extent."""

    def access(a: Access) -> Access:
        if a.tensor not in axes:
            return a
        dims = list(a.dims)
        dims[axes[a.tensor]] = longer[a.tensor]
        return replace(a, dims=tuple(dims))

    def value(e: Expr) -> Expr:
        return Load(access(e.access), e.dtype) if isinstance(e, Load) else map_children(e, value)

    return replace(piece, access=access(piece.access), value=value(piece.value))


def _widened(piece: Piece, name: str, multiple: int) -> Piece:
    def longer(v: Var) -> Var:
        return Var(v.name, v.low, ceildiv(v.high, multiple) * multiple) if v.name == name else v

    def change(e: Expr) -> Expr:
        if isinstance(e, Reduce):
            return replace(e, vars=tuple(map(longer, e.vars)))
        return map_children(e, change)

    return replace(piece, vars=tuple(map(longer, piece.vars)), value=change(piece.value))


def _zeroed(piece: Piece, axis: int, old: Index, new: Index) -> Piece:
    """The piece over the longer axis, zero beyond the old one."""
    (name,) = (v.name for v in piece.vars if piece.access.index[axis] == sym(v.name))
    inside: Pred = ge(old - 1 - sym(name))
    value = piece.value
    if isinstance(value, Reduce) and value.op == "sum":
        value = replace(value, constraints=(*value.constraints, inside))
    else:
        value = Guard((inside,), value, Const(0, value.dtype))
    variables = tuple(Var(v.name, v.low, new) if v.name == name else v for v in piece.vars)
    return replace(piece, vars=variables, value=value)
