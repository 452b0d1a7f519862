"""Which algorithm each equation gets, from its structure and sizes, and why.

Nothing here knows an operator: the choice reads roles and extents only, so a renamed or permuted
program gets the same plan.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from convdsl.budget import CAP
from convdsl.ir.equation import Equation, Piece, System
from convdsl.ir.expr import free_names, loads
from convdsl.ir.index import product
from convdsl.machine.facts import TYPICAL_CPU, TYPICAL_GPU, Cpu, Gpu
from convdsl.passes.columns import Columns, columns_of
from convdsl.passes.contraction import Contraction, contraction_of
from convdsl.passes.phases import DenseForm, Phased, dense_form, the_reduction
from convdsl.passes.plan_direct import direct_pays
from convdsl.passes.plan_toeplitz import ToeplitzPlan, plan_toeplitz
from convdsl.passes.plan_toom import ToomPlan, plan_toom
from convdsl.passes.plan_toom_cpu import plan_toom_cpu
from convdsl.passes.relation import linear
from convdsl.passes.sides import chunk_sides, count
from convdsl.passes.whole_matrix import whole_matrix

Algorithm = Literal["gather", "phases", "columns", "toom"]

GPU_DEPTH = 24  # terms a result below which staging in workgroup memory does not pay
GPU_SIDE = 12  # rows or columns below which a tile is mostly empty
GPU_HOLES = 96  # terms a result up to which tiles do not pay for a second pass over the result
CPU_WIDTH = 32  # output channels below which one product for all taps beats one for each
CPU_DEPTH = 4  # terms below which a matrix product is slower than multiply-adds on slices


@dataclass(frozen=True, slots=True)
class Choice:
    """The algorithm of one equation, with the reason in the user's words.

    `results` is how many results Toom-Cook makes at a time, or in `phases` one Toeplitz matrix; `solved`
    the summed index that the relation is solved for, where not the form with the fewest terms is chosen.
    """

    algorithm: Algorithm
    reason: str
    results: int = 0
    solved: str = ""


def choose_numpy(
    system: System,
    wanted: Algorithm | None = None,
    accuracy: str = "standard",
    cpu: Cpu = TYPICAL_CPU,
    cap: int = CAP,
) -> dict[str, Choice]:
    """Choices for the NumPy backend; `wanted` forces an algorithm where it is possible."""
    return {q.tensor: _numpy(system, q, wanted, accuracy, cpu, cap) for q in system.equations}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a choice for WGSL has to keep to: the accuracy class, the bytes of a buffer, the GPU.

    On a `software` adapter tiles in workgroup memory gain nothing.
    """

    accuracy: str = "standard"
    buffer: int = 2**27
    gpu: Gpu = TYPICAL_GPU
    software: bool = False


def choose_wgsl(
    system: System, wanted: Algorithm | None = None, bounds: Bounds = Bounds()
) -> dict[str, Choice]:
    """Choices for the WGSL backend; `wanted` forces an algorithm where it is possible."""
    data_first = [t.name for t in system.inputs]
    return {q.tensor: _wgsl(q, data_first, wanted, bounds) for q in system.equations}


