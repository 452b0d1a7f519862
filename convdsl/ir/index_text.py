"""The text of integer expressions: products before sums, the constant last.

There are two: `index_text` for people has `ceil(K / 4)` where `plain_text`, which gives the order of
terms and is what other programs read, has `-((-K) // 4)`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from convdsl.ir.atoms import Atom, Fn, Monomial
    from convdsl.ir.index import Index


def index_text(index: Index) -> str:
    """`K*M*4 + l - 1`, `ceil(L / 4)`; 0 for nothing."""
    return _terms(index, _ceilings)


def plain_text(index: Index) -> str:
    """The same of `+ - * // % min max` alone."""
    return _terms(index, lambda monomial, minus: ([str(atom.key) for atom in monomial], minus))


def fn_text(fn: Fn) -> str:
    """`min(a, b)`, or a quotient or remainder in parentheses: `(a // 4)`."""
    return _function(fn, plain_text)


def _terms(index: Index, product: Callable[[Monomial, bool], tuple[list[str], bool]]) -> str:
    """The terms in a row; `product` gives the factors of one, and whether it is subtracted."""
    out = ""
    for monomial, coefficient in index.terms:
        factors, minus = product(monomial, coefficient < 0)
        if abs(coefficient) != 1 or not factors:
            factors.append(str(abs(coefficient)))
        term = "*".join(factors)
        if out:
            out += (" - " if minus else " + ") + term
        else:
            out = ("-" if minus else "") + term
    return out or "0"


def _ceilings(monomial: Monomial, minus: bool) -> tuple[list[str], bool]:
    """The factors; -((-a) // b) is ceil(a / b)."""
    factors: list[str] = []
    for atom in monomial:
        if isinstance(atom, str):
            factors.append(atom.key)
        elif minus and _rounds_up(atom):
            above, below = -atom.args[0], atom.args[1]
            dividend = f"({index_text(above)})" if len(above.terms) > 1 else index_text(above)
            factors.append(f"ceil({dividend} / {_operand(below, index_text)})")
            minus = False
        else:
            factors.append(_function(atom, index_text))
    return factors, minus


def _rounds_up(atom: Atom) -> bool:
    """Whether it is a quotient of what is shorter when it is negated: (-a) // b."""
    if isinstance(atom, str) or atom.op != "//":
        return False
    monomial, coefficient = atom.args[0].terms[0]
    return (coefficient < 0) != any(map(_rounds_up, monomial))


def _function(fn: Fn, text: Callable[[Index], str]) -> str:
    if fn.op in ("min", "max"):
        return f"{fn.op}({', '.join(map(text, fn.args))})"
    left, right = (_operand(a, text) for a in fn.args)
    return f"({left} {fn.op} {right})"


def _operand(index: Index, text: Callable[[Index], str]) -> str:
    return f"({text(index)})" if _needs_parentheses(index) else text(index)


def _needs_parentheses(index: Index) -> bool:
    if len(index.terms) != 1:
        return bool(index.terms)
    monomial, coefficient = index.terms[0]
    single = len(monomial) == 1 and coefficient == 1
    return not (single or (monomial == () and coefficient >= 0))
