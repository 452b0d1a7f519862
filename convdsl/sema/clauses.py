"""One `where` clause under numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from convdsl.diagnostics import CdslError
from convdsl.sema.integers import evaluate, names_of, show_chain
from convdsl.syntax import ast

_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def check_clause(chain: ast.Chain, env: Mapping[str, int]) -> None:
    """Check one clause.

    Raises:
        CdslError: E0301 with the clause and its numbers, or what evaluating it raises.
    """
    values = [evaluate(operand, env) for operand in chain.operands]
    for op, left, right in zip(chain.ops, values, values[1:], strict=False):
        if not _HOLDS[op](left, right):
            raise _failed(chain, values, env)


def _failed(chain: ast.Chain, values: list[int], env: Mapping[str, int]) -> CdslError:
    numbers = ", ".join(f"{name} = {env[name]}" for name in names_of(chain))
    notes = [numbers] if numbers else []
    # With arithmetic in the clause, also what its sides come to.
    if any(not isinstance(o, ast.Ref | ast.Number) for o in chain.operands):
        shown = str(values[0])
        for op, value in zip(chain.ops, values[1:], strict=True):
            shown += f" {op} {value}"
        notes.append(f"that is {shown}, which does not hold")
    reason = comment_after(chain)
    if reason:
        notes.append(f"why: {reason}")
    return CdslError(
        "E0301", f"precondition failed: {show_chain(chain)}", chain.span, notes=tuple(notes)
    )


def comment_after(chain: ast.Chain) -> str:
    """The comment on the clause's own line: its author's reason, shown when it fails."""
    rest = chain.span.source.text[chain.span.end :].split("\n", 1)[0].strip().lstrip(",").strip()
    return rest.lstrip("#").strip() if rest.startswith("#") else ""
