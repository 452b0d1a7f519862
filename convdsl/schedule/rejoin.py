"""Undo splits that cancel: c*d*(q // d) + c*(q % d) is c*q."""

from __future__ import annotations

from convdsl.ir.atoms import Fn, Monomial, Sym
from convdsl.ir.index import Index


def rejoin(index: Index) -> Index:
    """The index with matching quotients and remainders of one number put together again."""
    while True:
        found = _pair(index)
        if found is None:
            return index
        index = found


def _pair(index: Index) -> Index | None:
    terms = dict(index.terms)
    for monomial, coefficient in index.terms:
        for at, atom in enumerate(monomial):
            if not (isinstance(atom, Fn) and atom.op == "%"):
                continue
            value, divisor = atom.args
            number = divisor.as_int()
            rest = monomial[:at] + monomial[at + 1 :]
            if number is None:
                continue
            quotient = _quotient(value, number)
            if quotient is None:
                continue
            other = _sorted((*rest, quotient))
            if terms.get(other) == coefficient * number:
                left = {m: c for m, c in terms.items() if m not in (monomial, other)}
                return Index(left) + Index({rest: coefficient}) * value
    return None


def _quotient(value: Index, number: int) -> Fn | None:
    made = value // number
    if len(made.terms) == 1 and made.terms[0][1] == 1 and len(made.terms[0][0]) == 1:
        atom = made.terms[0][0][0]
        return atom if isinstance(atom, Fn) else None
    return None


def _sorted(atoms: tuple[Fn | Sym, ...]) -> Monomial:
    return tuple(sorted(atoms, key=lambda a: a.key))
