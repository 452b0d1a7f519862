"""Field cases about generated text: what loops and shaders look like, without running them."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl import CdslError, Kernel, ops
from tests.wgsl_rules import check_wgsl_text

WORKGROUP = re.compile(r"@workgroup_size\((\d+), (\d+), (\d+)\)")


def compiled(target: str = "wgsl", stride: int = 1, algorithm: Any = None, **sizes: int) -> Kernel:
    """A transposed convolution for these sizes; those not given are 1."""
    return convdsl.compile(
        ops.source("conv_transpose1d"), params={"stride": stride}, target=target,
        sizes={"N": 1, "C": 1, "M": 1, "K": 1} | sizes, algorithm=algorithm,
    )  # fmt: skip


def dispatches(kernel: Kernel) -> list[tuple[int, ...]]:
    module: Any = kernel.executable
    return [tuple(int(d.evaluate({})) for d in k.dispatch) for k in module.module.kernels]


def threads(kernel: Kernel) -> list[int]:
    module: Any = kernel.executable
    return [int(np.prod(k.workgroup)) for k in module.module.kernels]


def test_f11_no_loop_walks_the_dilated_window() -> None:
    """K products a result, not K*D positions: with K = 7, D = 11 no bound is 67, 77 or near."""
    for target in ("numpy", "wgsl"):
        kernel = convdsl.compile(
            ops.source("conv_transpose1d"), params={"stride": 2, "dilation": 11}, target=target,
            sizes={"N": 1, "C": 4, "L": 200, "M": 2, "K": 7},
        )  # fmt: skip
        for line in kernel.stages["lower"].splitlines():
            if line.strip().startswith(("serial", "unroll", "for")):
                bounds = [int(n) for n in re.findall(r"(?<![\w.])\d+", line)]
                assert not {67, 76, 77, 78} & set(bounds), line


@pytest.mark.parametrize("elements", [4194240, 4194241, 2**24])
def test_f72_dispatch_is_folded(elements: int) -> None:
    kernel = compiled(L=elements)
    (count,) = dispatches(kernel)
    assert max(count) <= 65535
    each = int(kernel.plan.tiles.split()[0])  # results a thread
    assert np.prod(count) * threads(kernel)[0] * each >= elements


def test_f74_limits_in_the_message() -> None:
    """More workgroup memory or threads than the profile has is refused with both numbers."""
    from convdsl.backends.wgsl.checks import check_workgroup
    from convdsl.backends.wgsl.module import Limits

    with pytest.raises(CdslError) as caught:
        check_workgroup("y", (32, 16, 1), Limits())
    assert "512" in str(caught.value)
    assert "256" in str(caught.value)


def test_f76_fold_along_loop_axes() -> None:
    """A copy of 3 x 3 x 2560 x 1280: the grid follows the axes, no near-square fold."""
    text = "op repack(w: f32[O, C, I, J]) -> y: f32[I, J, C, O] { y[i, j, c, o] = w[o, c, i, j] }"
    sizes = {"O": 1280, "C": 2560, "I": 3, "J": 3}
    kernel = convdsl.compile(text, target="wgsl", sizes=sizes)
    (count,) = dispatches(kernel)
    assert 2560 in count
    assert np.prod(count) * threads(kernel)[0] == 1280 * 2560 * 9


@pytest.mark.parametrize("elements", [64, 65, 3200])
@pytest.mark.parametrize(("channels", "out"), [(1, 1), (4, 2), (384, 192)])
def test_f77_workgroups_are_not_tiny(channels: int, out: int, elements: int) -> None:
    kernel = compiled(L=elements, C=channels, M=out, K=10, stride=5)
    assert min(threads(kernel)) >= 64


@pytest.mark.parametrize("elements", [64, 100])
def test_f77_few_results_of_many_terms(elements: int) -> None:
    kernel = compiled(L=elements, C=512, M=256, K=4, stride=2)
    assert min(threads(kernel)) >= 64


def test_f77_grid_for_one_element() -> None:
    for count in dispatches(compiled(L=1, C=512, K=4, stride=2)):
        assert np.prod(count) == 1


@pytest.mark.parametrize("elements", [63, 64, 65])
def test_f78_f80_barriers_and_workgroup_sizes(elements: int) -> None:
    """Barriers where every thread comes by, sizes as numbers, whatever the tail."""
    kernel = compiled(L=elements, C=128, M=64, K=4, stride=2)
    assert kernel.plan.algorithm == "phases"
    assert "workgroupBarrier" in kernel.source
    check_wgsl_text(kernel.source)
    assert len(WORKGROUP.findall(kernel.source)) == kernel.source.count("@compute")


@pytest.mark.parametrize("algorithm", ["gather", "phases"])
def test_f102_no_divisions_in_the_channel_loop(algorithm: str) -> None:
    for stride, taps in ((2, 4), (3, 7), (5, 16)):
        kernel = compiled(L=100, C=64, M=32, K=taps, stride=stride, algorithm=algorithm)
        assert kernel.plan.algorithm == algorithm
        check_wgsl_text(kernel.source, divisions=False)


def test_f103_few_loops() -> None:
    """K = 4, stride 2, 512 channels: one nest over taps and channels, and no open-ended loop."""
    for algorithm in ("gather", "phases"):
        text = compiled(L=100, C=512, M=64, K=4, stride=2, algorithm=algorithm).source
        assert text.count("for (") <= 4
        assert "while" not in text
        assert "loop {" not in text


@pytest.mark.parametrize("batch", [18, 19])
def test_f67_bindings_at_the_default_limits(batch: int) -> None:
    """18: everything fits. 19: x alone has 135 MB, which is said with the limit."""
    sizes: dict[str, Any] = {"N": batch, "C": 4098, "L": 435, "M": 1, "K": 4096}
    if batch == 18:
        assert compiled(stride=1024, **sizes).plan.algorithm in ("phases", "columns")
        return
    with pytest.raises(CdslError) as caught:
        _ = compiled(stride=1024, **sizes).plan
    assert "135479880" in str(caught.value)
    assert "134217728" in str(caught.value)


@pytest.mark.parametrize("target", ["numpy", "wgsl"])
def test_f95_the_seed_layer_is_a_product(target: str) -> None:
    """Scaled: N2 C258 L27 K256 stride 64, one channel out: no scan for each output."""
    kernel = compiled(target, N=2, C=258, L=27, K=256, stride=64)
    assert kernel.plan.algorithm in ("phases", "columns")
    assert kernel.plan.flops is not None
    assert kernel.plan.flops <= 1.1 * 2 * 2 * 258 * 27 * 256


@pytest.mark.parametrize("target", ["numpy", "wgsl"])
def test_f101_padding_keeps_the_plan(target: str) -> None:
    """Without the transform that a length more or less may tip: products, whatever the padding.

    Where padding leaves no tap beside the data, nothing has to be added up after them.
    """
    plans = set()
    for pad, out_pad in ((0, 0), (1, 0), (1, 1), (3, 1)):
        kernel = convdsl.compile(
            ops.source("conv_transpose1d"), target=target,
            params={"stride": 2, "pad_begin": pad, "pad_end": pad, "out_pad": out_pad},
            sizes={"N": 1, "C": 320, "L": 512, "M": 160, "K": 4}, accuracy="strict",
        )  # fmt: skip
        plans.add(kernel.plan.algorithm)
    assert plans <= {"phases", "columns"}
