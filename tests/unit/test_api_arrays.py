"""What a kernel takes as an array, and that it never writes to it."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl import CdslError
from tests.unit.api_programs import AXPY, FIR, PRODUCT, Array, fir, whole

BOTH = ["numpy", pytest.param("wgsl", marks=pytest.mark.gpu)]


class Exported:
    """An object with DLPack alone, on a device of our choice."""

    def __init__(self, data: Array, device: int) -> None:
        self.data, self.device = data, device

    def __dlpack__(self, **options: Any) -> Any:
        return self.data.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0


class Wrapped:
    """An object with `__array__` alone."""

    def __init__(self, data: Array) -> None:
        self.data = data

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Array:
        return self.data


def refused(code: str, kernel: convdsl.Kernel, *args: Any, **arrays: Any) -> CdslError:
    with pytest.raises(CdslError) as caught:
        kernel(*args, **arrays)
    assert caught.value.code == code
    return caught.value


def test_by_position_and_name() -> None:
    kernel = convdsl.compile(AXPY)
    x, y, b = whole(4), whole(4, seed=1), whole(4, seed=2)
    for got in (
        kernel(x, y, b), kernel(x, b=b, y=y), kernel(b=b, y=y, x=x), kernel(y=y, x=x, b=b)
    ):  # fmt: skip
        assert np.array_equal(got, x + 2 * y + b)
    assert np.array_equal(kernel(x, y, None), x + 2 * y)
    refused("E0352", kernel, x)
    refused("E0352", kernel, x, None)
    refused("E0352", kernel, x, y, b, b)
    refused("E0352", kernel, x, y, x=x)
    assert "its inputs: x, y, b" in str(refused("E0352", kernel, x, y, c=b))


@pytest.mark.parametrize("target", BOTH)
def test_absent_and_present_in_one_kernel(target: str) -> None:
    kernel = convdsl.compile(AXPY, target=target)
    x, y, b = whole(4), whole(4, seed=1), whole(4, seed=2)
    for _ in range(2):
        assert np.array_equal(kernel(x, y), x + 2 * y)
        without = kernel.source
        assert np.array_equal(kernel(x, y, b), x + 2 * y + b)
        assert kernel.source != without


@pytest.mark.parametrize("target", BOTH)
def test_any_strides(target: str) -> None:
    kernel = convdsl.compile(PRODUCT, target=target)
    a, b = whole(6, 8), whole(8, 5, seed=1)
    wide = whole(12, 24)
    wide[::2, ::3] = a
    views = {
        "C": a,
        "Fortran": np.asfortranarray(a),
        "steps": wide[::2, ::3],
        "reversed": a[::-1, ::-1].copy()[::-1, ::-1],
        "transposed": a.T.copy().T,
    }
    for name, view in views.items():
        assert np.array_equal(kernel(view, b), a @ b), name
        assert np.array_equal(kernel(view, np.asfortranarray(b)), a @ b), name
    row = np.broadcast_to(a[:1], (6, 8))
    column = np.broadcast_to(b[:, :1], (8, 5))
    assert np.array_equal(kernel(row, column), row @ column)
    # Memory that is not aligned to its elements.
    raw = np.zeros(a.nbytes + 1, np.uint8)
    odd = raw[1:].view("f4").reshape(6, 8)
    odd[...] = a
    assert not odd.flags.aligned
    assert np.array_equal(kernel(odd, b), a @ b)


@pytest.mark.parametrize("target", BOTH)
def test_inputs_are_never_written(target: str) -> None:
    kernel = convdsl.compile(FIR, target=target)
    x, w = whole(3, 40), whole(5)
    before = x.tobytes(), w.tobytes()
    x.flags.writeable = w.flags.writeable = False
    y = kernel(x, w)
    assert np.array_equal(y, fir(x, w))
    assert (x.tobytes(), w.tobytes()) == before
    assert y.flags.writeable
    assert not np.shares_memory(y, x)


@pytest.mark.parametrize("target", BOTH)
def test_a_copy_is_a_copy(target: str) -> None:
    """An op that only moves data must not give out its input's memory."""
    kernel = convdsl.compile("op same(x: f32[N]) -> y: f32[N] { y[n] = x[n] }", target=target)
    x = whole(5)
    y = kernel(x)
    y[...] = 9
    assert not np.any(x == 9)
    assert np.array_equal(kernel(x), x)


