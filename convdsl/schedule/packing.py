"""Which operands of a matrix product are worth a copy in another order of axes.

A tile is read fastest as vectors of neighbours along its columns. An operand whose neighbours lie along
the sum instead is read an element at a time, and where its rows are no whole cache sectors each read
fetches more than it uses. A copy costs its bytes once, which pays when every element is read often.
"""

from __future__ import annotations

from collections.abc import Iterator

from convdsl.ir.expr import Load
from convdsl.ir.loop import LANES
from convdsl.passes.contraction import Contraction, Operand

GAIN = 0.2  # of the product's time that reading the copy saves, at least
FLOP_RATE = 30e12  # flops a second
COPY_RATE = 2e12  # bytes a second that a copy reads and writes
LARGEST = 2**27  # bytes of a copy: the binding limit of any browser
SECTOR = 8  # elements


def packs(gemm: Contraction) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The tensors to copy, with the order of axes: the one along the sum first."""
    sizes = [e.as_int() for e in gemm.extents]
    flops = 2.0
    for size in sizes:
        if size is None:
            return
        flops *= size
    summed = {v.name for v in gemm.k}
    for operand in (gemm.a, gemm.b):
        found = _along_sum(operand, summed)
        if found is None:
            continue
        tensor, dims = found
        elements = 1
        for extent in dims:
            elements *= extent
        seconds = 8 * elements / COPY_RATE
        if 4 * elements <= LARGEST and seconds < GAIN * flops / FLOP_RATE:
            yield tensor, (len(dims) - 1, *range(len(dims) - 1))


def _along_sum(operand: Operand, summed: set[str]) -> tuple[str, list[int]] | None:
    """The tensor and its extents, when a copy with the sum's axis first could be read as vectors."""
    if operand.conditions or not isinstance(operand.value, Load):
        return None
    access = operand.value.access
    if len(access.index) < 2 or not access.index[-1].free or not access.index[-1].free <= summed:
        return None
    dims = [d.as_int() for d in access.dims]
    known = [d for d in dims if d is not None]
    if len(known) < len(dims) or known[-1] % SECTOR == 0 or known[-2] % LANES != 0:
        return None
    return access.tensor, known
