"""The loops of a product with a small matrix of constants, as `toom` makes: whole columns a thread.

for e in 0..E grid, thread        all other free indices as one, four neighbours a thread where it can
  for u in 0..U                   summed, unrolled
    row = x[..., u]               read once
    for z in 0..Z                 unrolled: the matrix is numbers in the text
      acc[z] += B[z, u] * row
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from convdsl.ir.equation import Piece, System
from convdsl.ir.expr import Expr, Reduce, Var, free_names, loads
from convdsl.ir.index import product
from convdsl.ir.loop import LANES
from convdsl.passes.names import Names
from convdsl.passes.phases import the_reduction
from convdsl.schedule.nest import factors, operands
from convdsl.schedule.step import Step
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.map import Map
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.verbs.stage import Stage
from convdsl.schedule.verbs.unroll import MOST, Unroll
from convdsl.schedule.verbs.vectorize import Vectorize

THREADS, WAVE = 256, 32


@dataclass(frozen=True, slots=True)
class Transform:
    """A sum over `summed` of a matrix times an operand; the matrix has the free indices `rows`."""

    rows: tuple[Var, ...]
    columns: tuple[Var, ...]
    summed: tuple[Var, ...]
    operand: str
    value: Expr


def transform_of(piece: Piece, system: System) -> Transform | None:
    """The piece as a product with a matrix of constants, few enough to write out; None for others."""
    reduction = the_reduction(piece.value)
    if reduction is None or reduction.op != "sum":
        return None
    constants = {t.name for t in system.constants}
    pair = [(f, {e.access.tensor for e in loads(f)}) for f in factors(reduction.body)]
    matrices = [f for f, reads in pair if reads and reads <= constants]
    others = [f for f, reads in pair if not reads <= constants]
    if len(matrices) != 1 or len(others) != 1:
        return None
    names = free_names(matrices[0])
    rows = tuple(v for v in piece.vars if v.name in names)
    columns = tuple(v for v in piece.vars if v.name not in names)
    counts = [v.extent.as_int() for v in (*rows, *reduction.vars)]
    if not columns or any(c is None or c > MOST for c in counts):
        return None
    return Transform(rows, columns, reduction.vars, _name(reduction, others[0]), others[0])


def _name(reduction: Reduce, factor: Expr) -> str:
    return next(name for name, value in operands(reduction).items() if value == factor)


def transform_steps(y: str, found: Transform, names: Names) -> Iterator[Step]:
    """Threads along the columns, everything else written out inside."""
    columns = [v.name for v in found.columns]
    rows, summed = [v.name for v in found.rows], [v.name for v in found.summed]
    fast, inside = found.columns[-1], list[str]()
    if _unit_stride(found.value, fast.name) and _fours(fast):
        quad, lane = names.fresh(f"{fast.name}_quad"), names.fresh(f"{fast.name}_vec")
        yield Split(y, fast.name, LANES, quad, lane)
        columns[-1] = quad
        inside = [lane]
    yield Order(y, (*columns, *summed, *rows, *inside))
    flat = columns[0]
    if len(columns) > 1:
        flat = names.fresh("column")
        yield Fuse(y, tuple(columns), flat)
    group, thread = names.fresh(f"{flat}_group"), names.fresh(f"{flat}_lane")
    yield Split(y, flat, _threads(found.columns, len(inside) > 0), group, thread)
    yield Map(y, ((group, "grid"), (thread, "thread")))
    yield Stage(y, found.operand, summed[-1], "register")
    yield Unroll(y, (*summed, *rows))
    if inside:
        yield Vectorize(y, inside[0])


def _threads(columns: Sequence[Var], vectors: bool) -> int:
    """Whole waves that divide the columns, where there are such: then no thread is tested."""
    count = product(v.extent for v in columns).as_int()
    waves = range(THREADS, 0, -WAVE)
    threads = (count or 0) // (LANES if vectors else 1)
    return next((w for w in waves if threads and threads % w == 0), THREADS)


def _fours(var: Var) -> bool:
    count = var.extent.as_int()
    return count is not None and count % LANES == 0


def _unit_stride(value: Expr, name: str) -> bool:
    """Whether neighbours along a variable are neighbours in memory, wherever they are read."""
    reads = [e.access.offset() for e in loads(value) if name in e.access.free]
    return bool(reads) and all(i.is_affine_in([name]) and i.coefficient(name) == 1 for i in reads)
