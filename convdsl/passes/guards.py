"""Conditions of reads: which guards of a piece are such, and those of the tensors that are read."""

from __future__ import annotations

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Expr, Pred, Reduce, ge, loads


def read_guards(piece: Piece, reduction: Reduce) -> list[Pred]:
    """The guards without which a term would be read outside of a tensor.

    An operand may be read at the place of the result: where that is none of the result's, neither is
    there anything to read.
    """
    own = {v.name for v in piece.vars}
    axes = [i.free for load in loads(reduction.body) for i in load.access.index]
    return [g for g in piece.guards if any(g.index.free & own <= axis for axis in axes)]


def reads_inside(value: Expr) -> list[Pred]:
    """That each read is one of an element."""
    axes = [axis for e in loads(value) for axis in zip(e.access.index, e.access.dims, strict=True)]
    return [ge(end) for index, dim in axes for end in (index, dim - 1 - index)]
