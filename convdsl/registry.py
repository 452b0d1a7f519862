"""Backends by name, through the entry point group `convdsl.backends`."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING

from convdsl.diagnostics import CdslError

if TYPE_CHECKING:
    from convdsl.backends.base import Backend

# Those that ship; also found when convdsl runs from a checkout that is not installed.
_SHIPPED = {
    "numpy": "convdsl.backends.numpy:NumpyBackend",
    "wgsl": "convdsl.backends.wgsl:WgslBackend",
}


def targets() -> list[str]:
    """The names of all targets."""
    return sorted({*_SHIPPED, *_installed()})


@cache
def backend(target: str) -> Backend:
    """The backend of a target; CdslError E0351 for an unknown one."""
    place = _SHIPPED.get(target) or _installed().get(target)
    if place is None:
        known = ", ".join(targets())
        raise CdslError("E0351", f"unknown target `{target}`", help=f"choose one of: {known}")
    module, _, name = place.partition(":")
    made: Backend = getattr(import_module(module), name)()
    return made


@cache
def _installed() -> dict[str, str]:
    from importlib.metadata import entry_points

    return {e.name: e.value for e in entry_points(group="convdsl.backends")}
