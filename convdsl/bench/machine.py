"""What the machine is, as it calls itself."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from convdsl.bench.contestant import Facts
from convdsl.bench.threads import blas_threads


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


def cpu_name() -> str:
    """What the processor calls itself."""
    import platform

    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine() or "CPU"
