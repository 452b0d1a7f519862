"""`Index` as Python text: on Python integers, or on index arrays for the variables of a nest."""

from __future__ import annotations

import ast
from collections.abc import Callable, Mapping

from convdsl.backends.numpy import code
from convdsl.ir.atoms import Atom, Sym
from convdsl.ir.expr import Pred
from convdsl.ir.index import Index, floordiv

Lookup = Callable[[str], ast.expr]


def integer(index: Index, names: Lookup, arrays: Mapping[str, ast.expr] | None = None) -> ast.expr:
    """The value of an index; symbols in `arrays` stand for (broadcasting) integer arrays."""
    positive = [(m, c) for m, c in index.terms if c > 0]
    negative = [(m, c) for m, c in index.terms if c < 0]
    if not index.terms:
        return code.number(0)
    if not positive:  # -k + 5 prints as 5 - k
        inner = integer(-index, names, arrays)
        return (
            code.negate(inner)
            if len(index.terms) > 1 or index.as_int() is None
            else _literal(index)
        )
    out: ast.expr | None = None
    for m, c in positive:
        term = _term(m, c, names, arrays)
        out = term if out is None else code.operate(out, "+", term)
    assert out is not None
    for m, c in negative:
        out = code.operate(out, "-", _term(m, -c, names, arrays))
    return out


def _literal(index: Index) -> ast.expr:
    return code.number(index.constant)


def _term(
    m: tuple[Atom, ...], c: int, names: Lookup, arrays: Mapping[str, ast.expr] | None
) -> ast.expr:
    out: ast.expr | None = code.number(c) if c != 1 or not m else None
    for atom in m:
        factor = _atom(atom, names, arrays)
        out = factor if out is None else code.operate(out, "*", factor)
    assert out is not None
    return out


def _atom(atom: Atom, names: Lookup, arrays: Mapping[str, ast.expr] | None) -> ast.expr:
    if isinstance(atom, Sym):
        return arrays[atom.name] if arrays and atom.name in arrays else names(atom.name)
    args = [integer(a, names, arrays) for a in atom.args]
    if atom.op in ("//", "%"):
        return code.operate(args[0], atom.op, args[1])
    if arrays and any(a.free & arrays.keys() for a in atom.args):
        function = code.np("minimum" if atom.op == "min" else "maximum")
        out = args[0]
        for arg in args[1:]:
            out = code.call(function, out, arg)
        return out
    return code.call(atom.op, *args)


def condition(pred: Pred, names: Lookup, arrays: Mapping[str, ast.expr] | None = None) -> ast.expr:
    """A comparison with the negative terms moved to its right side."""
    index = pred.index
    left = Index({m: c for m, c in index.terms if c > 0})
    right = Index({m: -c for m, c in index.terms if c < 0})
    operator = {"ge": ">=", "eq": "==", "ne": "!="}[pred.kind]
    if pred.kind == "ge":
        if right.terms == (((), 1),) and left.terms:  # a - 1 >= 0 reads a > 0
            operator, right = ">", Index({})
        elif right.constant == 1 and left.terms:
            operator, right = ">", right - 1
        elif left.constant == 1 and len(left.terms) == 1:  # 1 - a >= 0 reads a <= 1
            return code.compare(integer(right, names, arrays), "<=", code.number(1))
        elif not left.terms:
            return code.compare(integer(right, names, arrays), "<=", code.number(0))
    return code.compare(integer(left, names, arrays), operator, integer(right, names, arrays))


def bare_product(index: Index) -> tuple[int, list[str]] | None:
    """(c, names) when the index is c times a product of symbols, else None."""
    if len(index.terms) != 1:
        return None
    m, c = index.terms[0]
    names = [a.name for a in m if isinstance(a, Sym)]
    return (c, names) if len(names) == len(m) and c > 0 else None


def exact(index: Index, divisor: Index) -> Index | None:
    """index / divisor when the division is exact as polynomials."""
    quotient = floordiv(index, divisor)
    return quotient if quotient * divisor == index else None
