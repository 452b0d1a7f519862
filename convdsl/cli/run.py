"""`convdsl run`: an operator on real arrays."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

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

if TYPE_CHECKING:
    from convdsl.cli.inputs import Array
    from convdsl.kernel import Kernel


@click.command("run", short_help="Run an operator on .npy files or random data.")
@file_argument
@op_option
@target_option("numpy")
@define_option
@click.option(
    "--input", "inputs", metavar="NAME=FILE", multiple=True, help="An input from a .npy file."
)
@click.option(
    "--random",
    metavar="NAME,...",
    multiple=True,
    help="Inputs to fill with random numbers; their sizes come from other inputs or -D.",
)
@click.option(
    "--seed",
    metavar="N",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="Where the random numbers start: the same seed gives the same ones.",
)
@click.option(
    "--output", metavar="FILE", type=click.Path(path_type=Path), help="Write the result as .npy."
)
@click.option(
    "--repeat",
    metavar="N",
    type=click.IntRange(1, 100_000),
    help="Time N more calls and show the median.",
)
@click.option("--check", is_flag=True, help="Compare with the float64 definition (small sizes).")
@schedule_option
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
    inputs: tuple[str, ...],
    random: tuple[str, ...],
    seed: int,
    output: Path | None,
    repeat: int | None,
    check: bool,
    schedule: Path | None,
    accuracy: str,
    cap: int,
    limits: str,
    machine: str | None,
    as_json: bool,
) -> None:  # fmt: skip
    """Run an operator on .npy files or random data.

    Inputs with a default may be left out. The first call compiles; its time is shown unless
    --repeat asks for that of later ones.
    """
    from convdsl.cli.inputs import gather, named_files, random_names

    files = named_files(inputs)
    names = random_names(random, files)

    import convdsl
    from convdsl.arguments import as_array
    from convdsl.cli.machine import machine_given
    from convdsl.npy import read_npy
    from convdsl.sema.resolve import resolve
    from convdsl.sema.sizes import bind_parameters
    from convdsl.syntax.parser import load

    program = load(file)
    op = resolve(program, op_name)
    given = assign(op, values)
    params = bind_parameters(op, given.params)
    tensors = {t.name: t for t in op.inputs}
    read = {name: read_npy(path) for name, path in files.items()}
    read = {n: as_array(tensors[n], a) if n in tensors else a for n, a in read.items()}
    arrays = gather(op, params, given.sizes, read, names, seed)
    kernel = convdsl.compile(
        program, op=op.name, target=target, sizes=given.sizes, params=given.params,
        accuracy=accuracy, limits=limits, cap=cap,
        machine=machine_given(machine, [target]), schedule=schedule,
    )  # fmt: skip
    result, facts = _run(kernel, arrays, repeat)
    if check:
        from convdsl.cli.compare import compare

        facts["check"] = compare(program, op.name, arrays, given.params, kernel, result)
    if output is not None:
        import numpy as np

        from convdsl.files import write_files

        write_files({output: lambda f: np.lib.format.write_array(f, result, allow_pickle=False)})
        facts["output"] = str(output)
    if as_json:
        out_json(facts | {"plan": kernel.plan.to_json()})
    else:
        _show(kernel, facts)


def _run(
    kernel: Kernel, arrays: dict[str, Array], repeat: int | None
) -> tuple[Array, dict[str, Any]]:
    """The result, and what to say about the run."""
    from statistics import median
    from time import perf_counter

    def call() -> tuple[Array, float]:
        begin = perf_counter()
        result = kernel(**arrays)
        return result, perf_counter() - begin

    result, first = call()
    facts: dict[str, Any] = {
        "op": kernel.options.op.name,
        "target": kernel.target,
        "device": _device(kernel.target),
        "name": kernel.output.name,
        "dtype": str(result.dtype),
        "shape": list(result.shape),
        "first_seconds": first,
    }
    if repeat is not None:
        facts["seconds"] = median(call()[1] for _ in range(repeat))
        facts["repeat"] = repeat
        if kernel.target == "wgsl":
            facts["device_seconds"] = kernel.time(repeat=repeat, **arrays)
    return result, facts


def _device(target: str) -> str:
    if target == "wgsl":
        from convdsl.backends.wgsl.runtime import get_device

        device = get_device()
        return f"{device.name}{' (software)' if device.info.is_software else ''}"
    import numpy as np

    return f"CPU (NumPy {np.__version__})" if target == "numpy" else target


def _show(kernel: Kernel, facts: dict[str, Any]) -> None:
    from convdsl.cli.plan_text import plan_lines, quantity, seconds

    out(f"{facts['name']}: {facts['dtype']} {tuple(facts['shape'])}")
    out(f"device: {facts['device']}")
    if "seconds" in facts:
        line = f"{seconds(facts['seconds'])} (median of {facts['repeat']} calls after the first)"
        timed = facts.get("device_seconds", facts["seconds"])
        if "device_seconds" in facts:
            line += f", {seconds(timed)} on the device alone"
        if kernel.plan.flops and timed:
            line += f", {quantity(kernel.plan.flops / timed, 1000)}flop/s"
    else:
        line = f"{seconds(facts['first_seconds'])} (first call, compiling included)"
    out(f"time: {line}")
    out("\n".join(plan_lines(kernel.plan)))
    if "check" in facts:
        out(f"check: {facts['check']['text']}")
    if "output" in facts:
        out(f"written: {facts['output']}")
