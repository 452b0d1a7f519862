"""The schedule that a compilation uses: the one given, or the one in the program."""

from __future__ import annotations

from os import PathLike, fspath

from convdsl.diagnostics import CdslError
from convdsl.schedule.schedule import TARGETS, Schedule, pick
from convdsl.syntax import ast
from convdsl.syntax.parser import parse_schedules, read_source


def find_schedule(
    given: Schedule | str | PathLike[str] | None, program: ast.Program, op: str, target: str
) -> Schedule | None:
    """The schedule for an op and target; None where none is given and the program has none.

    A str is a path if it is one line that ends in .cdsl, as for programs.

    Raises:
        CdslError: E0627 when what is given is for another op or target, or the target has no verbs.
    """
    if given is None:
        blocks = [item for item in program.items if isinstance(item, ast.Schedule)]
        return pick(blocks, op, target) if target in TARGETS else None
    if target not in TARGETS:
        raise CdslError(
            "E0627",
            f"kernels for {target} are not scheduled by hand",
            help=f"schedules are for: {', '.join(TARGETS)}",
        )
    if isinstance(given, Schedule):
        if (given.op, given.target) != (op, target):
            raise CdslError(
                "E0627",
                f"the schedule is of `{given.op}` for {given.target}, not `{op}` for {target}",
            )
        return given
    text, name = _text(given)
    found = pick(parse_schedules(text, name), op, target)
    if found is None:
        raise CdslError(
            "E0627",
            f"there is no schedule of `{op}` for {target} in {name}",
            help=f"begin it with `schedule {op} for {target} {{`",
        )
    return found


def _text(given: str | PathLike[str]) -> tuple[str, str]:
    if isinstance(given, str) and ("\n" in given or not given.endswith(".cdsl")):
        return given, "<schedule>"
    return read_source(given), fspath(given)
