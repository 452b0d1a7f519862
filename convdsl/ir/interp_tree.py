"""Short names for building Python syntax trees, and the tree of an `Index`."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from convdsl.ir.atoms import Atom, Sym
from convdsl.ir.index import Index

_BINARY: dict[str, type[ast.operator]] = {
    "+": ast.Add, "-": ast.Sub, "*": ast.Mult, "/": ast.Div, "//": ast.FloorDiv, "%": ast.Mod,
}  # fmt: skip
_COMPARE: dict[str, type[ast.cmpop]] = {
    "==": ast.Eq, "!=": ast.NotEq, "<": ast.Lt, "<=": ast.LtE, ">": ast.Gt, ">=": ast.GtE,
}  # fmt: skip


def name(identifier: str) -> ast.expr:
    return ast.Name(identifier, ast.Load())


def number(value: float) -> ast.expr:
    return ast.Constant(value)


def binary(op: str, left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.BinOp(left, _BINARY[op](), right)


def operator(op: str) -> ast.operator:
    return _BINARY[op]()


def compare(left: ast.expr, *rest: tuple[str, ast.expr]) -> ast.expr:
    """A chain: `compare(a, ("<", b), ("<", c))` is a < b < c."""
    return ast.Compare(left, [_COMPARE[op]() for op, _ in rest], [e for _, e in rest])


def call(function: str, *args: ast.expr) -> ast.expr:
    return ast.Call(name(function), list(args), [])


def both(conditions: Sequence[ast.expr]) -> ast.expr:
    if not conditions:
        return ast.Constant(True)
    return conditions[0] if len(conditions) == 1 else ast.BoolOp(ast.And(), list(conditions))


def element(buffer: str, at: ast.expr) -> ast.Subscript:
    return ast.Subscript(name(buffer), at, ast.Load())


def assign(target: str | ast.Subscript, value: ast.expr) -> ast.stmt:
    if isinstance(target, str):
        return ast.Assign([ast.Name(target, ast.Store())], value)
    return ast.Assign([ast.Subscript(target.value, target.slice, ast.Store())], value)


def function(identifier: str, args: Sequence[str], body: list[ast.stmt]) -> ast.FunctionDef:
    parameters = ast.arguments([], [ast.arg(a) for a in args], None, [], [], None, [])
    return ast.FunctionDef(
        name=identifier, args=parameters, body=body or [ast.Pass()], decorator_list=[]
    )


def integer(index: Index, names: Mapping[str, str]) -> ast.expr:
    """The tree of an index; `names` gives the Python variable of each symbol in it."""
    out: ast.expr | None = None
    for monomial, coefficient in index.terms:
        term: ast.expr | None = None
        for atom in monomial:
            factor = _atom(atom, names)
            term = factor if term is None else binary("*", term, factor)
        size = abs(coefficient) if out is not None else coefficient
        if term is None:
            term = number(size)
        elif size != 1:
            term = binary("*", term, number(size))
        out = term if out is None else binary("+" if coefficient > 0 else "-", out, term)
    return number(0) if out is None else out


def _atom(atom: Atom, names: Mapping[str, str]) -> ast.expr:
    if isinstance(atom, Sym):
        return name(names[atom.name])
    args = [integer(a, names) for a in atom.args]
    if atom.op in ("min", "max"):
        return call(atom.op, *args)
    return binary(atom.op, args[0], args[1])
