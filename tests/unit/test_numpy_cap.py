"""`cap` bounds the temporaries of NumPy programs, and does not change what they compute."""

from __future__ import annotations

import numpy as np
import pytest

import convdsl
from convdsl.diagnostics import CdslError
from tests.unit.api_programs import whole

TEXT = convdsl.ops.source("conv_transpose1d")
LAYERS = {
    "phases": ({"N": 2, "C": 24, "L": 1501, "M": 17, "K": 8}, 4, "standard"),
    "columns": ({"N": 3, "C": 24, "L": 1501, "M": 17, "K": 8}, 4, "strict"),
    "toom": ({"N": 3, "C": 270, "L": 301, "M": 1, "K": 512}, 128, "fast"),
}


def compiled(name: str, cap: int) -> convdsl.Kernel:
    sizes, stride, accuracy = LAYERS[name]
    return convdsl.compile(
        TEXT, params={"stride": stride}, sizes=sizes, accuracy=accuracy, absent="b", cap=cap,
        algorithm="toom" if name == "toom" else None,
    )  # fmt: skip


@pytest.mark.parametrize("name", LAYERS)
def test_the_same_results_in_less_memory(name: str) -> None:
    """Of small integers, so that sums are exact, and transforms nearly so."""
    sizes = LAYERS[name][0]
    x, w = whole(sizes["N"], sizes["C"], sizes["L"]), whole(sizes["C"], sizes["M"], sizes["K"])
    held, results = [], []
    for cap in (2**26, 2**19, 2**16):
        kernel = compiled(name, cap)
        assert kernel.plan.algorithm == name
        bound = kernel.bind(w=w)
        results.append(bound(x))
        held.append(kernel.plan.temporary_bytes or 0)
    assert held == sorted(held, reverse=True)
    assert held[-1] < held[0]
    for other in results[1:]:
        if name == "toom":
            np.testing.assert_allclose(other, results[0], rtol=0, atol=1e-3)
        else:
            np.testing.assert_array_equal(other, results[0])


def test_a_long_signal_needs_no_more_than_a_short_one() -> None:
    held = []
    for length in (20_000, 200_000):
        sizes = {"N": 1, "C": 24, "L": length, "M": 17, "K": 8}
        kernel = convdsl.compile(TEXT, params={"stride": 4}, sizes=sizes, absent="b")
        held.append(kernel.plan.temporary_bytes or 0)
    assert held[1] < 2 * held[0] < 2**24


def test_no_bytes() -> None:
    with pytest.raises(CdslError, match="`cap` is 0") as error:
        convdsl.compile(TEXT, cap=0)
    assert error.value.code == "E0358"
