"""Memory that runs out, limits, lost devices: DeviceError once, and the next call works."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from convdsl.backends.wgsl.module import Limits
from convdsl.backends.wgsl.runtime import Device, Runner
from convdsl.backends.wgsl.runtime.adapter import choose_adapter
from convdsl.diagnostics import DeviceError
from tests.unit import wgsl_runtime_modules as modules

pytestmark = pytest.mark.gpu
A = np.arange(5, dtype=np.float32)


@pytest.fixture
def device() -> Iterator[Device]:
    """A device of the test's own."""
    made = Device(choose_adapter())
    yield made
    made.close()


def works(runner: Runner) -> None:
    np.testing.assert_array_equal(runner.run({"a": A, "b": A}, {"n": 5}).numpy(), 2 * A)


def test_a_lost_device_is_told_once_and_opened_again(device: Device) -> None:
    runner = Runner(modules.add(), device)
    works(runner)
    first = device.session()
    first.gpu.destroy()
    with pytest.raises(DeviceError, match=r"the device .* was lost"):
        works(runner)
    works(runner)
    assert device.session() is not first
    assert device.pipelines_created == 2


def test_tensors_of_a_lost_device_say_so(device: Device) -> None:
    runner = Runner(modules.add(), device)
    old = runner.upload(A)
    device.session().gpu.destroy()
    with pytest.raises(DeviceError, match="lost"):
        old.numpy()
    with pytest.raises(DeviceError, match="upload device tensors"):
        runner.run({"a": old, "b": A}, {"n": 5})
    works(runner)


def test_closing_and_using_again(device: Device) -> None:
    runner = Runner(modules.add(), device)
    works(runner)
    device.close()
    works(runner)


def test_a_device_that_goes_during_an_upload(device: Device) -> None:
    device.upload(A)
    device.session().gpu.destroy()
    with pytest.raises(DeviceError, match="lost"):
        device.upload(np.zeros(1000, np.float32))
    np.testing.assert_array_equal(device.upload(A).numpy(), A)


class Full:
    """Makes `create_buffer` of a device fail with the error of wgpu, some times."""

    def __init__(self, gpu: Any, times: int) -> None:
        self.real, self.left = gpu.create_buffer, times
        gpu.create_buffer = self

    def __call__(self, **options: Any) -> Any:
        from wgpu import GPUOutOfMemoryError

        if self.left:
            self.left -= 1
            raise GPUOutOfMemoryError("Not enough memory left.")
        return self.real(**options)


def test_memory_that_runs_out_names_the_bytes_and_the_adapter(device: Device) -> None:
    runner = Runner(modules.add(), device)
    works(runner)
    Full(device.session().gpu, 2)
    with pytest.raises(DeviceError) as caught:
        runner.upload(np.zeros((100, 10), np.float32), "w")
    assert f"out of memory on {device.name} (w: 4000 bytes)" in str(caught.value)
    assert runner.upload(np.zeros((100, 10), np.float32)).numpy().shape == (100, 10)
    works(runner)


def test_free_buffers_are_given_up_before_memory_runs_out(device: Device) -> None:
    device.upload(np.zeros(300, np.float32)).numpy()
    pool = device.session().pool
    Full(device.session().gpu, 1)
    assert device.upload(A).numpy().tolist() == A.tolist()
    assert pool.free_bytes == 0
    assert pool.created == 2


def test_a_tensor_above_the_limits_is_refused_with_the_numbers() -> None:
    info = choose_adapter()
    small = replace(info, limits=replace(info.limits, max_storage_binding_bytes=4096))
    device = Device(small)
    runner = Runner(modules.add(), device)
    with pytest.raises(DeviceError, match=r"'a' needs 4100 bytes, .* allows 4096 bytes"):
        runner.run({"a": np.zeros(1025, np.float32), "b": A}, {"n": 1025})
    with pytest.raises(DeviceError, match=r"'w' needs 8000 bytes"):
        runner.upload(np.zeros(2000, np.float32), "w")
    works(runner)
    device.close()


def test_a_feature_that_is_missing_is_named() -> None:
    info = choose_adapter()
    device = Device(replace(info, features=()))
    with pytest.raises(DeviceError) as caught:
        Runner(modules.copy(3, "f16"), device).prepare()
    assert "feature shader-f16" in str(caught.value)
    assert device.name in str(caught.value)
    device.close()


def test_a_module_for_larger_limits_is_not_a_bug(device: Device) -> None:
    twice = 2 * device.limits.max_workgroup_storage_bytes
    made = replace(Limits(), profile="B", max_workgroup_storage_bytes=twice)
    with pytest.raises(DeviceError, match=r"generated for B with \d+ bytes of workgroup memory"):
        Runner(replace(modules.add(), limits=made), device).prepare()


def test_a_forked_process_is_told(device: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    runner = Runner(modules.add(), device)
    works(runner)
    real = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: real + 1)
    with pytest.raises(DeviceError, match="spawn"):
        works(runner)
    monkeypatch.undo()
    works(runner)
