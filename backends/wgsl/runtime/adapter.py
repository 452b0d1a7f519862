"""Which adapters there are, which one is used, and what it can do.

Needs the optional package wgpu, imported where it is used: emitting WGSL works without it.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from convdsl.backends.wgsl.module import Limits
from convdsl.diagnostics import DeviceError

VARIABLE = "CONVDSL_ADAPTER"

# What generated kernels and the timing of runs can make use of; asked for where an adapter has it.
FEATURES = ("shader-f16", "subgroup", "timestamp-query")

# One tensor is one binding and its elements are counted by an i32: more than this is of no use.
LARGEST_BINDING = 2**32 - 4

_TYPES = {
    "discretegpu": "discrete",
    "integratedgpu": "integrated",
    "virtualgpu": "virtual",
    "cpu": "cpu",
}
_TYPE_ORDER = ("discrete", "integrated", "virtual", "unknown", "cpu")
_BACKENDS = {"darwin": ("metal", "vulkan"), "win32": ("d3d12", "vulkan")}
# All adapters found so far, the last found last. Never released: wgpu-native aborts the process when
# two threads release OpenGL adapters at once, and finalizers run in any thread.
_held: list[list[Any]] = []
_enumerating = threading.Lock()
_SOFTWARE = ("llvmpipe", "lavapipe", "softpipe", "swiftshader", "basic render")


@dataclass(frozen=True, slots=True)
class AdapterInfo:
    """One adapter: what it calls itself, what it is, its limits and features.

    `type` is discrete, integrated, virtual, cpu or unknown; `backend` is vulkan, metal, d3d12,
    opengl ...; `handle` is the adapter object of wgpu.
    """

    name: str
    vendor: str
    backend: str
    type: str
    driver: str
    is_software: bool
    limits: Limits
    features: tuple[str, ...]
    handle: Any = field(default=None, repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.name} ({self.backend})"

    def to_json(self) -> dict[str, object]:
        """All but the handle, as values that `json` can write."""
        limits = asdict(self.limits) | {"features": sorted(self.limits.features)}
        limits["max_workgroup_size"] = list(self.limits.max_workgroup_size)
        return {
            "name": self.name,
            "vendor": self.vendor,
            "backend": self.backend,
            "type": self.type,
            "driver": self.driver,
            "is_software": self.is_software,
            "limits": limits,
            "features": list(self.features),
        }


def import_wgpu() -> Any:
    """The module wgpu; DeviceError with the remedy when it is not installed or does not load."""
    try:
        import wgpu
    except ImportError as error:
        raise DeviceError(
            f"running WGSL needs the package wgpu, which cannot be imported: {error}",
            help="pip install 'convdsl[gpu]'",
        ) from error
    return wgpu


def list_adapters() -> list[AdapterInfo]:
    """All adapters, the preferred one first; empty when there is none, DeviceError without wgpu.

    The system is asked once, and again after `forget_adapters`.
    """
    return sorted(map(describe, _enumerate()), key=_preference)


def forget_adapters() -> None:
    """Ask the system again at the next use: a loss can leave old handles useless."""
    with _enumerating:
        _held.append([])


def choose_adapter(wanted: str | None = None) -> AdapterInfo:
    """The preferred adapter that has `wanted` in its name, vendor, backend, type or driver.

    `wanted` is by default the environment variable CONVDSL_ADAPTER; case does not matter. The
    system's own interface comes before OpenGL; then discrete, integrated, virtual, unknown, cpu.
    DeviceError with the remedy when none fits.
    """
    found = list_adapters()
    if not found:
        raise DeviceError("no WebGPU adapter was found on this machine", help=_remedy())
    if wanted is None:
        wanted = os.environ.get(VARIABLE, "")
    word = wanted.strip().lower()
    fits = [a for a in found if word in f"{a} {a.vendor} {a.type} {a.driver}".lower()]
    if not fits:
        there = ", ".join(str(a) for a in found)
        raise DeviceError(
            f"no adapter matches '{wanted}'; there are: {there}",
            help=f"set {VARIABLE} to a part of one of these names, or unset it",
        )
    return fits[0]


def describe(handle: Any) -> AdapterInfo:
    """The record of an adapter object of wgpu."""
    info: Mapping[str, Any] = handle.info
    name = str(info.get("device") or info.get("description") or "unnamed adapter")
    kind = _TYPES.get(str(info.get("adapter_type", "")).lower(), "unknown")
    features = frozenset(str(f) for f in handle.features)
    software = kind == "cpu" or any(s in name.lower() for s in _SOFTWARE)
    return AdapterInfo(
        name=name,
        vendor=str(info.get("vendor", "")),
        backend=str(info.get("backend_type", "")).lower(),
        type=kind,
        driver=str(info.get("description", "")),
        is_software=software,
        limits=replace(limits_of(name, handle.limits, features), software=software),
        features=tuple(sorted(features)),
        handle=handle,
    )


def adapter_limits(info: AdapterInfo) -> Limits:
    """The limits to generate against for this adapter alone; the profile is the adapter's name."""
    return info.limits


