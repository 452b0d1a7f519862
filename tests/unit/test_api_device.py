"""Kernels on a device: `upload`, `run`, `time`; and what they say on the CPU."""

from __future__ import annotations

import gc

import numpy as np
import pytest

import convdsl
from convdsl import CdslError
from tests.unit.api_programs import AXPY, FIR, fir, whole

gpu = pytest.mark.gpu


@gpu
def test_upload_and_run() -> None:
    kernel = convdsl.compile(FIR, target="wgsl")
    x, w = whole(2, 9), whole(3)
    dx, dw = kernel.upload(x), kernel.upload(w)
    assert np.array_equal(dx.numpy(), x)
    y = kernel.run(x=dx, w=dw)
    assert y.shape == (2, 7)
    assert np.array_equal(y.numpy(), fir(x, w))
    assert np.array_equal(np.asarray(y), fir(x, w))
    again = kernel.run(x=y, w=dw)  # a result is an input like any other
    assert np.array_equal(again.numpy(), fir(fir(x, w), w))
    assert np.array_equal(y.numpy(), fir(x, w))


@gpu
def test_arrays_and_tensors_mixed() -> None:
    kernel = convdsl.compile(AXPY, target="wgsl")
    x, y = whole(4), whole(4, seed=1)
    strided = kernel.upload(np.repeat(x, 2)[::2])
    assert np.array_equal(kernel.run(x=strided, y=y).numpy(), x + 2 * y)
    assert np.array_equal(kernel.run(x=x, y=kernel.upload(y)).numpy(), x + 2 * y)
    bound = kernel.bind(y=y)
    assert np.array_equal(bound.run(x=strided).numpy(), x + 2 * y)
    assert np.array_equal(bound.run(x=x, b=x).numpy(), 2 * x + 2 * y)


@gpu
def test_empty_tensors() -> None:
    kernel = convdsl.compile(FIR, target="wgsl")
    w = kernel.upload(whole(3))
    y = kernel.run(x=kernel.upload(whole(0, 9)), w=w)
    assert y.numpy().shape == (0, 7)
    assert np.array_equal(kernel.run(x=whole(1, 9), w=w).numpy(), fir(whole(1, 9), whole(3)))


@gpu
def test_time() -> None:
    kernel = convdsl.compile(FIR, target="wgsl")
    x, w = kernel.upload(whole(2, 9)), kernel.upload(whole(3))
    for repeat in (1, 3):
        assert 0 < kernel.time(x=x, w=w, repeat=repeat) < 10
    assert isinstance(kernel.time(x=whole(2, 9), w=w), float)
    assert kernel.bind(w=whole(3)).time(x=x) > 0


@gpu
def test_wrong_tensors() -> None:
    kernel = convdsl.compile(FIR, target="wgsl")
    x, w = kernel.upload(whole(2, 9)), kernel.upload(whole(3))

    def refused(code: str, **tensors: object) -> None:
        with pytest.raises(CdslError) as caught:
            kernel.run(**tensors)
        assert caught.value.code == code

    refused("E0352", x=x)
    refused("E0352", x=x, w=w, v=w)
    refused("E0303", x=w, w=w)
    refused("E0353", x=[1.0], w=w)
    refused("E0354", x=np.ones((2, 9)), w=w)
    refused("E0354", x=kernel.upload(np.ones((2, 9), "i4")), w=w)


@gpu
def test_device_tensors_in_a_call() -> None:
    """A call takes arrays; a device tensor has `__array__`, so it is read back first."""
    kernel = convdsl.compile(FIR, target="wgsl")
    x = kernel.upload(whole(2, 9))
    assert np.array_equal(kernel(x, whole(3)), fir(whole(2, 9), whole(3)))
    assert np.array_equal(convdsl.compile(FIR)(x, whole(3)), fir(whole(2, 9), whole(3)))


@gpu
def test_limits_of_the_adapter() -> None:
    kernel = convdsl.compile(FIR, target="wgsl", limits="adapter")
    assert np.array_equal(kernel(whole(2, 9), whole(3)), fir(whole(2, 9), whole(3)))


@gpu
def test_dynamic_sizes_on_the_device() -> None:
    kernel = convdsl.compile(FIR, target="wgsl", dynamic=["N", "L", "K"])
    text = kernel.source
    for shape, taps in (((2, 9), 3), ((1, 300), 7), ((0, 4), 2), ((3, 4), 4)):
        x, w = whole(*shape), whole(taps)
        assert np.array_equal(kernel(x, w), fir(x, w))
    assert kernel.source == text


def test_no_device_methods_on_the_cpu() -> None:
    kernel = convdsl.compile(FIR)
    for call in (
        lambda: kernel.upload(whole(3)),
        lambda: kernel.run(x=whole(2, 9), w=whole(3)),
        lambda: kernel.time(x=whole(2, 9), w=whole(3)),
    ):
        with pytest.raises(CdslError) as caught:
            call()
        assert caught.value.code == "E0357"


@gpu
def test_tensors_in_reference_cycles() -> None:
    """The collector finalizes a cycle's objects in any order; memory used again must be whole."""
    kernel = convdsl.compile(FIR, target="wgsl")
    w = kernel.upload(whole(3))
    for _ in range(3):
        for _ in range(8):
            holder: list[object] = [kernel.upload(whole(2, 9)), kernel.run(x=whole(2, 9), w=w)]
            holder.append(holder)
        del holder
        gc.collect()
        assert np.array_equal(kernel(whole(2, 9), whole(3)), fir(whole(2, 9), whole(3)))


@pytest.mark.gpu
@pytest.mark.parametrize("value", [np.zeros(3), np.zeros(3, ">f4"), "abc", np.array([None])])
def test_upload_of_what_no_tensor_holds(value: object) -> None:
    kernel = convdsl.compile("op f(x: f32[N]) -> y: f32[N] { y[n] = x[n] }", target="wgsl")
    with pytest.raises(CdslError) as caught:
        kernel.upload(value)
    assert caught.value.code in ("E0353", "E0354")


@pytest.mark.gpu
def test_time_takes_a_measurement() -> None:
    kernel = convdsl.compile("op f(x: f32[N]) -> y: f32[N] { y[n] = x[n] }", target="wgsl")
    with pytest.raises(CdslError) as caught:
        kernel.time(x=np.zeros(3, np.float32), repeat=0)
    assert caught.value.code == "E0358"
