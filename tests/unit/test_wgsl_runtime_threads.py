"""Several threads: what would end the process, hang, or be done twice."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

import convdsl
from convdsl.backends.wgsl.runtime import Device, DeviceTensor, Runner
from convdsl.backends.wgsl.runtime import adapter as module
from convdsl.backends.wgsl.runtime.adapter import choose_adapter, forget_adapters, list_adapters
from convdsl.diagnostics import DeviceError
from tests.unit import wgsl_runtime_modules as modules
from tests.unit.api_programs import AXPY, whole

MOST = 60  # seconds until a thread counts as stuck


def together(*works: Callable[[], object]) -> list[object]:
    """What each returns, or the exception it raises, all started at the same time."""
    results: list[object] = [None] * len(works)
    barrier = threading.Barrier(len(works))

    def one(number: int, work: Callable[[], object]) -> None:
        barrier.wait()
        try:
            results[number] = work()
        except Exception as error:
            results[number] = error

    threads = [
        threading.Thread(target=one, args=(number, work), daemon=True)
        for number, work in enumerate(works)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(MOST)
    assert not any(thread.is_alive() for thread in threads)
    return results


class Handle:
    """An adapter of wgpu; tells when it is released."""

    def __init__(self, released: list[str]) -> None:
        self.info = {"device": "llvmpipe", "adapter_type": "CPU", "backend_type": "OpenGL"}
        self.features: set[str] = set()
        self.limits: dict[str, int] = {}
        self._released = released

    def __del__(self) -> None:
        self._released.append("handle")


def test_adapters_are_asked_for_once_and_never_released(monkeypatch: pytest.MonkeyPatch) -> None:
    """The native library aborts when two threads release OpenGL adapters at the same time."""
    asked: list[int] = []
    released: list[str] = []

    def enumerate_adapters_sync() -> list[Handle]:
        asked.append(threading.get_ident())
        time.sleep(0.05)  # the others come meanwhile
        return [Handle(released)]

    gpu = SimpleNamespace(enumerate_adapters_sync=enumerate_adapters_sync)
    monkeypatch.setattr(module, "import_wgpu", lambda: SimpleNamespace(gpu=gpu))
    monkeypatch.setattr(module, "_held", [])
    found = together(*[list_adapters] * 4)
    assert len(asked) == 1
    assert len({id(info.handle) for infos in found for info in infos}) == 1  # type: ignore[attr-defined]
    del found
    forget_adapters()
    assert [a.name for a in list_adapters()] == ["llvmpipe"]
    assert len(asked) == 2
    assert released == []


@pytest.mark.gpu
def test_runners_are_made_and_dropped_by_several_threads() -> None:
    def work() -> bool:
        a = np.ones(5, np.float32)
        for _ in range(25):
            assert list_adapters()
            y = Runner(modules.add()).run({"a": a, "b": a}, {"n": 5})
        return bool(np.array_equal(y.numpy(), 2 * a))

    assert together(*[work] * 8) == [True] * 8


@pytest.mark.gpu
def test_a_device_is_closed_while_another_thread_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    from wgpu import GPUPromise

    device = Device(choose_adapter())
    tensor, session = device.upload(np.ones(5, np.float32)), device.session()
    destroy: Callable[[], None] = session.gpu.destroy
    wait: Callable[[Any], object] = GPUPromise.sync_wait
    events: list[str] = []
    waiting = threading.Event()

    def waits(promise: Any) -> object:
        waiting.set()
        while not session.lost:
            time.sleep(0.001)
        time.sleep(0.05)  # the other thread goes on, unless it waits
        result = wait(promise)
        events.append("read")
        return result

    def destroys() -> None:
        events.append("destroyed")
        destroy()

    def close() -> None:
        waiting.wait()
        device.close()

    monkeypatch.setattr(GPUPromise, "sync_wait", waits)
    session.gpu.destroy = destroys
    read, closed = together(tensor.numpy, close)
    assert isinstance(read, DeviceError)
    assert closed is None
    assert events == ["read", "destroyed"]


@pytest.mark.gpu
def test_bound_arrays_are_uploaded_once(monkeypatch: pytest.MonkeyPatch) -> None:
    uploads: list[str] = []
    upload = Runner.upload

    def slow(runner: Runner, array: npt.ArrayLike, what: str = "tensor") -> DeviceTensor:
        uploads.append(what)
        time.sleep(0.05)  # the others come meanwhile
        return upload(runner, array, what)

    monkeypatch.setattr(Runner, "upload", slow)
    bound = convdsl.compile(AXPY, target="wgsl").bind(b=np.ones(5, np.float32))
    x, y = whole(5), whole(5, seed=1)
    for result in together(*[lambda: bound(x, y)] * 4):
        assert np.array_equal(result, x + 2 * y + 1)  # type: ignore[arg-type]
    assert uploads == ["b"]