def limits_of(name: str, found: Mapping[str, int], features: frozenset[str]) -> Limits:
    """WebGPU limits (kebab-case names, as wgpu reports them) as a record that can be asked for.

    A tensor is bound whole, so a binding is never larger than a buffer: drivers report 2^31 for one
    and 2^31 - 1 for the other. Sizes are multiples of 4 bytes, as WebGPU wants of a binding.
    """
    default = Limits()

    def limit(key: str, otherwise: int) -> int:
        return int(found.get(key, otherwise))

    buffer = limit("max-buffer-size", default.max_buffer_bytes)
    binding = limit("max-storage-buffer-binding-size", default.max_storage_binding_bytes)
    return Limits(
        profile=name,
        max_invocations_per_workgroup=limit(
            "max-compute-invocations-per-workgroup", default.max_invocations_per_workgroup
        ),
        max_workgroup_size=(
            limit("max-compute-workgroup-size-x", default.max_workgroup_size[0]),
            limit("max-compute-workgroup-size-y", default.max_workgroup_size[1]),
            limit("max-compute-workgroup-size-z", default.max_workgroup_size[2]),
        ),
        max_workgroups_per_dimension=limit(
            "max-compute-workgroups-per-dimension", default.max_workgroups_per_dimension
        ),
        max_workgroup_storage_bytes=limit(
            "max-compute-workgroup-storage-size", default.max_workgroup_storage_bytes
        ),
        max_storage_buffers=limit(
            "max-storage-buffers-per-shader-stage", default.max_storage_buffers
        ),
        max_storage_binding_bytes=min(buffer, binding, LARGEST_BINDING) & ~3,
        max_buffer_bytes=min(buffer, LARGEST_BINDING) & ~3,
        features=features & frozenset(FEATURES),
    )


def required_limits(limits: Limits) -> dict[str, int]:
    """The limits a device is asked for: the record's, never above what the adapter reported."""
    x, y, z = limits.max_workgroup_size
    return {
        "max-compute-invocations-per-workgroup": limits.max_invocations_per_workgroup,
        "max-compute-workgroup-size-x": x,
        "max-compute-workgroup-size-y": y,
        "max-compute-workgroup-size-z": z,
        "max-compute-workgroups-per-dimension": limits.max_workgroups_per_dimension,
        "max-compute-workgroup-storage-size": limits.max_workgroup_storage_bytes,
        "max-storage-buffers-per-shader-stage": limits.max_storage_buffers,
        "max-storage-buffer-binding-size": limits.max_storage_binding_bytes,
        "max-buffer-size": limits.max_buffer_bytes,
    }


def _preference(info: AdapterInfo) -> tuple[int, int, bool]:
    """Small is preferred. OpenGL comes last: it is the fallback interface, with fewer features."""
    backends = _BACKENDS.get(sys.platform, ("vulkan",))
    place = backends.index(info.backend) if info.backend in backends else len(backends)
    return place, _TYPE_ORDER.index(info.type), info.is_software


def _enumerate() -> list[Any]:
    wgpu = import_wgpu()
    with _enumerating:
        if not _held or not _held[-1]:
            with _without_display():
                _held.append(list(wgpu.gpu.enumerate_adapters_sync()))
        return _held[-1]


@contextmanager
def _without_display() -> Iterator[None]:
    """Keep a driver layer that looks for a desktop from complaining where there is none.

    Mesa's device selection layer asks the Wayland display and prints an error line for every
    enumeration on a machine that has no session; the variable is its own switch. Once a device can
    be open, the environment stays as it is: its driver's threads may be reading it.
    """
    switch = "NODEVICE_SELECT"
    if (
        not sys.platform.startswith("linux")
        or "XDG_RUNTIME_DIR" in os.environ
        or switch in os.environ
        or any(_held)
    ):
        yield
        return
    os.environ[switch] = "1"
    try:
        yield
    finally:
        os.environ.pop(switch, None)


def _remedy() -> str:
    if sys.platform.startswith("linux"):
        return (
            "install the graphics driver's Vulkan part, or the software driver:\n"
            "sudo apt-get update && sudo apt-get install -y --no-install-recommends "
            "libvulkan1 mesa-vulkan-drivers"
        )
    return "install or update the graphics driver; `convdsl devices` lists what is found"
