"""A matrix product by what moves along the results and what stays, for programs in chunks of positions.

    y[m, t*s + r] = sum[c, j] x[c, t - j] * w[c, m, j*s + r]

x is the data, t its position and j its tap; w is the matrix with the rows (m, r).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from math import prod

from convdsl.ir.equation import Piece, System
from convdsl.ir.expr import Call, Const, Load, Scalar, Var, free_names, loads, walk
from convdsl.ir.index import Index
from convdsl.machine.facts import Cpu
from convdsl.passes.contraction import Contraction, Operand, contraction_of

LONG_PHASES = 16  # a run of this many floats (a cache line) is worth keeping contiguous
WASTE = 1.25  # times as many windows as data and taps have pairs
TAME = {"abs", "relu", "leaky_relu", "sin", "cos", "tanh", "sigmoid"}


@dataclass(frozen=True, slots=True)
class Sides:
    """`taps` are summed indices that are added to positions in the data.

    `positions` and `rows` are the indices of the result that only one side has, slowest first;
    `summed` is in the order in which the matrix has them.
    """

    data: Operand
    matrix: Operand
    batch: tuple[Var, ...]
    positions: tuple[Var, ...]
    rows: tuple[Var, ...]
    summed: tuple[Var, ...]
    taps: frozenset[str]

    @property
    def every(self) -> tuple[Var, ...]:
        return (*self.batch, *self.positions, *self.rows, *self.summed)

    @property
    def exact(self) -> bool:
        """Whether there are no conditions, so that every product is a term."""
        return not (self.data.conditions or self.matrix.conditions)

    def windows_pay(self, system: System, cpu: Cpu) -> bool:
        """Whether one product over copied windows beats a product for all taps that are added up then.

        Windows must hold little but data, and copies be fewer than what would be added up.
        """
        if not self.rows or any(not v.extent.as_int() for v in self.every):
            return False
        if not self.positions:
            return not self.taps
        if not self.taps:
            return True
        taps = [v for v in self.summed if v.name in self.taps]
        read = loads(self.data.value)[0].access.tensor
        elements = system.tensor(read).elements.as_int() or 0
        windows = count((*self.batch, *self.summed, *self.positions))
        if windows > WASTE * elements * count(taps):
            return False
        wasted = 2 * self._zeros(system) / cpu.flops
        return cpu.copy * count(self.summed) + wasted < cpu.add * count((*self.rows, *taps))

    def _zeros(self, system: System) -> int:
        """Products with zeros that each position has: where phases have not as many taps."""
        read = loads(self.matrix.value)[0].access.tensor
        own = (system.tensor(read).elements.as_int() or 0) // max(1, count(self.batch))
        return max(0, count((*self.rows, *self.summed)) - own) if self.matrix.conditions else 0

    def may_meet_zeros(self, system: System) -> bool:
        """Whether zeros may stand for the terms that conditions leave out; see `meets_zeros`."""
        pairs = ((self.data, self.matrix), (self.matrix, self.data))
        return all(meets_zeros(system, other) for one, other in pairs if one.conditions)


def count(variables: Collection[Var]) -> int:
    """The number of points; of known extents."""
    return prod(v.extent.as_int() or 0 for v in variables)


def meets_zeros(system: System, operand: Operand) -> bool:
    """Whether it can be found out that products of an operand with zeros are zero.

    Inputs are looked through before a call, bound ones once; a function of them must not make an
    infinity of what was none.
    """
    inputs = {t.name for t in system.inputs}
    reads = all(load.access.tensor in inputs for load in loads(operand.value))
    calls = [e for e in walk(operand.value) if not isinstance(e, Load | Const | Scalar)]
    return reads and all(isinstance(e, Call) and e.name in TAME for e in calls)


def sides_of(gemm: Contraction, phases: Collection[str]) -> Sides | None:
    """The sides: data is the operand that alone has taps, or else has none of the `phases`.

    Or else the one that is read as it lies in memory, where the other one is not. None where an index
    is one of no operand, or a summed one not of both.
    """
    taps = [_taps(gemm, operand) for operand in (gemm.a, gemm.b)]
    if taps[0] and taps[1]:
        return None
    phased = [bool(set(phases) & free_names(o.value)) for o in (gemm.a, gemm.b)]
    plain = [_is_plain(o) for o in (gemm.a, gemm.b)]
    if any(taps):
        first = bool(taps[0])
    elif phased[0] != phased[1]:
        first = phased[1]
    elif plain[0] != plain[1]:
        first = plain[0]
    else:
        return None
    data, matrix = (gemm.a, gemm.b) if first else (gemm.b, gemm.a)
    positions, rows = (gemm.m, gemm.n) if first else (gemm.n, gemm.m)
    used = [free_names(o.value) for o in (data, matrix)]
    alone = ((positions, used[0]), (rows, used[1]), (gemm.k, used[0] & used[1]))
    if any(v.name not in names for variables, names in alone for v in variables):
        return None
    reads = loads(matrix.value)[0].access.index
    summed = tuple(sorted(gemm.k, key=lambda v: [v.name not in i.free for i in reads]))
    return Sides(data, matrix, gemm.batch, positions, rows, summed, taps[0] or taps[1])


def chunk_sides(
    piece: Piece, phases: Collection[str], system: System, accuracy: str, cpu: Cpu
) -> Sides | None:
    """The sides of a dense piece where one product for all taps is the best plan, in chunks."""
    gemm = contraction_of(piece)
    if gemm is None or gemm.reduction.dtype != "f32" or not gemm.k:
        return None
    sides = sides_of(gemm, phases)
    if sides is None or not sides.windows_pay(system, cpu):
        return None
    if not sides.exact and (accuracy == "strict" or not sides.may_meet_zeros(system)):
        return None
    return sides


def _is_plain(operand: Operand) -> bool:
    """Whether each axis is walked by one index."""
    indices = [i for load in loads(operand.value) for i in load.access.index]
    return all(len(i.terms) <= 1 for i in indices)


def _taps(gemm: Contraction, operand: Operand) -> frozenset[str]:
    """Summed indices whose windows overlap: `t - j`, but not `j*8 + r` for r in 0..8."""
    free, summed = gemm.piece.vars, gemm.k
    indices = [i for load in loads(operand.value) for i in load.access.index]
    return frozenset(v.name for i in indices for v in summed for o in free if overlap(i, v, o))


def overlap(index: Index, one: Var, other: Var) -> bool:
    """Whether the steps of two variables mix, so that they are no digits of an index."""
    if not {one.name, other.name} <= index.free:
        return False
    steps = [abs(index.coefficient(v.name).as_int() or 0) for v in (one, other)]
    spans = [step * (v.extent.as_int() or 1) for step, v in zip(steps, (one, other), strict=True)]
    return steps[0] < spans[1] and steps[1] < spans[0]
