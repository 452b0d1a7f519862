"""The loops of a matrix product on a GPU, from its tile.

    grid   row tiles, column tiles
      c    steps of the summed index: tiles of both operands, filled by all threads
        k  one term: a row of each tile into registers
             all results of a thread

A window of the data serves all taps: its tap runs inside k (`convdsl.schedule.windows`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from convdsl.ir.loop import LANES
from convdsl.passes.contraction import Contraction
from convdsl.passes.names import Names
from convdsl.passes.tiles import Tiles
from convdsl.schedule.builder import Builder
from convdsl.schedule.copies import fills_tested
from convdsl.schedule.nest import operands
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.partial import Partial
from convdsl.schedule.verbs.pipeline import Pipeline
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.verbs.stage import Stage
from convdsl.schedule.verbs.unroll import Unroll
from convdsl.schedule.verbs.vectorize import Vectorize


@dataclass(frozen=True, slots=True)
class Window:
    """The operand `data` is read in windows, which the summed index `tap` moves."""

    data: str
    tap: str


def tile_product(
    builder: Builder,
    y: str,
    gemm: Contraction,
    tiles: Tiles,
    flush: int,
    window: Window | None = None,
) -> None:
    """Tiles of a product, whose terms are added up in blocks of `flush`; `tiles.k` of them a step.

    With a window a step has so many terms for each of its taps.
    """
    do, names = builder.do, builder.names(y)
    fresh = names.fresh
    batch = [v.name for v in gemm.batch]
    depth, taps = depth_of(gemm, window.tap if window is not None else None)
    rows, columns = [v.name for v in gemm.m], [v.name for v in gemm.n]
    do(Order(y, (*batch, *rows, *columns, *taps, depth)))
    m, n = _fused(builder, y, rows, names), _fused(builder, y, columns, names)
    grid, threads, mine = list(batch), [], []
    sides = (m, gemm.a, tiles.m, tiles.rows), (n, gemm.b, tiles.n, tiles.columns)
    for loop, operand, tile, part in sides:
        if loop is None:
            continue
        outer, rest, group, inner, lane, vector = (
            fresh(f"{loop}_{what}") for what in ("tile", "in", "group", "rest", "lane", "vec")
        )
        do(Split(y, loop, tile, outer, rest, "pad"))
        read = operands(gemm.reduction)
        if window is not None and read[window.data] == operand.value:
            do(Split(y, rest, part, lane, inner))  # neighbours share most of what they read
            do(Split(y, inner, LANES, group, vector))
        else:
            do(Split(y, rest, tile // (part // LANES), group, inner))
            do(Split(y, inner, LANES, lane, vector))
        grid.append(outer)
        threads.append(lane)
        mine += [group, vector]
    step, k = fresh(f"{depth}_tile"), fresh(f"{depth}_in")
    do(Split(y, depth, tiles.k, step, k, "pad"))
    inside: list[str] = []
    if window is not None:
        taps, inside = [t for t in taps if t != window.tap], [window.tap]
    summed, at = [step], taps[-1] if taps else step
    loops = builder.state.nest(y)
    count, each = loops.loop(step).extent.as_int(), tiles.k
    for tap in inside:
        each *= loops.loop(tap).extent.as_int() or 1
    if count is None or count > flush // each:
        block, within = fresh(f"{depth}_block"), fresh(f"{depth}_step")
        do(Split(y, step, max(1, flush // each), block, within, "cut"))
        summed, at = [block, within], block
    do(Order(y, (*grid, *threads, *taps, *summed, k, *inside, *mine)))
    builder.map(y, grid=grid, thread=threads)
    for staged in _conditional_first(gemm):
        row = k if window is None or staged == window.data else window.tap
        do(Stage(y, staged, summed[-1], "workgroup"))
        do(Stage(y, staged, row, "register"))
    do(Partial(y, at))
    if not fills_tested(builder.state.nest(y)) and (loops.loop(step).extent.as_int() or 0) > 1:
        do(Pipeline(y, tuple(operands(gemm.reduction))))
    if mine:
        do(Unroll(y, (k, *inside, *mine[:-1])))
        do(Vectorize(y, mine[-1]))


def _fused(builder: Builder, y: str, loops: Sequence[str], names: Names) -> str | None:
    """One loop for all of them, in their order; None for none."""
    if len(loops) < 2:
        return loops[0] if loops else None
    name = names.fresh("".join(loops) if len("".join(loops)) <= 6 else loops[0] + "s")
    builder.do(Fuse(y, tuple(loops), name))
    return name


def depth_of(gemm: Contraction, tap: str | None = None) -> tuple[str, list[str]]:
    """The summed variable that is tiled, and the others around it: the longest one is tiled, no `tap`.

    With unknown sizes it is the first that no condition mentions: channels, not taps.
    """
    summed = [v for v in gemm.k if v.name != tap]
    if any(v.extent.as_int() is None for v in gemm.k):
        tested = {n for p in gemm.reduction.constraints for n in p.index.free}
        chosen = next((v for v in summed if v.name not in tested), gemm.k[0])
    else:
        chosen = max(summed, key=lambda v: v.extent.as_int() or 0)
    return chosen.name, [v.name for v in gemm.k if v is not chosen]


def _conditional_first(gemm: Contraction) -> list[str]:
    """The operands in the order in which tiles are filled: those read under conditions first.

    Their reads take longest; on an H200 the other order costs a fifth of the speed.
    """
    tested = [o.value for o in (gemm.a, gemm.b) if o.conditions]
    names = operands(gemm.reduction)
    return sorted(names, key=lambda n: 0 if names[n] in tested else 1)
