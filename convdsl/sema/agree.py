"""When two extents are the same: equality of polynomials under the `where` clauses.

Definitions and equalities become substitutions, one after the other, so that comparing is a
substitution and a subtraction. An equality that no size can be taken out of (`A*B == C*D`) is kept
as a polynomial that is zero.
"""

from __future__ import annotations

from collections.abc import Iterable

from convdsl.ir.atoms import Sym
from convdsl.ir.index import Index, const
from convdsl.sema.names import is_size


class Equalities:
    """What the `where` clauses of an op make equal."""

    def __init__(self, definitions: Iterable[tuple[str, Index]]) -> None:
        self._values: dict[str, Index] = {}
        self._zero: list[Index] = []
        for name, value in definitions:
            self._values[name] = value.substitute(self._values)

    def add(self, left: Index, right: Index) -> None:
        """Note that two expressions are equal."""
        difference = self.normal(left - right)
        name = _solvable(difference)
        if name is None:
            if difference.terms:
                self._zero.append(difference)
            return
        scale = difference.coefficient(name).as_int()
        rest = difference.without(name)
        value = -rest if scale == 1 else rest
        self._values = {n: v.substitute({name: value}) for n, v in self._values.items()}
        self._values[name] = value
        self._zero = [z.substitute({name: value}) for z in self._zero]

    def normal(self, index: Index) -> Index:
        """The expression with everything known put in."""
        return index.substitute(self._values)

    def agree(self, a: Index, b: Index) -> bool:
        """Whether the clauses make two expressions equal for all sizes."""
        if a == b:
            return True
        difference = self.normal(a) - self.normal(b)
        return not difference.terms or any(_multiple(difference, z) for z in self._zero)


def _solvable(difference: Index) -> str | None:
    """A symbol that stands once, with factor 1 or -1, and nowhere else; sizes before parameters."""
    found: list[str] = []
    for monomial, factor in difference.terms:
        if len(monomial) == 1 and abs(factor) == 1 and isinstance(monomial[0], Sym):
            name = monomial[0].name
            if name not in difference.without(name).free:
                found.append(name)
    return min(found, key=lambda n: not is_size(n)) if found else None


def _multiple(a: Index, b: Index) -> bool:
    """Whether a is an integer multiple of b, term by term."""
    if not b.terms or a.terms[0][0] != b.terms[0][0] or a.terms[0][1] % b.terms[0][1]:
        return False
    return a == b * const(a.terms[0][1] // b.terms[0][1])
