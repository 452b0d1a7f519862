"""Whether a small sum is one product with a matrix of all its terms, zeros where the relation has none.

    y[o] = sum[k, l | l*s + k == o + p] x[l] * w[k]
 -> y[o] = sum[l] x[l] * v[o, l]          v[o, l] = w[o + p - l*s], or zero; made once where w is bound

It multiplies zeros, and takes one call of BLAS where phases copy windows and store results one by one:
for a layer of a few thousand terms the calls are all there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from convdsl.ir.equation import Piece, System
from convdsl.ir.expr import Load
from convdsl.machine.facts import Cpu
from convdsl.passes.contraction import contraction_of
from convdsl.passes.phases import DenseForm, Phased, solve_for, the_reduction
from convdsl.passes.sides import Sides, chunk_sides, count

TERM = 0.1e-9  # seconds of a product in a matrix with a vector, all of it in a cache


def whole_matrix(
    piece: Piece, form: DenseForm, system: System, accuracy: str, cpu: Cpu
) -> tuple[str, Sides] | None:
    """The summed index to solve for, and the sides then; None where phases are as fast or faster."""
    phases = [way.phase for way in form.ways if isinstance(way, Phased)]
    dense = chunk_sides(form.pieces[0], phases, system, accuracy, cpu)
    reduction = the_reduction(piece.value)
    if accuracy == "strict" or dense is None or not phases or len(form.ways) > 1:
        return None
    assert reduction is not None
    saved = cpu.call * _statements(dense, phases)
    for variable in reduction.vars:
        solved = solve_for(piece, variable.name)
        if solved is None:
            continue
        sides = matrix_sides(solved, system)
        if sides is not None and TERM * (count(sides.every) - count(dense.every)) < saved:
            return variable.name, sides
    return None


def matrix_sides(solved: Piece, system: System) -> Sides | None:
    """The sides where one operand has all conditions and the other one is read as it is.

    None where zeros may not stand for what the conditions leave out.
    """
    gemm = contraction_of(solved)
    if gemm is None or not gemm.k or any(not v.extent.as_int() for v in solved.vars):
        return None
    ways = ((gemm.a, gemm.b, gemm.m, gemm.n), (gemm.b, gemm.a, gemm.n, gemm.m))
    for data, matrix, positions, rows in ways:
        if matrix.conditions and rows and not data.conditions and isinstance(data.value, Load):
            sides = Sides(data, matrix, gemm.batch, positions, rows, gemm.k, frozenset())
            return sides if sides.may_meet_zeros(system) else None
    return None


def _statements(sides: Sides, phases: Sequence[str]) -> int:
    """The statements of a plan in phases besides the product: copies of windows, stores of results."""
    lengths = {v.name: v.extent.as_int() or 0 for v in sides.every}
    windows = 3 * prod(lengths[n] for n in sides.taps) if sides.taps else 0
    return windows + prod(lengths[n] for n in phases if n in lengths)
