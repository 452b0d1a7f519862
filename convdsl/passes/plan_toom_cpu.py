"""Whether Toom-Cook pays for an equation on a CPU, and the parts that its four products are made in.

Products of matrices go at the rate of BLAS, all else at that of memory: the transforms are products
with small matrices, which read and write more than they multiply. The taps' transform counts as nothing:
weights are bound, and it runs once.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from convdsl.budget import CAP
from convdsl.ir.equation import Piece
from convdsl.machine.facts import TYPICAL_CPU, Cpu
from convdsl.passes.plan_toom import (
    ToomPlan,
    best_of,
    case_of,
    data_elements,
    tiles,
    toom_shape,
)
from convdsl.passes.sides import LONG_PHASES
from convdsl.passes.tiles import Shape
from convdsl.passes.toom import Filter
from convdsl.passes.toom_accuracy import block_of, within

TERMS_BLOCK = 192  # products that BLAS adds up one after the other, where the class allows it
LONG = 2**31
LEAST_ROWS = 128  # rows of a product that keep BLAS busy
BLOCK_ERROR = 1.5  # of sums in blocks of TERMS_BLOCK over those in the blocks of `block_of`


def plan_toom_cpu(piece: Piece, cpu: Cpu, accuracy: str, forced: bool = False) -> ToomPlan | None:
    """The fastest transform of a dense piece that the class allows, where one is faster than the sum.

    `forced` takes a slower one, too.
    """
    case = case_of(piece, accuracy)
    if case is None or not case.shape.batch * case.shape.m * case.shape.n:
        return None
    found, shape, taps, terms = case.found, case.shape, case.taps, case.terms
    results = shape.batch * shape.m * shape.n
    store = results * (cpu.scattered if _scatters(found) else cpu.store)
    direct = _direct(cpu, found, shape, taps)
    plans = []
    for made in case.results:
        blocks = -(-terms // most_terms(made, taps, terms, accuracy))
        inner = toom_shape(found, shape, made)
        points = made + taps - 1
        products = inner.batch * inner.m * inner.n
        cut = Shape(inner.batch * blocks, inner.m, inner.n, -(-terms // blocks))
        along = data_elements(found) * tiles(found, made)
        passes = cpu.add * products * blocks
        passes += cpu.transform * along * points * terms + cpu.transform / 4 * products
        one = part_of((along,), products // along, CAP, cpu, terms) == (0, 0)
        seconds = _product(cpu, cut) + passes * (cpu.threads if one else 1)
        plans.append(ToomPlan(made, taps, (seconds + store) / direct))
    return best_of(plans, forced)


def _direct(cpu: Cpu, found: Filter, shape: Shape, taps: int) -> float:
    """Seconds of one product for all taps: of columns that are added up, or of copied windows."""
    m, n = (1, taps) if found.block in found.product.m else (taps, 1)
    terms = found.terms.as_int() or 1
    columns = Shape(shape.batch, shape.m * m, shape.n * n, terms)
    added = taps * shape.batch * shape.m * shape.n
    windows = Shape(shape.batch, shape.m, shape.n, terms * taps)
    copied = taps * data_elements(found) * (found.count.as_int() or 1) * terms
    return min(_product(cpu, columns) + cpu.add * added, _product(cpu, windows) + cpu.add * copied)


def _scatters(found: Filter) -> bool:
    """Whether results that follow each other along the block are close together, with others between."""
    last = found.product.piece.access.index[-1]
    step = last.coefficient(found.block.name).as_int()
    return found.block.name in last.free and (step is None or step < LONG_PHASES)


def _product(cpu: Cpu, shape: Shape) -> float:
    """Seconds of a product."""
    rate = cpu.flops
    for side in (shape.m, shape.n, shape.k):
        rate *= side / (side + cpu.half)
    return 2.0 * shape.batch * shape.m * shape.n * shape.k / max(rate, 1.0)


def most_terms(results: int, taps: int, terms: int, accuracy: str) -> int:
    """How many products BLAS may add up one after the other, for F(results, taps) to keep to a class."""
    loose = within(results, taps, terms, accuracy, BLOCK_ERROR)
    return TERMS_BLOCK if loose else block_of(terms)


def balanced(extent: int, most: int) -> int:
    """The length of as few blocks as there must be, none much shorter than the others."""
    return -(-extent // -(-extent // most))


def part_of(
    outer: Sequence[int | None], inner: int, cap: int, cpu: Cpu = TYPICAL_CPU, terms: int = 0
) -> tuple[int, int]:
    """How many of the `outer` loops are walked on the host, and the blocks of the next one; 0: whole.

    The elements of a part, `inner` for each setting of the outer loops, take half of the far cache
    before they are transformed; rows stay whole. A loop without a known extent is a long one. Each
    thread that sums of so many `terms` are worth has a part: BLAS alone would share the products, but
    neither the transforms nor the sums.
    """
    room = cap // 32  # elements of an eighth
    most = max(min(cpu.far // 8, room) // max(1, inner), min(LEAST_ROWS, room // max(1, inner)), 1)
    counts = [LONG if extent is None else max(1, extent) for extent in outer]
    workers = cpu.workers(2.0 * prod(counts) * inner * terms / cpu.flops)
    if workers > 1:
        most = min(most, max(-(-prod(counts) // workers), LEAST_ROWS))
    for at, extent in enumerate(counts):
        rest = prod(counts[at + 1 :])
        if extent * rest <= most:
            return at, 0
        if rest <= most // 2:
            return at, most // rest if extent == LONG else balanced(extent, most // rest)
    return len(outer), 0
