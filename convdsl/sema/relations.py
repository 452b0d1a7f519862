"""Relations: affine equations between the indices in scope."""

from __future__ import annotations

from convdsl.diagnostics import CdslError, Span
from convdsl.ir.index import Index, sym
from convdsl.sema.declarations import Head
from convdsl.sema.integers import refs, to_index
from convdsl.sema.scopes import Statement
from convdsl.syntax import ast


def read_relation(head: Head, statement: Statement, relation: ast.Relation) -> Index:
    """What the relation says is zero: its left side minus its right side.

    Raises:
        CdslError: E0203 when it is not affine in the indices, or as `to_index` does.
    """

    def lookup(ref: ast.Ref) -> Index:
        return sym(ref.name) if ref.name in statement.indices else head.integer(ref)

    for side in (relation.left, relation.right):
        found = _not_affine(side, statement)
        if found is not None:
            raise _error(statement, relation, *found)
    difference = to_index(relation.left, lookup) - to_index(relation.right, lookup)
    if not difference.is_affine_in(statement.indices):  # each side alone is, so their difference is
        raise _error(statement, relation, relation.span, "is not affine in the indices")
    return difference


def _error(statement: Statement, relation: ast.Relation, span: Span, why: str) -> CdslError:
    names = dict.fromkeys(
        statement.indices[r.name].name
        for side in (relation.left, relation.right)
        for r in refs(side)
        if r.name in statement.indices
    )
    return CdslError(
        "E0203",
        "a relation must be affine in its indices",
        span,
        notes=(f"this {why}", f"the indices of the relation: {', '.join(names)}"),
        help="multiply an index by integers, sizes and parameters only, like"
        "\n`l*stride + k*dilation == o + pad`",
    )


def _not_affine(expr: ast.Expr | ast.Comparison, statement: Statement) -> tuple[Span, str] | None:
    """The innermost place that is not affine, and what is wrong with it."""
    match expr:
        case ast.Binary(op, left, right):
            inner = _not_affine(left, statement) or _not_affine(right, statement)
            if inner is not None:
                return inner
            a, b = _indices(left, statement), _indices(right, statement)
            if op == "*" and a and b:
                return expr.span, f"multiplies `{a}` by `{b}`" if a != b else f"squares `{a}`"
            if op in ("//", "%") and (a or b):
                return expr.span, f"uses `{op}` on `{a or b}`"
        case ast.Negate(operand):
            return _not_affine(operand, statement)
        case ast.Call(name, args):
            for arg in args:
                used = _indices(arg, statement)
                if used:
                    return expr.span, f"uses `{name}` on `{used}`"
    return None


def _indices(expr: ast.Expr | ast.Comparison, statement: Statement) -> str | None:
    """The first index in an expression, under the user's name."""
    for ref in refs(expr):
        if ref.name in statement.indices:
            return statement.indices[ref.name].name
    return None
