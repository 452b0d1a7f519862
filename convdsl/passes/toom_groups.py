"""Long filters for Toom-Cook: taps in groups, each a short filter, and all summed in one product.

    y[t] = sum[c, j in 0..J] x(c, t - j) * w(c, j)
 -> y[t] = sum[c, q in 0..Q, j in 0..S | q*S + j < J] x(c, t - q*S - j) * w(c, q*S + j)

The error of F(m, j) grows with j, so a group has at most `LONGEST` taps.
"""

from __future__ import annotations

from dataclasses import replace

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Expr, Pred, Reduce, Var, ge, map_index
from convdsl.ir.index import Index, const, sym
from convdsl.passes.phases import replace_reduction
from convdsl.passes.toom_points import MOST_TAPS

LONGEST = 4


def group_of(taps: int) -> int:
    """How many taps a group has: all of them where there are transforms, else groups alike."""
    if taps <= MOST_TAPS:
        return taps
    groups = -(-taps // LONGEST)
    return -(-taps // groups)


def grouped(piece: Piece, block: Var, tap: Var, step: int, name: str) -> Piece:
    """The piece with its taps in groups, counted by `name`; `step` as in `toom.Filter`."""
    taps = tap.extent.as_int() or 0
    size = group_of(taps)
    groups = Var(name, const(0), const(-(-taps // size)))
    within = Var(tap.name, const(0), const(size))
    place = tap.low + sym(name) * size + sym(tap.name)
    extra: list[Pred] = []
    if taps % size:
        # The last group has more taps than there are: these count as zero, and the data that only
        # they would meet may not be there.
        extra.append(ge(tap.high - 1 - place))
        extra.append(
            ge(sym(block.name) - place - block.low + tap.high - 1)
            if step > 0
            else ge(block.high - 1 + tap.high - 1 - sym(block.name) - place)
        )

    def put(index: Index) -> Index:
        return index.substitute({tap.name: place})

    def change(reduction: Reduce) -> Expr:
        at = [v.name for v in reduction.vars].index(tap.name)
        return replace(
            reduction,
            vars=(*reduction.vars[:at], groups, within, *reduction.vars[at + 1 :]),
            constraints=(*(Pred(p.kind, put(p.index)) for p in reduction.constraints), *extra),
            body=map_index(reduction.body, put),
        )

    return replace(piece, value=replace_reduction(piece.value, change))
