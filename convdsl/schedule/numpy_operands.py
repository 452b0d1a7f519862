"""Operands of matrix products beside constants, copied with zeros where they are not read.

    d[z, q] = sum[u | 0 <= q*4 + u - 3 < L] B[z, u] * x[q*4 + u - 3]        B constant
 -> x_rows[u, q] = 0
    for u: x_rows[u, q] = x[q*4 + u - 3]                 those q whose condition holds
    d[z, q] = sum[u] B[z, u] * x_rows[u, q]

A condition that ties two axes is no range of one, so a product cannot follow it. Constants are finite:
a zero beside them is a term that is not there.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from convdsl.ir.expr import Access, Const, Expr, Load, Pred, Var, loads, map_index
from convdsl.ir.index import sym
from convdsl.ir.loop import Stmt, Store
from convdsl.ir.loop import nest as nested
from convdsl.passes.numpy_place import Context
from convdsl.schedule.nest import Nest, product_factors
from convdsl.schedule.numpy_slices import over

Body = tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Filled:
    """An operand with the conditions that only its copy follows."""

    factor: Expr
    conditions: tuple[Pred, ...]


def filled_operand(
    nest: Nest, conditions: Sequence[Pred], constants: Collection[str]
) -> Filled | None:
    """The operand of a matrix product beside constants that conditions on several axes belong to."""
    axes = {x.name for x in nest.loops if x.level == "gemm"}
    for factor in _beside_constants(nest, constants):
        mine = nest.depends_on(factor)
        found = tuple(
            p for p in conditions
            if p.kind == "ge" and len(p.index.free & axes) > 1 and p.index.free & axes <= mine
        )  # fmt: skip
        if found:
            return Filled(factor, found)
    return None


def copy_filled(
    context: Context, nest: Nest, filled: Filled, ranges: Sequence[Var], frames: Mapping[str, Var]
) -> tuple[Body, Expr]:
    """The statements that copy an operand over the `ranges` of its axes, and how to read it instead.

    `frames` hold the ranges, and have lengths that do not change.
    """
    reduction = nest.reduction
    assert reduction is not None
    used = nest.depends_on(filled.factor)
    own = [v for v in ranges if v.name in used]
    own.sort(key=lambda v: not nest.loop(v.name).reduced)
    tensor = loads(filled.factor)[0].access.tensor
    dims = [frames[v.name].extent for v in own]
    made = context.temp(f"{tensor}_rows", reduction.dtype, dims)
    place = Access(made.name, tuple(sym(v.name) - frames[v.name].low for v in own), made.dims)
    body = nested([(v, "slice") for v in own], (Store(place, Const(0, reduction.dtype)),))
    body += over(own, filled.conditions, Store(place, map_index(filled.factor, nest.put)))
    return body, Load(place, reduction.dtype)


def _beside_constants(nest: Nest, constants: Collection[str]) -> list[Expr]:
    pair = product_factors(nest)
    if pair is None:
        return []
    a, b = pair
    return [
        factor for factor, other in ((a, b), (b, a))
        if isinstance(other, Load) and other.access.tensor in constants
    ]  # fmt: skip
