"""The choice of an adapter and its limits, on adapters that are made up."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from convdsl.backends.wgsl.module import Limits
from convdsl.backends.wgsl.runtime import adapter as module
from convdsl.backends.wgsl.runtime.adapter import (
    AdapterInfo,
    choose_adapter,
    describe,
    limits_of,
    list_adapters,
    required_limits,
)
from convdsl.diagnostics import DeviceError


class Fake:
    """As much of an adapter of wgpu as is looked at."""

    def __init__(self, device: str, kind: str, backend: str = "Vulkan", **limits: int) -> None:
        self.info = {
            "device": device,
            "vendor": "maker",
            "description": "driver 1.2",
            "adapter_type": kind,
            "backend_type": backend,
        }
        self.features = {"timestamp-query", "shader-f16", "clip-distances"}
        self.limits = {k.replace("_", "-"): v for k, v in limits.items()}


def there(monkeypatch: pytest.MonkeyPatch, *fakes: Fake) -> None:
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(module, "_enumerate", lambda: list(fakes))
    monkeypatch.delenv(module.VARIABLE, raising=False)


CPU = Fake("llvmpipe", "CPU")
SMALL = Fake("Iris", "IntegratedGPU")
LARGE = Fake("H200", "DiscreteGPU")
OPENGL = Fake("H200", "Unknown", "OpenGL")


def test_the_order_is_interface_then_type(monkeypatch: pytest.MonkeyPatch) -> None:
    there(monkeypatch, OPENGL, CPU, LARGE, SMALL)
    assert [str(a) for a in list_adapters()] == [
        "H200 (vulkan)",
        "Iris (vulkan)",
        "llvmpipe (vulkan)",
        "H200 (opengl)",
    ]
    assert choose_adapter().name == "H200"


@pytest.mark.parametrize(("word", "found"), [("IRIS", "Iris"), ("cpu", "llvmpipe"), ("", "H200")])
def test_the_variable_picks_by_a_part_of_the_name(
    monkeypatch: pytest.MonkeyPatch, word: str, found: str
) -> None:
    there(monkeypatch, CPU, LARGE, SMALL)
    monkeypatch.setenv(module.VARIABLE, word)
    assert choose_adapter().name == found


def test_no_match_lists_what_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    there(monkeypatch, CPU, SMALL)
    with pytest.raises(DeviceError, match=r"'radeon'.*Iris \(vulkan\), llvmpipe \(vulkan\)"):
        choose_adapter("radeon")


def test_no_adapter_names_the_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    there(monkeypatch)
    assert list_adapters() == []
    with pytest.raises(DeviceError, match=r"apt-get install .* mesa-vulkan-drivers"):
        choose_adapter()


def test_without_wgpu_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wgpu", None)
    with pytest.raises(DeviceError, match=r"pip install 'convdsl\[gpu\]'"):
        list_adapters()


def test_the_record_is_json() -> None:
    info = describe(CPU)
    assert info.is_software
    assert not describe(LARGE).is_software
    data: dict[str, Any] = json.loads(json.dumps(info.to_json()))
    assert data["name"] == "llvmpipe"
    assert data["type"] == "cpu"
    assert data["driver"] == "driver 1.2"
    assert data["limits"]["profile"] == "llvmpipe"
    assert data["limits"]["features"] == ["shader-f16", "timestamp-query"]
    assert "clip-distances" in data["features"]


@pytest.mark.parametrize(
    ("buffer", "binding", "usable"),
    [
        (2**31 - 1, 2**31, 2**31 - 4),  # one below: what drivers report
        (2**31, 2**31, 2**31),
        (2**31, 2**31 - 1, 2**31 - 4),
        (2**31 + 1, 2**31, 2**31),
        (2**48, 2**32 - 1, 2**32 - 4),
        (2**28, 2**27, 2**27),
    ],
)
def test_a_binding_is_within_a_buffer_and_within_what_was_reported(
    buffer: int, binding: int, usable: int
) -> None:
    reported = {"max-buffer-size": buffer, "max-storage-buffer-binding-size": binding}
    limits = limits_of("a", reported, frozenset())
    assert limits.max_storage_binding_bytes == usable
    asked = required_limits(limits)
    assert asked["max-storage-buffer-binding-size"] <= min(buffer, binding)
    assert asked["max-buffer-size"] <= buffer
    assert asked["max-storage-buffer-binding-size"] <= asked["max-buffer-size"]


def test_limits_that_are_not_reported_are_the_specifications() -> None:
    assert limits_of("webgpu", {}, frozenset()) == Limits()


@pytest.mark.gpu
def test_a_real_adapter_is_found_with_limits_no_lower_than_the_specifications() -> None:
    info: AdapterInfo = choose_adapter()
    default = Limits()
    assert info.handle is not None
    assert info.limits.max_invocations_per_workgroup >= default.max_invocations_per_workgroup
    assert info.limits.max_storage_binding_bytes >= default.max_storage_binding_bytes
    assert info.limits.max_storage_buffers >= default.max_storage_buffers
    json.dumps(info.to_json())
