"""The convolutions of `convdsl.ops` against the definition, written out as a scatter."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from convdsl import ops

Array = np.ndarray[Any, np.dtype[Any]]
TARGETS = ["numpy", pytest.param("wgsl", marks=pytest.mark.gpu)]


def stamped(x: Array, w: Array, stride: int, dilation: int, groups: int) -> Array:
    """Transposed convolution without pads, one product at a time."""
    batch, channels, length = x.shape
    _, out, taps = w.shape
    y = np.zeros((batch, groups * out, max(0, (length - 1) * stride + dilation * (taps - 1) + 1)))
    per_group = channels // groups
    for c in range(channels):
        g = c // per_group
        for l in range(length):  # noqa: E741
            for k in range(taps):
                at = l * stride + k * dilation
                y[:, g * out : (g + 1) * out, at] += x[:, c, l, None] * w[c, :, k]
    return y


def slid(x: Array, w: Array, stride: int, dilation: int, groups: int, pads: Any) -> Array:
    """Convolution, one window at a time."""
    padded = np.pad(x, ((0, 0), (0, 0), pads))
    out, per_group, taps = w.shape
    span = dilation * (taps - 1) + 1
    count = (padded.shape[2] - span) // stride + 1
    y = np.zeros((x.shape[0], out, count))
    for m in range(out):
        g = m // (out // groups)
        part = padded[:, g * per_group : (g + 1) * per_group]
        for o in range(count):
            window = part[:, :, o * stride : o * stride + span : dilation]
            y[:, m, o] = (window * w[m]).sum((1, 2))
    return y


def view(data: st.DataObject, array: Array) -> Array:
    """The same values, in memory of another order."""
    how = data.draw(st.sampled_from(["C", "F", "reversed", "wide", "read-only"]))
    match how:
        case "F":
            return np.asfortranarray(array)
        case "reversed":
            return array[..., ::-1].copy()[..., ::-1]
        case "wide":
            wide = np.full((*array.shape[:-1], 2 * array.shape[-1]), 99, array.dtype)
            wide[..., ::2] = array
            return wide[..., ::2]
        case "read-only":
            array = array.copy()
            array.flags.writeable = False
    return array


def numbers(data: st.DataObject, *shape: int) -> Array:
    seed = data.draw(st.integers(0, 99))
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=25)
@given(data=st.data())
def test_conv_transpose1d(target: str, data: st.DataObject) -> None:
    batch, groups, per_group, out = (data.draw(st.integers(1, 3)) for _ in range(4))
    length, taps = data.draw(st.integers(1, 6)), data.draw(st.integers(1, 6))
    stride, dilation = data.draw(st.integers(1, 5)), data.draw(st.integers(1, 3))
    x = numbers(data, batch, groups * per_group, length)
    w = numbers(data, groups * per_group, out, taps)
    b = data.draw(st.sampled_from([None, numbers(data, groups * out)]))
    full = stamped(x, w, stride, dilation, groups)
    begin = data.draw(st.integers(0, full.shape[2]))
    end = data.draw(st.integers(0, full.shape[2] - begin))
    out_pad = data.draw(st.integers(0, max(stride, dilation) - 1))
    full = np.pad(full, ((0, 0), (0, 0), (0, out_pad)))
    expected = full[:, :, begin : full.shape[2] - end] + (0 if b is None else b[:, None])
    layout = data.draw(st.sampled_from(["NCL", "NLC"]))
    given_x = view(data, x if layout == "NCL" else x.transpose(0, 2, 1))
    got = ops.conv_transpose1d(
        given_x, view(data, w), b, stride=stride, dilation=dilation, groups=groups, layout=layout,
        padding=(begin, end), output_padding=out_pad, target=target, accuracy="strict",
    )  # fmt: skip
    assert np.array_equal(got if layout == "NCL" else got.transpose(0, 2, 1), expected)


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=25)
@given(data=st.data())
def test_conv1d(target: str, data: st.DataObject) -> None:
    batch, groups, per_group, out = (data.draw(st.integers(1, 3)) for _ in range(4))
    taps, stride, dilation = (data.draw(st.integers(1, top)) for top in (5, 4, 3))
    begin, end = data.draw(st.integers(0, 4)), data.draw(st.integers(0, 4))
    span = dilation * (taps - 1) + 1
    length = data.draw(st.integers(max(1, span - begin - end), span + 8))
    x = numbers(data, batch, groups * per_group, length)
    w = numbers(data, groups * out, per_group, taps)
    expected = slid(x, w, stride, dilation, groups, (begin, end))
    got = ops.conv1d(
        view(data, x), view(data, w), stride=stride, dilation=dilation, groups=groups,
        padding=(begin, end), target=target, accuracy="strict", activation="relu",
    )  # fmt: skip
    assert np.array_equal(got, np.maximum(expected, 0))


@pytest.mark.parametrize("target", TARGETS)
@settings(max_examples=12)
@given(data=st.data())
def test_two_axes_are_one_after_the_other(target: str, data: st.DataObject) -> None:
    """With a kernel that is a product, a 2-D operator is two 1-D operators."""
    height, width, kh, kw = (data.draw(st.integers(1, 4)) for _ in range(4))
    strides = data.draw(st.tuples(st.integers(1, 3), st.integers(1, 3)))
    x, v, h = numbers(data, 1, 1, height, width), numbers(data, kh), numbers(data, kw)
    rows = ops.conv_transpose1d(
        x[0].transpose(1, 0, 2).copy(), h.reshape(1, 1, -1), stride=strides[1]
    )  # each row of the image is one of a batch
    columns = ops.conv_transpose1d(rows.transpose(2, 1, 0), v.reshape(1, 1, -1), stride=strides[0])
    w = np.outer(v, h).reshape(1, 1, kh, kw)
    layout = data.draw(st.sampled_from(["NCHW", "NHWC"]))
    given_x = x if layout == "NCHW" else x.transpose(0, 2, 3, 1)
    got = ops.conv_transpose2d(given_x, w, stride=strides, target=target, layout=layout)
    assert np.array_equal(got.squeeze((0, 1 if layout == "NCHW" else 3)), columns[:, 0].T)
