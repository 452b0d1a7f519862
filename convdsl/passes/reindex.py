"""reindex: what a sum reads of a tensor, as a tensor that has an axis for each index.

    y[t] = sum[j, c | 0 <= t - j, t - j < L] x[c, t - j] * w[c, j]
 -> xs[j, c, t] = x[c, t - j] where 0 <= t - j < L, else 0
    y[t] = sum[j, c] xs[j, c, t] * w[c, j]

Of x these are the columns of a convolution (im2col), of w its matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from convdsl.ir.equation import Equation, Piece, System, Tensor
from convdsl.ir.expr import (
    Access,
    Binary,
    Const,
    Expr,
    Guard,
    Load,
    Pred,
    Reduce,
    Var,
    free_names,
    loads,
    map_index,
)
from convdsl.ir.index import Index, const, sym
from convdsl.ir.interval import always, ranges_of
from convdsl.passes.contraction import flat_factors
from convdsl.passes.guards import read_guards, reads_inside
from convdsl.passes.phases import replace_reduction


def indices_of(piece: Piece, reduction: Reduce, factor: Expr) -> list[str]:
    """The indices that an operand depends on, in the order in which they are declared."""
    used = free_names(factor)
    return [v.name for v in (*piece.vars, *reduction.vars) if v.name in used]


def reindexed(
    made: str,
    piece: Piece,
    reduction: Reduce,
    factor: Expr,
    order: Sequence[str],
    zeros: bool,
) -> tuple[Tensor, Equation, Piece]:
    """The tensor of an operand with the axes `order`, its equation, and the piece that reads it.

    No range of these indices depends on another index. `zeros`: a term outside of the operand's
    conditions may become a product with zero instead of none, where the others can be read all the same.
    """
    every = {v.name: v for v in (*piece.vars, *reduction.vars)}
    own = [every[n] for n in order]
    values = {v.name: sym(v.name) + v.low for v in own}
    axes = tuple(Var(v.name, const(0), v.extent) for v in own)

    def put(index: Index) -> Index:
        return index.substitute(values)

    names = set(every)
    mine = [p for p in reduction.constraints if p.index.free & names <= set(order)]
    guards = [g for g in read_guards(piece, reduction) if g.index.free & names <= set(order)]
    source = map_index(factor, put)
    known = ranges_of(axes)
    wanted = [Pred(p.kind, put(p.index)) for p in (*mine, *guards)] + reads_inside(source)
    tests = tuple(p for p in dict.fromkeys(wanted) if not always(p, known))
    value = Guard(tests, source, Const(0, source.dtype)) if tests else source

    dims = tuple(v.extent for v in own)
    target = Access(made, tuple(sym(v.name) for v in own), dims)
    tensor = Tensor(made, source.dtype, tuple((d,) for d in dims), "let")
    equation = Equation(made, (Piece(axes, (), target, value, origin="reindex"),))
    read = Load(Access(made, tuple(sym(v.name) - v.low for v in own), dims), source.dtype)
    gone = [p for p in mine if zeros and not keeps(p, mine, piece, reduction, factor)]
    rest = replace(
        reduction,
        constraints=tuple(p for p in reduction.constraints if p not in gone),
        body=with_operand(reduction.body, factor, read),
    )
    return tensor, equation, replace(piece, value=replace_reduction(piece.value, lambda _: rest))


def keeps(pred: Pred, mine: Sequence[Pred], piece: Piece, reduction: Reduce, factor: Expr) -> bool:
    """Whether a condition may be what keeps the reads of the other operands inside of their tensors."""
    known = ranges_of((*piece.vars, *reduction.vars))
    left = {*piece.guards, *(p for p in reduction.constraints if p not in mine)}
    own = flat_factors(factor)
    others = [f for f in flat_factors(reduction.body) if f not in own]
    ends = (end for f in others for end in reads_inside(f))
    return any(
        end.index.free & pred.index.free and end not in left and not always(end, known)
        for end in ends
    )


def inputs_of(system: System, value: Expr) -> frozenset[str]:
    """The inputs that a value depends on, directly and through other tensors."""
    made = {q.tensor: q.pieces for q in system.equations}
    found: set[str] = set()
    new = {load.access.tensor for load in loads(value)}
    while new:
        found |= new
        pieces = [p for n in new for p in made.get(n, ())]
        new = {load.access.tensor for p in pieces for load in loads(p.value)} - found
    return frozenset(t.name for t in system.inputs if t.name in found)


def with_operand(body: Expr, factor: Expr, read: Expr) -> Expr:
    """A product with one operand replaced: the factors that make it up by the one read."""
    gone = flat_factors(factor)
    left = flat_factors(body)
    at = left.index(gone[0])
    for one in gone:
        left.remove(one)
    left.insert(min(at, len(left)), read)
    out = left[0]
    for one in left[1:]:
        out = Binary("*", out, one)
    return out
