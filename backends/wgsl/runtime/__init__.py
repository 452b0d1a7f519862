"""Running WGSL modules on a device, through the optional package wgpu."""

from convdsl.backends.wgsl.runtime.adapter import (
    AdapterInfo,
    adapter_limits,
    choose_adapter,
    list_adapters,
)
from convdsl.backends.wgsl.runtime.device import Device, get_device
from convdsl.backends.wgsl.runtime.runner import Runner
from convdsl.backends.wgsl.runtime.tensor import DeviceTensor
from convdsl.backends.wgsl.runtime.timing import Timing

__all__ = [
    "AdapterInfo",
    "Device",
    "DeviceTensor",
    "Runner",
    "Timing",
    "adapter_limits",
    "choose_adapter",
    "get_device",
    "list_adapters",
]
