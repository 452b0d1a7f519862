"""convdsl: state a tensor operator once, get WGSL for any GPU and vectorized NumPy for any CPU."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from convdsl._version import __version__

if TYPE_CHECKING:
    from convdsl import ops
    from convdsl.api import compile, evaluate, load, parse
    from convdsl.artifact import load_kernel
    from convdsl.backends.base import Plan
    from convdsl.diagnostics import CdslError, DeviceError, InternalError
    from convdsl.kernel import Kernel
    from convdsl.schedule.schedule import Schedule
    from convdsl.syntax.ast import Program

__all__ = [
    "CdslError", "DeviceError", "InternalError", "Kernel", "Plan", "Program", "Schedule",
    "__version__", "compile", "evaluate", "load", "load_kernel", "ops", "parse",
]  # fmt: skip

# `import convdsl` stays light: everything else loads when it is first used.
_LAZY = {
    "CdslError": "convdsl.diagnostics",
    "DeviceError": "convdsl.diagnostics",
    "InternalError": "convdsl.diagnostics",
    "compile": "convdsl.api",
    "evaluate": "convdsl.api",
    "load": "convdsl.api",
    "parse": "convdsl.api",
    "load_kernel": "convdsl.artifact",
    "Kernel": "convdsl.kernel",
    "Plan": "convdsl.backends.base",
    "Program": "convdsl.syntax.ast",
    "Schedule": "convdsl.schedule.schedule",
}


def __getattr__(name: str) -> Any:
    if name == "ops":
        return import_module("convdsl.ops")
    if name in _LAZY:
        value = globals()[name] = getattr(import_module(_LAZY[name]), name)
        return value
    raise AttributeError(f"module 'convdsl' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LAZY, "ops"})
