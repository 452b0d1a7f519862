"""Plans for any machine mean the same: thresholds as they are, shapes that are cut into chunks."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import convdsl
from convdsl import ops
from convdsl.machine.document import from_json, to_json
from convdsl.machine.facts import Cpu, Gpu, Machine
from tests.strategies.machines import cpus, gpus
from tests.wgsl_rules import check_wgsl_text

few = settings(max_examples=max(8, settings().max_examples // 3))


@given(cpus(), gpus())
def test_any_facts_are_written_and_read(cpu: Cpu, gpu: Gpu) -> None:
    machine = Machine(cpu, gpu)
    record = to_json(machine)
    if "cpu" in record and "gpu" in record:
        assert from_json(record, "facts") == machine


@st.composite
def layers(draw: st.DrawFn) -> tuple[str, dict[str, int], dict[str, Any], dict[str, int]]:
    """The text of an operator, its parameters, inputs of small integers, and its sizes."""
    name = draw(st.sampled_from(["conv1d", "conv_transpose1d"]))
    sizes = {
        "N": draw(st.integers(1, 2)), "C": draw(st.sampled_from([1, 3, 16])),
        "L": draw(st.sampled_from([5, 130, 700])), "M": draw(st.sampled_from([1, 4, 33])),
        "K": draw(st.integers(1, 5)),
    }  # fmt: skip
    rng = np.random.default_rng(draw(st.integers(0, 9)))
    n, c, length, m, k = (sizes[name] for name in "NCLMK")
    taps = (c, m, k) if name == "conv_transpose1d" else (m, c, k)
    x = rng.integers(-4, 5, (n, c, length)).astype(np.float32)
    w = rng.integers(-4, 5, taps).astype(np.float32)
    params = {"stride": draw(st.integers(1, 4))}
    return ops.source(name), params, {"x": x, "w": w}, sizes


@few
@given(layers(), cpus(), st.sampled_from([2**12, 2**26]))
def test_on_numpy(layer: Any, cpu: Cpu, cap: int) -> None:
    text, params, arrays, sizes = layer
    kernel = convdsl.compile(
        text, params=params, sizes=sizes, accuracy="strict", machine=Machine(cpu), cap=cap
    )
    note(str(kernel.schedule))
    event("in chunks" if "worker" in str(kernel.schedule) else "whole")
    want = convdsl.evaluate(text, arrays, params)
    np.testing.assert_array_equal(kernel(**arrays).astype(np.float64), want)


@few
@given(layers(), gpus(), st.sampled_from(["strict", "fast"]))
def test_the_text_of_wgsl(layer: Any, gpu: Gpu, accuracy: str) -> None:
    """Legal, and the same each time; what it means is shown by the thresholds' tests."""
    text, params, _, sizes = layer
    texts = [
        convdsl.compile(
            text, target="wgsl", params=params, sizes=sizes, accuracy=accuracy,
            machine=Machine(gpu=gpu),
        ).source
        for _ in range(2)
    ]  # fmt: skip
    check_wgsl_text(texts[0])
    assert texts[0] == texts[1]
