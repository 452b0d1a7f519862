"""Programs that the property tests once failed on, each shrunk, under every algorithm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from convdsl import ops
from convdsl.sema.sizes import complete_sizes, solve_sizes
from tests.property.three_way import ALGORITHMS, check_steps, compiled, definition, same
from tests.strategies.arrays import integers

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Found:
    """A program, its parameters, and the shapes of its inputs."""

    text: str
    params: dict[str, int]
    shapes: dict[str, Shape]


FOUND = {
    # The tensor for the inner reduction was named by a word of the language.
    "nested reductions": Found(
        "op f(x: f32[A, B], b: f32[A]) -> y: f32[A] {\n"
        "    y[i] = sum[j] x[i, j] * (prod[k] b[k]) + (max[k] b[k] else 0)\n}\n",
        {},
        {"x": (2, 3), "b": (2,)},
    ),
    # An index of the results between the phases was named like an index, and like an input.
    "names of holes": Found(
        "op f(x: f32[B, L], r_gap: f32[K], s: int = 4, d: int = 2) -> y: f32[B, Q] where Q == 4*L {\n"
        "    y[t_gap, o] = sum[k, l | l*s + k*d == o] x[t_gap, l] * r_gap[k]\n}\n",
        {},
        {"x": (2, 5), "r_gap": (3,)},
    ),
    # A summed index of a fused let was renamed to one of the let's own indices.
    "names in a fused let": Found(
        "op f(x: f32[A, B]) -> y: f32[B] {\n"
        "    let h[c_1] = sum[c] x[c, c_1]\n    y[c] = h[c] + 1\n}\n",
        {},
        {"x": (2, 3)},
    ),
    # A register of a kernel was named like an input.
    "an input named like a register": Found(
        "op f(hit: f32[A], acc: f32[B]) -> y: f32[A] {\n"
        "    y[i] = max[j | 2*j == i + 1] acc[j] else hit[i]\n}\n",
        {},
        {"hit": (4,), "acc": (3,)},
    ),
    # The second equation was looked for as it was before the first one was solved.
    "coupled equations": Found(
        "op f(x: f32[A, B], w: f32[B]) -> y: f32[A] {\n"
        "    y[i] = sum[j in 0..A, k | j + k == i + 1, 0 == j, j*3 == i] x[j, k] * w[k]\n}\n",
        {},
        {"x": (4, 5), "w": (5,)},
    ),
    # An output index that is addressed by block and phase also stands on an operand.
    "the output index in an operand": Found(
        "op f(x: f32[A, A, A], w: f32[A, A]) -> y: f32[A] {\n"
        "    y[j] = sum[l, n | l + n*2 == j] x[j, l, n] * w[l, n]\n}\n",
        {},
        {"x": (5, 5, 5), "w": (5, 5)},
    ),
    # The column buffer of integers was read as floats.
    "columns of integers": Found(
        "op f(w: i32[B, C], u: i32[C], s: int) -> y: i32[9] {\n"
        "    y[i] = sum[j, c | j*6 == i + s] w[j, c] * u[c]\n}\n",
        {"s": 6},
        {"w": (5, 3), "u": (3,)},
    ),
    # A buffer of blocks had a negative extent where there are no taps.
    "no taps": Found(
        ops.source("conv_transpose2d"),
        {
            "stride_h": 3, "stride_w": 3, "dilation_h": 4, "dilation_w": 2,
            "pad_top": 1, "pad_left": 1, "out_pad_h": 2, "out_pad_w": 2,
        },
        {"x": (0, 2, 0, 0), "w": (2, 1, 2, 2)},
    ),
    # Fused loops were divided by an extent of zero.
    "no channels": Found(ops.source("conv_transpose1d"), {}, {"x": (0, 0, 0), "w": (0, 0, 1)}),
    # The plan solved a relation that was gone once another one was solved.
    "a relation that always holds": Found(
        "op f(x: f32[A, B]) -> y: f32[B] {\n"
        "    y[i] = sum[m in 0..A, n in 0..A, k | n == 0, m == 0, m == 0, k == i]\n"
        "               x[m, k] * x[n, k]\n}\n",
        {},
        {"x": (1, 3)},
    ),
    # Partial sums were planned for integers.
    "a product of integers": Found(
        "op f(x: i32[B, A, C], u: i32[C, D, C]) -> y: i32[A, D] {\n"
        "    y[k, l] = sum[m, n, r | r == m + l + 1] x[m, k, n] * u[r, l, n]\n}\n",
        {},
        {"x": (5, 7, 3), "u": (3, 3, 3)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("dynamic", [False, True], ids=["numeric", "dynamic"])
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@pytest.mark.parametrize("target", ["numpy", "wgsl"])
@pytest.mark.parametrize("name", FOUND)
def test_every_step(name: str, target: str, algorithm: Any, dynamic: bool) -> None:
    found = FOUND[name]
    op = compiled(found.text, target, algorithm, found.params).options.op
    symbols = op.input_sizes if dynamic else ()
    kernel = compiled(found.text, target, algorithm, found.params, symbols)
    dtypes = {t.name: t.dtype for t in kernel.inputs}
    arrays = {
        n: integers(shape, dtypes[n], 3, at) for at, (n, shape) in enumerate(found.shapes.items())
    }
    bound = kernel.options.params
    sizes = complete_sizes(op, bound, solve_sizes(op, bound, found.shapes))
    kernel.specialise(sizes, frozenset(t.name for t in kernel.inputs if t.name not in arrays))
    want = definition(found.text, arrays, found.params)
    check_steps(kernel, arrays, sizes, want)
    if target == "numpy":
        same(kernel(**arrays), want, kernel.source)
