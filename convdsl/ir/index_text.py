"""The text of integer expressions: products before sums, the constant last."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from convdsl.ir.atoms import Fn
    from convdsl.ir.index import Index


def index_text(index: Index) -> str:
    """`K*M*4 + l - 1`; 0 for nothing."""
    if not index.terms:
        return "0"
    out = ""
    for monomial, coefficient in index.terms:
        factors = [str(atom.key) for atom in monomial]
        if abs(coefficient) != 1 or not factors:
            factors.append(str(abs(coefficient)))
        term = "*".join(factors)
        if out:
            out += (" - " if coefficient < 0 else " + ") + term
        else:
            out = ("-" if coefficient < 0 else "") + term
    return out


def fn_text(fn: Fn) -> str:
    """`min(a, b)`, or a quotient or remainder in parentheses: `(a // 4)`."""
    if fn.op in ("min", "max"):
        return f"{fn.op}({', '.join(str(a) for a in fn.args)})"
    left, right = (f"({a})" if _needs_parentheses(a) else str(a) for a in fn.args)
    return f"({left} {fn.op} {right})"


def _needs_parentheses(index: Index) -> bool:
    if len(index.terms) != 1:
        return bool(index.terms)
    monomial, coefficient = index.terms[0]
    single = len(monomial) == 1 and coefficient == 1
    return not (single or (monomial == () and coefficient >= 0))