def _numpy(
    system: System,
    equation: Equation,
    wanted: Algorithm | None,
    accuracy: str,
    cpu: Cpu,
    cap: int,
) -> Choice:
    piece = equation.pieces[0]  # further ones hold the empty sum
    reduction = the_reduction(piece.value)
    if reduction is None:
        return Choice("gather", "elementwise")
    contraction = contraction_of(piece, related=True)
    if contraction is None:
        return Choice("gather", f"{_why_no_product(piece)}: slices over the taps")
    columns = columns_of(contraction)
    if wanted in ("gather", "phases") or (wanted == "columns" and columns is not None):
        return Choice(wanted, "asked for")
    depth = product(v.extent for v in contraction.reduction.vars if v.name in _shared(contraction))
    known = depth.as_int()
    if wanted is None and accuracy != "strict":
        blocks = plan_toeplitz(piece, system, CPU_DEPTH, cap, cpu)
        if blocks is not None:
            return _toeplitz_choice(blocks)
    if known is not None and known < CPU_DEPTH:
        return Choice("gather", f"products of only {_terms(known)}: multiply-adds on slices")
    data_first = [t.name for t in system.inputs]
    form = dense_form(piece, data_first) if wanted in (None, "toom") else None
    forced = wanted == "toom"
    found = plan_toom_cpu(form.pieces[0], cpu, accuracy, forced) if form is not None else None
    if found is not None:
        return _toom_choice(found, forced, cpu)
    whole = whole_matrix(piece, form, system, accuracy, cpu) if wanted is None and form else None
    if whole is not None:
        variable, sides = whole
        why = f"{_terms(count(sides.summed))}, zeros among them: one product is one call"
        return Choice("phases", why, solved=variable)
    if wanted is None and form is not None:
        reason = _in_chunks(form, system, accuracy, cpu)
        if reason is not None:
            return Choice("phases", reason)
    shown = "any number of terms" if known is None else _terms(known)
    if columns is not None and _scatters(contraction, columns):
        reason = f"{shown} a product: one matrix product, then overlapping blocks are added"
        return Choice("columns", reason)
    return Choice("phases", f"{shown} a product: a matrix product on strided views for each tap")


def _toeplitz_choice(plan: ToeplitzPlan) -> Choice:
    terms = _terms(plan.found.depth * plan.window)
    reason = (
        f"{plan.length} results of a block by one product with a Toeplitz matrix, {terms} each: "
        f"estimated at {plan.ratio:.0%} of the time of the direct sum"
    )
    return Choice("phases", reason, plan.length)


def _in_chunks(form: DenseForm, system: System, accuracy: str, cpu: Cpu) -> str | None:
    """Why one product for all taps, a chunk of positions at a time, is the best plan; if it is."""
    phases = [w.phase for w in form.ways if isinstance(w, Phased)]
    sides = chunk_sides(form.pieces[0], phases, system, accuracy, cpu)
    if sides is None:
        return None
    terms, rows = _terms(count(sides.summed)), count(sides.rows)
    return f"one matrix product for all taps, {terms} for each of {_count(rows, 'row')}, in chunks"


def _shared(contraction: Contraction) -> frozenset[str]:
    """Reduced variables of both operands that stand in no equation: what a product sums over."""
    related = {n for p in contraction.reduction.constraints for n in p.index.free}
    both = free_names(contraction.a.value) & free_names(contraction.b.value)
    return both - related


def _scatters(contraction: Contraction, columns: Columns) -> bool:
    """Whether every product of data and tap lands in the result, so that columns waste no work."""
    steps = [
        max((abs(c) for c in form.coefficients.values()), default=1)
        for p in contraction.reduction.constraints
        if (form := linear(p.index, [v.name for v in columns.data + columns.taps]))
    ]
    outputs = [v.name for v in contraction.piece.vars]
    unit = all(
        all(abs(c) == 1 for c in form.coefficients.values())
        for p in contraction.reduction.constraints
        if (form := linear(p.index, outputs))
    )
    if not unit:
        return False
    width = product(v.extent for v in columns.inner).as_int()
    return max(steps, default=1) > 1 or (width is not None and width < CPU_WIDTH)


