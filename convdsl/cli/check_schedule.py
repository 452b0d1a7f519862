"""`convdsl check` of schedules: their verbs and, where there are numbers, what they do."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

import convdsl
from convdsl.cli.lint import Warning
from convdsl.cli.lint_schedule import schedule_warnings
from convdsl.cli.options import Numbers, assign
from convdsl.diagnostics import CdslError
from convdsl.report.steps import shots
from convdsl.schedule.schedule import from_syntax, pick
from convdsl.sema.model import ResolvedOp
from convdsl.sema.resolve import resolve
from convdsl.sema.sizes import bind_parameters, complete_sizes
from convdsl.syntax import ast


def check_schedule(
    block: ast.Schedule,
    program: ast.Program,
    others: Sequence[ast.Program],
    values: Numbers,
    accuracy: str,
) -> tuple[str, list[Warning]]:
    """What was left out, and the warnings; CdslError for the first mistake.

    The operator is one of the program, or of the others where it has none.
    """
    schedule = from_syntax(block)
    blocks = [item for item in program.items if isinstance(item, ast.Schedule)]
    pick(blocks, schedule.op, schedule.target)
    found = _home(block, program, others)
    if found is None:
        return ", as far as its verbs: name the operator's file too", []
    op = resolve(found, schedule.op)
    sizes, params = _numbers(op, values)
    if sizes is None:
        return ", as far as its verbs: it is applied when -D gives all numbers", []
    kernel = convdsl.compile(
        found, op=op.name, target=schedule.target, sizes=sizes, params=params, schedule=schedule,
        accuracy=accuracy,
    )  # fmt: skip
    return "", schedule_warnings(schedule, shots(kernel))


def _home(
    block: ast.Schedule, program: ast.Program, others: Sequence[ast.Program]
) -> ast.Program | None:
    """The program that holds the operator; None where there are only schedules."""
    homes = [program] if program.ops else [p for p in others if p.ops]
    for home in homes:
        if any(op.name.name == block.op.name for op in home.ops):
            return home
    if not homes:
        return None
    names = [op.name.name for home in homes for op in home.ops]
    near = get_close_matches(block.op.name, names, 1)
    raise CdslError(
        "E0627",
        f"there is no operator `{block.op.name}` for this schedule",
        block.op.span,
        notes=(f"the operators are: {', '.join(names)}",),
        help=f"did you mean `{near[0]}`?" if near else None,
    )


def _numbers(
    op: ResolvedOp, values: Numbers
) -> tuple[dict[str, int] | None, dict[str, int | float]]:
    """The sizes and parameters that are given; None for sizes where some are missing."""
    known = {p.name for p in op.parameters} | set(op.input_sizes) | {n for n, _ in op.defined}
    given = assign(op, {n: v for n, v in values.items() if n in known})
    if any(p.default is None and p.name not in given.params for p in op.parameters):
        return None, given.params
    params = bind_parameters(op, given.params)
    sizes = complete_sizes(op, params, given.sizes, partial=True)
    return (given.sizes if set(op.input_sizes) <= set(sizes) else None), given.params
