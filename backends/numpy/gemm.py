"""A nest `store += A*B` as one `np.matmul` on stacked views.

Roles follow from where a variable occurs (A, B, the store), whatever its level is called; the
levels only say which factor of a longer product belongs to which side.
"""

from __future__ import annotations

from dataclasses import replace

from convdsl.backends.numpy.access import Nest, canonical
from convdsl.backends.numpy.code import Item
from convdsl.backends.numpy.gemm_plan import Roles, operand, plan
from convdsl.backends.numpy.gemm_text import (
    makes_vector,
    operand_of,
    product_call,
    product_store,
    vector_store,
)
from convdsl.backends.numpy.nest import target
from convdsl.backends.numpy.values import spans, uses
from convdsl.ir.expr import Binary, Expr
from convdsl.ir.loop import Level, Store

Names = tuple[str, ...]


class NotGemm(Exception):
    """The nest is no matrix product."""


def matmul(nest: Nest, store: Store, levels: dict[str, Level], fresh: bool) -> list[Item]:
    """The statements; `fresh`: the target holds zeros, so the product may be written over it."""
    if store.accumulate != "+":
        raise NotGemm
    left, right = _sides(store.value, nest, levels)
    place = target(nest, store)
    roles = _roles(left, right, place.view.vars, place.reduced, nest)
    access = canonical(store.access, nest)
    result = operand(access, frozenset(place.view.vars), nest)
    half = nest.scope.buffers[access.tensor].dtype == "f16"
    a, b = operand_of(left, nest), operand_of(right, nest)
    chosen = plan(roles, a, b, result, nest, may_write=fresh and not half)
    last = place.view.vars[-1] if place.view.vars else ""
    if last in chosen.m:  # the transposed product, whose rows are those of the store
        left, right = right, left
        chosen = replace(chosen, m=chosen.n, n=chosen.m)
    if fresh and not half and makes_vector(chosen, result):
        return [vector_store(left, right, chosen, place.view, access.tensor, nest)]
    node = product_call(left, right, chosen, nest)
    return product_store(node, chosen, place.view, access.tensor, nest, fresh, half)


def _sides(value: Expr, nest: Nest, levels: dict[str, Level]) -> tuple[Expr, Expr]:
    """The two operands of the product."""
    factors = _factors(value)
    rows = {n for n, level in levels.items() if level == "gemm.m"}
    columns = {n for n, level in levels.items() if level == "gemm.n"}
    sides: tuple[list[Expr], list[Expr]] = ([], [])
    open_factors: list[Expr] = []
    for factor in factors:
        used = uses(factor, nest)
        if used & rows and used & columns:
            raise NotGemm
        if used & rows:
            sides[0].append(factor)
        elif used & columns:
            sides[1].append(factor)
        else:
            open_factors.append(factor)
    for factor in open_factors:
        used = uses(factor, nest)
        if not sides[0] or not sides[1]:
            if not used:
                raise NotGemm
            (sides[1] if sides[0] else sides[0]).append(factor)
        else:
            known = frozenset().union(*(uses(f, nest) for f in sides[1]))
            (sides[1] if used <= known else sides[0]).append(factor)
    if not sides[0] or not sides[1]:
        raise NotGemm
    return _product(sides[0]), _product(sides[1])


def _factors(value: Expr) -> list[Expr]:
    if isinstance(value, Binary) and value.op == "*":
        return [*_factors(value.left), *_factors(value.right)]
    return [value]


def _product(factors: list[Expr]) -> Expr:
    out = factors[0]
    for factor in factors[1:]:
        out = Binary("*", out, factor)
    return out


def _roles(left: Expr, right: Expr, stored: Names, reduced: Names, nest: Nest) -> Roles:
    a, b = uses(left, nest), uses(right, nest)
    if a != spans(left, nest) or b != spans(right, nest):
        raise NotGemm
    if not set(stored) <= a | b or not set(reduced) <= a & b or not reduced:
        raise NotGemm
    return Roles(
        batch=tuple(n for n in stored if n in a and n in b),
        m=tuple(n for n in stored if n in a and n not in b),
        n=tuple(n for n in stored if n in b and n not in a),
        k=reduced,
    )
