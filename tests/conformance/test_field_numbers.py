"""Field cases about special values, half precision, indices, tails and repeatability."""

from __future__ import annotations

import numpy as np
import pytest

import convdsl
from convdsl import CdslError, ops
from tests.conformance.cases import f32, stamp

INF, NAN = np.inf, np.nan


def strict(x: list[float], w: list[float], stride: int) -> list[float]:
    return stamp(x, w, stride=stride, accuracy="strict")


# WGSL may assume finite numbers, so these are for the CPU alone.
@pytest.mark.parametrize(
    ("name", "x", "w", "stride", "y"),
    [
        ("F56", [0, 0, 0], [INF, 0], 1, [NAN, NAN, NAN, 0]),
        ("F56", [0, 0], [INF, 1], 2, [NAN, 0, NAN, 0]),
        ("F58", [INF, 1], [1, 0], 2, [INF, NAN, 1, 0]),
        ("F61", [1, 2], [NAN, 1], 2, [NAN, 1, NAN, 2]),
    ],
)
def test_f56_f58_f61_special_values(
    name: str, x: list[float], w: list[float], stride: int, y: list[float]
) -> None:
    assert np.array_equal(strict(x, w, stride), y, equal_nan=True), name


@pytest.mark.parametrize("algorithm", ["gather", "phases", "columns"])
def test_f56_strict_under_every_algorithm(algorithm: str) -> None:
    for x, w, stride, y in (
        ([0, 0, 0], [INF, 0], 1, [NAN, NAN, NAN, 0]),
        ([0, 0], [INF, 1], 2, [NAN, 0, NAN, 0]),
        ([1, 2], [NAN, 1], 2, [NAN, 1, NAN, 2]),
    ):
        kernel = convdsl.compile(
            ops.source("conv_transpose1d"), params={"stride": stride}, accuracy="strict",
            algorithm=algorithm,  # type: ignore[arg-type]
        )  # fmt: skip
        assert np.array_equal(kernel(f32(x, 3), f32(w, 3))[0, 0], y, equal_nan=True)


def test_f60_padding_lanes(target: str) -> None:
    """0/0 in lanes beside the data would poison the sum."""
    text = """
    op ratio(x: f32[N, C, L], w: f32[C, M, K]) -> y: f32[N, M, LO]
    where LO == L + K - 1
    {
        let q[n, c, l] = x[n, c, l] / x[n, c, l]
        y[n, m, o] = sum[c, k, l | l + k == o] q[n, c, l] * w[c, m, k]
    }
    """
    kernel = convdsl.compile(text, target=target)
    assert kernel(f32([[1], [2], [3]], 3), np.ones((3, 1, 1), "f4")).tolist() == [[[3]]]


def test_f62_half_precision_indices(target: str) -> None:
    x = (np.arange(4100) % 7).astype(np.float16).reshape(1, 1, -1)
    y = ops.conv_transpose1d(x, np.ones((1, 1, 1), np.float16), target=target)
    assert y.dtype == np.float16
    assert np.array_equal(y, x)
    x = x[:, :, :1500]
    w = np.array([[[1, 2]]], np.float16)
    y = ops.conv_transpose1d(x, w, stride=2, target=target)
    assert np.array_equal(y[0, 0, ::2], x[0, 0])
    assert np.array_equal(y[0, 0, 1::2], 2 * x[0, 0])


def test_f64_half_precision_sums_are_f32(target: str) -> None:
    """80000 does not fit f16; its sum in f32 is rounded once, at the store."""
    x, w = np.full((1, 2, 1), 200, np.float16), np.full((2, 1, 1), 200, np.float16)
    y = ops.conv_transpose1d(x, w, target=target)
    assert y.dtype == np.float16
    assert y.tolist() == [[[INF]]]
    x[0, 1] = -200
    assert ops.conv_transpose1d(x, w, target=target).tolist() == [[[0]]]


@pytest.mark.parametrize("stride", [3, 5, 6, 7, 10, 15])
def test_f82_strides_that_floats_cannot_divide(stride: int, target: str) -> None:
    x = f32(range(1, 65), 3)
    y = ops.conv_transpose1d(x, np.ones((1, 1, stride), "f4"), stride=stride, target=target)
    assert np.array_equal(y[0, 0], np.repeat(x[0, 0], stride))


