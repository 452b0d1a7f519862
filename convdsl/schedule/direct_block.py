"""What one thread of a kernel without workgroup memory makes, and the sums that can be made so."""

from __future__ import annotations

from dataclasses import dataclass
from math import lcm, prod

from convdsl.ir.expr import Var
from convdsl.ir.loop import LANES
from convdsl.passes.contraction import slowest_first
from convdsl.passes.phases import dense_form, the_reduction
from convdsl.passes.relation import linear
from convdsl.passes.tiles import WorkgroupLimits
from convdsl.schedule.builder import Builder
from convdsl.schedule.nest import operands

TERMS = 16  # terms that are read at a time
MANY = 2**19  # results that fill a large GPU with workgroups
LONG_STEP = 8  # results a step from which on a thread of a CPU keeps a part of it
FEW_THREADS = 64  # of a workgroup, where there are few of them or each has much to do
DEEP = 24  # terms from which on a sum takes longer than its stores


@dataclass(frozen=True, slots=True)
class Block:
    """What one thread makes: `along` neighbours, or steps of one phase, for each of `rows` channels.

    With `wide` it makes twice as many along where there are no channels. `terms` of the longest sum are
    read at a time; `threads` are those of a workgroup.
    """

    along: int
    rows: int = 1
    terms: int = 1
    threads: int = 256
    phase: bool = False
    wide: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """What a block has to fit: the fastest index of the result, its step, and whether in fours.

    `longest` is the longest index summed over that is in no relation.
    """

    fastest: Var
    step: int
    whole: bool
    results: int
    longest: int


def shape_of(builder: Builder, name: str) -> Shape | None:
    """The shape of a sum of known sizes whose relations have solutions; None for all else."""
    piece = builder.state.pieces()[name]
    reduction = the_reduction(piece.value)
    if reduction is None or reduction.op != "sum" or reduction.dtype != "f32":
        return None
    variables = (*piece.vars, *reduction.vars)
    if not piece.vars or not operands(reduction):
        return None
    if not all(v.low == 0 and v.extent.as_int() for v in variables):
        return None
    if dense_form(piece, builder.data_first) is None:
        return None
    fastest = slowest_first(piece, piece.vars)[-1]
    step, related = 1, set()
    for pred in reduction.constraints:
        line = linear(pred.index, [v.name for v in variables])
        if pred.kind == "eq" and line is not None:
            related |= set(line.coefficients)
            if fastest.name in line.coefficients:
                step = max(abs(c) for n, c in line.coefficients.items() if n != fastest.name)
    whole = all(c % LANES == 0 for _, c in piece.access.dims[-1].terms)
    counts = {v.name: v.extent.as_int() or 1 for v in variables}
    longest = max((counts[v.name] for v in reduction.vars if v.name not in related), default=1)
    return Shape(fastest, step, whole, prod(counts[v.name] for v in piece.vars), longest)


def block_of(shape: Shape, limits: WorkgroupLimits) -> Block:
    """What one thread makes.

    On a GPU few results, so that there are many threads, which store next to each other; several terms
    are read at a time. A CPU runs few threads, and each keeps as much as its registers hold.
    """
    if limits.software:
        if shape.step >= LONG_STEP:
            return Block(8, 4, 1, FEW_THREADS, phase=True, wide=True)
        along = lcm(shape.step, LANES)
        return Block(-(-16 // along) * along, 4, 1, FEW_THREADS, wide=True)
    deep, many = shape.longest >= DEEP, shape.results >= MANY
    step = shape.step if deep and shape.step < LONG_STEP else 1
    along = LANES if shape.whole else step
    if deep and shape.results >= 2 * MANY and 2 * LANES % shape.step == 0:
        return Block(2 * LANES, LANES, LANES, FEW_THREADS)
    if deep and many:
        return Block(along, 2, TERMS // 2, FEW_THREADS)
    threads = min(256, limits.threads) if many else FEW_THREADS
    return Block(along, 1, _terms(shape.longest), threads)


def _terms(longest: int) -> int:
    """How many terms are read at a time: without a rest if there is such a number near."""
    most = min(TERMS, longest)
    return next((n for n in range(most, most // 2, -1) if longest % n == 0), most)
