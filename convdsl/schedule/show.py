"""A nest as text, for people and for error messages."""

from __future__ import annotations

from collections.abc import Sequence

from convdsl.ir.expr import loads
from convdsl.ir.text_expr import access_text, expr_text
from convdsl.schedule.nest import Nest

MOST_NAMES = 24
MOST_LINES = 32


def shown_names(names: Sequence[str]) -> str:
    """Names in a row, the first ones of many; `none` for none."""
    more = f", ... ({len(names)} in all)" if len(names) > MOST_NAMES else ""
    return ", ".join(names[:MOST_NAMES]) + more if names else "none"


def show_nest(nest: Nest, mark: str | None = None) -> str:
    """The loops, outermost first, with the loop `mark` pointed out, and what the innermost computes.

    Loops of one iteration that mean nothing are left out.
    """
    nest = nest if mark in nest.idle else nest.settled
    lines: list[str] = []
    for depth, loop in enumerate(nest.loops):
        line = f"{'  ' * depth}for {loop.name} in 0..{loop.extent}"
        line += "" if loop.level == "serial" else f" {loop.level}"
        line += " (summed)" if loop.reduced else ""
        for stage in nest.stages:
            if stage.at == loop.name:
                line += f", stage {stage.operand} in {stage.memory}"
                line += " read ahead" if stage.ahead else ""
                line += " tested as a whole" if stage.interior else ""
        if nest.swizzle is not None and nest.swizzle.rows == loop.name:
            line += f", swizzled with {nest.swizzle.columns} by {nest.swizzle.height}"
        if nest.partial == loop.name:
            line += ", partial sums"
        lines.append(line + ("        <- this loop" if loop.name == mark else ""))
    if len(lines) > MOST_LINES:
        half = MOST_LINES // 2
        kept = [n for n in range(len(lines)) if not half <= n < len(lines) - half]
        kept += [n for n, x in enumerate(nest.loops) if x.name == mark and n not in kept]
        gap = f"... {len(lines) - len(kept)} more ..."
        lines = [*lines[:half], gap, *(lines[n].strip() for n in sorted(kept)[half:])]
    accesses = [nest.piece.access, *(load.access for load in loads(nest.piece.value))]
    dims = {a.tensor: a.dims for a in accesses}
    body = f"{access_text(nest.piece.access, dims)} = {expr_text(nest.piece.value, dims)}"
    lines.append("  " * len(nest.loops) + body)
    return "\n".join(lines)
