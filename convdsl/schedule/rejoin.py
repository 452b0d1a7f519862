"""Undo splits and fusions that cancel: c*d*(q // d) + c*(q % d) is c*q."""

from __future__ import annotations

from collections.abc import Mapping
from math import gcd

from convdsl.ir.atoms import Fn, Monomial, Sym
from convdsl.ir.expr import Access, Expr, Load, map_children
from convdsl.ir.index import Index, const, floordiv, modulo
from convdsl.ir.interval import Interval, interval


def rejoin(index: Index) -> Index:
    """The index with matching quotients and remainders of one number put together again."""
    while True:
        found = _pair(index)
        if found is None:
            return index
        index = found


def merged(access: Access) -> Access:
    """The access through a view in which neighbouring dims that were split from one index are one."""
    index, dims = list(access.index), list(access.dims)
    at = len(dims) - 2
    while at >= 0:
        joint = index[at] * dims[at + 1] + index[at + 1]
        both = rejoin(joint)
        if both != joint and _divisions(both) < _divisions(index[at]) + _divisions(index[at + 1]):
            index[at : at + 2], dims[at : at + 2] = [both], [dims[at] * dims[at + 1]]
            at = len(dims) - 1
        at -= 1
    return Access(access.tensor, tuple(index), tuple(dims))


def merged_loads(value: Expr) -> Expr:
    """The value with every access of it merged."""
    if isinstance(value, Load):
        return Load(merged(value.access), value.dtype)
    return map_children(value, merged_loads)


def settled(index: Index, ranges: Mapping[str, Interval]) -> Index:
    """The index without the divisions of numbers that are known to be below the divisor.

    A part of a number that is known to be below a factor of the divisor is taken out of it.
    """
    if not _divisions(index):
        return index
    out = Index({})
    for monomial, coefficient in index.terms:
        term = Index({(): coefficient})
        for atom in monomial:
            term = term * _settled(atom, ranges)
        out = out + term
    return out


def _settled(atom: Fn | Sym, ranges: Mapping[str, Interval]) -> Index:
    if isinstance(atom, Sym) or atom.op not in ("//", "%"):
        return Index({(atom,): 1})
    value, divisor = settled(atom.args[0], ranges), atom.args[1]
    low, high = interval(value, ranges)
    number = divisor.as_int()
    if number is not None and low is not None and high is not None and 0 <= low <= high < number:
        return value if atom.op == "%" else Index({})
    found = _coarse(value, number, ranges) if number is not None else None
    if found is None or number is None:
        return floordiv(value, divisor) if atom.op == "//" else modulo(value, divisor)
    whole, rest, unit = found
    if atom.op == "//":
        return settled(floordiv(whole, const(number // unit)), ranges)
    return settled(modulo(whole, const(number // unit)), ranges) * unit + rest


def _coarse(
    value: Index, number: int, ranges: Mapping[str, Interval]
) -> tuple[Index, Index, int] | None:
    """The value as whole*unit + rest with 0 <= rest < unit, for a unit that divides the number.

    (4*q + v) // 8 is q // 2, and (4*q + v) % 8 is 4*(q % 2) + v, for v in 0..4.
    """
    for unit in sorted({gcd(number, c) for m, c in value.terms if m} - {1}, reverse=True):
        fine = {m: c for m, c in value.terms if m and c % unit}
        rest = Index(fine) + value.constant % unit
        low, high = interval(rest, ranges)
        if low is not None and high is not None and 0 <= low <= high < unit:
            return floordiv(value - rest, const(unit)), rest, unit
    return None


def _divisions(index: Index) -> int:
    """How many quotients and remainders an index has, nested ones included."""
    return sum(
        (atom.op in ("//", "%")) + sum(map(_divisions, atom.args))
        for monomial, _ in index.terms
        for atom in monomial
        if isinstance(atom, Fn)
    )


def _pair(index: Index) -> Index | None:
    terms = dict(index.terms)
    for monomial, coefficient in index.terms:
        for at, atom in enumerate(monomial):
            if not (isinstance(atom, Fn) and atom.op == "%"):
                continue
            number = atom.args[1].as_int()
            if number is None:
                continue
            rest = monomial[:at] + monomial[at + 1 :]
            for other, factor in index.terms:
                if factor != coefficient * number:
                    continue
                whole = _dividend(other, rest, atom.args[0], number)
                if whole is not None:
                    left = {m: c for m, c in terms.items() if m not in (monomial, other)}
                    return Index(left) + Index({rest: coefficient}) * whole
    return None


def _dividend(monomial: Monomial, rest: Monomial, value: Index, number: int) -> Index | None:
    """What the quotient in a monomial, besides `rest`, divides by a number that leaves value % number.

    Quotients are kept with common factors taken out: (4*a + 2) // 8 as a // 2.
    """
    for at, atom in enumerate(monomial):
        if not (isinstance(atom, Fn) and atom.op == "//"):
            continue
        divisor = atom.args[1].as_int()
        if monomial[:at] + monomial[at + 1 :] != rest or not divisor or number % divisor:
            continue
        scale = number // divisor
        difference = value - atom.args[0] * scale
        lost = difference.constant % number
        if lost < scale and all(c % number == 0 for m, c in difference.terms if m):
            return atom.args[0] * scale + lost
    return None
