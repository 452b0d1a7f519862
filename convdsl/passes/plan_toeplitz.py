"""Whether a product with Toeplitz matrices pays for an equation on a CPU, and how long its blocks are.

A block of U results multiplies a window by a matrix that is zero in part: more operations, but at the
rate of BLAS where the direct sum has few rows or no product at all, and its results lie in their own
order. The longer the blocks, the more zeros; the shorter, the more copies of windows.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from convdsl.ir.equation import Piece, System
from convdsl.ir.expr import Var, free_names
from convdsl.machine.facts import TYPICAL_CPU, Cpu
from convdsl.passes.contraction import Operand, contraction_of
from convdsl.passes.relation import linear
from convdsl.passes.sides import count, meets_zeros
from convdsl.passes.toeplitz import Tie, ties_of, window_of

WORTH = 0.8  # of the direct time, at most: the estimates are rough
LONGEST = 4096  # results of a block
SHARE = 16  # of the cap, in elements: what the matrix may have
# Nanoseconds on one core, measured: an element of windows and each run of them, of the matrix, of a
# result that is not stored in place, of a term on slices, and what a program of products has besides.
WINDOW, RUN, MATRIX, STORE, SLICE, FIXED = 0.5, 8.0, 1.0, 1.0, 0.65, 40_000.0
# The smaller of rows and positions of a product, and its multiply-adds a nanosecond on a typical core.
RATES = ((1, 3.0), (2, 4.0), (4, 10.0), (8, 16.0), (16, 25.0), (32, 33.0), (64, 40.0))


@dataclass(frozen=True, slots=True)
class Toeplitz:
    """An equation that is one filter along `tie`: indices by role, and the one to solve for."""

    tie: Tie
    tap: Var
    data: Operand
    matrix: Operand
    batch: tuple[Var, ...]
    positions: tuple[Var, ...]
    rows: tuple[Var, ...]
    summed: tuple[Var, ...]

    @property
    def depth(self) -> int:
        """The terms along indices that are not tied."""
        return count(self.summed)

    @property
    def taps(self) -> int:
        """The most terms that a result has along the tap."""
        return -(-count((self.tap,)) // abs(self.tie.against))

    def blocks(self, length: int) -> int:
        return -(-count((self.tie.out,)) // length)


@dataclass(frozen=True, slots=True)
class ToeplitzPlan:
    """Blocks of `length` results from `window` elements, and the time over that of the direct sum."""

    found: Toeplitz
    length: int
    window: int
    ratio: float


def toeplitz_of(piece: Piece) -> Toeplitz | None:
    """The equation as such a filter: of fixed sizes, with one relation; the longer side is the data."""
    gemm = contraction_of(piece, related=True)
    if gemm is None or gemm.reduction.dtype != "f32":
        return None
    equations = [p for p in gemm.reduction.constraints if p.kind == "eq"]
    if len(equations) != 1 or any(not v.extent.as_int() for v in (*piece.vars, *gemm.k)):
        return None
    sides = ((gemm.a, gemm.b), (gemm.b, gemm.a))
    found = [_roles(piece, tie, *side, gemm.k) for tie in ties_of(piece) for side in sides]
    known = [f for f in found if f is not None]
    return max(known, key=lambda f: count((f.tie.data,)), default=None)


def _roles(
    piece: Piece, tie: Tie, data: Operand, matrix: Operand, summed: tuple[Var, ...]
) -> Toeplitz | None:
    one, two = free_names(data.value), free_names(matrix.value)
    form = linear(tie.pred.index, [v.name for v in (*piece.vars, *summed)])
    assert form is not None, "as in the tie"
    tied = set(form.coefficients) - {tie.out.name, tie.data.name}
    tap = next((v for v in summed if v.name in tied), None)
    if tap is None or len(tied) != 1 or abs(form.coefficients[tap.name]) != 1:
        return None
    apart = tie.data.name in one - two and tap.name in two - one
    others = [v for v in piece.vars if v is not tie.out]
    depth = tuple(v for v in summed if v.name not in (tie.data.name, tap.name))
    known = all(v.name in one | two for v in others) and all(v.name in one & two for v in depth)
    if not apart or not known or tie.out.name in one | two:
        return None
    return Toeplitz(
        tie,
        tap,
        data,
        matrix,
        batch=tuple(v for v in others if v.name in one & two),
        positions=tuple(v for v in others if v.name in one - two),
        rows=tuple(v for v in others if v.name in two - one),
        summed=depth,
    )


def plan_toeplitz(
    piece: Piece, system: System, least: int, cap: int, cpu: Cpu
) -> ToeplitzPlan | None:
    """The best length of a block, where it beats the direct sum: slices below `least` terms a product.

    The matrix has zeros where there is no term, and so have the windows beyond the data.
    """
    found = toeplitz_of(piece)
    if found is None or not all(meets_zeros(system, o) for o in (found.data, found.matrix)):
        return None
    direct = _direct(found, least, cpu)
    plans = []
    for length in _lengths(found.tie):
        window = window_of(piece, found.tie, length)
        if window is None or window[1] <= window[0]:
            continue
        size = window[1] + 1 - window[0]
        if _matrix(found, length, size) <= cap // SHARE:
            plans.append(
                ToeplitzPlan(found, length, size, _time(found, length, size, cpu) / direct)
            )
    best = min(plans, key=lambda p: p.ratio, default=None)
    return best if best is not None and best.ratio < WORTH else None


def _lengths(tie: Tie) -> Iterator[int]:
    """Lengths to try: about a factor of two apart, those first that divide the range."""
    extent, at = count((tie.out,)), 1
    while at * tie.least <= min(LONGEST, extent):
        near = range(at, 2 * at)
        whole = [n for n in near if extent % (n * tie.least) == 0]
        yield from (n * tie.least for n in (*whole[:1], at))
        at *= 2


def _matrix(found: Toeplitz, length: int, window: int) -> int:
    return count((*found.batch, *found.rows, *found.summed)) * length * window


def _time(found: Toeplitz, length: int, window: int, cpu: Cpu) -> float:
    """Of one core, in nanoseconds."""
    batch, rows = count(found.batch), count(found.rows) * length
    positions, depth = count(found.positions) * found.blocks(length), found.depth
    runs = batch * positions * depth
    copies = WINDOW * runs * window + RUN * runs + MATRIX * _matrix(found, length, window)
    whole = not found.rows and count((found.tie.out,)) % length == 0
    store = 0.0 if whole else STORE * batch * rows * positions
    return _product(cpu, batch, rows, positions, depth * window) + copies + store + FIXED


def _direct(found: Toeplitz, least: int, cpu: Cpu) -> float:
    """The same of the sum as it is stated, on slices or as one product over windows for all taps."""
    batch, depth = count(found.batch), found.depth
    places = count((*found.positions, found.tie.out))
    results = batch * count(found.rows) * places
    phases = abs(found.tie.against)
    store = STORE if phases > 1 else 0.0
    if depth < least:
        return results * (SLICE * depth * found.taps + store)
    positions = -(-places // phases)
    terms = depth * found.taps
    windows = WINDOW * batch * positions * terms if found.taps > 1 else 0.0
    return (
        _product(cpu, batch, count(found.rows) * phases, positions, terms)
        + windows
        + store * results
    )


def _product(cpu: Cpu, batch: int, rows: int, positions: int, terms: int) -> float:
    rate = next(r for least, r in reversed(RATES) if min(rows, positions) >= least)
    rate *= cpu.flops / TYPICAL_CPU.flops
    return batch * (1e9 * cpu.call + rows * positions * terms / rate)
