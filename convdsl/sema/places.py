"""Where in the source a reduction of an op's equations stands."""

from __future__ import annotations

from collections.abc import Iterator

from convdsl.diagnostics import Span
from convdsl.ir.expr import Reduce
from convdsl.sema.declarations import read_head
from convdsl.sema.model import ResolvedOp
from convdsl.sema.scopes import read_statements
from convdsl.syntax import ast


def place_of(op: ResolvedOp, tensor: str, reduce: Reduce) -> Span:
    """The place of a reduction in the definition of a tensor; its indices are unique there."""
    statements = read_statements(read_head(op.syntax))
    statement = next(s for s in statements if s.target == tensor)
    wanted = [v.name for v in reduce.vars]
    for node in _reductions(statement.value):
        if [b.name.name for b in node.binders] == wanted:
            return node.span
    return statement.span


def _reductions(expr: ast.Expr | ast.Comparison) -> Iterator[ast.Reduce]:
    match expr:
        case ast.Reduce():
            yield expr
            yield from _reductions(expr.body)
            if expr.otherwise is not None:
                yield from _reductions(expr.otherwise)
        case ast.Binary(_, left, right) | ast.Comparison(_, left, right):
            yield from _reductions(left)
            yield from _reductions(right)
        case ast.Negate(operand):
            yield from _reductions(operand)
        case ast.Call(_, args):
            for arg in args:
                yield from _reductions(arg)
        case _:
            return
