"""Calls of the shipped operators: parameters and shapes, ragged, with holes, crops and empty axes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from hypothesis import assume
from hypothesis import strategies as st

from convdsl import ops
from convdsl.syntax.parser import parse
from tests.strategies.arrays import Array, integers, laid_out, layouts, seeds

Shapes = dict[str, tuple[int, ...]]
NAMES = ("conv_transpose1d", "conv1d", "conv_transpose2d", "conv2d", "matmul", "max_pool1d")
PROGRAMS = {name: parse(ops.source(name)) for name in (*NAMES, "istft")}

_few = st.integers(1, 3)
_some = st.integers(0, 2)


@dataclass(frozen=True, slots=True)
class Call:
    """An operator with its parameters and the shapes of its inputs."""

    name: str
    params: Mapping[str, int]
    shapes: Shapes


@st.composite
def calls(draw: st.DrawFn, names: tuple[str, ...] = NAMES) -> Call:
    name = draw(st.sampled_from(names))
    match name:
        case "conv_transpose1d" | "conv1d":
            return draw(_conv1d(name))
        case "conv_transpose2d" | "conv2d":
            return draw(_conv2d(name))
        case "matmul":
            m, k, n = (draw(st.integers(0, 9)) for _ in range(3))
            return Call(name, {}, {"a": (m, k), "b": (k, n)})
        case _:
            length, kernel, stride = (draw(st.integers(1, 9)) for _ in range(3))
            dilation, pad = draw(_few), draw(st.integers(0, 6))
            assume(length + 2 * pad - dilation * (kernel - 1) >= 1)
            params = {"kernel": kernel, "stride": stride, "dilation": dilation, "pad": pad}
            return Call(name, params, {"x": (draw(_some), draw(_few), length)})


@dataclass(frozen=True, slots=True)
class _Axis:
    """One spatial axis of a (transposed) convolution."""

    length: int
    kernel: int
    stride: int
    dilation: int
    begin: int
    end: int
    out_pad: int


@st.composite
def _axes(draw: st.DrawFn, transposed: bool, longest: int) -> _Axis:
    stride, dilation = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    length, kernel = draw(st.integers(0, longest)), draw(st.integers(1, longest))
    begin, end = draw(st.integers(-2, 5)), draw(st.integers(-2, 5))
    out_pad = draw(st.integers(0, max(stride, dilation) - 1))
    span = dilation * (kernel - 1) + 1
    if transposed:
        assume((length - 1) * stride + span - begin - end + out_pad >= 0)
    else:
        assume(length + begin + end - span + stride >= 0)
    return _Axis(length, kernel, stride, dilation, begin, end, out_pad)


@st.composite
def _conv1d(draw: st.DrawFn, name: str) -> Call:
    transposed = name == "conv_transpose1d"
    a = draw(_axes(transposed, 8))
    n, groups, c, m = draw(_some), draw(_few), draw(st.integers(0, 6)), draw(st.integers(0, 6))
    params = {
        "stride": a.stride, "dilation": a.dilation,
        "pad_begin": a.begin, "pad_end": a.end, "groups": groups,
    }  # fmt: skip
    if transposed:
        params["out_pad"] = a.out_pad
    w = (groups * c, m, a.kernel) if transposed else (groups * m, c, a.kernel)
    return Call(name, params, {"x": (n, groups * c, a.length), "w": w, "b": (groups * m,)})


@st.composite
def _conv2d(draw: st.DrawFn, name: str) -> Call:
    transposed = name == "conv_transpose2d"
    h, w = draw(_axes(transposed, 4)), draw(_axes(transposed, 4))
    n, groups, c, m = draw(_some), draw(st.integers(1, 2)), draw(_few), draw(_few)
    params = {
        "stride_h": h.stride, "stride_w": w.stride,
        "dilation_h": h.dilation, "dilation_w": w.dilation,
        "pad_top": h.begin, "pad_bottom": h.end, "pad_left": w.begin, "pad_right": w.end,
        "groups": groups,
    }  # fmt: skip
    if transposed:
        params |= {"out_pad_h": h.out_pad, "out_pad_w": w.out_pad}
    rows = (groups * c, m) if transposed else (groups * m, c)
    shapes: Shapes = {
        "x": (n, groups * c, h.length, w.length),
        "w": (*rows, h.kernel, w.kernel),
        "b": (groups * m,),
    }
    return Call(name, params, shapes)


@st.composite
def inputs_of(draw: st.DrawFn, call: Call) -> dict[str, Array]:
    """Small integers in drawn layouts; the bias is left out at times."""
    seed = draw(seeds)
    names = [n for n in call.shapes if n != "b" or draw(st.booleans()) or call.name == "matmul"]
    return {
        name: laid_out(integers(call.shapes[name], "f32", 4, seed + at), draw(layouts))
        for at, name in enumerate(names)
    }


@st.composite
def tiled(draw: st.DrawFn) -> Call:
    """Products and transposed convolutions whose last tiles are partly filled."""
    m, n, k = (draw(st.integers(1, 70)) for _ in range(3))
    if draw(st.booleans()):
        return Call("matmul", {}, {"a": (m, k), "b": (k, n)})
    stride, kernel = draw(st.integers(1, 5)), draw(st.integers(1, 6))
    begin, end = draw(st.integers(-2, 4)), draw(st.integers(-2, 4))
    length = n // stride + 1
    assume((length - 1) * stride + kernel - begin - end >= 0)
    params = {"stride": stride, "pad_begin": begin, "pad_end": end}
    rows = draw(st.integers(1, 40))
    return Call(
        "conv_transpose1d", params, {"x": (2, k, length), "w": (k, rows, kernel), "b": (rows,)}
    )