def _wgsl(
    equation: Equation, data_first: Sequence[str], wanted: Algorithm | None, bounds: Bounds
) -> Choice:
    piece = equation.pieces[0]  # further ones hold the empty sum
    reduction = the_reduction(piece.value)
    if reduction is None:
        return Choice("gather", "elementwise")
    if wanted == "gather":
        return Choice("gather", "asked for")
    if any(v.extent == 0 for v in (*piece.vars, *reduction.vars)):
        return Choice("gather", "a sum or a result without elements")
    if reduction.op == "sum" and reduction.dtype == "i32":
        return Choice("gather", "a sum of integers: every thread adds up its own terms")
    gemm = gemm_of(piece, data_first)
    if wanted == "phases" and dense_form(piece, data_first) is not None:
        return Choice("phases", "asked for")
    if gemm is None:
        return Choice("gather", f"{_why_no_product(piece)}: every thread adds up its own terms")
    if wanted == "columns":
        plain = contraction_of(piece, related=True)
        if plain is not None and columns_of(plain) is not None:
            return Choice("columns", "asked for")
    batch, m, n, k = gemm.extents
    for what, extent, least in (
        ("term a result", k, GPU_DEPTH),
        ("row", m, GPU_SIDE),
        ("column", n, GPU_SIDE),
    ):
        known = extent.as_int()
        if known is not None and known < least:
            return Choice("gather", f"only {_count(known, what)}, too few for a tiled product")
    if any(e.as_int() is None for e in (batch, m, n, k)):
        return Choice("phases", "an implicit matrix product, of any size")
    shape = " x ".join(str(e) for e in (m, n, k))
    if bounds.software and wanted is None:
        reason = "the adapter is a CPU: blocks in registers instead of tiles in workgroup memory"
        return Choice("gather", f"{shape} (rows x columns x terms), and {reason}")
    terms = k.as_int() or 0
    if wanted is None and terms <= GPU_HOLES and _has_holes(piece, data_first):
        reason = "outputs without terms are stored with the rest in one pass"
        return Choice("gather", f"only {_terms(terms)} a result: {reason}")
    toom = _toom(piece, data_first, wanted, bounds)
    if wanted is None and direct_pays(gemm, bounds.gpu, toom):
        reason = "blocks in registers are estimated to be faster than tiles in workgroup memory"
        return Choice("gather", f"only {_terms(terms)} a result: {reason}")
    if toom is not None:
        return _toom_choice(toom, wanted == "toom", bounds.gpu)
    times = "" if batch == 1 else f"{batch} times "
    return Choice("phases", f"an implicit matrix product, {times}{shape} (rows x columns x terms)")


def _has_holes(piece: Piece, data_first: Sequence[str]) -> bool:
    """Whether there are outputs that no term reaches."""
    form = dense_form(piece, data_first)
    return form is not None and len(form.pieces) > 1


def _toom(
    piece: Piece, data_first: Sequence[str], wanted: Algorithm | None, bounds: Bounds
) -> ToomPlan | None:
    """Toom-Cook where it is asked for or estimated to be faster, and the class allows it."""
    form = dense_form(piece, data_first)
    if form is None or wanted not in (None, "toom"):
        return None
    forced = wanted == "toom"
    return plan_toom(form.pieces[0], bounds.gpu, bounds.accuracy, bounds.buffer, forced)


def _toom_choice(found: ToomPlan, forced: bool, machine: Cpu | Gpu) -> Choice:
    made, taps = found.results, found.taps
    products = f"F({made},{taps}): {made + taps - 1} products for {made * taps}"
    part = f"{found.ratio:.0%} of the time of the direct sum"
    why = "asked for" if forced else f"estimated at {part}, at {machine}"
    return Choice("toom", f"{products}, {why}", made)


def _terms(count: int) -> str:
    return _count(count, "term")


def _count(count: int, what: str) -> str:
    """`1 row`, `3 terms a result`."""
    noun, space, rest = what.partition(" ")
    return f"{count} {noun}{'' if count == 1 else 's'}{space}{rest}"


def _why_no_product(piece: Piece) -> str:
    """Why an equation is no matrix product, in the user's words."""
    reduction = the_reduction(piece.value)
    if reduction is None:
        return "more than one sum"
    if reduction.op != "sum":
        return f"a {reduction.op} is no sum of products"
    if contraction_of(piece, related=True) is None and len(loads(reduction.body)) == 2:
        return "no index is summed in both operands alone"
    return "not a sum of products of two operands"


def gemm_of(piece: Piece, data_first: Sequence[str]) -> Contraction | None:
    """The dense piece of the phase form as a matrix product, or None."""
    form = dense_form(piece, data_first)
    return contraction_of(form.pieces[0]) if form is not None else None
