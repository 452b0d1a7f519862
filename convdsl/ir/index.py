"""Exact integer expressions over named symbols: sizes, parameters and loop variables.

    index = integer polynomial over atoms
    atom  = name | index // index | index % index | min(index, ...) | max(index, ...)

An `Index` is always in normal form (terms merged and sorted), so `==` is structural equality of
polynomials and the cheap algebra (`x - x`, `2*x + x`) needs no separate simplifier. `//` and `%` are
floor division and modulo by a positive divisor, in every IR and on every backend.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import reduce
from math import gcd
from typing import Any, Literal

import numpy as np

from convdsl.ir.atoms import Atom, Fn, FnOp, Monomial, Sym, term_key
from convdsl.ir.index_text import index_text, plain_text


class Index:
    """An immutable integer polynomial. Build with `const`, `sym`, operators and the functions below."""

    __slots__ = ("_free", "_hash", "terms")

    terms: tuple[tuple[Monomial, int], ...]

    def __init__(self, terms: Mapping[Monomial, int]) -> None:
        kept = [term for term in terms.items() if term[1]]
        if len(kept) > 1:
            kept.sort(key=term_key)
        self.terms = tuple(kept)
        self._hash: int | None = None
        self._free: frozenset[str] | None = None

    # -- identity ---------------------------------------------------------------------------------
    def __eq__(self, other: object) -> bool:
        if isinstance(other, int):
            return self.as_int() == other
        return isinstance(other, Index) and self.terms == other.terms

    def __hash__(self) -> int:
        if self._hash is None:
            self._hash = hash(self.terms)
        return self._hash

    def __repr__(self) -> str:
        return f"Index({self})"

    def __str__(self) -> str:
        return index_text(self)

    # -- algebra ----------------------------------------------------------------------------------
    def __add__(self, other: Index | int) -> Index:
        other = as_index(other)
        if not other.terms:
            return self
        out = dict(self.terms)
        for m, c in other.terms:
            out[m] = out.get(m, 0) + c
        return Index(out)

    __radd__ = __add__

    def __neg__(self) -> Index:
        return Index({m: -c for m, c in self.terms})

    def __sub__(self, other: Index | int) -> Index:
        return self + (-as_index(other))

    def __rsub__(self, other: int) -> Index:
        return as_index(other) - self

    def __mul__(self, other: Index | int) -> Index:
        if isinstance(other, int):
            return Index({m: c * other for m, c in self.terms}) if other != 1 else self
        out: dict[Monomial, int] = {}
        for m1, c1 in self.terms:
            for m2, c2 in other.terms:
                m = tuple(sorted(m1 + m2, key=_atom_key)) if m1 and m2 else m1 or m2
                out[m] = out.get(m, 0) + c1 * c2
        return Index(out)

    __rmul__ = __mul__

    def __floordiv__(self, other: Index | int) -> Index:
        return floordiv(self, as_index(other))

    def __mod__(self, other: Index | int) -> Index:
        return modulo(self, as_index(other))

    # -- questions --------------------------------------------------------------------------------
    def as_int(self) -> int | None:
        """The value of a constant, else None."""
        if not self.terms:
            return 0
        if len(self.terms) == 1 and self.terms[0][0] == ():
            return self.terms[0][1]
        return None

    @property
    def free(self) -> frozenset[str]:
        """Names of all symbols in it."""
        if self._free is None:
            names: set[str] = set()
            for m, _ in self.terms:
                for atom in m:
                    if isinstance(atom, Sym):
                        names.add(atom.name)
                    else:
                        names.update(*(a.free for a in atom.args))
            self._free = frozenset(names)
        return self._free

    def coefficient(self, name: str) -> Index:
        """The factor of the first power of `name`; meaningful when the index is affine in it."""
        out: dict[Monomial, int] = {}
        for m, c in self.terms:
            if Sym(name) in m:
                rest = list(m)
                rest.remove(Sym(name))
                out[tuple(rest)] = c
        return Index(out)

    def without(self, name: str) -> Index:
        """The terms that do not have `name` as a plain factor."""
        return Index({m: c for m, c in self.terms if Sym(name) not in m})

    def is_affine_in(self, names: Iterable[str]) -> bool:
        """Whether each of `names` occurs at most linearly, never in a product with another of them."""
        wanted = frozenset(names)
        for m, _ in self.terms:
            hits = 0
            for atom in m:
                if isinstance(atom, Sym):
                    hits += atom.name in wanted
                elif any(a.free & wanted for a in atom.args):
                    return False
            if hits > 1:
                return False
        return True

    @property
    def constant(self) -> int:
        """The integer term."""
        for m, c in self.terms:
            if m == ():
                return c
        return 0

    def substitute(self, values: Mapping[str, Index | int]) -> Index:
        """Replace symbols by indices or integers, simultaneously."""
        if not values or self.free.isdisjoint(values):
            return self
        total: dict[Monomial, int] = {}
        for m, c in self.terms:
            kept: list[Atom] = []
            product: Index | None = None
            for atom in m:
                put = _substitute_atom(atom, values)
                if put is None:
                    kept.append(atom)
                else:
                    product = put if product is None else product * put
            if product is None:
                total[m] = total.get(m, 0) + c
                continue
            if kept:
                product = product * Index({tuple(kept): 1})
            for m2, c2 in product.terms:
                total[m2] = total.get(m2, 0) + c2 * c
        return Index(total)

    def evaluate(self, env: Mapping[str, Any]) -> Any:
        """The value under integers or (broadcasting) integer arrays; KeyError for a missing name."""
        total: Any = 0
        for m, c in self.terms:
            value: Any = c
            for atom in m:
                value = value * _evaluate_atom(atom, env)
            total = total + value
        return total


def _atom_key(atom: Atom) -> str:
    return atom.key


def _substitute_atom(atom: Atom, values: Mapping[str, Index | int]) -> Index | None:
    """What takes the atom's place, or None where it stays."""
    if isinstance(atom, Sym):
        found = values.get(atom)
        return None if found is None else as_index(found)
    if all(a.free.isdisjoint(values) for a in atom.args):
        return None
    args = [a.substitute(values) for a in atom.args]
    match atom.op:
        case "//":
            return floordiv(args[0], args[1])
        case "%":
            return modulo(args[0], args[1])
        case "min":
            return minimum(*args)
        case "max":
            return maximum(*args)


