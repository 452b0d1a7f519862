"""How to run a contraction as stacked matrix products: which variables to stack, merge and copy.

Candidates are compared by a rough model of time (nanoseconds): the rate of a product by its smaller
side, a fixed cost a product, and one for each element copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise, permutations

from convdsl.backends.numpy.access import Nest
from convdsl.ir.expr import Access
from convdsl.ir.index import ONE, Index

CALL, COPY = 600.0, 1.0
# Measured on one core: the smaller of M and N, and multiply-adds a nanosecond.
RATES = ((1, 3.0), (2, 4.0), (4, 10.0), (8, 16.0), (16, 25.0), (32, 33.0), (64, 40.0))


@dataclass(frozen=True)
class Operand:
    """Variables, and element strides in contiguous storage; no strides: a computed temporary."""

    vars: frozenset[str]
    strides: Mapping[str, Index] | None


@dataclass(frozen=True)
class Roles:
    """Variables by role, each in the order of the axes of the result (`k`: of the nest)."""

    batch: tuple[str, ...]
    m: tuple[str, ...]
    n: tuple[str, ...]
    k: tuple[str, ...]


@dataclass(frozen=True)
class Plan:
    """Products over `stack` (outer axes); rows `m`, columns `n`, inner `k`, each merged to one.

    `direct`: rows and columns of the result are a view of the store.
    """

    stack: tuple[str, ...]
    m: tuple[str, ...]
    n: tuple[str, ...]
    k: tuple[str, ...]
    direct: bool
    cost: float


def operand(access: Access | None, names: frozenset[str], nest: Nest) -> Operand:
    if access is None:
        return Operand(names, None)
    offset = access.offset()
    if not offset.is_affine_in(names):
        return Operand(names, None)
    return Operand(names, {n: offset.coefficient(n) for n in names})


def merges(names: tuple[str, ...], strides: Mapping[str, Index] | None, nest: Nest) -> bool:
    """Whether consecutive axes lie in storage like one."""
    if len(names) < 2:
        return True
    if strides is None:
        return False
    return all(
        nest.facts.equal(strides[a], strides[b] * nest.extent(b)) for a, b in pairwise(names)
    )


def blas(
    rows: tuple[str, ...], columns: tuple[str, ...], strides: Mapping[str, Index] | None
) -> bool:
    """Whether a matrix has unit stride along its rows or columns, as BLAS wants it."""
    if strides is None or not rows or not columns:
        return True
    return ONE in (strides[rows[-1]], strides[columns[-1]])


def plan(
    roles: Roles, a: Operand, b: Operand, result: Operand, nest: Nest, *, may_write: bool
) -> Plan:
    """The cheapest way; the first one of equals, so the choice is stable."""
    sizes = {n: max(1, nest.facts.guess(nest.extent(n))) for n in nest.vars}
    best: Plan | None = None
    free = (*roles.m, *roles.n)
    for count in range(len(free) + 1):
        for chosen in combinations(free, count):
            rows = tuple(v for v in roles.m if v not in chosen)
            columns = tuple(v for v in roles.n if v not in chosen)
            stack = (*roles.batch, *chosen)
            for inner in permutations(roles.k):
                candidate = _cost(stack, rows, columns, inner, a, b, result, nest, sizes, may_write)
                if best is None or candidate.cost < best.cost:
                    best = candidate
    assert best is not None
    return best


def _cost(
    stack: tuple[str, ...],
    rows: tuple[str, ...],
    columns: tuple[str, ...],
    inner: tuple[str, ...],
    a: Operand,
    b: Operand,
    result: Operand,
    nest: Nest,
    sizes: Mapping[str, int],
    may_write: bool,
) -> Plan:
    def count(names: tuple[str, ...] | frozenset[str]) -> float:
        out = 1.0
        for n in names:
            out *= sizes[n]
        return out

    m, n, k, calls = count(rows), count(columns), count(inner), count(stack)
    rate = next(r for low, r in reversed(RATES) if min(m, n) >= low)
    cost = calls * (CALL + m * n * k / rate)
    for one, outer in ((a, rows), (b, columns)):
        merged = merges(outer, one.strides, nest) and merges(inner, one.strides, nest)
        if not (merged and blas(outer, inner, one.strides)):
            cost += COPY * count(one.vars)
    direct = merges(rows, result.strides, nest) and merges(columns, result.strides, nest)
    direct = direct and blas(rows, columns, result.strides)
    if not (direct and may_write):
        cost += 2 * COPY * count(result.vars)
    if not direct:
        cost += COPY * count(result.vars)
    return Plan(stack, rows, columns, inner, direct, cost)
