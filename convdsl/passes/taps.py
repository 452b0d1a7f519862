"""taps: a relation with a stride as a sum over the taps that reach each output.

    y[o] = sum[k, l | l*s + k*d == o + p] x[l] * w[k]
 -> y[o] = sum[j] x[t - d'*j] * w[j*s' + r]          with o + p = t*s + r*d, 0 <= r < s'
                                                     where 0 <= t - d'*j < L and j*s' + r < K

As `convdsl.passes.phases`, but the output index stays whole: block t and phase r are quotients and
remainders of it. So there are no holes, and along whole steps written out both are numbers.
"""

from __future__ import annotations

from dataclasses import replace

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Pred, Var, ge
from convdsl.ir.index import const, floordiv, modulo, sym
from convdsl.passes.phases import rewritten, split_of
from convdsl.passes.relation import inside


def taps_relation(piece: Piece, output: str, tap: str, fresh: str) -> Piece | None:
    """The relation between `output` and `tap` solved so, the taps counted by `fresh`; or None."""
    found = split_of(piece, output, tap)
    if found is None:
        return None
    reduction, pred, split = found
    data, taps = (
        next(v for v in reduction.vars if v.name == name) for name in (split.data, split.tap)
    )
    step = split.tap_stride // split.gap
    inverse = pow(step, -1, split.period) if split.period > 1 else 0
    place = sym(split.output) - split.offset
    phase = modulo(floordiv(place, const(split.gap)) * inverse, const(split.period))
    ahead = phase * split.tap_stride if split.tap_stride != 1 else const(0)
    block = floordiv(place - ahead, const(split.stride))
    values = {
        split.tap: sym(fresh) * split.period + phase,
        split.data: (block - sym(fresh) * split.lag) * split.sign,
    }
    reads: tuple[Pred, ...] = inside(data, sym(data.name))
    reads = (*reads, ge(taps.high - 1 - sym(taps.name)))
    if split.gap > 1:
        reads = (*reads, ge(-modulo(place, const(split.gap))))  # an `eq` would be a relation
    counted = Var(fresh, const(0), split.taps)
    return replace(rewritten(piece, pred, reads, counted, values), origin="taps")
