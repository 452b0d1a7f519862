"""`convdsl devices`: what WGSL can run on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from convdsl.cli.options import json_option
from convdsl.cli.output import out, out_json

if TYPE_CHECKING:
    from convdsl.backends.wgsl.runtime import AdapterInfo


@click.command("devices", short_help="List the devices that WGSL can run on.")
@json_option
def command(as_json: bool) -> None:
    """List the devices that WGSL can run on; the first is the one that is used.

    The environment variable CONVDSL_ADAPTER chooses another: a part of its name, or `cpu`. Exit 3
    when there is none.
    """
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