def test_f88_every_length_of_a_reduction(target: str) -> None:
    """The data lies in a larger array, with NaN behind it."""
    for channels in (*range(8, 121, 8), 104, 440):
        x, w = np.full(channels + 64, NAN, "f4"), np.full(channels + 64, NAN, "f4")
        x[:channels] = w[:channels] = 1
        y = ops.conv_transpose1d(
            x[:channels].reshape(1, -1, 1), w[:channels].reshape(-1, 1, 1), target=target
        )
        assert y.tolist() == [[[channels]]]
        a = np.broadcast_to(x[:channels], (32, channels))  # wide enough for tiles
        b = np.broadcast_to(w[:channels, None], (channels, 48))
        assert np.all(ops.matmul(a, b, target=target) == channels)


def test_f90_bitwise_repeatable(target: str) -> None:
    generator = np.random.default_rng(90)
    x = generator.standard_normal((1, 256, 40), "f4")
    w = generator.standard_normal((256, 24, 16), "f4")
    runs = {ops.conv_transpose1d(x, w, stride=4, target=target).tobytes() for _ in range(10)}
    assert len(runs) == 1
    x, w = x[:, :2], w[:2, :1]
    runs = {ops.conv_transpose1d(x, w, stride=4, target=target).tobytes() for _ in range(10)}
    assert len(runs) == 1


def test_f114_tolerance_follows_the_sum(target: str) -> None:
    """1024 terms a result: right within a bound on sum |x||w|, and one tap less would be seen."""
    generator = np.random.default_rng(114)
    x = generator.random((1, 512, 45), "f4")
    w = generator.random((512, 16, 16), "f4")
    b = generator.random(16, "f4")
    y = ops.conv_transpose1d(x, w, b, stride=8, padding=4, target=target)
    params = {"stride": 8, "pad_begin": 4, "pad_end": 4}
    program = ops.source("conv_transpose1d")
    exact = convdsl.evaluate(program, {"x": x, "w": w, "b": b}, params)
    assert y.shape == exact.shape == (1, 16, 360)
    bound = 2.0**-24 * 128 * np.abs(exact)  # all terms are positive
    assert np.all(np.abs(y - exact) <= bound)
    w[:, :, 5] = 0
    less = convdsl.evaluate(program, {"x": x, "w": w, "b": b}, params)
    assert np.any(np.abs(less - exact) > bound)


def test_f92_another_text_means_another_key() -> None:
    """Everything that changes the text reaches the kernel that is kept for it."""
    from convdsl.ops.kernels import kernel

    def key(**changes: object) -> tuple[object, ...]:
        values = {
            "op": "conv_transpose1d", "dtype": "f32", "channels_last": False, "activation": None,
            "params": (("stride", 2),), "target": "wgsl", "accuracy": "standard",
        }  # fmt: skip
        return tuple((values | changes).values())

    sizes = (np.zeros((1, 4, 6), "f4"), np.zeros((4, 2, 3), "f4"))
    keys = [
        key(), key(channels_last=True), key(activation=("relu", None)),
        key(activation=("leaky_relu", 0.1)), key(activation=("leaky_relu", 0.2)),
        key(params=(("stride", 3),)), key(params=(("stride", 2), ("pad_begin", 1))),
        key(params=(("stride", 2), ("pad_end", 1))), key(target="numpy"),
    ]  # fmt: skip
    texts = set()
    for arguments in keys:
        made = kernel(*arguments)
        channels_last = arguments[2]
        x = sizes[0].transpose(0, 2, 1) if channels_last else sizes[0]
        variant, _ = made._variant({"x": x.shape, "w": sizes[1].shape})
        texts.add(variant.source)
    assert len(texts) == len(keys)
    assert kernel(*keys[0]) is kernel(*keys[0])


def test_f121_two_ways_to_write_it(target: str) -> None:
    """An inverse STFT as a transposed convolution, and as matrix product and overlap-add."""
    text = """
    op overlap_add(x: f32[N, C, L], w: f32[C, K], hop: int = 1) -> y: f32[N, LO]
    where LO == (L - 1)*hop + K, hop >= 1, K >= 1
    {
        let frames[n, k, l] = sum[c] x[n, c, l] * w[c, k]
        y[n, o] = sum[k, l | l*hop + k == o] frames[n, k, l]
    }
    """
    generator = np.random.default_rng(121)
    x = generator.integers(-8, 9, (2, 34, 9)).astype("f4")
    w = generator.integers(-8, 9, (34, 16)).astype("f4")
    kernel = convdsl.compile(text, params={"hop": 4}, target=target)
    direct = ops.conv_transpose1d(x, w[:, None], stride=4, target=target)
    assert np.array_equal(kernel(x, w), direct[:, 0])


def test_f06_no_crash_on_any_backend(target: str) -> None:
    with pytest.raises(CdslError):
        stamp([1], [1], groups=0, target=target)
