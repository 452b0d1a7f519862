"""One `where` clause under numbers."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from convdsl.diagnostics import CdslError
from convdsl.sema.integers import evaluate, refs, show
from convdsl.syntax import ast

_HOLDS: dict[str, Callable[[int, int], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


_FLIPPED: dict[ast.Compare, ast.Compare] = {
    "==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<=",
}  # fmt: skip


def check_clause(chain: ast.Chain, env: Mapping[str, int]) -> None:
    """Check one clause.

    Raises:
        CdslError: E0301 with the clause and its numbers, or what evaluating it raises.
    """
    values = [evaluate(operand, env) for operand in chain.operands]
    for n, op in enumerate(chain.ops):
        if not _HOLDS[op](values[n], values[n + 1]):
            raise _failed(chain, n, values, env)


def _failed(chain: ast.Chain, at: int, values: list[int], env: Mapping[str, int]) -> CdslError:
    """The comparison behind operand `at` does not hold."""
    sides = [(chain.operands[n], values[n]) for n in (at, at + 1)]
    op = chain.ops[at]
    if isinstance(sides[0][0], ast.Number):  # `0 <= pad` is about pad
        sides.reverse()
        op = _FLIPPED[op]
    (left, is_), (right, limit) = sides
    shown = {side.name for side, _ in sides if isinstance(side, ast.Ref)}
    numbers = ", ".join(
        f"{r.name} = {env[r.name]}"
        for r in dict.fromkeys(r for side, _ in sides for r in refs(side))
        if r.name not in shown
    )
    wanted = str(limit) if isinstance(right, ast.Number) else f"{show(right)} = {limit}"
    if op == "!=":
        both = isinstance(right, ast.Number)
        fact = (
            f"{show(left)} is {is_}" if both else f"{show(left)} and {show(right)} are both {is_}"
        )
    else:
        fact = f"{show(left)} is {is_}, not {'' if op == '==' else op + ' '}{wanted}"
    reason = comment_after(chain)
    text = chain.span.source.text[chain.span.start : chain.span.end]
    return CdslError(
        "E0301",
        f"precondition failed: {' '.join(text.split())}",
        chain.span,
        notes=tuple(
            note
            for note in (
                fact,
                f"with {numbers}" if numbers else "",
                f"why: {reason}" if reason else "",
            )
            if note
        ),
    )


def comment_after(chain: ast.Chain) -> str:
    """The comment on the clause's own line: its author's reason, shown when it fails."""
    rest = chain.span.source.text[chain.span.end :].split("\n", 1)[0].strip().lstrip(",").strip()
    return rest.lstrip("#").strip() if rest.startswith("#") else ""
