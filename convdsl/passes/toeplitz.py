"""toeplitz: blocks of results, each of which is the product of a window with the same matrix.

    y[o] = sum[k, l | l*s + k == o + p] x[l] * w[k]
 -> y[U*q + u] = sum[k, a | a*s + k == u + p] x[V*q + a] * w[k]         with V = U / s

The relation has no q any more: what is read of w depends on u and a alone, and is a Toeplitz matrix.
So it is for every relation with integer coefficients in which U results are V whole steps in x.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import gcd

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Pred, Reduce, Var
from convdsl.ir.index import Index, ceildiv, const, sym
from convdsl.ir.interval import interval, ranges_of
from convdsl.passes.phases import (
    replace_var,
    simplified,
    substituted,
    the_reduction,
    with_vars,
    without,
)
from convdsl.passes.relation import inside, linear
from convdsl.passes.simplify import simplify_piece


@dataclass(frozen=True, slots=True)
class Tie:
    """A relation with `along` times an index of the result and `against` times a summed one."""

    out: Var
    data: Var
    reduction: Reduce
    pred: Pred
    along: int
    against: int

    @property
    def least(self) -> int:
        """Blocks are multiples of this: they end at whole steps of the data."""
        return abs(self.against) // gcd(self.along, self.against)

    def step(self, length: int) -> int:
        """How far a block moves along the data."""
        return -self.along * length // self.against


def tie_of(piece: Piece, out: str, data: str) -> Tie | None:
    """The first relation between two variables; None where they have none with integers.

    Nor where the range of a variable depends on another one.
    """
    reduction = the_reduction(piece.value)
    free = {v.name: v for v in piece.vars}
    summed = {v.name: v for v in reduction.vars} if reduction is not None else {}
    if reduction is None or out not in free or data not in summed:
        return None
    every = {**free, **summed}
    if any((v.low.free | v.high.free) & every.keys() for v in every.values()):
        return None
    for pred in reduction.constraints:
        form = linear(pred.index, every) if pred.kind == "eq" else None
        if form is not None and {out, data} <= form.coefficients.keys():
            steps = form.coefficients
            return Tie(free[out], summed[data], reduction, pred, steps[out], steps[data])
    return None


def ties_of(piece: Piece) -> list[Tie]:
    """All such pairs of a piece."""
    reduction = the_reduction(piece.value)
    summed = reduction.vars if reduction is not None else ()
    found = (tie_of(piece, o.name, v.name) for o in piece.vars for v in summed)
    return [tie for tie in found if tie is not None]


def window_of(piece: Piece, tie: Tie, length: int) -> tuple[int, int] | None:
    """The first and last place in the data, from where a block begins, that its results read.

    None where the ranges of the variables have no numbers.
    """
    numbers = ranges_of((*piece.vars, *tie.reduction.vars))
    position, own = tie.out.name, tie.data.name
    begin = tie.out.low.as_int()
    if begin is None:
        return None
    numbers[position] = (begin, begin + _width(tie.out, length) - 1)
    low, high = interval(tie.pred.index.without(own) * (-1 if tie.against > 0 else 1), numbers)
    if low is None or high is None:
        return None
    first, last = -(-low // abs(tie.against)), high // abs(tie.against)
    blocks = ceildiv(tie.out.extent, length).as_int()
    ends = tie.data.low.as_int(), tie.data.high.as_int()
    if blocks is not None and ends[0] is not None and ends[1] is not None:
        far = tie.step(length) * (blocks - 1)
        first, last = max(first, ends[0] - max(0, far)), min(last, ends[1] - 1 - min(0, far))
    return first, last


def _width(out: Var, length: int) -> int:
    """The results of a block; one alone ends with the range."""
    extent = out.extent.as_int()
    return length if extent is None else min(length, extent)


def toeplitz_piece(
    piece: Piece, tie: Tie, length: int, window: tuple[int, int], fresh: tuple[str, str, str]
) -> Piece:
    """The piece in blocks of `length` results; `fresh` names the block, the result, and the place in
    its window."""
    q, u, a = fresh
    first, last = window
    position = tie.out.low + sym(q) * length + sym(u)
    place = sym(q) * tie.step(length) + sym(a) + first
    values: dict[str, Index] = {tie.out.name: position, tie.data.name: place}
    along = Var(a, const(0), const(max(0, last + 1 - first)))
    kept = (tie.pred, *inside(tie.data, sym(tie.data.name)))
    made = with_vars(without(piece, tie.pred, kept), (tie.data.name,), (along,))
    blocks = Var(q, const(0), ceildiv(tie.out.extent, length))
    results = Var(u, const(0), const(_width(tie.out, length)))
    made = substituted(made, values, replace_var(piece.vars, tie.out.name, (blocks, results)))
    guards = made.guards + inside(tie.out, position)
    made = simplified(replace(made, guards=guards, origin="toeplitz"))
    return simplify_piece(made) if blocks.extent == 1 else made
