"""Proofs about all points of a nest at once: stores to distinct elements, reads in bounds."""

from __future__ import annotations

from convdsl.backends.numpy.access import Nest, canonical
from convdsl.ir.expr import Access
from convdsl.ir.index import ZERO, Index, total


def injective(access: Access, nest: Nest) -> frozenset[str]:
    """Nest variables of a store that could not be proved to tell its elements apart."""
    access = canonical(access, nest)
    open_names = set(nest.used(access))
    if any(not i.is_affine_in(open_names) for i in access.index):
        return frozenset().union(
            *(nest.names(i) for i in access.index if not i.is_affine_in(open_names))
        )
    progress = True
    while open_names and progress:
        progress = False
        for index in access.index:
            names = [n for n in nest.names(index) if n in open_names]
            if names and _separates(index, names, nest):
                open_names -= set(names)
                progress = True
    return frozenset(open_names)


def _separates(index: Index, names: list[str], nest: Nest) -> bool:
    facts, span = nest.facts, ZERO
    factors = [(index.coefficient(n), n) for n in names]
    factors = [(f if facts.positive(f) else -f, n) for f, n in factors]
    for factor, name in sorted(factors, key=lambda f: facts.guess(f[0])):
        if not facts.positive(factor - span):
            return False
        span = total([span, factor * (nest.extent(name) - 1)])
    return True


def in_bounds(access: Access, nest: Nest) -> bool:
    """Whether the access is surely inside the buffer at every point of the nest."""
    return all(
        nest.facts.holds(i) and nest.facts.holds(d - 1 - i)
        for i, d in zip(access.index, access.dims, strict=True)
    )
