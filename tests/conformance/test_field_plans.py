"""Field cases about large sizes, memory, time and caches."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
import pytest

import convdsl
from convdsl import ops
from convdsl.variants import CACHE
from tests.conformance.cases import Array


@pytest.mark.parametrize("elements", [8192, 8193])
def test_f66_columns_beyond_a_binding(elements: int, target: str) -> None:
    """128 MiB of columns, and 16 KiB more."""
    x = (np.arange(elements) % 17).astype("f4").reshape(1, 1, -1)
    w = (np.arange(4096) // 1024 + 1).astype("f4").reshape(1, 1, -1)
    y = ops.conv_transpose1d(x, w, stride=1024, target=target)
    assert y.shape == (1, 1, (elements - 1) * 1024 + 4096)
    blocks = y.reshape(-1, 1024)
    assert np.array_equal(blocks[:, 0], np.convolve(x[0, 0], [1, 2, 3, 4]))
    assert np.array_equal(blocks.min(1), blocks.max(1))


@pytest.mark.parametrize("algorithm", ["phases", "columns"])
def test_f66_temporaries_are_bounded(algorithm: Literal["phases", "columns"]) -> None:
    """On the CPU, columns are made a part at a time."""
    bytes = []
    for elements in (8192, 32768):
        kernel = convdsl.compile(
            ops.source("conv_transpose1d"), params={"stride": 1024}, algorithm=algorithm,
            sizes={"N": 1, "C": 8, "L": elements, "M": 1, "K": 4096},
        )  # fmt: skip
        assert kernel.plan.algorithm == algorithm
        assert kernel.plan.temporary_bytes is not None
        bytes.append(kernel.plan.temporary_bytes)
    assert max(bytes) < 2**27


def test_f72_more_outputs_than_one_dispatch_axis(target: str) -> None:
    x = (np.arange(4194241) % 251).astype("f4").reshape(1, 1, -1)
    y = ops.conv_transpose1d(x, np.full((1, 1, 1), 3, "f4"), target=target)
    assert np.array_equal(y, 3 * x)


def test_f76_copy(target: str) -> None:
    text = "op repack(w: f32[O, C, I, J]) -> y: f32[I, J, C, O] { y[i, j, c, o] = w[o, c, i, j] }"
    w = np.arange(130 * 70 * 9, dtype="f4").reshape(130, 70, 3, 3)
    assert np.array_equal(convdsl.compile(text, target=target)(w), w.transpose(2, 3, 1, 0))


def test_f93_both_forms_with_their_temporaries(target: str) -> None:
    """L8 K64 S1 P30: most products are cropped. Two channels each way, so that it is a product."""
    generator = np.random.default_rng(93)
    x = generator.integers(-4, 5, (1, 2, 8)).astype("f4")
    w = generator.integers(-4, 5, (2, 2, 64)).astype("f4")
    results, temporaries = [], {}
    algorithms: tuple[Literal["gather", "columns"], ...] = ("gather", "columns")
    for algorithm in algorithms:
        kernel = convdsl.compile(
            ops.source("conv_transpose1d"), params={"pad_begin": 30, "pad_end": 30}, target=target,
            algorithm=algorithm,
        )  # fmt: skip
        results.append(kernel(x, w))
        temporaries[kernel.plan.algorithm] = kernel.plan.temporary_bytes
    assert results[0].shape == (1, 2, 11)
    assert np.array_equal(results[0], results[1])
    assert temporaries["gather"] is not None
    if target == "numpy":
        assert temporaries["columns"]


def test_f97_one_matrix_product() -> None:
    """A long stride and one channel out: products over all channels, no loop over positions."""
    for accuracy in ("strict", "standard"):
        kernel = convdsl.compile(
            ops.source("conv_transpose1d"), params={"stride": 256}, accuracy=accuracy,
            sizes={"N": 1, "C": 1026, "L": 224, "M": 1, "K": 1024},
        )  # fmt: skip
        assert kernel.plan.flops == 2 * 1026 * 224 * 1024
        assert "np.matmul(" in kernel.source
        text = kernel.source.split("return out")[0]  # what is left where w is bound
        loops = [line.strip() for line in text.split("\n") if line.strip().startswith("for ")]
        ranges = [re.fullmatch(r"for \w+ in range\((?:(\d+), )?(\d+)\):", line) for line in loops]
        assert all(r and int(r[2]) - int(r[1] or 0) <= 6 for r in ranges), loops


def test_f99_depthwise_is_no_more_work_than_dense(target: str) -> None:
    plans = [
        convdsl.compile(
            ops.source("conv_transpose1d"), target=target,
            params={"stride": 3, "pad_begin": 2, "pad_end": 2, "out_pad": 1, "groups": groups},
            sizes={"N": 16, "C": 512 // groups, "L": 32, "M": 512 // groups, "K": 6},
        ).plan
        for groups in (512, 1)
    ]  # fmt: skip
    depthwise, dense = plans
    assert depthwise.flops is not None
    assert depthwise.flops * 512 == dense.flops
    assert (depthwise.temporary_bytes or 0) < 2**23
    for name in ("bytes_moved", "dispatches"):
        assert (getattr(depthwise, name) or 0) <= (getattr(dense, name) or 0), name


@pytest.mark.gpu
def test_f104_one_pipeline_for_one_text() -> None:
    """Compiling the same program twice makes one pipeline; a second run makes none."""
    from convdsl.backends.wgsl.runtime import get_device

    text = "op f104(x: f32[N]) -> y: f32[N] { y[n] = x[n]*104 + 23273 }"
    x = np.ones(5, "f4")
    before = get_device().pipelines_created
    for _ in range(2):
        kernel = convdsl.compile(text, target="wgsl")
        for _ in range(2):
            assert kernel(x).tolist() == [23377] * 5
    assert get_device().pipelines_created == before + 1


@pytest.mark.gpu
def test_f104_ahead_of_time() -> None:
    """Preparing makes the pipelines, and the first run none."""
    from convdsl.backends.wgsl.runtime import get_device

    text = "op ahead(x: f32[N]) -> y: f32[N] { y[n] = x[n]*104 + 25882 }"
    kernel = convdsl.compile(text, target="wgsl", sizes={"N": 5})
    executable: Any = kernel.executable
    executable.runner.prepare()
    before = get_device().pipelines_created
    assert kernel(np.ones(5, "f4")).tolist() == [25986] * 5
    assert get_device().pipelines_created == before


def test_f106_many_lengths_one_text(target: str) -> None:
    """With the length dynamic, one text serves all; without, the variants kept are bounded."""
    params = {"stride": 2}
    kernel = convdsl.compile(
        ops.source("conv_transpose1d"), params=params, target=target, dynamic=("L",)
    )
    w = np.ones((3, 2, 4), "f4")
    texts = set()
    for elements in range(20, 70):
        y = kernel(np.ones((1, 3, elements), "f4"), w)
        assert y.shape == (1, 2, 2 * elements + 2)
        assert y[0, 0, elements] == 6
        texts.add(kernel.source)
    assert len(texts) == 1


def test_f106_the_cache_is_bounded() -> None:
    kernel = convdsl.compile("op copy(x: f32[N]) -> y: f32[N] { y[n] = 2*x[n] }")
    x: Array = np.arange(CACHE + 20, dtype="f4")
    for length in [*range(CACHE + 20), 3, CACHE + 7]:
        assert np.array_equal(kernel(x[:length]), 2 * x[:length])
    assert len(kernel._variants._made) == CACHE
    assert len(kernel._known) <= CACHE