def _evaluate_atom(atom: Atom, env: Mapping[str, Any]) -> Any:
    if isinstance(atom, Sym):
        return env[atom.name]
    args = [a.evaluate(env) for a in atom.args]
    match atom.op:
        case "//":
            return args[0] // args[1]
        case "%":
            return args[0] % args[1]
        case "min":
            return reduce(_pick(min, np.minimum), args)
        case "max":
            return reduce(_pick(max, np.maximum), args)


def _pick(scalar: Any, array: Any) -> Any:
    def choose(a: Any, b: Any) -> Any:
        return scalar(a, b) if isinstance(a, int) and isinstance(b, int) else array(a, b)

    return choose


# -- construction ---------------------------------------------------------------------------------
_SMALL = {n: Index({(): n}) for n in range(-8, 257)}
ZERO, ONE = _SMALL[0], _SMALL[1]


def const(value: int) -> Index:
    found = _SMALL.get(value)
    return found if found is not None else Index({(): value})


def sym(name: str) -> Index:
    return Index({(Sym(name),): 1})


def as_index(value: Index | int) -> Index:
    return value if isinstance(value, Index) else const(value)


def _fn(op: FnOp, *args: Index) -> Index:
    return Index({(Fn(op, args),): 1})


def floordiv(a: Index, b: Index) -> Index:
    """a // b with the multiples of b taken out; b is positive."""
    divisor = b.as_int()
    if divisor == 1:
        return a
    if divisor is None:
        quotient = _exact_quotient(a, b)
        return quotient if quotient is not None else _fn("//", a, b)
    if divisor == 0:
        raise ZeroDivisionError(f"({a}) // 0")
    whole = {m: c // divisor for m, c in a.terms if c % divisor == 0 or m == ()}
    rest = Index({m: (c if m else c % divisor) for m, c in a.terms if c % divisor or m == ()})
    value = rest.as_int()
    if value is not None:
        return Index(whole) + value // divisor
    shared = reduce(gcd, (c for _, c in rest.terms), divisor)
    if shared > 1:
        rest = Index({m: c // shared for m, c in rest.terms})
        divisor //= shared
        return Index(whole) + floordiv(rest, const(divisor))
    return Index(whole) + _fn("//", rest, const(divisor))


def _exact_quotient(a: Index, b: Index) -> Index | None:
    """a / b where b is a single product of symbols that divides every term of a."""
    if not a.terms:
        return ZERO
    if len(b.terms) != 1:
        return ONE if a == b else None
    (divisor, scale), out = b.terms[0], {}
    for m, c in a.terms:
        rest = list(m)
        for atom in divisor:
            if atom not in rest:
                return None
            rest.remove(atom)
        if c % scale:
            return None
        out[tuple(rest)] = c // scale
    return Index(out)


def modulo(a: Index, b: Index) -> Index:
    """a % b with the multiples of b taken out; b is positive."""
    divisor = b.as_int()
    if divisor is None:
        return ZERO if _exact_quotient(a, b) is not None else _fn("%", a, b)
    if divisor == 1:
        return ZERO
    if divisor == 0:
        raise ZeroDivisionError(f"({a}) % 0")
    rest = Index({m: c % divisor for m, c in a.terms})
    value = rest.as_int()
    return const(value % divisor) if value is not None else _fn("%", rest, const(divisor))


def ceildiv(a: Index | int, b: Index | int) -> Index:
    """The least integer not below a / b, for positive b."""
    a, b = as_index(a), as_index(b)
    return -floordiv(-a, b) if b.as_int() is not None else floordiv(a + b - 1, b)


def minimum(*args: Index | int) -> Index:
    return _extreme("min", [as_index(a) for a in args])


def maximum(*args: Index | int) -> Index:
    return _extreme("max", [as_index(a) for a in args])


def _extreme(op: Literal["min", "max"], args: list[Index]) -> Index:
    """One flat function, without arguments that another one bounds by a constant distance."""
    sign = 1 if op == "min" else -1
    kept: list[Index] = []
    for arg in [part for a in args for part in _parts(op, a)]:
        distances = [(arg - other).as_int() for other in kept]
        if any(d is not None and d * sign >= 0 for d in distances):
            continue
        kept = [o for o, d in zip(kept, distances, strict=True) if d is None or d * sign >= 0]
        kept.append(arg)
    return kept[0] if len(kept) == 1 else _fn(op, *sorted(kept, key=plain_text))


def _parts(op: Literal["min", "max"], index: Index) -> tuple[Index, ...]:
    """The arguments of an index that is such a function itself; else the index."""
    if len(index.terms) == 1 and index.terms[0][1] == 1 and len(index.terms[0][0]) == 1:
        atom = index.terms[0][0][0]
        if isinstance(atom, Fn) and atom.op == op:
            return atom.args
    return (index,)


def product(factors: Iterable[Index | int]) -> Index:
    """The product of all factors; 1 for none."""
    return reduce(lambda a, b: a * b, (as_index(f) for f in factors), ONE)


def total(parts: Iterable[Index | int]) -> Index:
    """The sum of all parts; 0 for none."""
    return reduce(lambda a, b: a + b, (as_index(p) for p in parts), ZERO)


def as_name(index: Index) -> str | None:
    """The name when the index is a single bare symbol, else None."""
    if len(index.terms) == 1 and index.terms[0][1] == 1 and len(index.terms[0][0]) == 1:
        atom = index.terms[0][0][0]
        return atom.name if isinstance(atom, Sym) else None
    return None