@pytest.mark.parametrize("target", BOTH)
def test_empty(target: str) -> None:
    kernel = convdsl.compile(PRODUCT, target=target)
    assert kernel(whole(0, 3), whole(3, 2)).shape == (0, 2)
    assert kernel(whole(2, 3), whole(3, 0)).shape == (2, 0)
    assert kernel(whole(2, 0), whole(0, 4)).tolist() == [[0] * 4] * 2
    out = np.ones((2, 4), "f4")
    assert kernel(whole(2, 0), whole(0, 4), out=out) is out
    assert not out.any()


def test_dtypes() -> None:
    kernel = convdsl.compile(FIR)
    x, w = whole(2, 9), whole(3)
    assert np.array_equal(kernel(x.astype("f2"), w.astype("f2")), fir(x, w))
    assert kernel(x.astype("f2"), w).dtype == np.float32
    for dtype in ("f8", "i4", "i8", "?", "c8", "O", "u1"):
        error = refused("E0354", kernel, x.astype(dtype), w)
        assert str(np.dtype(dtype)) in error.message
        assert "float32" in str(error)
    for dtype in (">f4", ">f2"):
        refused("E0354", kernel, x.astype(dtype), w)
    assert "big-endian" in refused("E0354", kernel, x.astype(">f4"), w).message


@pytest.mark.parametrize("target", BOTH)
def test_i32_and_f16_tensors(target: str) -> None:
    text = "op add(a: i32[N], b: i32[N]) -> c: i32[N] { c[n] = a[n] + 3*b[n] }"
    kernel = convdsl.compile(text, target=target)
    a, b = np.array([1, -2, 2**20], "i4"), np.array([5, 6, 7], "i4")
    assert np.array_equal(kernel(a, b), a + 3 * b)
    refused("E0354", kernel, a.astype("i8"), b)
    refused("E0354", kernel, a.astype("f4"), b)
    half = "op twice(x: f16[N]) -> y: f16[N] { y[n] = 2*x[n] }"
    x = np.array([0.5, -3, 65504], "f2")
    y = convdsl.compile(half, target=target)(x)
    assert y.dtype == np.float16
    assert y.tolist() == [1, -6, np.inf]
    refused("E0354", convdsl.compile(half, target=target), x.astype("f4"))


def test_protocols() -> None:
    kernel = convdsl.compile(AXPY)
    x, y = whole(4), whole(4, seed=1)
    expected = x + 2 * y
    buffer = array.array("f", x.tolist())
    for given in (
        buffer, memoryview(buffer), x.data, Wrapped(x), Exported(x, 1), Exported(x, 3)
    ):  # fmt: skip
        assert np.array_equal(kernel(given, y), expected), type(given)
    locked = x.copy()
    locked.flags.writeable = False
    assert np.array_equal(kernel(locked.data, y), expected)
    matrix = memoryview(bytearray(whole(2, 9).tobytes())).cast("f", (2, 9))
    assert np.array_equal(convdsl.compile(FIR)(matrix, whole(3)), fir(whole(2, 9), whole(3)))
    refused("E0354", kernel, array.array("d", x.tolist()), y)


def test_devices() -> None:
    x = whole(4)
    error = refused("E0353", convdsl.compile(AXPY), Exported(x, 2), x)
    assert "`x`" in error.message
    assert "device 2" in error.message
    assert "CPU" in (error.help or "")


@pytest.mark.parametrize("value", [[1.0, 2.0], (1.0,), 3, 2.5, "text", {}, object(), range(3)])
def test_what_is_no_array(value: object) -> None:
    error = refused("E0353", convdsl.compile(AXPY), value, whole(2))
    assert type(value).__name__ in error.message


@pytest.mark.parametrize("value", [b"1234", bytearray(4), np.array("x"), np.array(None)])
def test_arrays_of_something_else(value: object) -> None:
    refused("E0354", convdsl.compile(AXPY), value, whole(2))


def test_rank_0() -> None:
    kernel = convdsl.compile("op total(x: f32[N]) -> s: f32[] { s[] = sum[n] x[n] }")
    s = kernel(whole(7))
    assert isinstance(s, np.ndarray)
    assert s.shape == ()
    assert s == whole(7).sum()
    out = np.zeros((), "f4")
    assert kernel(whole(7), out=out) is out
    assert out == s


def test_shapes_that_do_not_fit() -> None:
    kernel = convdsl.compile(PRODUCT)
    error = refused("E0303", kernel, whole(2, 3), whole(4, 5))
    assert "3" in str(error)
    assert "4" in str(error)
    refused("E0303", kernel, whole(2, 3, 1), whole(3, 5))
    refused("E0303", kernel, whole(3), whole(3, 5))
