"""Where in the source a reduction of an op's equations stands."""

from __future__ import annotations

from convdsl.diagnostics import Span
from convdsl.ir.expr import Reduce
from convdsl.sema.declarations import read_head
from convdsl.sema.model import ResolvedOp
from convdsl.sema.scopes import read_statements
from convdsl.syntax import ast
from convdsl.syntax.walk import walk


def place_of(op: ResolvedOp, tensor: str, reduce: Reduce) -> Span:
    """The place of a reduction in the definition of a tensor; its indices are unique there."""
    statements = read_statements(read_head(op.syntax))
    statement = next(s for s in statements if s.target == tensor)
    wanted = [v.name for v in reduce.vars]
    for node in walk(statement.value):
        if isinstance(node, ast.Reduce) and [b.name.name for b in node.binders] == wanted:
            return node.span
    return statement.span
