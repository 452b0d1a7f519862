"""Field cases about where the result begins and ends: auto_pad, output_shape, output_size, pads."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl import CdslError, ops
from tests.conformance.cases import f32, stamp


def length(taps: int, elements: int, **attributes: Any) -> int:
    """The length of the result over zeros."""
    y = ops.conv_transpose1d(
        np.zeros((1, 1, elements), "f4"), np.zeros((1, 1, taps), "f4"), **attributes
    )
    return int(y.shape[2])


@pytest.mark.parametrize(("asked", "out_pad"), [(9, 0), (10, 1)])
def test_f12_output_size_counts_dilation(asked: int, out_pad: int, target: str) -> None:
    x, w = [1, 2], [1, 10, 100]
    got = stamp(x, w, stride=2, dilation=3, output_size=asked, target=target)
    assert len(got) == asked
    assert got == stamp(x, w, stride=2, dilation=3, output_padding=out_pad, target=target)


def test_f12_output_size_below_natural() -> None:
    with pytest.raises(CdslError) as caught:
        length(3, 2, stride=2, dilation=3, output_size=8)
    assert caught.value.code == "E0375"
    assert "8" in caught.value.message
    assert "9 to 10" in caught.value.message


def test_f20_same_needs_no_output_padding(target: str) -> None:
    assert stamp([1, 2], [1, 10], auto_pad="SAME_UPPER", target=target) == [1, 12]
    assert length(16, 46, stride=8, auto_pad="SAME_UPPER") == 46 * 8


def test_f21_same_crops(target: str) -> None:
    assert stamp([2, 3], [2, 3, 4], auto_pad="SAME_UPPER", target=target) == [12, 17]
    assert stamp([2, 3], [2, 3, 4], target=target) == [4, 12, 17, 12]
    assert length(3, 5, stride=2, auto_pad="SAME_LOWER") == 10


def test_f23_uneven_split(target: str) -> None:
    x, w = [1, 2, 3], [1, 10, 100, 1000]
    assert stamp(x, w, auto_pad="SAME_UPPER", target=target) == [12, 123, 1230]
    assert stamp(x, w, auto_pad="SAME_LOWER", target=target) == [123, 1230, 2300]


@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
@pytest.mark.parametrize("out_pad", [0, 1, 2])
@pytest.mark.parametrize(("taps", "stride"), [(1, 4), (2, 7), (3, 3), (5, 3), (8, 4)])
def test_f23_same_is_length_times_stride(
    taps: int, stride: int, out_pad: int, auto_pad: str
) -> None:
    """Also where the uncropped result is shorter than L * stride."""
    attributes = {"stride": stride, "output_padding": out_pad, "auto_pad": auto_pad}
    assert length(taps, 6, **attributes) == 6 * stride


def test_f25_same_with_output_padding(target: str) -> None:
    got = stamp(
        [1, 2, 3], [1, 10, 100], stride=2, output_padding=1, auto_pad="SAME_UPPER", target=target
    )
    assert got == [10, 102, 20, 203, 30, 300]


def test_f27_direct_convolution_same(target: str) -> None:
    x, w = f32([1, 2, 3, 4], 3), f32([1, 10, 100], 3)
    for auto_pad, y in (("SAME_UPPER", [321, 43]), ("SAME_LOWER", [210, 432])):
        got = ops.conv1d(x, w, stride=2, auto_pad=auto_pad, target=target)
        assert got[0, 0].tolist() == y


def test_f28_output_shape(target: str) -> None:
    x, w = [1, 2, 3], [1, 10, 100]
    assert stamp(x, w, stride=2, output_shape=4, target=target) == [102, 20, 203, 30]
    got = stamp(x, w, stride=2, output_shape=4, auto_pad="SAME_UPPER", target=target)
    assert got == [10, 102, 20, 203]
    for auto_pad in ("SAME_LOWER", "VALID"):
        got = stamp(x, w, stride=2, output_shape=[4], auto_pad=auto_pad, target=target)
        assert got == [102, 20, 203, 30]
    assert stamp(x, w, stride=2, output_shape=4, padding=1, target=target) == [102, 20, 203, 30]


def test_f30_unbatched(target: str) -> None:
    generator = np.random.default_rng(30)
    x = generator.integers(-4, 5, (3, 15)).astype("f4")
    w = generator.integers(-4, 5, (3, 2, 16)).astype("f4")
    y = ops.conv_transpose1d(x, w, stride=16, padding=7, output_size=240, target=target)
    assert y.shape == (2, 240)
    batched = ops.conv_transpose1d(
        x[None], w, stride=16, padding=7, output_padding=14, target=target
    )
    assert np.array_equal(y, batched[0])


@pytest.mark.parametrize("asked", [225, 242])
def test_f30_impossible(asked: int) -> None:
    with pytest.raises(CdslError, match=f"{asked}, possible are 226 to 241"):
        length(16, 15, stride=16, padding=7, output_size=asked)


def test_f32_huge_output_shape(target: str) -> None:
    """It is refused before anything of that size is made: 435 MiB."""
    tracemalloc.start()
    try:
        with pytest.raises(CdslError, match="114078056, possible are 0 to 12"):
            stamp([1, 2], [1, 2], stride=10, output_shape=114078056, target=target)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2**26


def test_f37_padding_beyond_the_span(target: str) -> None:
    x, w = np.ones((1, 1, 14), "f4"), np.ones((1, 1, 3), "f4")
    assert ops.conv_transpose1d(x, w, padding=8, target=target).shape == (1, 1, 0)
    with pytest.raises(CdslError) as caught:
        ops.conv_transpose1d(x, w, padding=9, target=target)
    assert caught.value.code == "E0375"
    assert "-2" in caught.value.message
    assert "(14 - 1)*1 - 9 - 9 + 1*(3 - 1) + 0 + 1 = -2" in str(caught.value)


def test_f40_negative_pads(target: str) -> None:
    """Positions of the bias in the language; `ops` refuses them, as PyTorch does."""
    params = {"pad_begin": -1, "pad_end": -2}
    kernel = convdsl.compile(ops.source("conv_transpose1d"), params=params, target=target)
    got = kernel(f32([1, 2], 3), f32([1, 10], 3), f32([3], 1))
    assert got[0, 0].tolist() == [3, 4, 15, 23, 3, 3]
    for attributes in ({"padding": -1}, {"padding": (0, -2)}, {"output_padding": -1}):
        name = next(iter(attributes))
        with pytest.raises(CdslError, match=f"`{name}` of `conv_transpose1d` is -") as caught:
            stamp([1, 2], [1, 10], **attributes, target=target)
        assert caught.value.code == "E0372"


def test_f117_odd_strides() -> None:
    """output_padding = stride % 2 gives L * stride for K = 2*stride, padding = ceil(stride / 2)."""
    for stride in (2, 3, 4, 5, 8):
        padding = -(-stride // 2)
        odd = stride % 2
        assert (
            length(2 * stride, 9, stride=stride, padding=padding, output_padding=odd) == 9 * stride
        )
