"""What is planned as a product on NumPy is one: slices over the taps take a hundred times as long."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

import convdsl
from convdsl.ops.sources import source


def schedule_of(stride: int, pad: int, accuracy: str, **sizes: int) -> tuple[str, str]:
    kernel = convdsl.compile(
        source("conv_transpose1d"), target="numpy", absent=frozenset("b"), sizes=sizes,
        params={"stride": stride, "pad_begin": pad, "pad_end": pad}, accuracy=accuracy,
    )  # fmt: skip
    return kernel.plan.algorithm, str(kernel.schedule)


@pytest.mark.parametrize(
    "sizes",
    [
        {"N": 2, "C": 514, "L": 300, "M": 1, "K": 512, "stride": 128},  # all signals in one product
        {"N": 3, "C": 514, "L": 1000, "M": 48, "K": 1, "stride": 3},  # a phase that no operand has
    ],
)
def test_found(sizes: dict[str, int]) -> None:
    algorithm, schedule = schedule_of(sizes.pop("stride"), 0, "standard", **sizes)
    assert algorithm in ("columns", "phases")
    assert "gemm" in schedule


def test_products_with_zeros_count() -> None:
    """Three taps at a stride of two make a quarter of the phases' products ones with zeros."""
    sizes = {"N": 2, "C": 128, "L": 4096, "M": 64}
    assert schedule_of(2, 1, "standard", K=3, **sizes)[0] == "columns"
    assert schedule_of(2, 1, "standard", K=4, **sizes)[0] == "phases"


@given(data=st.data())
def test_products_are_products(data: st.DataObject) -> None:
    draw = data.draw
    stride = draw(st.sampled_from([1, 2, 3, 4, 5, 8, 16, 128]), "stride")
    taps = draw(st.sampled_from([1, 2, 3, 7, stride, 2 * stride, 4 * stride + 1]), "K")
    sizes = {
        "N": draw(st.sampled_from([1, 2, 3, 8]), "N"),
        "C": draw(st.sampled_from([4, 16, 100, 514]), "C"),
        "L": draw(st.sampled_from([1, 2, 30, 300, 1000]), "L"),
        "M": draw(st.sampled_from([1, 2, 48, 64]), "M"),
        "K": taps,
    }
    pad = draw(st.sampled_from([0, 0, stride // 2]), "pad")
    if (sizes["L"] - 1) * stride + taps - 2 * pad < 1:
        pad = 0
    accuracy = draw(st.sampled_from(["strict", "standard", "fast"]), "accuracy")
    algorithm, schedule = schedule_of(stride, pad, accuracy, **sizes)
    assert algorithm == "gather" or "gemm" in schedule
