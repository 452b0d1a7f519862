"""`evaluate` against brute force written from the textbook definitions."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from convdsl.definition import evaluate
from convdsl.syntax.parser import parse

Array = np.ndarray[Any, np.dtype[Any]]
small = st.integers(1, 4)
_PROGRAMS = {
    name: parse(files("convdsl.ops").joinpath(f"{name}.cdsl").read_text("utf-8"))
    for name in ("conv_transpose1d", "conv1d", "conv_transpose2d", "matmul", "max_pool1d",
                 "softmax", "istft", "vocoder_step")
}  # fmt: skip


@st.composite
def integers(draw: st.DrawFn, *shape: int) -> Array:
    """Small integers as floats: every sum is exact, so results compare with `==`."""
    seed = draw(st.integers(0, 2**32 - 1))
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float64)


def scatter(x: Array, w: Array, stride: int, dilation: int, groups: int) -> Array:
    """The uncropped transposed convolution, one product at a time."""
    n, cin, length = x.shape
    _, per, k = w.shape
    out = np.zeros((n, groups * per, max(0, (length - 1) * stride + dilation * (k - 1) + 1)))
    c = cin // groups
    for channel in range(cin):
        for tap in range(k):
            for i in range(length):
                first = channel // c * per
                at = i * stride + tap * dilation
                out[:, first : first + per, at] += x[:, channel, i, None] * w[channel, :, tap]
    return out


@given(st.data(), small, st.integers(1, 3), small, small, st.integers(0, 6), st.integers(1, 5),
       st.integers(1, 4), st.integers(1, 4))  # fmt: skip
def test_conv_transpose1d_is_scatter_then_crop(
    data: st.DataObject, n: int, groups: int, c: int, m: int, length: int, k: int, s: int, d: int
) -> None:
    pads = st.integers(-3, 5)
    begin, end = data.draw(pads), data.draw(pads)
    out_pad = data.draw(st.integers(0, max(s, d) - 1))
    size = (length - 1) * s - begin - end + d * (k - 1) + 1 + out_pad
    assume(size >= 0)
    x, w = data.draw(integers(n, groups * c, length)), data.draw(integers(groups * c, m, k))
    b = data.draw(integers(groups * m))
    params = {"stride": s, "dilation": d, "pad_begin": begin, "pad_end": end,
              "out_pad": out_pad, "groups": groups}  # fmt: skip
    y = evaluate(_PROGRAMS["conv_transpose1d"], {"x": x, "w": w, "b": b}, params)
    full = scatter(x, w, s, d, groups)
    expected = np.zeros((n, groups * m, size))
    for o in range(size):
        if 0 <= o + begin < full.shape[2]:
            expected[:, :, o] = full[:, :, o + begin]
    np.testing.assert_array_equal(y, expected + b[:, None])


@given(st.data(), small, st.integers(1, 3), small, small, st.integers(1, 8), st.integers(1, 4),
       st.integers(1, 3), st.integers(1, 3), st.integers(0, 3))  # fmt: skip
def test_conv1d(
    data: st.DataObject, n: int, g: int, c: int, m: int, length: int, k: int, s: int, d: int, p: int
) -> None:
    size = (length + 2 * p - d * (k - 1) - 1) // s + 1
    assume(size >= 0)
    x, w = data.draw(integers(n, g * c, length)), data.draw(integers(g * m, c, k))
    padded = np.pad(x, ((0, 0), (0, 0), (p, p)))
    expected = np.zeros((n, g * m, size))
    for channel in range(g * m):
        own = padded[:, channel // m * c : (channel // m + 1) * c]
        for o in range(size):
            window = own[:, :, o * s : o * s + d * (k - 1) + 1 : d]
            expected[:, channel, o] = (window * w[channel]).sum((1, 2))
    params = {"stride": s, "dilation": d, "pad_begin": p, "pad_end": p, "groups": g}
    y = evaluate(_PROGRAMS["conv1d"], {"x": x, "w": w}, params)
    np.testing.assert_array_equal(y, expected)


@given(st.data(), st.integers(1, 3), st.integers(1, 3), st.integers(1, 3))
def test_conv_transpose2d_of_a_product_is_a_product(
    data: st.DataObject, k: int, s: int, d: int
) -> None:
    """Separable data make the 2-D operator an outer product of two 1-D ones."""
    a, b = data.draw(integers(3)), data.draw(integers(4))
    u, v = data.draw(integers(k)), data.draw(integers(2))
    y = evaluate(
        _PROGRAMS["conv_transpose2d"],
        {"x": np.outer(a, b)[None, None], "w": np.outer(u, v)[None, None]},
        {"stride_h": s, "dilation_h": d},
    )
    rows = scatter(a[None, None], u[None, None], s, d, 1)[0, 0]
    columns = scatter(b[None, None], v[None, None], 1, 1, 1)[0, 0]
    np.testing.assert_array_equal(y[0, 0], np.outer(rows, columns))


@given(st.data(), st.integers(0, 6), st.integers(0, 6), st.integers(0, 6))
def test_matmul(data: st.DataObject, m: int, k: int, n: int) -> None:
    a, b = data.draw(integers(m, k)), data.draw(integers(k, n))
    np.testing.assert_array_equal(evaluate(_PROGRAMS["matmul"], {"a": a, "b": b}), a @ b)


@given(st.data(), st.integers(1, 9), st.integers(1, 4), st.integers(1, 3), st.integers(0, 6))
def test_max_pool(data: st.DataObject, length: int, kernel: int, stride: int, pad: int) -> None:
    assume(length + 2 * pad >= kernel)
    x = data.draw(integers(2, 1, length))
    size = (length + 2 * pad - kernel) // stride + 1
    padded = np.pad(x, ((0, 0), (0, 0), (pad, pad)), constant_values=-np.inf)
    windows = [padded[:, :, o * stride : o * stride + kernel].max(2) for o in range(size)]
    expected = np.stack(windows, axis=2)
    params = {"kernel": kernel, "stride": stride, "pad": pad, "empty": 0.25}
    y = evaluate(_PROGRAMS["max_pool1d"], {"x": x}, params)
    np.testing.assert_array_equal(y, np.where(np.isneginf(expected), 0.25, expected))


@given(st.data(), st.integers(0, 4), st.integers(1, 6))
def test_softmax(data: st.DataObject, n: int, c: int) -> None:
    x = data.draw(integers(n, c))
    e = np.exp(x)
    y = evaluate(_PROGRAMS["softmax"], {"x": x})
    np.testing.assert_allclose(y, e / e.sum(1, keepdims=True), rtol=1e-12)


@given(st.data(), st.integers(1, 5), st.integers(1, 6), st.integers(1, 6), st.integers(0, 2))
def test_istft(data: st.DataObject, frames: int, k: int, hop: int, pad: int) -> None:
    size = (frames - 1) * hop + k - 2 * pad
    assume(size >= 0)
    spectrum, basis = data.draw(integers(2, 3, frames)), data.draw(integers(3, k))
    window = data.draw(integers(k))
    weights, signal = np.zeros(size + 2 * pad), np.zeros((2, size + 2 * pad))
    for t in range(frames):
        span = slice(t * hop, t * hop + k)
        weights[span] += window**2
        signal[:, span] += spectrum[:, :, t] @ (basis * window)
    expected = (signal / np.where(weights > 1e-8, weights, 1))[:, pad : pad + size]
    arrays = {"spectrum": spectrum, "basis": basis, "window": window}
    y = evaluate(_PROGRAMS["istft"], arrays, {"hop": hop, "pad": pad})
    np.testing.assert_allclose(y, expected, rtol=1e-12)


@given(st.data(), st.integers(1, 5), st.integers(1, 5), st.integers(1, 3))
def test_vocoder_step(data: st.DataObject, length: int, k: int, stride: int) -> None:
    x, w = data.draw(integers(2, 3, length)), data.draw(integers(3, 2, k))
    b, alpha = data.draw(integers(2)), 1 + np.abs(data.draw(integers(2)))
    h = np.where(x >= 0, x, 0.25 * x)
    u = scatter(h, w, stride, 1, 1) + b[:, None]
    expected = u + np.sin(alpha[:, None] * u) ** 2 / alpha[:, None]
    arrays = {"x": x, "w": w, "b": b, "alpha": alpha}
    y = evaluate(_PROGRAMS["vocoder_step"], arrays, {"stride": stride, "slope": 0.25})
    np.testing.assert_allclose(y, expected, rtol=1e-9, atol=1e-12)
