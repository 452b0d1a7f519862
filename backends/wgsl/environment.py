"""The values of loop variables while text is made: numbers for unrolled ones, expressions for others.

Resolved indices are over the identifiers of the generated text, so a resolved name is its own text.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from convdsl.ir.index import Atom, Index, Monomial, Sym, product

Values = Mapping[str, "Index | int"]


class Environment:
    """A stack of bindings, and a cache of resolved indices that is right whatever the bindings are."""

    def __init__(self) -> None:
        self.values: dict[str, Index | int] = {}
        self._names: dict[Index, tuple[str, ...]] = {}
        self._resolved: dict[tuple[Index, tuple[Index | int | None, ...]], Index] = {}

    @contextmanager
    def bind(self, name: str, value: Index | int) -> Iterator[None]:
        """`name` has this value inside the `with`."""
        before = self.values.get(name)
        number = value.as_int() if isinstance(value, Index) else value
        self.values[name] = value if number is None else number
        try:
            yield
        finally:
            if before is None:
                del self.values[name]
            else:
                self.values[name] = before

    def resolve(self, index: Index) -> Index:
        """The index with all bindings put in."""
        names = self._names.get(index)
        if names is None:
            names = self._names[index] = tuple(sorted(index.free))
        if not names:
            return index
        get = self.values.get
        key = (index, tuple([get(n) for n in names]))
        found = self._resolved.get(key)
        if found is None:
            values = {n: v for n, v in zip(names, key[1], strict=True) if v is not None}
            found = self._resolved[key] = _substitute(index, values) if values else index
        return found


def _substitute(index: Index, values: Values) -> Index:
    """`index.substitute(values)`, quick where values are numbers, names and single products."""
    total: dict[Monomial, int] = {}
    for monomial, coefficient in index.terms:
        atoms: list[Atom] = []
        sums: list[Index] = []
        for atom in monomial:
            value = values.get(atom.name) if isinstance(atom, Sym) else None
            if isinstance(value, int):
                coefficient *= value
            elif value is None and isinstance(atom, Sym):
                atoms.append(atom)
            else:
                other = value if value is not None else Index({(atom,): 1}).substitute(values)
                if len(other.terms) == 1:
                    atoms += other.terms[0][0]
                    coefficient *= other.terms[0][1]
                else:
                    sums.append(other)
        key = tuple(atoms) if len(atoms) < 2 else tuple(sorted(atoms, key=_key))
        if not sums:
            total[key] = total.get(key, 0) + coefficient
            continue
        for m, c in product([Index({key: coefficient}), *sums]).terms:
            total[m] = total.get(m, 0) + c
    return Index(total)


def _key(atom: Atom) -> str:
    return atom.key
