"""Whether Toom-Cook pays for an equation on a GPU: estimated times of both ways, within a class.

F(M, J) makes M results by M + J - 1 products instead of M*J, and writes and reads the transformed
operands besides. The taps' transform counts as nothing: weights are bound, and it runs once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Var, free_names, loads
from convdsl.ir.index import product
from convdsl.machine.facts import Gpu
from convdsl.passes.contraction import Contraction, contraction_of
from convdsl.passes.tiles import Shape, estimate, reads_of, shape_of, stores_apart
from convdsl.passes.toom import Filter, filter_of
from convdsl.passes.toom_accuracy import most_results, within
from convdsl.passes.toom_points import LEAST, MOST_TAPS

GAIN = 0.9  # of the direct time, at most: what is worth more rounding


@dataclass(frozen=True, slots=True)
class ToomPlan:
    """F(`results`, `taps`), and its time over that of the direct sum, estimated."""

    results: int
    taps: int
    ratio: float


def plan_toom(
    piece: Piece, gpu: Gpu, accuracy: str, largest: int, forced: bool = False
) -> ToomPlan | None:
    """The fastest transform of a dense piece that the class allows, where one is faster than the sum.

    `largest` is the number of bytes that a buffer may have; `forced` takes a slower one, too.
    """
    case = case_of(piece, accuracy)
    if case is None:
        return None
    found, shape, gemm = case.found, case.shape, case.found.product
    direct = estimate(gpu, shape, reads_of(gemm), stores_apart(gemm.piece))
    direct += 4 * shape.batch * shape.m * shape.n / gpu.bandwidth
    plans = [
        ToomPlan(m, case.taps, _seconds(gpu, found, shape, m) / direct)
        for m in case.results
        if _fits(found, shape, m, largest)
    ]
    return best_of(plans, forced)


@dataclass(frozen=True, slots=True)
class Case:
    """A filter of fixed size: its taps, the terms of each, and how many `results` a class allows."""

    found: Filter
    shape: Shape
    taps: int
    terms: int
    results: tuple[int, ...]


def case_of(piece: Piece, accuracy: str) -> Case | None:
    """The piece as a filter that some F(results, taps) computes within a class; None where none does."""
    gemm = contraction_of(piece)
    if gemm is None or gemm.reduction.dtype != "f32" or accuracy == "strict":
        return None
    found = filter_in(gemm)
    shape = shape_of(gemm)
    if found is None or shape is None:
        return None
    taps, count, terms = (e.as_int() for e in (found.tap.extent, found.count, found.terms))
    if taps is None or count is None or terms is None or not 2 <= taps <= MOST_TAPS or count < 2:
        return None
    most = most_results(taps, terms, accuracy) or 0
    made = tuple(m for m in range(LEAST, most + 1) if within(m, taps, terms, accuracy))
    return Case(found, shape, taps, terms, made)


def best_of(plans: Sequence[ToomPlan], forced: bool) -> ToomPlan | None:
    """The fastest one, where it gains enough."""
    best = min(plans, key=lambda p: p.ratio, default=None)
    return best if best is not None and (forced or best.ratio <= GAIN) else None


def filter_in(gemm: Contraction) -> Filter | None:
    """The product as a filter along one index of the result, where it is one in one way only."""
    found = [
        f for block in gemm.piece.vars for tap in gemm.k
        if isinstance(f := filter_of(gemm, block, tap), Filter)
    ]  # fmt: skip
    mixed = {v.name for v in gemm.k if _meets(gemm, v)}
    return found[0] if len(found) == 1 and mixed == {found[0].tap.name} else None


def _meets(gemm: Contraction, summed: Var) -> bool:
    """Whether a summed index is added to one of the result where an operand is read."""
    free = {v.name for v in gemm.piece.vars}
    indices = (i for load in loads(gemm.reduction.body) for i in load.access.index)
    return any(summed.name in i.free and i.free & free for i in indices)


def tiles(found: Filter, results: int) -> int:
    return -(-(found.count.as_int() or 0) // results)


def _rows(found: Filter, shape: Shape) -> int:
    """How many positions of the data there are beside the block: rows or columns of the product."""
    side = shape.m if found.block in found.product.m else shape.n
    return side // max(1, found.count.as_int() or 1)


def toom_shape(found: Filter, shape: Shape, results: int) -> Shape:
    """The sizes of the product, one for each point."""
    taps, terms = found.tap.extent.as_int() or 1, found.terms.as_int() or 1
    along = _rows(found, shape) * tiles(found, results)
    rows = found.block in found.product.m
    m, n = (along, shape.n) if rows else (shape.m, along)
    return Shape(shape.batch * (results + taps - 1), m, n, terms)


def data_elements(found: Filter) -> int:
    """How many settings of other indices than the block and the terms the data have."""
    names = free_names(found.data.value)
    own = [v for v in found.product.piece.vars if v.name in names and v != found.block]
    return product(v.extent for v in own).as_int() or 1


def _seconds(gpu: Gpu, found: Filter, shape: Shape, results: int) -> float:
    inner = toom_shape(found, shape, results)
    terms, count = inner.k, found.count.as_int() or 1
    points = results + (found.tap.extent.as_int() or 1) - 1
    data = data_elements(found) * terms
    moved = data * (count + points * tiles(found, results))  # read, and written transformed
    moved += 2 * inner.batch * inner.m * inner.n + shape.batch * shape.m * shape.n
    return estimate(gpu, inner, "padded") + 4 * moved / gpu.bandwidth + 2 * gpu.launch


def _fits(found: Filter, shape: Shape, results: int, largest: int) -> bool:
    """Whether all tensors that are made can be bound."""
    inner = toom_shape(found, shape, results)
    points = results + (found.tap.extent.as_int() or 1) - 1
    data = points * data_elements(found) * inner.k * tiles(found, results)
    names = free_names(found.taps.value)
    own = [v for v in found.product.piece.vars if v.name in names]
    taps = points * (product(v.extent for v in own).as_int() or 1) * inner.k
    return 4 * max(data, taps, inner.batch * inner.m * inner.n) <= largest
