"""The plan is derived: a renamed or permuted twin of an operator gets the same one, and results."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import convdsl
from convdsl import ops
from convdsl.syntax.parser import parse
from tests.strategies.arrays import Array, integers, seeds

TARGETS = ["numpy", pytest.param("wgsl", marks=pytest.mark.gpu)]
few = settings(max_examples=max(8, settings().max_examples // 4))
_ORIGINAL = re.sub(r"#.*", "", ops.source("conv_transpose1d"))

_WORDS = re.compile(r"[A-Za-z_]\w*")
_KEPT = {"op", "where", "sum", "max", "f32", "int", "float"}

# name, N, groups*C, L, groups*M, K, stride, pads, dilation, out_pad, groups: real layers
LAYERS = [
    ("headline", 8, 4098, 435, 1, 4096, 1024, 0, 1, 0, 1),
    ("istft_1024_256", 1, 1026, 224, 1, 1024, 256, 0, 1, 0, 1),
    ("hifigan_up1", 1, 512, 400, 256, 16, 8, 4, 1, 0, 1),
    ("hifigan_up4", 1, 64, 51200, 32, 4, 2, 1, 1, 0, 1),
    ("encodec_up2", 1, 256, 1200, 128, 10, 5, 0, 1, 0, 1),
    ("dac_up1", 1, 1536, 87, 768, 16, 8, 4, 1, 0, 1),
    ("demucs_outer", 4, 48, 86000, 8, 8, 4, 0, 1, 0, 1),
    ("unet_k2s2", 4, 256, 8192, 128, 2, 2, 0, 1, 0, 1),
    ("depthwise_up2", 1, 512, 4000, 512, 4, 2, 1, 1, 0, 512),
    ("depthwise_k6s3", 16, 512, 32, 512, 6, 3, 2, 1, 1, 512),
    ("grouped8", 1, 512, 1000, 512, 8, 4, 2, 1, 0, 8),
    ("dilated", 1, 64, 2000, 64, 5, 2, 4, 3, 0, 1),
    ("odd_primes", 2, 33, 1009, 17, 7, 3, 2, 1, 0, 1),
    ("holes", 1, 64, 4096, 64, 2, 5, 0, 1, 0, 1),
    ("stride1_long", 1, 32, 8192, 32, 129, 1, 64, 1, 0, 1),
    ("streaming_L1", 1, 512, 1, 256, 16, 8, 4, 1, 0, 1),
    ("gan_latent", 16, 100, 1, 512, 4, 1, 0, 1, 0, 1),
    ("batch64", 64, 64, 128, 64, 4, 2, 1, 1, 0, 1),
]


def renamed(text: str, names: dict[str, str]) -> str:
    return _WORDS.sub(lambda m: names.get(m.group(), m.group()), text)


_NAMES = {
    "conv_transpose1d": "spread", "x": "frames", "w": "basis", "b": "offset", "y": "signal",
    "N": "B", "C": "Inner", "L": "Frames", "M": "Outer", "K": "Window", "LO": "Samples",
    "n": "b", "g": "part", "c": "f", "m": "channel", "k": "tap", "l": "frame", "o": "at",
    "stride": "hop", "dilation": "gap", "pad_begin": "cut", "pad_end": "cut_end",
    "out_pad": "more", "groups": "parts",
}  # fmt: skip
_RENAMED = renamed(_ORIGINAL, _NAMES)

# The same sum with the axes of both operands turned round, the relation's sides and terms changed
# over, and the binders in another order.
_PERMUTED = """op conv_transpose1d(
    x: f32[L, N, groups*C],
    w: f32[K, M, groups*C],
    b: f32[groups*M] = 0,
    stride: int = 1, dilation: int = 1, pad_begin: int = 0, pad_end: int = 0, out_pad: int = 0,
    groups: int = 1,
) -> y: f32[N, groups*M, LO]
where LO == (L - 1)*stride - pad_begin - pad_end + dilation*(K - 1) + out_pad + 1,
      stride >= 1, dilation >= 1, groups >= 1, K >= 1, 0 <= out_pad < max(stride, dilation)
{
    y[n, (g, m), o] = sum[l, k, c | o + pad_begin == dilation*k + stride*l]
                          w[k, m, (g, c)] * x[l, n, (g, c)]
        + b[(g, m)]
}
"""
PROGRAMS = {
    "original": parse(_ORIGINAL), "renamed": parse(_RENAMED), "permuted": parse(_PERMUTED),
}  # fmt: skip


def _arrays(twin: str, x: Array, w: Array, b: Array) -> dict[str, Array]:
    match twin:
        case "renamed":
            return {"frames": x, "basis": w, "offset": b}
        case "permuted":
            return {"x": x.transpose(2, 0, 1), "w": w.transpose(2, 1, 0), "b": b}
        case _:
            return {"x": x, "w": w, "b": b}


def _named(twin: str, given_params: dict[str, int]) -> dict[str, int]:
    names = _NAMES if twin == "renamed" else {}
    return {names.get(n, n): v for n, v in given_params.items()}


def test_no_name_is_left() -> None:
    left = set(_WORDS.findall(_ORIGINAL)) & set(_WORDS.findall(_RENAMED))
    assert left - _KEPT <= {"b"}  # the batch index of one, the bias of the other


@pytest.mark.parametrize("target", ["numpy", "wgsl"])
@pytest.mark.parametrize("layer", LAYERS, ids=[str(layer[0]) for layer in LAYERS])
def test_plans_of_real_layers(target: str, layer: tuple[Any, ...]) -> None:
    """Compiled only: the same algorithm for the same reason, and the same tiles."""
    _, n, c, length, m, k, stride, pad, dilation, out_pad, groups = layer
    params = {
        "stride": stride, "dilation": dilation, "pad_begin": pad, "pad_end": pad,
        "out_pad": out_pad, "groups": groups,
    }  # fmt: skip
    sizes = {"N": n, "C": c // groups, "L": length, "M": m // groups, "K": k}
    plans = []
    for twin, tree in PROGRAMS.items():
        kernel = convdsl.compile(
            tree, target=target, params=_named(twin, params), sizes=_named(twin, sizes)
        )
        plan = kernel.plan
        plans.append((plan.algorithm, plan.reason, plan.tiles, plan.flops, plan.dispatches))
    assert plans[0] == plans[1]
    assert plans[0][:-1] == plans[2][:-1]  # operands laid out otherwise may be copied first


@pytest.mark.parametrize("target", TARGETS)
@few
@given(st.data(), st.integers(1, 6), st.integers(1, 3), st.integers(1, 7), seeds)
def test_results(
    target: str, data: st.DataObject, stride: int, dilation: int, k: int, seed: int
) -> None:
    groups, length = data.draw(st.integers(1, 3)), data.draw(st.integers(1, 9))
    c, m = data.draw(st.sampled_from([1, 5, 24])), data.draw(st.sampled_from([1, 3, 16]))
    begin, end = data.draw(st.integers(-1, 4)), data.draw(st.integers(-1, 4))
    assume((length - 1) * stride + dilation * (k - 1) + 1 - begin - end >= 0)
    params = {
        "stride": stride, "dilation": dilation, "pad_begin": begin, "pad_end": end,
        "groups": groups, "out_pad": data.draw(st.integers(0, max(stride, dilation) - 1)),
    }  # fmt: skip
    x = integers((2, groups * c, length), "f32", 4, seed)
    w = integers((groups * c, m, k), "f32", 4, seed + 1)
    b = integers((groups * m,), "f32", 4, seed + 2)
    found = []
    for twin, tree in PROGRAMS.items():
        kernel = convdsl.compile(tree, target=target, params=_named(twin, params))
        found.append((kernel(**_arrays(twin, x, w, b)), kernel.plan))
    for result, plan in found[1:]:
        np.testing.assert_array_equal(result, found[0][0])
        assert (plan.algorithm, plan.tiles) == (found[0][1].algorithm, found[0][1].tiles)
    want = convdsl.evaluate(PROGRAMS["original"], {"x": x, "w": w, "b": b}, params)
    np.testing.assert_array_equal(found[0][0], want)
