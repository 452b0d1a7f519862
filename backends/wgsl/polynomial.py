"""How an offset is cut up for hoisting: which terms are known in which loop.

n*C*L + tx + k0*16*L + k*L  in loops k0, k:
depth 0: n*C*L + tx          depth 1: k0 * (16*L)        depth 2: k * L
"""

from __future__ import annotations

from dataclasses import dataclass

from convdsl.ir.atoms import Atom, Fn, Monomial
from convdsl.ir.index import Index


@dataclass(frozen=True, slots=True)
class Term:
    """`factor`, known before, times the product of `atoms`, all known at one depth."""

    atoms: Monomial
    factor: Index


@dataclass(frozen=True, slots=True)
class Level:
    """The terms that become known at `depth`, and the sum of all terms known there."""

    depth: int
    terms: tuple[Term, ...]
    sum: Index


class Depths:
    """The depth of every name: how many loops stand around its definition."""

    def __init__(self) -> None:
        self.of_name: dict[str, int] = {}
        self._of_index: dict[Index, int] = {}
        self._levels: dict[Index, tuple[Level, ...]] = {}
        self._split: dict[Index, tuple[Index, int]] = {}

    def of(self, index: Index) -> int:
        """The depth at which the whole index is known."""
        found = self._of_index.get(index)
        if found is None:
            found = max((self.of_name.get(n, 0) for n in index.free), default=0)
            self._of_index[index] = found
        return found

    def of_atom(self, atom: Atom) -> int:
        if isinstance(atom, Fn):
            return max(self.of(a) for a in atom.args)
        return self.of_name.get(atom.name, 0)

    def split(self, index: Index) -> tuple[Index, int]:
        """The index without its integer term, and that term."""
        found = self._split.get(index)
        if found is None:
            number = index.constant
            found = self._split[index] = (index - number if number else index, number)
        return found

    def levels(self, index: Index) -> tuple[Level, ...]:
        """The cut of an index without integer term, outermost level first."""
        found = self._levels.get(index)
        if found is None:
            found = self._levels[index] = self._cut(index)
        return found

    def _cut(self, index: Index) -> tuple[Level, ...]:
        by_depth: dict[int, dict[Monomial, dict[Monomial, int]]] = {}
        for monomial, coefficient in index.terms:
            depths = [self.of_atom(a) for a in monomial]
            depth = max(depths, default=0)
            own = tuple(a for a, d in zip(monomial, depths, strict=True) if d == depth)
            rest = tuple(a for a, d in zip(monomial, depths, strict=True) if d != depth)
            by_depth.setdefault(depth, {}).setdefault(own, {})[rest] = coefficient
        levels: list[Level] = []
        known = Index({})
        for depth in sorted(by_depth):
            terms = [Term(own, Index(rest)) for own, rest in by_depth[depth].items()]
            for own, factor in by_depth[depth].items():
                known = known + Index(_product(own, factor))
            levels.append(Level(depth, tuple(terms), known))
        return tuple(levels)


def _product(own: Monomial, factor: dict[Monomial, int]) -> dict[Monomial, int]:
    return {tuple(sorted(own + m, key=lambda a: a.key)): c for m, c in factor.items()}


def operations(index: Index) -> int:
    """How many additions, multiplications and functions its text has."""
    count = max(len(index.terms) - 1, 0)
    for monomial, coefficient in index.terms:
        if monomial:
            count += len(monomial) - 1 + (abs(coefficient) != 1)
        count += sum(1 + sum(map(operations, a.args)) for a in monomial if isinstance(a, Fn))
    return count


def divides(index: Index) -> bool:
    """Whether it has a division or a remainder anywhere."""
    for monomial, _ in index.terms:
        for atom in monomial:
            if isinstance(atom, Fn) and (atom.op in ("//", "%") or any(map(divides, atom.args))):
                return True
    return False
