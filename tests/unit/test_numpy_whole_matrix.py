"""Small sums as one product with a matrix of all terms, zeros where the relation has none."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import convdsl
from convdsl.ops.sources import source
from tests.strategies.arrays import Array

TINY = {"N": 1, "C": 4, "L": 16, "M": 4, "K": 4}
PARAMS = {"stride": 2, "pad_begin": 1, "pad_end": 1}


def compiled(
    sizes: dict[str, int] = TINY, params: dict[str, int] = PARAMS, **options: Any
) -> convdsl.Kernel:
    text = source("conv_transpose1d")
    return convdsl.compile(
        text, target="numpy", sizes=sizes, params=params, absent=frozenset("b"), **options
    )


def integers(*shape: int) -> Array:
    return np.random.default_rng(3).integers(-9, 9, shape).astype(np.float32)


def test_a_bound_call_is_one_product() -> None:
    kernel = compiled()
    assert "solve y for k" in str(kernel.schedule)
    assert "64 terms, zeros among them" in kernel.plan.reason
    main = kernel.source.split("def ")[1]
    assert main.count("np.dot(") == 1
    assert "for " not in main.split('"""')[2]


def test_large_ones_and_strict_ones_multiply_no_zeros() -> None:
    for kernel in (compiled(TINY | {"L": 400}), compiled(accuracy="strict")):
        assert "solve y for k" not in str(kernel.schedule)
        assert "zeros among them" not in kernel.plan.reason
    assert "phases y" in str(compiled(algorithm="phases").schedule)


def test_what_is_not_finite_stays_where_it_belongs() -> None:
    x, w = integers(1, 4, 16), integers(4, 4, 4)
    x[0, 2, 5] = np.inf
    found, exact = compiled().bind(w=w)(x), compiled(accuracy="strict")(x, w)
    np.testing.assert_array_equal(found, exact)
    assert np.isfinite(found).any()


@given(st.data())
def test_any_small_layer(data: st.DataObject) -> None:
    draw = data.draw
    names = {"N": 3, "C": 3, "L": 5, "M": 3, "K": 6}
    sizes = {n: draw(st.integers(1, most), n) for n, most in names.items()}
    params = {n: draw(st.integers(1, 3), n) for n in ("stride", "dilation")}
    params |= {n: draw(st.integers(0, 2), n) for n in ("pad_begin", "pad_end")}
    long = (sizes["L"] - 1) * params["stride"] + params["dilation"] * (sizes["K"] - 1) + 1
    assume(long > params["pad_begin"] + params["pad_end"])
    x, w = (integers(*(sizes[n] for n in axes)) for axes in ("NCL", "CMK"))
    kernel = compiled(sizes, params)
    exact = convdsl.evaluate(convdsl.parse(source("conv_transpose1d")), {"x": x, "w": w}, params)
    np.testing.assert_array_equal(kernel.bind(w=w)(x), exact)
    np.testing.assert_array_equal(kernel(x, w), exact)
    wide = np.zeros((*exact.shape[:-1], 2 * exact.shape[-1]), np.float32)
    np.testing.assert_array_equal(kernel(x, w, out=wide[..., ::2]), exact)
    again = compiled(sizes, params, schedule=kernel.schedule)
    assert again.source.split('"""')[2:] == kernel.source.split('"""')[2:]


@pytest.mark.parametrize("shape", [(1, 4, 16), (3, 4, 16)])
def test_out_may_have_gaps(shape: tuple[int, ...]) -> None:
    sizes = TINY | {"N": shape[0]}
    x, w = integers(*shape), integers(4, 4, 4)
    wide = np.zeros((shape[0], 4, 64), np.float32)
    compiled(sizes).bind(w=w)(x, out=wide[..., ::2])
    np.testing.assert_array_equal(wide[..., ::2], compiled(sizes, accuracy="strict")(x, w))
    assert not wide[..., 1::2].any()
