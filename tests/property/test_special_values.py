"""NaN and infinities on NumPy stand exactly where the definition has them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, note
from hypothesis import strategies as st

import convdsl
from convdsl.syntax.printer import print_program
from tests.property.three_way import ALGORITHMS, Array, compiled, same
from tests.strategies.arrays import arrays, integers, seeds
from tests.strategies.programs import Drawn, programs
from tests.strategies.shipped import PROGRAMS, Call, calls, inputs_of

NAN, INF = float("nan"), float("inf")
specials = st.sampled_from([NAN, INF, -INF])


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize(
    ("x", "w", "stride", "want"),
    [
        ([0, 0, 0], [INF, 0], 1, [NAN, NAN, NAN, 0]),  # F56: only products of the definition count
        ([0, 0], [INF, 1], 2, [NAN, 0, NAN, 0]),  # F56
        ([INF, 1], [1, 0], 2, [INF, NAN, 1, 0]),  # F58
        ([1, 2], [NAN, 1], 2, [NAN, 1, NAN, 2]),  # F61
    ],
)
def test_reported_cases(
    algorithm: str | None, x: list[float], w: list[float], stride: int, want: list[float]
) -> None:
    for channels in (1, 8):  # few and many: other plans, the same numbers
        data = np.zeros((1, channels, len(x)), np.float32)
        taps = np.zeros((channels, channels, len(w)), np.float32)
        data[0, 0], taps[0, 0] = x, w
        kernel = compiled(PROGRAMS["conv_transpose1d"], "numpy", algorithm, {"stride": stride})
        got = kernel(data, taps)
        same(got[:, 0], np.array([want]), kernel.source)


def _spoilt(data: st.DataObject, inputs: dict[str, Array]) -> dict[str, Array]:
    """Copies with special values at one or two drawn places of each float input."""
    out: dict[str, Array] = {}
    for name, array in inputs.items():
        out[name] = array
        if array.dtype.kind == "f" and array.size:
            own: Any = np.array(array)
            for _ in range(data.draw(st.integers(0, 2))):
                own.reshape(-1)[data.draw(st.integers(0, array.size - 1))] = data.draw(specials)
            out[name] = own
    return out


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(calls(), st.data())
def test_shipped_operators(algorithm: str | None, call: Call, data: st.DataObject) -> None:
    tree = PROGRAMS[call.name]
    inputs = _spoilt(data, data.draw(inputs_of(call)))
    kernel = compiled(tree, "numpy", algorithm, call.params)
    got = kernel(**inputs)
    note(kernel.source)
    same(got, convdsl.evaluate(tree, inputs, call.params), f"by {kernel.plan.algorithm}")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(programs(calls=1), st.booleans(), st.data())
def test_drawn_programs(
    algorithm: str | None, drawn: Drawn, dynamic: bool, data: st.DataObject
) -> None:
    # i32(inf) is the largest i32, and what overflow makes of it is not defined.
    assume("i32(" not in print_program(drawn.tree))
    inputs = _spoilt(data, data.draw(arrays(drawn, 0)))
    symbols = drawn.sizes if dynamic else ()
    kernel = compiled(drawn.tree, "numpy", algorithm, drawn.params, symbols)
    got = kernel(**inputs)
    note(kernel.source)
    same(got, convdsl.evaluate(drawn.tree, inputs, drawn.params), kernel.source)


LAYERS = st.fixed_dictionaries(
    {
        "L": st.integers(12, 20), "M": st.integers(4, 6), "K": st.integers(4, 6),
        "stride": st.sampled_from([2, 3]), "pad": st.integers(0, 2),
    }
)  # fmt: skip


@given(LAYERS, st.booleans(), seeds, st.data())
def test_windows_with_zeros(
    layer: dict[str, int], bound: bool, seed: int, data: st.DataObject
) -> None:
    """Zeros beside the data, and in a matrix whose last tap is cut, meet nothing that is not finite."""
    x = integers((1, 4, layer["L"]), "f32", 4, seed)
    w = integers((4, layer["M"], layer["K"]), "f32", 4, seed + 1)
    params = {"stride": layer["stride"], "pad_begin": layer["pad"], "pad_end": layer["pad"]}
    text = convdsl.ops.source("conv_transpose1d")
    kernel = convdsl.compile(text, absent="b", params=params, algorithm="phases")
    plain = kernel(x, w)
    inputs = _spoilt(data, {"x": x, "w": w})
    want = convdsl.evaluate(convdsl.parse(text), inputs, params)
    got = kernel.bind(w=inputs["w"])(inputs["x"]) if bound else kernel(**inputs)
    same(got, want, kernel.source)
    assert "x_windows" in kernel.source
    np.testing.assert_array_equal(kernel(x, w), plain)


TWO = """
op two(x: f32[N, C, L], w: f32[C, M, 2], v: f32[C, M, 4]) -> y: f32[N, M, Q] where Q == 2*L + 2 {
    let h[n, m, o] = sum[c, k, l | l*2 + k == o] x[n, c, l] * v[c, m, k]
    y[n, m, o] = h[n, m, o] + sum[c, k, l | l*2 + k == o] x[n, c, l] * w[c, m, k]
}
"""


def test_what_is_kept_of_constants_is_not_that_of_the_exact_program() -> None:
    """Of `x` and `v` alone a sum is kept, which has one name in both programs."""
    x = integers((1, 4, 16), "f32", 4, 0)
    w, v = integers((4, 4, 2), "f32", 4, 1), integers((4, 4, 4), "f32", 4, 2)
    v[1, 2, 3] = INF
    kernel = convdsl.compile(TWO, algorithm="phases")
    want = convdsl.evaluate(convdsl.parse(TWO), {"x": x, "w": w, "v": v}, {})
    kernel(x, w, v)
    assert "x_windows" in kernel.source
    for bound in ({"x": x, "v": v}, {"w": w, "v": v}, {}):
        rest = {n: a for n, a in {"x": x, "w": w, "v": v}.items() if n not in bound}
        same(kernel.bind(**bound)(**rest), want, kernel.source)
