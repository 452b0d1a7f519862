"""When products with Toeplitz matrices are chosen on NumPy, and that they compute the same."""

from __future__ import annotations

import numpy as np
import pytest

import convdsl
from convdsl.passes.toeplitz import tie_of, toeplitz_piece, window_of
from tests.unit.api_programs import whole

DEPTHWISE = """
op f(x: f32[N, C, L], w: f32[C, K], b: f32[C], s: int = 3, p: int = 2) -> y: f32[N, C, Q]
where Q == (L - 1)*s + K - 2*p + 1 {
    y[n, c, o] = b[c] + sum[k, l | l*s + k == o + p] leaky_relu(x[n, c, l], 0.5) * w[c, k]
}"""
LAST = """
op g(taps: f32[K, D], in: f32[N, T, D], b: f32[D], h: int = 3, e: int = 2) -> out: f32[N, U, D]
where U == (T - 1)*h + K - 2*e + 1 {
    out[z, u, d] = (sum[t, j | u + e == j + t*h] taps[j, d] * leaky_relu(in[z, t, d], 0.5)) + b[d]
}""".replace("in:", "data:").replace("in[", "data[")
FEW = """
op f(x: f32[N, C, L], w: f32[C, M, K], p: int = 31) -> y: f32[N, M, L] {
    y[n, m, o] = sum[c, k, l | l + k == o + p] x[n, c, l] * w[c, m, k]
}"""
SIZES = {"N": 2, "C": 37, "L": 1009, "K": 7}


def compiled(text: str, sizes: dict[str, int], **options: object) -> convdsl.Kernel:
    return convdsl.compile(text, sizes=sizes, **options)  # type: ignore[arg-type]


def test_depthwise() -> None:
    """Nothing divides; the channels are odd, the signal begins and ends inside of a block."""
    kernel = compiled(DEPTHWISE, SIZES)
    assert kernel.plan.algorithm == "phases"
    assert "Toeplitz" in kernel.plan.reason
    x, w, b = whole(2, 37, 1009), whole(37, 7), whole(37)
    x = x * 2  # so that halves are whole
    want = convdsl.evaluate(DEPTHWISE, {"x": x, "w": w, "b": b}, {})
    np.testing.assert_array_equal(kernel(x, w, b), want)
    np.testing.assert_array_equal(kernel.bind(w=w)(x, b=b), want)
    again = compiled(DEPTHWISE, SIZES, schedule=kernel.schedule)
    assert again.source == kernel.source


def test_names_and_the_order_of_axes_do_not_matter() -> None:
    kernel = compiled(LAST, {"N": 2, "D": 37, "T": 1009, "K": 7})
    assert kernel.plan.reason == compiled(DEPTHWISE, SIZES).plan.reason
    x, w, b = 2 * whole(2, 37, 1009), whole(37, 7), whole(37)
    turned = np.ascontiguousarray(x.transpose(0, 2, 1))
    found = kernel(np.ascontiguousarray(w.T), turned, b)
    want = convdsl.evaluate(DEPTHWISE, {"x": x, "w": w, "b": b}, {})
    np.testing.assert_array_equal(found.transpose(0, 2, 1), want)


@pytest.mark.parametrize("cap", [2**26, 2**20, 2**17])
def test_few_channels_and_a_long_kernel(cap: int) -> None:
    sizes = {"N": 1, "C": 3, "L": 20011, "M": 2, "K": 63}
    kernel = compiled(FEW, sizes, cap=cap)
    assert "Toeplitz" in kernel.plan.reason
    assert (kernel.plan.temporary_bytes or 0) <= 2 * cap
    x, w = whole(1, 3, 20011), whole(3, 2, 63)
    want = convdsl.evaluate(FEW, {"x": x, "w": w}, {})
    np.testing.assert_array_equal(kernel(x, w), want)


@pytest.mark.parametrize(
    ("text", "sizes", "options"),
    [
        (DEPTHWISE, SIZES, {"accuracy": "strict"}),  # zeros may not stand for terms
        (DEPTHWISE, SIZES | {"N": 1, "C": 3, "L": 90}, {}),  # more calls than work
        (DEPTHWISE, {"N": 2, "C": 37, "K": 7}, {"dynamic": ("L",)}),
        (DEPTHWISE, SIZES, {"algorithm": "gather"}),
        (FEW, {"N": 1, "C": 64, "L": 4096, "M": 256, "K": 63}, {}),  # rows enough
        (DEPTHWISE.replace("l*s + k ", "l*s + 2*k ").replace("+ K", "+ 2*K"), SIZES, {}),
        (DEPTHWISE.replace("leaky_relu(x[n, c, l], 0.5)", "(x[n, c, l] + 1)"), SIZES, {}),
    ],
    ids=["strict", "small", "symbolic", "asked for", "rows", "dilated", "untame"],
)  # fmt: skip
def test_not_chosen(text: str, sizes: dict[str, int], options: dict[str, object]) -> None:
    kernel = compiled(text, sizes, **options)
    assert "toeplitz" not in str(kernel.schedule)


def test_what_is_not_finite_stays_where_it_is() -> None:
    kernel = compiled(DEPTHWISE, SIZES)
    x, w, b = 2 * whole(2, 37, 1009), whole(37, 7), whole(37)
    x[1, 5, 700], w[9, 2] = np.inf, np.nan
    want = convdsl.evaluate(DEPTHWISE, {"x": x, "w": w, "b": b}, {})
    assert np.isnan(want).any()
    np.testing.assert_array_equal(kernel(x, w, b), want)


def test_a_window_ends_with_the_data() -> None:
    """One block: its window is the data, however far the taps reach."""
    text = (
        "op f(x: f32[L], w: f32[K]) -> y: f32[L] { y[o] = sum[k, l | l + k == o + 3] x[l] * w[k] }"
    )
    kernel = convdsl.compile(text, sizes={"L": 5, "K": 40})
    system = kernel.executable.trace.steps["normalise"]
    (piece,) = system.equations[0].pieces  # type: ignore[union-attr]
    tie = tie_of(piece, "o", "l")
    assert tie is not None
    assert window_of(piece, tie, 8) == (0, 4)
    assert window_of(piece, tie, 2) == (-4, 4)
    made = toeplitz_piece(piece, tie, 8, (0, 4), ("q", "u", "a"))
    assert [v.name for v in made.vars] == ["u"]
