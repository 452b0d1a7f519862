"""What the machine is, as it calls itself."""

from __future__ import annotations

import numpy as np

from convdsl.bench.contestant import Facts
from convdsl.bench.threads import blas_threads
from convdsl.machine.names import cpu_name


def facts_of(target: str) -> Facts:
    """The device that a target runs on."""
    from convdsl._version import __version__

    versions = {"convdsl": __version__, "numpy": np.__version__}
    if target != "wgsl":
        return Facts("cpu", cpu_name(), versions, blas_threads())
    from convdsl.backends.wgsl.runtime import get_device
    from convdsl.backends.wgsl.runtime.adapter import import_wgpu

    info = get_device().info
    versions = {"convdsl": __version__, "wgpu": str(import_wgpu().__version__)}
    driver = f", {info.driver}" if info.driver else ""
    return Facts("gpu", f"{info}{driver}", versions, software=info.is_software)
