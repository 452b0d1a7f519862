"""`convdsl check`: everything that can be known of a text without running it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from convdsl.cli.options import (
    Numbers,
    accuracy_option,
    define_option,
    json_option,
    op_option,
)
from convdsl.cli.output import diagnostic, out, out_json

if TYPE_CHECKING:
    from convdsl.cli.lint import Warning
    from convdsl.diagnostics import CdslError, Span
    from convdsl.syntax.ast import Op, Program


@click.command("check", short_help="Check files and warn of what looks unintended.")
@click.argument("files", metavar="OP.cdsl...", nargs=-1, required=True)
@op_option
@define_option
@accuracy_option
@json_option
def command(
    files: tuple[str, ...], op_name: str | None, values: Numbers, accuracy: str, as_json: bool
) -> int:  # fmt: skip
    """Check files and warn of what looks unintended.

    Checked are the syntax, names, ranges, relations and types of every operator, its `where`
    clauses as far as there are numbers, and that no max or min is over nothing. A schedule is
    applied when -D gives numbers to all sizes; its operator may stand in another of the files.
    Exit 1 if there is an error.
    """
    from convdsl.diagnostics import CdslError

    report: list[dict[str, Any]] = []
    seen: set[str] = set()
    loaded: dict[str, Program] = {}
    for name in files:
        facts: dict[str, Any] = {
            "file": name, "ops": [], "schedules": [], "errors": [], "warnings": []
        }  # fmt: skip
        report.append(facts)
        try:
            program = loaded[name] = _load(name)
            for op in _chosen(program, op_name):
                try:
                    note, found = _check(op, values, seen)
                except CdslError as error:
                    _say(facts["errors"], error, as_json)
                    continue
                facts["ops"].append(op.name.name)
                for warning in found:
                    _say(facts["warnings"], warning, as_json)
                if not as_json:
                    out(f"{name}: {op.name.name} is right{note}")
        except CdslError as error:
            _say(facts["errors"], error, as_json)
    for facts in report:
        if facts["file"] in loaded:
            _schedules(facts, loaded, op_name, values, accuracy, as_json)
    failed = any(facts["errors"] for facts in report)
    unknown = [name for name in values if name not in seen]
    if unknown and not failed:
        raise CdslError("E0302", f"no operator has a parameter or size `{unknown[0]}`")
    if as_json:
        out_json(report)
    return int(failed)


def _load(name: str) -> Program:
    """A file with operators, schedules or both."""
    from convdsl.syntax import checks
    from convdsl.syntax.parser import parse_items, read_source

    program = parse_items(read_source(name), name)
    if program.ops or not program.items:
        checks.operators(program)
    return program


def _schedules(
    facts: dict[str, Any],
    loaded: dict[str, Program],
    op_name: str | None,
    values: Numbers,
    accuracy: str,
    as_json: bool,
) -> None:
    """The schedules of a file whose operators are right."""
    from convdsl.diagnostics import CdslError
    from convdsl.syntax.ast import Schedule

    program = loaded[facts["file"]]
    blocks = [item for item in program.items if isinstance(item, Schedule)]
    blocks = [b for b in blocks if op_name in (None, b.op.name)]
    if not blocks or facts["errors"]:
        return
    from convdsl.cli.check_schedule import check_schedule

    for block in blocks:
        title = f"schedule {block.op.name} for {block.target.name}"
        try:
            note, found = check_schedule(block, program, list(loaded.values()), values, accuracy)
        except CdslError as error:
            _say(facts["errors"], error, as_json)
            continue
        facts["schedules"].append({"op": block.op.name, "target": block.target.name})
        for warning in found:
            _say(facts["warnings"], warning, as_json)
        if not as_json:
            out(f"{facts['file']}: {title} is right{note}")


def _chosen(program: Program, name: str | None) -> tuple[Op, ...]:
    from convdsl.sema.resolve import select_op

    if name is None or not program.ops:
        return program.ops
    return (select_op(program, name),)


def _check(op: Op, values: Numbers, seen: set[str]) -> tuple[str, list[Warning]]:
    """What was left out, and the warnings; CdslError for the first mistake."""
    from convdsl.cli.lint import warnings
    from convdsl.cli.options import assign
    from convdsl.sema.emptiness import check_reductions
    from convdsl.sema.instantiate import instantiate
    from convdsl.sema.names import quoted
    from convdsl.sema.resolve import resolve_op
    from convdsl.sema.sizes import bind_parameters, complete_sizes

    resolved = resolve_op(op)
    known = {p.name for p in resolved.parameters} | {n for n, _ in resolved.defined}
    known |= set(resolved.input_sizes)
    seen |= known
    given = assign(resolved, {n: v for n, v in values.items() if n in known})
    missing = [
        p.name for p in resolved.parameters if p.default is None and p.name not in given.params
    ]
    if missing:
        plural = "have no number" if len(missing) > 1 else "has no number"
        return f", as far as can be known while {quoted(missing)} {plural}", warnings(resolved)
    params = bind_parameters(resolved, given.params)
    sizes = complete_sizes(resolved, params, given.sizes, partial=True)
    check_reductions(resolved, params, instantiate(resolved, params, sizes))
    return "", warnings(resolved)


def _say(into: list[dict[str, Any]], what: CdslError | Warning, as_json: bool) -> None:
    into.append(
        {
            "code": getattr(what, "code", None),
            "message": getattr(what, "message", ""),
            "place": _place(what.span),
            "notes": [note.text for note in getattr(what, "notes", ())],
            "help": what.help,
        }
    )
    if not as_json:
        diagnostic(str(what))


def _place(span: Span | None) -> dict[str, Any] | None:
    if span is None:
        return None
    line, column = span.source.position(span.start)
    return {"line": line, "column": column, "length": span.end - span.start}
