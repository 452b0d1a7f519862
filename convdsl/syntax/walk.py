"""Walking an expression of the surface syntax."""

from __future__ import annotations

from collections.abc import Iterator

from convdsl.syntax import ast

Node = ast.Expr | ast.Comparison


def operands(node: Node) -> tuple[Node, ...]:
    """The direct subexpressions; not those of axes, ranges and relations."""
    match node:
        case ast.Binary(_, left, right) | ast.Comparison(_, left, right):
            return (left, right)
        case ast.Negate(operand):
            return (operand,)
        case ast.Call(_, args):
            return args
        case ast.Reduce(_, _, _, body, otherwise):
            return (body,) if otherwise is None else (body, otherwise)
        case _:
            return ()


def walk(root: Node) -> Iterator[Node]:
    """The expression and all of its subexpressions, in the order of the text, parents first."""
    stack = [root]
    while stack:
        node = stack.pop()
        yield node
        stack += reversed(operands(node))
