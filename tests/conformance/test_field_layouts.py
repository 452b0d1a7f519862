"""Field cases about holes, degenerate sizes, layouts and views."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl import ops
from tests.conformance.cases import CASES, Case, bias, f32


@pytest.mark.parametrize("with_bias", [False, True])
@pytest.mark.parametrize(("taps", "stride"), [(2, 3), (10, 13), (2, 105), (1, 2)])
def test_f41_uncovered_outputs_hold_the_bias(
    taps: int, stride: int, with_bias: bool, target: str
) -> None:
    x = f32(range(1, 24), 3)
    w = f32(range(1, taps + 1), 3)
    y = ops.conv_transpose1d(x, w, bias([7]) if with_bias else None, stride=stride, target=target)
    expected = np.full((23, stride), 7.0 if with_bias else 0.0)
    expected[:, :taps] += np.outer(np.arange(1, 24), np.arange(1, taps + 1))
    assert y.shape == (1, 1, 22 * stride + taps)
    assert np.array_equal(y[0, 0], expected.reshape(-1)[: y.shape[2]])


def test_f46_batches_of_different_sizes(target: str) -> None:
    """N = 2, then 0, then 1 with one kernel: no stale data."""
    params = {"stride": 2}
    kernel = convdsl.compile(ops.source("conv_transpose1d"), params=params, target=target)
    w, b = f32([[1, 10], [2, 20]], 3), f32([5, 6], 1)
    assert kernel(np.ones((2, 1, 3), "f4"), w, b)[1].tolist() == [
        [6, 15, 6, 15, 6, 15], [8, 26, 8, 26, 8, 26],
    ]  # fmt: skip
    assert kernel(np.ones((0, 1, 3), "f4"), w, b).shape == (0, 2, 6)
    assert kernel(f32([1, 2, 3], 3), w, b)[0].tolist() == [
        [6, 15, 7, 25, 8, 35], [8, 26, 10, 46, 12, 66],
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("x", "w", "y"),
    [
        ((0, 2, 3), (2, 1, 2), (0, 1, 6)),
        ((2, 0, 3), (0, 1, 2), (2, 1, 6)),
        ((2, 2, 3), (2, 0, 2), (2, 0, 6)),
        ((2, 2, 0), (2, 1, 2), (2, 1, 0)),
    ],
)
def test_f48_empty_tensors(
    x: tuple[int, ...], w: tuple[int, ...], y: tuple[int, ...], target: str
) -> None:
    """An empty result needs no dispatch; an empty sum leaves the bias."""
    b = np.full(y[1], 3, "f4")
    for third in (None, b):
        got = ops.conv_transpose1d(
            np.ones(x, "f4"), np.ones(w, "f4"), third, stride=2, target=target
        )
        assert got.shape == y
        assert np.all(got == (0 if third is None else 3))


def test_f53_channel_of_a_channels_last_array(target: str) -> None:
    base = f32([[1, 7], [2, 8]], 3)
    w = f32([1, 10], 3)
    channel = base[:, :, :1]
    got = ops.conv_transpose1d(channel, w, stride=2, layout="NLC", target=target)
    assert got[0, :, 0].tolist() == [1, 10, 2, 20]
    view = channel.transpose(0, 2, 1)
    got = ops.conv_transpose1d(view, w, stride=2, target=target)
    assert got[0, 0].tolist() == [1, 10, 2, 20]


def test_f54_layout_is_declared(target: str) -> None:
    """Sizes and strides that fit both layouts: what is said counts."""
    x = f32([[1, 2, 3], [4, 5, 6], [7, 8, 9]], 3)
    w = f32([[[1, 10]], [[2, 20]], [[3, 30]]], 3)
    for data in (x, np.asfortranarray(x), np.array(x.transpose(0, 2, 1)).transpose(0, 2, 1)):
        got = ops.conv_transpose1d(data, w, target=target)
        assert got[0, 0].tolist() == [30, 336, 402, 420]
        got = ops.conv_transpose1d(data, w, layout="NLC", target=target)
        assert got[0, :, 0].tolist() == [14, 172, 370, 500]


def test_f55_channels_last_with_one_channel(target: str) -> None:
    y = ops.conv_transpose1d(
        np.ones((1, 2, 1), "f4"), np.ones((1, 2, 5), "f4"), layout="NLC", target=target
    )
    assert y.shape == (1, 6, 2)
    assert y[0].T.tolist() == [[1, 2, 2, 2, 2, 1]] * 2


@pytest.mark.parametrize("case", CASES, ids=str)
def test_channels_last(case: Case, target: str) -> None:
    """Every case with given numbers, channels last."""
    x = f32(case.x, 3).transpose(0, 2, 1)
    got = ops.conv_transpose1d(
        x, f32(case.w, 3), bias(case.b), layout="NLC", target=target, **dict(case.attributes)
    )
    assert got[0].T.tolist() == f32(case.y, 2).tolist()


def test_f92_one_process_different_attributes(target: str) -> None:
    """Same shapes, other layout, pads or output padding: no kernel is mistaken for another."""
    x, w = f32([[1, 2], [3, 4]], 3), f32([[[1, 10, 100]], [[2, 20, 200]]], 3)
    calls: list[tuple[dict[str, Any], list[float]]] = [
        ({}, [7, 70, 710, 100, 1000]),
        ({"layout": "NLC"}, [5, 50, 511, 110, 1100]),
        ({"padding": (1, 0)}, [70, 710, 100, 1000]),
        ({"padding": (0, 1)}, [7, 70, 710, 100]),
        ({"output_padding": 1}, [7, 70, 710, 100, 1000, 0]),
        ({"output_padding": 0}, [7, 70, 710, 100, 1000]),
    ]
    for attributes, y in [*calls, *reversed(calls)]:
        got = ops.conv_transpose1d(x, w, stride=2, target=target, **attributes)
        assert got.reshape(-1).tolist() == y
