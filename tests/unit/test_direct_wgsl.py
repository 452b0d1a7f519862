"""Kernels that keep a few results a thread in registers: their text, and what they are chosen for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl import ops
from convdsl.diagnostics import CdslError
from convdsl.kernel import Kernel
from tests.property.three_way import check_steps, definition

GOLDEN = Path(__file__).parents[1] / "golden" / "wgsl"
SOURCE = ops.source("conv_transpose1d")
FIR = """op fir(x: f32[C, L], w: f32[C, K]) -> y: f32[C, T] where T == L - K + 1 {
    y[c, t] = sum[k, l | l == t + k] x[c, l] * w[c, k]
}
"""


def layer(
    channels: tuple[int, int],
    length: int,
    taps: int,
    stride: int,
    pad: int = 0,
    groups: int = 1,
    **options: Any,
) -> Kernel:
    params = {"stride": stride, "pad_begin": pad, "pad_end": pad, "groups": groups}
    c, m = channels
    sizes = {"N": 1, "C": c // groups, "M": m // groups, "L": length, "K": taps}
    return convdsl.compile(SOURCE, target="wgsl", params=params, sizes=sizes, absent="b", **options)


KERNELS: dict[str, Callable[[], Kernel]] = {
    "depthwise": lambda: layer((8, 8), 400, 4, 2, 1, 8),
    "holes": lambda: layer((2, 3), 300, 2, 5),
    "long_step": lambda: layer((20, 1), 64, 1024, 256, limits="software"),
    "fir": lambda: convdsl.compile(FIR, target="wgsl", sizes={"C": 2, "L": 1030, "K": 31}),
}


@pytest.mark.parametrize("name", KERNELS)
def test_the_text(name: str, golden: Callable[[Path, str], None]) -> None:
    golden(GOLDEN / f"direct_{name}.wgsl", KERNELS[name]().source)


@pytest.mark.parametrize("name", KERNELS)
def test_the_schedule_replays(name: str) -> None:
    kernel = KERNELS[name]()
    again = kernel.options
    made = convdsl.compile(
        SOURCE if name != "fir" else FIR,
        target="wgsl",
        params=dict(again.params),
        sizes=dict(again.fixed),
        absent=again.absent,
        limits=again.limits,
        schedule=kernel.schedule,
    )
    assert made.source == kernel.source


def test_rows_of_whole_vectors_are_stored_as_such() -> None:
    """One row of 800 results ends with a vector; one of 801 does not, and is stored one by one."""
    whole, odd = layer((8, 8), 400, 4, 2, 1, 8), layer((8, 8), 400, 5, 2, 1, 8)
    assert "y: array<vec4<f32>>" in whole.source
    assert "y: array<f32>" in odd.source


def test_what_is_chosen() -> None:
    plan = layer((8, 8), 400, 4, 2, 1, 8).plan
    assert plan.algorithm == "gather"
    assert plan.tiles == "4 a thread"
    tiled = layer((128, 32), 2000, 4, 2)
    assert tiled.plan.algorithm != "gather"
    soft = layer((64, 32), 2000, 4, 2, limits="software")
    assert soft.plan.algorithm == "gather"
    assert "the adapter is a CPU" in soft.plan.reason
    assert "workgroup>" not in soft.source


def test_sizes_that_are_symbols_have_one_thread_a_result() -> None:
    kernel = convdsl.compile(
        SOURCE, target="wgsl", params={"stride": 2, "groups": 8}, sizes={"C": 1, "M": 1, "K": 4},
        dynamic=["N", "L"], absent="b",
    )  # fmt: skip
    assert "one thread an element" in kernel.source
    assert str(kernel.schedule).splitlines()[1:-1] == ["    gather y"]


@pytest.mark.parametrize("limits", ["webgpu", "software"])
@pytest.mark.parametrize("stride", [7, 27, 147, 441])
def test_long_odd_steps(stride: int, limits: str) -> None:
    """No thread keeps more than registers can hold, and no text is too long."""
    for taps in (1, stride, 8 * stride + 1):
        kernel = layer((2, 5), 40, taps, stride, limits=limits)
        assert "workgroup>" not in kernel.source
        assert kernel.source.count("\n") < 3000


def test_a_profile_that_is_none() -> None:
    with pytest.raises(CdslError, match="software"):
        convdsl.compile(FIR, target="wgsl", limits="cpu")


@pytest.mark.gpu
def test_a_software_adapter_says_so() -> None:
    """What is made for the adapter here is made for a CPU where it is one."""
    from convdsl.backends.wgsl.runtime import adapter_limits, choose_adapter

    info = choose_adapter()
    assert adapter_limits(info).software == info.is_software
    x = np.ones((1, 64, 40), np.float32)
    w = np.ones((64, 16, 4), np.float32)
    params = {"stride": 2}
    kernels = [
        convdsl.compile(SOURCE, target="wgsl", params=params, absent="b", limits=limits)
        for limits in ("webgpu", "adapter", "software")
    ]
    results = [k(x, w) for k in kernels]
    for result in results[1:]:
        np.testing.assert_array_equal(result, results[0])


def test_a_tap_of_one_value_leaves_its_name_to_the_next_one() -> None:
    """Both axes call their taps j; the first ones are one, so the name is free again."""
    two = {"stride": 1, "dilation": 2, "out_pad": 1}
    params = {f"{n}_{axis}": v for n, v in two.items() for axis in "hw"} | {"out_pad_w": 0}
    x, w = (np.array([[[a]]], np.float32) for a in ([1, 2, 3], [-1, 4, 2]))
    text = ops.source("conv_transpose2d")
    kernel = convdsl.compile(
        text, target="wgsl", params=params, absent="b",
        sizes={"N": 1, "C": 1, "H": 1, "W": 3, "M": 1, "KH": 1, "KW": 3},
    )  # fmt: skip
    want = definition(text, {"x": x, "w": w}, params)
    check_steps(kernel, {"x": x, "w": w}, {}, want)
