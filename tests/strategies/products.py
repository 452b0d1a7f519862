"""Sums of products as people write them: what stands in and around them, dtypes, turned axes, edges."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from tests.strategies.arrays import TYPES, Array, integers, seeds


@dataclass(frozen=True, slots=True)
class Form:
    """The axes of x, w, b, z and y, the sum with its operands left open, and the size of the result."""

    axes: Mapping[str, str]
    total: str
    reads: Mapping[str, str]
    result: str
    size: str
    longest: int = 17


_BEHIND = "Q == (L - 1)*s + d*(K - 1) + 1 - 2*p"
_AHEAD = "Q == (L + 2*p - d*(K - 1) - 1)//s + 1"
FORMS = {
    "convolution": Form(
        {"x": "N, G*C, L", "w": "G*M, C, K", "b": "G*M", "z": "N, G*M", "y": "N, G*M, Q"},
        "sum[c, k, l | o*s + k*d == l + p] {x} * {w}",
        {"x": "n, (g, c), l", "w": "(g, m), c, k", "b": "(g, m)", "z": "n, (g, m)"},
        "n, (g, m), o", _AHEAD,
    ),
    "transposed, operands and axes turned": Form(
        {"x": "L, N, C", "w": "K, C, M", "b": "M", "z": "N, M", "y": "M, Q, N"},
        "sum[k, l, c | o + p == l*s + k*d] {w} * {x}",
        {"x": "l, n, c", "w": "k, c, m", "b": "m", "z": "n, m"},
        "m, o, n", _BEHIND,
    ),
    "product": Form(
        {"x": "N, L, C", "w": "N, C, M", "b": "M", "z": "N, M", "y": "N, L, M"},
        "sum[c] {x} * {w}",
        {"x": "n, l, c", "w": "n, c, m", "b": "m", "z": "n, m"},
        "n, l, m", "s + d + p == s + d + p",
    ),
    "product whose loops spell a word": Form(
        {"x": "L, N, L, C", "w": "C, M", "b": "M", "z": "N, M", "y": "L, N, L, M"},
        "sum[c] {x} * {w}",
        {"x": "m, i, n, c", "w": "c, a", "b": "a", "z": "i, a"},
        "m, i, n, a", "s + d + p == s + d + p", 4,
    ),
    "two dimensions": Form(
        {"x": "N, C, L, L", "w": "M, C, K, K", "b": "M", "z": "N, M", "y": "N, M, Q, Q"},
        "sum[c, k, l, i, h | o*s + k*d == l + p, u*s + i*d == h + p] {x} * {w}",
        {"x": "n, c, l, h", "w": "m, c, k, i", "b": "m", "z": "n, m"},
        "n, m, o, u", _AHEAD, 6,
    ),
    "channels apart": Form(
        {"x": "N, C, L", "w": "C, K", "b": "C", "z": "N, C", "y": "N, C, Q"},
        "sum[k, l | o*s + k*d == l + p] {x} * {w}",
        {"x": "n, c, l", "w": "c, k", "b": "c", "z": "n, c"},
        "n, c, o", _AHEAD,
    ),
    "channels apart, transposed and last": Form(
        {"x": "N, L, C", "w": "C, K", "b": "C", "z": "N, C", "y": "N, Q, C"},
        "sum[l, k | l*s + k*d == o + p] {w} * {x}",
        {"x": "n, l, c", "w": "c, k", "b": "c", "z": "n, c"},
        "n, o, c", _BEHIND,
    ),
}  # fmt: skip
_DATA = ("{}", "{}", "leaky_relu({}, 0.5)", "({} + 1)", "relu({})", "abs({} - 2)")
_TAPS = ("{}", "{}", "relu({})", "({} + 1)")
_AROUND = (
    "{t}", "{b} + {t}", "relu({b} + ({t}))", "({t}) / select({z} > 0, 2, 4)", "1 - ({t})",
    "{b}*({t}) + {z}", "select({z} > 0, ({t}), {b})", "({t}) + ({t})",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Drawn:
    text: str
    params: Mapping[str, int]
    arrays: Mapping[str, Array]


@st.composite
def products(draw: st.DrawFn) -> Drawn:
    form = draw(st.sampled_from(list(FORMS.values())))
    reads = {name: f"{name}[{at}]" for name, at in form.reads.items()}
    x = draw(st.sampled_from(_DATA)).format(reads["x"])
    w = draw(st.sampled_from(_TAPS)).format(reads["w"])
    third = draw(st.sampled_from(["", "", f" * {reads['b']}", f" * {reads['z']}"]))
    value = draw(st.sampled_from(_AROUND))
    value = value.format(t=form.total.format(x=x, w=w) + third, b=reads["b"], z=reads["z"])
    kinds = ["f32", "f32", "f16"] if "0.5" in value or "/" in value else ["f32", "f16", "i32"]
    dtype = draw(st.sampled_from(kinds))
    others = "f32" if dtype == "f16" else dtype
    kind = {"x": dtype, "w": dtype, "b": others, "z": others}
    inputs = ", ".join(f"{n}: {kind[n]}[{form.axes[n]}]" for n in kind)
    clause = f"where {form.size}"
    text = (
        f"op f({inputs}, s: int = 1, d: int = 1, p: int = 0) -> y: {others}[{form.axes['y']}] {clause} "
        f"{{\n    y[{form.result}] = {value}\n}}\n"
    )
    sizes = {
        "N": draw(st.integers(1, 3)),
        "G": draw(st.integers(1, 2)),
        "C": draw(st.sampled_from([1, 2, 3, 5, 8, 13])),
        "M": draw(st.sampled_from([1, 2, 3, 5, 7, 9])),
        "L": draw(st.integers(1, form.longest)),
        "K": draw(st.integers(1, 6 if form.longest > 6 else 3)),
    }
    steps = st.sampled_from([1, 1, 1, 2, 3])
    params = {"s": draw(steps), "d": draw(steps), "p": draw(st.integers(-2, 3))}
    seed = draw(seeds)
    arrays = {
        name: integers(_shape(form.axes[name], sizes), kind[name], 3, seed + at)
        for at, name in enumerate(kind)
    }
    assert all(a.dtype == TYPES[kind[n]] for n, a in arrays.items())
    return Drawn(text, params, arrays)


def _shape(axes: str, sizes: Mapping[str, int]) -> tuple[int, ...]:
    return tuple(
        int(np.prod([sizes[f] for f in axis.strip().split("*")])) for axis in axes.split(",")
    )
