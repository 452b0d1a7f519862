"""Field cases that have to be refused: what is wrong, with its numbers, before anything runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl import CdslError, ops
from tests.conformance.cases import f32

ONES = np.ones((1, 4, 5), "f4")
TAPS = np.ones((4, 2, 3), "f4")


def refused(
    target: str, x: Any = ONES, w: Any = TAPS, b: Any = None, **attributes: Any
) -> CdslError:
    """The error, which must be the same whether `ops` or the language's own parameters are used."""
    with pytest.raises(CdslError) as caught:
        ops.conv_transpose1d(x, w, b, target=target, **attributes)
    assert caught.value.code.startswith("E037")
    return caught.value


def language(target: str, *arrays: Any, **params: int) -> CdslError:
    with pytest.raises(CdslError) as caught:
        convdsl.compile(ops.source("conv_transpose1d"), params=params, target=target)(*arrays)
    assert caught.value.code.startswith("E03")
    return caught.value


@pytest.mark.parametrize("groups", [0, -1, 3])
def test_f06_groups(groups: int, target: str) -> None:
    error = refused(target, groups=groups)
    assert f"`groups` of `conv_transpose1d` is {groups}" in error.message
    assert str(groups) in str(language(target, ONES, TAPS, groups=groups))


def test_f06_integers() -> None:
    """The report's own call: int64 data, groups 0, and without the zero."""
    x, w = np.ones((3, 4), np.int64), np.ones((3, 3, 3), np.int64)
    attributes: dict[str, Any] = {"stride": 2, "padding": 2, "output_padding": 1}
    assert "`groups`" in refused("numpy", x, w, groups=0, **attributes).message
    with pytest.raises(CdslError, match="`x` has dtype int64"):
        ops.conv_transpose1d(x, w, **attributes)


def test_f17_output_padding_too_large(target: str) -> None:
    error = refused(target, output_padding=1)
    assert "`output_padding` of `conv_transpose1d` is 1" in error.message
    assert "stride = 1" in error.message
    assert "dilation = 1" in error.message
    assert "out_pad" in str(language(target, ONES, TAPS, out_pad=1))


@pytest.mark.parametrize(("stride", "dilation"), [(2, 1), (1, 2)])
def test_f17_output_padding_below_either(stride: int, dilation: int, target: str) -> None:
    got = ops.conv_transpose1d(
        ONES, TAPS, stride=stride, dilation=dilation, output_padding=1, target=target
    )
    assert got.shape[2] == 4 * stride + 2 * dilation + 2


def test_f49_the_other_weight_order(target: str) -> None:
    x = f32([[1, 2], [3, 4]], 3)
    w = f32([[[1], [2], [3]], [[4], [5], [6]]], 3)
    error = refused(target, x, w.transpose(1, 0, 2))
    assert "takes 3 channels, `x` has 2" in error.message
    assert "[channels in, channels out / groups, kernel]" in str(error)
    language(target, x, w.transpose(1, 0, 2))


@pytest.mark.parametrize("shape", [(1,), (3,), (2, 1)])
def test_f110_bias(shape: tuple[int, ...], target: str) -> None:
    b = np.ones(shape, "f4")
    error = refused(target, b=b)
    assert str(list(shape)) in error.message
    assert "channels out are 2" in error.message
    language(target, ONES, TAPS, b)


@pytest.mark.parametrize(
    ("attributes", "says"),
    [
        ({"x": np.ones((1, 4, 5, 5), "f4")}, ("`x`", "rank 4", "[N, C, L]")),
        ({"dilation": 0}, ("`dilation`", "is 0", "allowed: 1 to")),
        ({"stride": 0}, ("`stride`", "is 0", "allowed: 1 to")),
        ({"w": np.ones((4, 2, 0), "f4")}, ("`conv_transpose1d` has no taps", "[4, 2, 0]")),
        ({"auto_pad": "SAME"}, ("`auto_pad`", "'SAME'", "SAME_UPPER, SAME_LOWER")),
    ],
)
def test_f112_says_which_attribute(
    attributes: dict[str, Any], says: tuple[str, ...], target: str
) -> None:
    error = refused(target, **attributes)
    for part in says:
        assert part in str(error)


def test_f112_unknown_attribute(target: str) -> None:
    with pytest.raises(TypeError, match="dilatation"):
        ops.conv_transpose1d(ONES, TAPS, dilatation=2)  # type: ignore[call-arg]
    error = language(target, ONES, TAPS, dilatation=2)
    assert "dilatation" in error.message
    assert "dilation" in str(error)


@pytest.mark.parametrize("params", [{"dilation": 0}, {"stride": 0}])
def test_f112_in_the_language(params: dict[str, int], target: str) -> None:
    error = language(target, ONES, TAPS, **params)
    assert error.span is not None
    assert f"{next(iter(params))} >= 1" in str(error)


def test_f112_rank_and_empty_kernel_in_the_language(target: str) -> None:
    assert "4 axes" in str(language(target, np.ones((1, 4, 5, 5), "f4"), TAPS))
    assert "K >= 1" in str(language(target, ONES, np.ones((4, 2, 0), "f4")))


def test_f68_products_beyond_32_bits(target: str) -> None:
    """2^32 column elements: the output alone has more than 2^30, which no index may wrap around."""
    sizes = {"N": 8, "C": 1, "L": 2048, "M": 64, "K": 4096}
    kernel = convdsl.compile(
        ops.source("conv_transpose1d"), params={"stride": 1024}, sizes=sizes, target=target
    )
    try:
        plan = kernel.plan
    except CdslError as error:
        assert any(character.isdigit() for character in str(error))  # noqa: PT017
        return
    assert plan.flops is not None
    assert plan.flops >= 2 * 8 * 64 * 4096 * 2048
    assert plan.temporary_bytes is not None
    assert plan.temporary_bytes < 2**31


@pytest.mark.parametrize("elements", [2**31, 2**40, 2**63])
def test_f68_too_many_elements(elements: int, target: str) -> None:
    sizes = {"N": 1, "C": 1, "L": elements, "M": 1, "K": 2}
    with pytest.raises(CdslError) as caught:
        _ = convdsl.compile(ops.source("conv_transpose1d"), sizes=sizes, target=target).plan
    assert caught.value.code == "E0307"
