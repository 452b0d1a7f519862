"""The schedule for NumPy of a filter in blocks of results that share a matrix.

    for chunk                                    worker: of the batch or of the blocks
      xs[g, q, (c, a)]  = windows of x           `reindex`, with zeros beyond the data
      y[g, q, (m, u)]   = xs @ ws[g, (c, a), (m, u)]

ws are the weights where a term has some, else zeros; it is made once where they are bound.
"""

from __future__ import annotations

from collections.abc import Sequence

from convdsl.ir.expr import free_names
from convdsl.machine.facts import Cpu
from convdsl.passes.contraction import slowest_first
from convdsl.passes.phases import the_reduction
from convdsl.passes.plan_toeplitz import toeplitz_of
from convdsl.passes.sides import count
from convdsl.schedule.builder import Builder
from convdsl.schedule.chunks_numpy import cut_loops
from convdsl.schedule.nest import operands
from convdsl.schedule.verbs.compute import Compute
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.reindex import Reindex
from convdsl.schedule.verbs.solve import Solve
from convdsl.schedule.verbs.toeplitz import Toeplitz


def toeplitz_loops(builder: Builder, name: str, length: int, cap: int, cpu: Cpu) -> bool:
    """Arrange an equation in blocks of `length` results, in chunks of an eighth of `cap` at most."""
    found = toeplitz_of(builder.state.pieces()[name])
    if found is None:
        return False
    fresh = builder.names(name).fresh
    q, u, a = fresh("q"), fresh("u"), fresh("a")
    builder.do(Toeplitz(name, found.tie.out.name, found.tie.data.name, length, q, u, a))
    builder.do(Solve(name, found.tap.name))
    piece = builder.state.pieces()[name]
    reduction = the_reduction(piece.value)
    assert reduction is not None
    batch, apart = ({v.name for v in vs} for vs in (found.batch, found.rows))
    free = slowest_first(piece, piece.vars)
    shared = [v for v in free if v.name in batch]
    rows = [v for v in free if v.name in apart | {u}]
    places = [v for v in free if v.name not in batch | apart | {u}]
    inside = [v.name for v in rows]
    terms = [v.name for v in reduction.vars]
    matrix = (*(v.name for v in shared), *terms, *inside)
    _copy(builder, name, True, u, "blocks", matrix)
    windows = _copy(
        builder, name, False, u, "windows", (*(v.name for v in (*shared, *places)), *terms)
    )
    loops = [(v.name, v.extent.as_int() or 0) for v in (*shared, *places)]
    position = 4 * (count(reduction.vars) + count(rows))
    most = max(1, min(cpu.near, cap // max(8, cpu.threads)) // position)
    workers = cpu.workers(2 * count((*free, *reduction.vars)) / cpu.flops)
    if workers > 1:
        most = min(most, -(-count((*shared, *places)) // workers))
    hosts, own = cut_loops(builder, name, loops, most, cpu)
    builder.do(Order(name, (*hosts, *own, *inside, *terms)))
    if len(hosts) > 1:
        chunk = builder.names(name).fresh("chunk")
        builder.do(Fuse(name, tuple(hosts), chunk))
        hosts = [chunk]
    builder.map(name, worker=hosts, gemm=[*own, *inside, *terms])
    if hosts:
        builder.do(Compute(windows, name, hosts[-1]))
    return True


def _copy(
    builder: Builder, name: str, of_results: bool, result: str, what: str, axes: Sequence[str]
) -> str:
    """`reindex` of the operand that depends on the results of a block, or of the one that does not."""
    reduction = the_reduction(builder.state.pieces()[name].value)
    assert reduction is not None
    known = operands(reduction)
    operand = next(n for n, f in known.items() if (result in free_names(f)) == of_results)
    made = builder.tensor(f"{operand.split('.')[0]}_{what}")
    builder.do(Reindex(name, operand, tuple(axes), made))
    return made
