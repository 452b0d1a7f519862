"""Results that no tap reaches: the constant between the others is filled at once, in each chunk."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import convdsl
from convdsl.machine.facts import Cpu, Machine
from convdsl.ops.sources import source
from convdsl.schedule import chunks_numpy
from tests.strategies.arrays import Array


def integers(*shape: int) -> Array:
    return np.random.default_rng(5).integers(-9, 9, shape).astype(np.float32)


def kernel(
    x: Array, w: Array, algorithm: Any = None, machine: Machine | None = None, **params: int
) -> convdsl.Kernel:
    sizes = dict(zip("NCL", x.shape, strict=True)) | dict(zip("CMK", w.shape, strict=True))
    return convdsl.compile(
        source("conv_transpose1d"), target="numpy", params=params, absent=frozenset("b"),
        algorithm=algorithm, sizes=sizes, machine=machine,
    )  # fmt: skip


def test_a_chunk_fills_its_own_results() -> None:
    x, w = integers(1, 64, 4096), integers(64, 64, 2)
    made = kernel(x, w, stride=5)
    text = made.source
    assert text.count("= 0.0") == 1
    assert "y_2d[:, 10240 * t_chunk:o_1_to] = 0.0" in text
    want = convdsl.evaluate(
        convdsl.parse(source("conv_transpose1d")), {"x": x, "w": w}, {"stride": 5}
    )
    np.testing.assert_array_equal(made(x, w), want)


def test_long_runs_and_few_holes_are_stored_alone() -> None:
    x = integers(1, 8, 40)
    for taps, stride in ((20, 40), (9, 10)):
        w = integers(8, 8, taps)
        made = kernel(x, w, "phases", stride=stride)
        assert "[...] = 0.0" not in made.source
        want = convdsl.evaluate(
            convdsl.parse(source("conv_transpose1d")), {"x": x, "w": w}, {"stride": stride}
        )
        np.testing.assert_array_equal(made(x, w), want)


@pytest.mark.parametrize("algorithm", ["phases", "gather", "columns"])
@given(data=st.data())
def test_any_holes(algorithm: str, data: st.DataObject) -> None:
    draw = data.draw
    n, c, m, length = (
        draw(st.integers(1, most), name) for name, most in zip("NCML", (3, 5, 3, 9), strict=True)
    )
    stride, taps = draw(st.integers(2, 6), "stride"), draw(st.integers(1, 3), "K")
    begin = draw(st.integers(-2, 2), "begin")
    end = draw(st.integers(-2, 2), "end")
    dilation = draw(st.integers(1, 4), "dilation")
    if (length - 1) * stride + dilation * (taps - 1) + 1 - begin - end < 0:
        begin = end = 0
    x, w = integers(n, c, length), integers(c, m, taps)
    params = {"stride": stride, "pad_begin": begin, "pad_end": end, "dilation": dilation}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks_numpy, "FEWEST", 1)
        near = draw(st.sampled_from([1, 64, Cpu().near]))
        made = kernel(x, w, algorithm, Machine(Cpu(near=near)), **params)
    want = convdsl.evaluate(convdsl.parse(source("conv_transpose1d")), {"x": x, "w": w}, params)
    out = np.full(want.shape, 7, np.float32)
    np.testing.assert_array_equal(made(x, w, out=out), want)
