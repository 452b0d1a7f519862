"""The loops of Toom-Cook for NumPy: four equations as matrix products, a part of the results at a time.

    for part                                     worker; of the batch and the tiles, see `part_of`
      for c_block                                `most_terms`
        x_rows[u, c, q] = x[...]                 windows, zeros outside
        data[z, c, q]   = B[z, u] @ x_rows
        for z: product[z, q, r] += data[z].T @ taps[z]
      y[q, u, r] = A[u, z] @ product             and what stands around the sum

The taps' transform is a product, too; it is computed once where the taps are bound.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Var
from convdsl.ir.index import product
from convdsl.machine.facts import Cpu
from convdsl.passes.names import Names
from convdsl.passes.phases import the_reduction
from convdsl.passes.plan_toom_cpu import balanced, most_terms, part_of
from convdsl.schedule.state import State
from convdsl.schedule.step import Step
from convdsl.schedule.verbs.compute import Compute
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.verbs.toom import Toom


class Steps(Protocol):
    """What takes the steps."""

    state: State

    def do(self, step: Step) -> None: ...
    def map(self, name: str, **places: Sequence[str]) -> None: ...
    def names(self, name: str) -> Names: ...


def toom_loops(builder: Steps, step: Toom, cap: int, cpu: Cpu) -> bool:
    """Arrange what `step` has made, where the product sums; say whether it does.

    A part takes at most an eighth of `cap` bytes, where it can.
    """
    data, taps, made = step.tensors
    if the_reduction(builder.state.pieces()[made].value) is None:
        return False
    for transform in (taps, data):
        builder.map(transform, gemm=_own(builder.state.pieces()[transform]))
    block = _product(builder, step)
    hosts = _results(builder, step, cap, cpu)
    builder.do(Compute(data, made, block))
    if hosts:
        builder.do(Compute(made, step.equation, hosts[-1]))
    return True


def _product(builder: Steps, step: Toom) -> str:
    """Blocks of terms around the points, each point a product that is added up. The loop of blocks."""
    made, point = step.tensors[2], step.loops[2]
    piece = builder.state.pieces()[made]
    reduction = the_reduction(piece.value)
    assert reduction is not None
    depth = list(reduction.vars)
    long = max(depth, key=lambda v: v.extent.as_int() or 0)
    others = product(v.extent for v in depth if v is not long).as_int() or 1
    extent = long.extent.as_int() or 1
    points = next(v.extent.as_int() or 1 for v in piece.vars if v.name == point)
    taps = points - step.results + 1
    most = most_terms(step.results, taps, extent * others, builder.state.accuracy)
    fresh = builder.names(made).fresh
    block, inside = fresh(f"{long.name}_block"), fresh(f"{long.name}_in")
    builder.do(Split(made, long.name, balanced(extent, max(1, most // others)), block, inside))
    axes = [v.name for v in piece.vars if v.name != point]
    axes += [inside if v is long else v.name for v in depth]
    builder.do(Order(made, (block, point, *axes)))
    builder.map(made, host=[block, point], gemm=axes)
    return block


def _results(builder: Steps, step: Toom, cap: int, cpu: Cpu) -> list[str]:
    """Parts of the results on threads, where there are several; the loop over them."""
    name, (data, taps, made) = step.equation, step.tensors
    _, inside, point = step.loops
    pieces = builder.state.pieces()
    in_taps = {v.name for v in pieces[taps].vars}
    in_data = {v.name for v in pieces[data].vars}
    free = [v for v in pieces[name].vars if v.name != inside]
    both = [v for v in free if v.name in in_data & in_taps]
    rows = [v for v in free if v.name in in_data - in_taps]
    columns = [v.name for v in free if v.name not in in_data]
    outer = [*both, *rows]
    summed = the_reduction(pieces[made].value)
    assert summed is not None
    terms = product(v.extent for v in summed.vars).as_int() or 0
    extents = [v.extent.as_int() for v in outer]
    hosts, size = part_of(extents, _others(pieces[made], outer), cap, cpu, terms)
    loops = [v.name for v in outer]
    around = loops[:hosts]
    if size:
        fresh = builder.names(name).fresh
        cut = loops[hosts]
        around.append(fresh(f"{cut}_block"))
        loops[hosts] = fresh(f"{cut}_in")
        builder.do(Split(name, cut, size, around[-1], loops[hosts]))
    axes = [*loops[hosts:], inside, *columns, point]
    builder.do(Order(name, (*around, *axes)))
    if len(around) > 1:
        part = builder.names(name).fresh("part")
        builder.do(Fuse(name, tuple(around), part))
        around = [part]
    builder.map(name, worker=around, gemm=axes)
    return around


def _others(made: Piece, outer: Sequence[Var]) -> int:
    """How many products there are for each setting of some variables."""
    names = {v.name for v in outer}
    return product(v.extent for v in made.vars if v.name not in names).as_int() or 1


def _own(piece: Piece) -> list[str]:
    reduction = the_reduction(piece.value)
    assert reduction is not None
    return [v.name for v in (*piece.vars, *reduction.vars)]
