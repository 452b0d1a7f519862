"""Which operands of a matrix product are worth a copy in another order of axes.

A tile is read fastest when neighbours in memory are neighbours along its rows or columns. An operand
whose neighbours lie along the sum instead costs whole cache lines for a few elements of each; a copy
costs its bytes once, which pays when every element is read many times.
"""

from __future__ import annotations

from collections.abc import Iterator

from convdsl.ir.expr import Expr, loads
from convdsl.passes.contraction import Contraction

GAIN = 0.4  # of the product's time, that reading along the rows saves
FLOP_RATE = 25e12  # flops a second, and bytes a second of a copy that strides on one side
COPY_RATE = 0.8e12
LARGEST = 2**27  # bytes of a copy: the binding limit of any browser


def packs(gemm: Contraction) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors to copy, with the order of axes: the axis along the sum first."""
    sizes = [e.as_int() for e in gemm.extents]
    flops = 2.0
    for size in sizes:
        if size is None:
            return
        flops *= size
    summed = {v.name for v in gemm.k}
    for operand in (gemm.a, gemm.b):
        found = _along_sum(operand.value, summed)
        if found is None:
            continue
        tensor, rank, elements = found
        seconds = 8 * elements / COPY_RATE
        if 4 * elements <= LARGEST and seconds < GAIN / 2 * flops / FLOP_RATE:
            yield tensor, (rank - 1, *range(rank - 1))


def _along_sum(operand: Expr, summed: set[str]) -> tuple[str, int, int] | None:
    """The tensor, its rank and elements, when neighbours in memory differ in a summed index alone."""
    reads = loads(operand)
    if len(reads) != 1:
        return None
    access = reads[0].access
    if len(access.index) < 2 or not access.index[-1].free or not access.index[-1].free <= summed:
        return None
    count = 1
    for extent in access.dims:
        known = extent.as_int()
        if known is None:
            return None
        count *= known
    return access.tensor, len(access.dims), count
