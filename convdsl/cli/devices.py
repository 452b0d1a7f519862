"""`convdsl devices`: what WGSL can run on."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from convdsl.cli.options import json_option
from convdsl.cli.output import err, out, out_json

if TYPE_CHECKING:
    from convdsl.backends.wgsl.runtime import AdapterInfo
    from convdsl.machine.facts import Machine, Part


@click.command("devices", short_help="List the devices that WGSL can run on.")
@click.option(
    "--measure", is_flag=True,
    help="Measure the CPU and the device, show the facts and keep them for `--machine here`.",
)  # fmt: skip
@click.option(
    "-o", "file", metavar="FILE", type=click.Path(path_type=Path),
    help="Write the facts there, too, for `--machine FILE`.",
)  # fmt: skip
@json_option
def command(measure: bool, file: Path | None, as_json: bool) -> None:
    """List the devices that WGSL can run on; the first is the one that is used.

    The environment variable CONVDSL_ADAPTER chooses another: a part of its name, or `cpu`. Exit 3
    when there is none; --measure then measures the CPU alone.
    """
    if file is not None and not measure:
        raise click.UsageError("-o writes what --measure finds.")
    if measure:
        _show(_measured(), file, as_json)
        return
    from convdsl.backends.wgsl.runtime import choose_adapter, list_adapters
    from convdsl.diagnostics import DeviceError

    try:
        chosen = choose_adapter()
    except DeviceError:
        if as_json:
            out_json([])
        raise
    adapters = list_adapters()
    adapters.sort(key=lambda a: a != chosen)
    if as_json:
        out_json([a.to_json() for a in adapters])
        return
    for adapter in adapters:
        out(_line(adapter, adapter == chosen))


def _measured() -> Machine:
    """The facts of the CPU, and of the device where there is one."""
    from convdsl.backends.wgsl.runtime import choose_adapter
    from convdsl.cli.machine import measuring
    from convdsl.diagnostics import DeviceError
    from convdsl.machine.kept import measure

    parts: list[Part] = ["cpu", "gpu"]
    try:
        choose_adapter()
    except DeviceError as error:
        err(f"{error.message}: the CPU alone is measured")
        parts = ["cpu"]
    with measuring() as say:
        return measure(parts, say)


def _show(machine: Machine, file: Path | None, as_json: bool) -> None:
    from convdsl.machine.document import parts_of, text_of

    if file is not None:
        from convdsl.files import write_files

        write_files({file: text_of(machine).encode()})
    if as_json:
        out(text_of(machine), newline=False)
        return
    from rich.console import Console

    from convdsl.cli.machine import facts_table
    from convdsl.machine.kept import file_of

    console = Console(highlight=False)
    for part in parts_of(machine):
        console.print(facts_table(getattr(machine, part)))
        err(f"kept: {file_of(part)}")
    if file is not None:
        err(f"written: {file}")


def _line(adapter: AdapterInfo, used: bool) -> str:
    from convdsl.cli.plan_text import quantity

    limits = adapter.limits
    has = [f for f in ("shader-f16", "subgroup", "timestamp-query") if f in adapter.features]
    facts = [
        f"{adapter.type}{', software' if adapter.is_software and adapter.type != 'cpu' else ''}",
        f"driver {adapter.driver}" if adapter.driver else "",
        f"tensors up to {quantity(limits.max_storage_binding_bytes, 1024)}B",
        f"{limits.max_invocations_per_workgroup} threads a workgroup",
        f"{quantity(limits.max_workgroup_storage_bytes, 1024)}B of workgroup memory",
        f"has {', '.join(has)}" if has else "",
    ]
    text = "; ".join(fact for fact in facts if fact)
    return f"{adapter}{'  (used)' if used else ''}\n  {text}"
