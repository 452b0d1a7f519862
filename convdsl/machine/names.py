"""What a device and the libraries on it call themselves: measured facts hold for these alone."""

from __future__ import annotations

import os
import platform
from pathlib import Path

import numpy as np

from convdsl._version import __version__
from convdsl.machine.facts import Origin, Part


def cpu_name() -> str:
    """What the processor calls itself."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except (OSError, ValueError):
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine() or "CPU"


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def identity(part: Part) -> Origin:
    """The device and its versions; nothing is measured.

    Raises:
        DeviceError: when there is no adapter.
    """
    return _cpu() if part == "cpu" else _gpu()


def _cpu() -> Origin:
    versions = (("convdsl", __version__), ("numpy", np.__version__), ("BLAS", _blas()))
    return Origin(cpu_name(), versions=versions, about=(("processors", cores()),))


def _blas() -> str:
    """The library that multiplies matrices, as NumPy was built with it."""
    config = np.show_config(mode="dicts")
    found = (config or {}).get("Build Dependencies", {}).get("blas", {})
    return f"{found.get('name', 'unknown')} {found.get('version', '')}".strip()


def _gpu() -> Origin:
    from convdsl.backends.wgsl.runtime import choose_adapter
    from convdsl.backends.wgsl.runtime.adapter import import_wgpu

    info = choose_adapter()
    versions = (("convdsl", __version__), ("wgpu", str(import_wgpu().__version__)))
    limits = info.limits
    about = (
        ("type", info.type),
        ("driver", info.driver),
        ("threads a workgroup", limits.max_invocations_per_workgroup),
        ("bytes of workgroup memory", limits.max_workgroup_storage_bytes),
        ("bytes of a tensor", limits.max_storage_binding_bytes),
    )
    return Origin(str(info), versions=versions, about=about)
