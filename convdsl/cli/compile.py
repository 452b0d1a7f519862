"""`convdsl compile`: text to WGSL or NumPy, and every stage between."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

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
    names_of,
    op_option,
    schedule_option,
    suggestion,
    target_option,
)
from convdsl.cli.output import err, out, out_json

if TYPE_CHECKING:
    from convdsl.kernel import Kernel


@click.command("compile", short_help="Make WGSL or NumPy from an operator.")
@file_argument
@op_option
@target_option("wgsl")
@define_option
@click.option(
    "--absent",
    metavar="NAME,...",
    multiple=True,
    help="Inputs with a default to leave out: they are constants in the text.",
)
@click.option(
    "-o",
    "folder",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help="Write the files and a manifest there, instead of the text to stdout.",
)
@click.option("--emit", metavar="STAGE", help="Print one stage: ast, definition, normalise ...")
@click.option(
    "--print-after",
    "passes",
    metavar="PASS",
    multiple=True,
    help="Print the program after a pass on stderr; may repeat; `all` for each.",
)
@schedule_option
@accuracy_option
@cap_option
@limits_option
@machine_option
@json_option
@click.pass_context
def command(
    ctx: click.Context,
    file: str,
    op_name: str | None,
    target: str,
    values: Numbers,
    absent: tuple[str, ...],
    folder: Path | None,
    emit: str | None,
    passes: tuple[str, ...],
    schedule: Path | None,
    accuracy: str,
    cap: int,
    limits: str,
    machine: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Make WGSL or NumPy from an operator.

    Sizes that -D does not give stay symbols: the result works for any. Parameters without a default
    need a -D. Inputs with a default are read from memory unless --absent leaves them out. Without
    -o the generated text goes to stdout.
    """
    if emit is not None and (folder is not None or as_json):
        raise click.UsageError("--emit prints one stage; it goes with neither -o nor --json.")
    if emit in ("wgsl", "numpy"):
        if ctx.get_parameter_source("target") == ParameterSource.DEFAULT:
            target = emit
        elif target != emit:
            raise click.UsageError(f"--emit {emit} needs --target {emit}.")

    from convdsl.syntax.parser import load

    program = load(file)
    if emit == "ast":
        from convdsl.cli.tree import tree_text

        out(tree_text(program), newline=False)
        return

    import convdsl
    from convdsl.cli.machine import machine_given
    from convdsl.sema.instantiate import check_absent
    from convdsl.sema.resolve import resolve
    from convdsl.sema.without import without

    gone = names_of(absent, "--absent")
    op = resolve(program, op_name)
    check_absent(op, frozenset(gone))
    op = without(op, gone)
    given = assign(op, values)
    kernel = convdsl.compile(
        program, op=op.name, target=target, sizes=given.sizes, params=given.params,
        accuracy=accuracy, limits=limits, cap=cap,
        machine=machine_given(machine, [target]), absent=gone, schedule=schedule,
        dynamic=[name for name in op.input_sizes if name not in given.sizes],
    )  # fmt: skip
    _print_passes(kernel, passes)
    if emit is not None:
        _emit(kernel, emit)
    elif folder is not None:
        _write(kernel, folder, as_json)
    elif as_json:
        from convdsl.artifact import manifest, texts

        out_json(manifest(kernel) | {"texts": texts(kernel)})
    else:
        out(kernel.source, newline=False)


def _print_passes(kernel: Kernel, passes: tuple[str, ...]) -> None:
    if not passes:
        return
    stages = kernel.stages
    for name in passes:
        if name != "all" and name not in stages:
            hint = suggestion(name, [*stages, "all"])
            raise click.UsageError(f"There is no pass '{name}' for {kernel.target}. {hint}")
    for name, text in stages.items():
        if name in passes or "all" in passes:
            err(f"-- after {name} --\n{text}")


def _emit(kernel: Kernel, stage: str) -> None:
    texts: dict[str, Any] = dict(kernel.stages)
    names = ["ast", *texts, "plan", "manifest"]
    if stage == "plan":
        from convdsl.cli.plan_text import plan_lines

        out("\n".join(plan_lines(kernel.plan)))
    elif stage == "manifest":
        from convdsl.artifact import manifest

        out(json.dumps(manifest(kernel), indent=2))
    elif stage in texts:
        out(texts[stage], newline=False)
    else:
        raise click.UsageError(
            f"There is no stage '{stage}' for {kernel.target}. {suggestion(stage, names)}"
        )


def _write(kernel: Kernel, folder: Path, as_json: bool) -> None:
    from convdsl.artifact import manifest, save
    from convdsl.cli.plan_text import plan_lines

    written = save(kernel, folder)
    if as_json:
        out_json(manifest(kernel) | {"written": [str(path) for path in written]})
        return
    for path in written:
        out(str(path))
    err("\n".join(plan_lines(kernel.plan)))
