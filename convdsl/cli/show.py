"""`convdsl show`: the loops that a schedule makes, as text or as a page."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import click

from convdsl.cli.options import (
    Numbers,
    accuracy_option,
    assign,
    cap_option,
    define_option,
    file_argument,
    json_option,
    limits_option,
    machine_option,
    op_option,
    schedule_option,
    target_option,
)
from convdsl.cli.output import out, out_json


@click.command("show", short_help="Show the loops that a schedule makes.")
@file_argument
@op_option
@target_option("wgsl")
@define_option
@schedule_option
@click.option("--steps", is_flag=True, help="Show what each step of the schedule changes.")
@click.option(
    "--html",
    "page",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="Write a page with the text, the steps, the tiles as pictures, and the generated text.",
)
@accuracy_option
@cap_option
@limits_option
@machine_option
@json_option
def command(
    file: str,
    op_name: str | None,
    target: str,
    values: Numbers,
    schedule: Path | None,
    steps: bool,
    page: Path | None,
    accuracy: str,
    cap: int,
    limits: str,
    machine: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Show the loops that a schedule makes.

    One nest for each equation, and for each of its parts that are computed apart. Without
    --schedule it is the schedule in the file, else the one that is chosen. Sizes that -D does not
    give stay symbols.
    """
    if page is not None and (as_json or steps):
        raise click.UsageError("--html writes all steps; it goes with neither --steps nor --json.")
    import convdsl
    from convdsl.cli.machine import machine_given
    from convdsl.report.steps import changes, nest_lines, shots
    from convdsl.sema.resolve import resolve
    from convdsl.syntax.parser import load

    program = load(file)
    op = resolve(program, op_name)
    given = assign(op, values)
    kernel = convdsl.compile(
        program, op=op.name, target=target, sizes=given.sizes, params=given.params,
        accuracy=accuracy, limits=limits, cap=cap,
        machine=machine_given(machine, [target]), schedule=schedule,
        dynamic=[name for name in op.input_sizes if name not in given.sizes],
    )  # fmt: skip
    if page is not None:
        from convdsl.files import write_files
        from convdsl.report.page import page_of

        write_files({page: page_of(kernel, program.source.text).encode()})
        out(str(page))
    elif as_json:
        seen = shots(kernel)
        listed = [
            {"step": str(b.step), "given": b.given, "changed": changes(a, b)}
            for a, b in pairwise(seen)
        ]
        nests = seen[-1].nests
        out_json({"op": op.name, "target": target, "nests": nests, "steps": listed})
    else:
        out("\n".join(nest_lines(kernel, steps)))
