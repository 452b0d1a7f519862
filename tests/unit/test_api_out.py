"""`out=`: exact shape and dtype, any strides, no memory of an input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl import CdslError
from tests.unit.api_programs import AXPY, FIR, Array, fir, whole

BOTH = ["numpy", pytest.param("wgsl", marks=pytest.mark.gpu)]
SHAPE = (3, 8)


def refused(out: Any, x: Array | None = None, w: Array | None = None) -> str:
    x, w = whole(3, 10) if x is None else x, whole(3) if w is None else w
    with pytest.raises(CdslError) as caught:
        convdsl.compile(FIR)(x, w, out=out)
    assert caught.value.code == "E0355"
    return str(caught.value)


@pytest.mark.parametrize("target", BOTH)
def test_any_strides(target: str) -> None:
    kernel = convdsl.compile(FIR, target=target)
    x, w = whole(3, 10), whole(3, seed=1)
    wide = np.full((6, 24), 99, "f4")
    outs = {
        "C": np.empty(SHAPE, "f4"),
        "Fortran": np.empty(SHAPE, "f4", order="F"),
        "steps": wide[::2, ::3],
        "reversed": np.empty(SHAPE, "f4")[::-1, ::-1],
        "transposed": np.empty(SHAPE[::-1], "f4").T,
        "not aligned": np.zeros(3 * 8 * 4 + 1, "u1")[1:].view("f4").reshape(SHAPE),
    }
    for name, out in outs.items():
        assert kernel(x, w, out=out) is out, name
        assert np.array_equal(out, fir(x, w)), name
    assert np.all(wide[1::2] == 99)
    assert np.all(wide[:, 1::3] == 99)


@pytest.mark.parametrize("algorithm", ["gather", "phases", "columns"])
def test_any_strides_under_each_algorithm(algorithm: Any) -> None:
    from convdsl import ops

    text = ops.source("conv_transpose1d")
    x, w = whole(2, 4, 9), whole(4, 3, 5, seed=1)
    kernel = convdsl.compile(text, params={"stride": 2}, algorithm=algorithm)
    y = kernel(x, w)
    assert kernel.plan.algorithm == algorithm
    out = np.full((3, 21, 4), 99, "f4").transpose(2, 0, 1)[::2]
    assert out.shape == y.shape
    assert np.array_equal(kernel(x, w, out=out), y)
    out = np.zeros_like(y)[:, ::-1, ::-1]
    assert np.array_equal(kernel(x[..., ::-1], w, out=out), kernel(x[..., ::-1].copy(), w))


def test_wrong_outs() -> None:
    assert "(3, 8)" in refused(np.empty((3, 7), "f4"))
    assert "(3, 8)" in refused(np.empty((1, 3, 8), "f4"))
    assert "float64" in refused(np.empty(SHAPE, "f8"))
    assert ">f4" in refused(np.empty(SHAPE, ">f4"))
    assert "list" in refused([[0.0] * 8] * 3)
    assert "read-only" in refused(np.broadcast_to(np.float32(0), SHAPE))
    locked = np.empty(SHAPE, "f4")
    locked.flags.writeable = False
    assert "read-only" in refused(locked)


def test_overlap() -> None:
    memory = np.zeros(60, "f4")
    x = memory[:30].reshape(3, 10)
    assert "`x`" in refused(memory[29:53].reshape(SHAPE), x)
    assert "`x`" in refused(x[:, :8], x)
    w = memory[40:43]
    assert "`w`" in refused(memory[36:].reshape(SHAPE), w=w)
    # Beside each other, or interleaved, is no overlap.
    out = memory[30:54].reshape(SHAPE)
    assert convdsl.compile(FIR)(x, whole(3), out=out) is out
    pairs = np.zeros((3, 20), "f4")
    odd = pairs[:, 1::2][:, :8]
    assert convdsl.compile(FIR)(pairs[:, ::2], whole(3), out=odd) is odd


def test_an_elementwise_op_does_not_work_in_place() -> None:
    x, y = whole(4), whole(4, seed=1)
    with pytest.raises(CdslError, match="shares memory with the input `x`"):
        convdsl.compile(AXPY)(x, y, out=x)


def test_a_refused_out_is_not_touched() -> None:
    out = np.full((3, 7), 5, "f4")
    refused(out)
    assert np.all(out == 5)


def test_an_input_that_was_widened_is_not_written() -> None:
    """float16 is converted first; its memory is an input all the same."""
    memory = np.zeros(48, "f4")
    x = memory.view("f2")[:30].reshape(3, 10)
    assert "`x`" in refused(memory[:24].reshape(SHAPE), x)


def test_results_do_not_share_memory() -> None:
    kernel = convdsl.compile(FIR)
    x, w = whole(3, 10), whole(3)
    first = kernel(x, w)
    kept = first.copy()
    second = kernel(-x, w)
    assert np.array_equal(first, kept)
    assert not np.shares_memory(first, second)


@pytest.mark.parametrize("strides", [(0,), (2,)])
def test_out_whose_elements_share_memory(strides: tuple[int, ...]) -> None:
    kernel = convdsl.compile("op f(x: f32[N]) -> y: f32[N] { y[n] = 2*x[n] }")
    out = np.lib.stride_tricks.as_strided(np.zeros(8, np.float32), (4,), strides)
    with pytest.raises(CdslError) as caught:
        kernel(np.ones(4, np.float32), out=out)
    assert caught.value.code == "E0355"


def test_out_may_be_any_view_without_overlap() -> None:
    kernel = convdsl.compile("op f(x: f32[N, M]) -> y: f32[N, M] { y[n, m] = 2*x[n, m] }")
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    base = np.zeros((6, 9), np.float32)
    for out in (base[::-3, ::3], base.T[:2, 1::2][:, :3], base[1:3, 2:5]):
        assert kernel(x, out=out) is out
        assert np.array_equal(out, 2 * x)
