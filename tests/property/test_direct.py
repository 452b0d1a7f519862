"""Register-direct kernels mean what the program means, for blocks of any size, and stay in bounds."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given, note, settings
from hypothesis import strategies as st

import convdsl
from convdsl import ops
from convdsl.ir.interp import run_program
from convdsl.ir.verify import verify
from convdsl.lowering.kernels import lower_wgsl
from convdsl.passes.tiles import WorkgroupLimits
from convdsl.schedule.builder import Builder
from convdsl.schedule.direct_block import Block, block_of, shape_of
from convdsl.schedule.direct_wgsl import arrange
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.verbs.materialise import Materialise
from convdsl.syntax.parser import parse
from tests.strategies.arrays import integers, seeds
from tests.strategies.subjects import Subject, subject, subjects

LIMITS = WorkgroupLimits(256, 16384)
TEXTS = {
    "up": ops.source("conv_transpose1d"),
    "turned": """
op up(w: f32[K, M, groups*C], x: f32[L, groups*C, N], b: f32[groups*M],
    stride: int = 1, dilation: int = 1, pad_begin: int = 0, pad_end: int = 0, out_pad: int = 0,
    groups: int = 1) -> y: f32[N, LO, groups*M]
where LO == (L - 1)*stride - pad_begin - pad_end + dilation*(K - 1) + out_pad + 1, K >= 1
{
    y[n, o, (g, m)] = relu(b[(g, m)] + sum[l, k, c | k*dilation + l*stride == o + pad_begin]
        w[k, m, (g, c)] * leaky_relu(x[l, (g, c), n], 0.5))
}""",
    "down": """
op down(x: f32[N, groups*C, L], w: f32[groups*M, C, K], b: f32[groups*M],
    stride: int = 1, dilation: int = 1, pad_begin: int = 0, pad_end: int = 0, out_pad: int = 0,
    groups: int = 1) -> y: f32[N, groups*M, LO]
where LO == max((L + pad_begin + pad_end + out_pad - dilation*(K - 1) - 1)//stride + 1, 0), K >= 1
{
    y[n, (g, m), o] = b[(g, m)]
        + sum[c, k, l | o*stride + k*dilation == l + pad_begin] x[n, (g, c), l] * w[(g, m), c, k]
}""",
}


@st.composite
def layers(draw: st.DrawFn) -> tuple[str, dict[str, int], dict[str, int]]:
    """A text with parameters and sizes: strides beyond the taps, pads of any sign, odd rows."""
    stride = draw(st.integers(1, 9) | st.sampled_from([12, 15, 16, 29]))
    dilation = draw(st.integers(1, 3))
    params = {
        "stride": stride, "dilation": dilation, "groups": draw(st.integers(1, 3)),
        "pad_begin": draw(st.integers(-1, 4)), "pad_end": draw(st.integers(-1, 4)),
        "out_pad": draw(st.integers(0, max(stride, dilation) - 1)),
    }  # fmt: skip
    sizes = {
        "N": draw(st.integers(1, 2)), "C": draw(st.integers(1, 5)), "M": draw(st.integers(1, 5)),
        "L": draw(st.integers(1, 24)), "K": draw(st.integers(1, 11)),
    }  # fmt: skip
    name = draw(st.sampled_from(list(TEXTS)))
    full = (sizes["L"] - 1) * stride + dilation * (sizes["K"] - 1) + params["out_pad"] + 1
    assume(full - params["pad_begin"] - params["pad_end"] >= 0)
    return name, params, sizes


blocks = st.builds(
    Block,
    along=st.integers(1, 12),
    rows=st.integers(1, 3),
    terms=st.integers(1, 4),
    threads=st.sampled_from([32, 64]),
    phase=st.booleans(),
    wide=st.booleans(),
)


def _inputs(name: str, params: dict[str, int], s: dict[str, int], seed: int) -> dict[str, Any]:
    g = params["groups"]
    x, w = (s["N"], g * s["C"], s["L"]), (g * s["C"], s["M"], s["K"])
    if name == "turned":
        x, w = x[::-1][:1] + x[1:2] + x[:1], w[::-1]
    if name == "down":
        w = (g * s["M"], s["C"], s["K"])
    shapes = {"x": x, "w": w, "b": (g * s["M"],)}
    return {n: integers(shape, "f32", 4, seed + i) for i, (n, shape) in enumerate(shapes.items())}


def _arranged(drawn: Subject, block: Block) -> Schedule | None:
    """The schedule in which each sum that has a shape is arranged for a block; None where none has."""
    builder = Builder(drawn.system, "wgsl", Schedule(drawn.system.name).then(*_kept(drawn)))
    for name in list(builder.state.pieces()):
        shape = shape_of(builder, name) if "." not in name else None
        if shape is not None:
            arrange(builder, name, shape, block)
    return builder.schedule() if builder.steps else None


def _kept(drawn: Subject) -> list[Materialise]:
    return [Materialise(name) for name in drawn.kept]


def _check(drawn: Subject, block: Block) -> None:
    """The loop program, verified and run: it reads and stores nothing outside of a tensor."""
    schedule = _arranged(drawn, block)
    if schedule is None:
        event("no sum of known sizes")
        return
    note(str(schedule))
    assert Schedule.parse(str(schedule)) == schedule
    state = schedule.replay(drawn.system)
    program = lower_wgsl(state, LIMITS)
    verify(program)
    found = run_program(program, drawn.arrays, {})[drawn.system.output.name]
    np.testing.assert_array_equal(found.reshape(drawn.want.shape), drawn.want)


@given(layers(), blocks, seeds)
def test_any_block(
    layer: tuple[str, dict[str, int], dict[str, int]], block: Block, seed: int
) -> None:
    name, params, _ = layer
    _check(subject(parse(TEXTS[name]), params, _inputs(*layer, seed)), block)


@given(subjects(), blocks)
def test_any_program(drawn: Subject, block: Block) -> None:
    if not drawn.system.sizes:
        _check(drawn, block)


@pytest.mark.gpu
@settings(max_examples=max(10, settings().max_examples // 4))
@given(layers(), st.sampled_from(["webgpu", "software"]), seeds)
def test_on_a_device(
    layer: tuple[str, dict[str, int], dict[str, int]], limits: str, seed: int
) -> None:
    """What is chosen, with sizes as numbers and as symbols."""
    name, params, sizes = layer
    arrays = _inputs(name, params, sizes, seed)
    want = convdsl.evaluate(parse(TEXTS[name]), arrays, params)
    fixed = convdsl.compile(TEXTS[name], target="wgsl", params=params, limits=limits)
    np.testing.assert_array_equal(fixed(**arrays), want)
    free = convdsl.compile(
        TEXTS[name], target="wgsl", params=params, limits=limits, dynamic=["N", "L"]
    )
    np.testing.assert_array_equal(free(**arrays), want)


@given(layers(), st.booleans())
def test_the_chosen_block_fits(
    layer: tuple[str, dict[str, int], dict[str, int]], software: bool
) -> None:
    name, params, _ = layer
    drawn = subject(parse(TEXTS[name]), params, _inputs(*layer, 0))
    shape = shape_of(Builder(drawn.system, "wgsl", None), "y")
    assume(shape is not None)
    assert shape is not None
    block = block_of(shape, WorkgroupLimits(128, 16384, software=software))
    assert block.threads <= 128
    assert software or block.along * block.rows <= 4
