"""The values of loop variables while text is made: numbers for unrolled ones, else expressions.

Resolved indices are over the identifiers of the generated text, so a resolved name is its own text.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from convdsl.ir.atoms import Atom, Fn, Monomial, Sym
from convdsl.ir.index import Index, floordiv, maximum, minimum, modulo, product


class Environment:
    """A stack of bindings, and a cache of resolved indices that is right under all of them."""

    def __init__(self) -> None:
        self.values: dict[str, Index | int] = {}
        self._names: dict[Index, tuple[str, ...]] = {}
        self._resolved: dict[tuple[Index, tuple[Index | int | None, ...]], Index] = {}
        self._functions: dict[tuple[str, tuple[Index, ...]], Index] = {}

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
            found = self._resolved[key] = (
                self._substitute(index) if any(v is not None for v in key[1]) else index
            )
        return found

    def _substitute(self, index: Index) -> Index:
        """`index.substitute(values)`, quick where values are numbers, names and single products."""
        total: dict[Monomial, int] = {}
        for monomial, coefficient in index.terms:
            atoms: list[Atom] = []
            sums: list[Index] = []
            for atom in monomial:
                value = (
                    self.values.get(atom.name) if isinstance(atom, Sym) else self._function(atom)
                )
                if value is None:
                    atoms.append(atom)
                elif isinstance(value, int):
                    coefficient *= value
                elif len(value.terms) == 1:
                    atoms += value.terms[0][0]
                    coefficient *= value.terms[0][1]
                else:
                    sums.append(value)
            key = tuple(atoms) if len(atoms) < 2 else tuple(sorted(atoms, key=_key))
            if not sums:
                total[key] = total.get(key, 0) + coefficient
                continue
            for m, c in product([Index({key: coefficient}), *sums]).terms:
                total[m] = total.get(m, 0) + c
        return Index(total)

    def _function(self, fn: Fn) -> Index:
        args = tuple(map(self.resolve, fn.args))
        found = self._functions.get((fn.op, args))
        if found is None:
            match fn.op:
                case "//":
                    found = floordiv(*args)
                case "%":
                    found = modulo(*args)
                case "min":
                    found = minimum(*args)
                case "max":
                    found = maximum(*args)
            self._functions[fn.op, args] = found
        return found


def _key(atom: Atom) -> str:
    return atom.key
