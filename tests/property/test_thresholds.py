"""Plans of large shapes on tiny ones: parts of sums, tiles, Toom-Cook, blocks; the thresholds are drawn.

Whatever is chosen means the same, and its schedule given back makes the same text.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import assume, event, given, note, settings
from hypothesis import strategies as st

import convdsl
from convdsl.budget import CAP
from convdsl.diagnostics import CdslError
from convdsl.ir.equation import System
from convdsl.ir.evaluate import evaluate_system
from convdsl.ir.interp import run_program
from convdsl.ir.loop import LoopProgram
from convdsl.kernel import Kernel
from convdsl.machine.facts import TYPICAL, Machine
from convdsl.sema.sizes import complete_sizes, solve_sizes
from tests.property.three_way import check_steps, definition
from tests.strategies.arrays import Array
from tests.strategies.products import Drawn, products
from tests.strategies.thresholds import Thresholds, for_numpy, for_wgsl
from tests.wgsl_rules import check_wgsl_text

few = settings(max_examples=max(8, settings().max_examples // 3))
accuracies = st.sampled_from(["strict", "standard", "fast"])


def meaning(drawn: Drawn) -> Array:
    note(drawn.text)
    try:
        return definition(drawn.text, drawn.arrays, drawn.params)
    except CdslError as error:
        assume(error.code != "E0305")  # a negative size
        raise


def compiled(
    target: str,
    drawn: Drawn,
    accuracy: str,
    dynamic: Sequence[str],
    schedule: str | None = None,
    cap: int = CAP,
    machine: Machine = TYPICAL,
) -> Kernel:
    kernel = convdsl.compile(
        drawn.text, target=target, params=drawn.params, accuracy=accuracy, dynamic=dynamic,
        schedule=schedule, cap=cap, machine=machine,
    )  # fmt: skip
    kernel.specialise(sizes_of(kernel, drawn))
    return kernel


def sizes_of(kernel: Kernel, drawn: Drawn) -> dict[str, int]:
    o = kernel.options
    shapes = {name: array.shape for name, array in drawn.arrays.items()}
    return complete_sizes(o.op, o.params, solve_sizes(o.op, o.params, shapes, o.fixed))


def symbols(data: st.DataObject, drawn: Drawn) -> list[str]:
    """No size, or some of them."""
    sizes = convdsl.parse(drawn.text)
    names = convdsl.compile(sizes, params=drawn.params).options.op.input_sizes
    return data.draw(st.just([]) | st.lists(st.sampled_from(sorted(names)), unique=True))


def chosen_and_given_back(
    target: str, thresholds: Thresholds, drawn: Drawn, accuracy: str, dynamic: Sequence[str]
) -> Kernel:
    with thresholds.hold():
        machine = thresholds.machine
        kernel = compiled(target, drawn, accuracy, dynamic, None, thresholds.cap, machine)
        note(str(kernel.schedule))
        event(kernel.plan.algorithm + " in blocks" * ("toeplitz" in str(kernel.schedule)))
        again = compiled(target, drawn, accuracy, dynamic, kernel.schedule, machine=machine)
    assert again.schedule == kernel.schedule
    assert again.source == kernel.source
    return kernel


@given(for_wgsl(), products(), accuracies, st.data())
def test_on_wgsl(thresholds: Thresholds, drawn: Drawn, accuracy: str, data: st.DataObject) -> None:
    want = meaning(drawn)
    kernel = chosen_and_given_back("wgsl", thresholds, drawn, accuracy, symbols(data, drawn))
    check_wgsl_text(kernel.source)
    check_all(kernel, drawn, want)


def check_all(kernel: Kernel, drawn: Drawn, want: Array) -> None:
    """Every step means the same; matrices with thirds round in float64, but no more than that."""
    sizes = sizes_of(kernel, drawn)
    if "toom" not in str(kernel.schedule):
        check_steps(kernel, drawn.arrays, sizes, want)
        return
    for name, step in kernel.executable.trace.steps.items():
        found: Any = None
        if isinstance(step, System):
            found = evaluate_system(step, drawn.arrays, {n: sizes[n] for n in step.sizes})["y"]
        elif isinstance(step, LoopProgram):
            found = run_program(step, drawn.arrays, {n: sizes[n] for n in step.sizes})["y"]
        if found is not None:
            found = found.reshape(want.shape)
            np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-9, err_msg=name)


@pytest.mark.gpu
@few
@given(for_wgsl(), products(), accuracies)
def test_on_a_device(thresholds: Thresholds, drawn: Drawn, accuracy: str) -> None:
    want = meaning(drawn)
    with thresholds.hold():
        kernel = compiled("wgsl", drawn, accuracy, (), machine=thresholds.machine)
        note(str(kernel.schedule))
        found = kernel(**drawn.arrays)
    check_result(kernel, found, want)


def check_result(kernel: Kernel, found: Array, want: Array) -> None:
    """Equal, but for the rounding of Toom-Cook."""
    if "toom" in str(kernel.schedule):
        # A result has at most 13*6 products of numbers up to 4 and 4, times 3 and 3 around them.
        bound = 2**-23 * 16 * 13 * 6 * 16 * 9
        np.testing.assert_allclose(found, want, rtol=0, atol=bound)
    else:
        np.testing.assert_array_equal(found.astype(np.float64), want)


@given(for_numpy(), products(), accuracies, st.data())
def test_on_numpy(thresholds: Thresholds, drawn: Drawn, accuracy: str, data: st.DataObject) -> None:
    want = meaning(drawn)
    kernel = chosen_and_given_back("numpy", thresholds, drawn, accuracy, symbols(data, drawn))
    check_result(kernel, kernel(**drawn.arrays), want)
    check_all(kernel, drawn, want)


_TWO_FILTERS = """
op f(x: f32[C, L], w: f32[M, C, K], v: f32[M, C, K]) -> y: f32[M, L] {
    y[m, o] = (sum[c, k, l | l == o + k] x[c, l]*w[m, c, k])
        * (sum[c, k, l | l == o + k] x[c, l]*v[m, c, k])
}
"""
_SPELT = """
op f(a: f32[A, B, C, K], b: f32[K, J]) -> y: f32[A, B, C, J] {
    y[m, i, n, j] = sum[k] a[m, i, n, k]*b[k, j]
}
"""


@pytest.mark.parametrize(
    ("text", "sizes", "verb"),
    [
        (_TWO_FILTERS, {"C": 256, "L": 32768, "M": 256, "K": 3}, "toom"),
        (_SPELT, {"A": 8, "B": 8, "C": 8, "K": 64, "J": 64}, "fuse"),
        ("op f(a: f32[I, K], b: f32[K]) -> y: f32[I] { y[i] = sum[k] a[i, k]*b[k] }",
         {"I": 8, "K": 65536}, "rfactor"),
        ("op f(a: f32[I, K], b: f32[K, J]) -> y: f32[I, J] { y[i, j] = sum[k] a[i, k]*b[k, j] }",
         {"I": 8, "K": 65536, "J": 8}, "rfactor"),
    ],
    ids=["two filters", "loops that spell a word", "few results", "few rows"],
)  # fmt: skip
def test_the_schedule_of_large_shapes(text: str, sizes: dict[str, int], verb: str) -> None:
    """With the thresholds as they are; compiled only."""
    kernel = convdsl.compile(text, target="wgsl", sizes=sizes)
    assert verb in str(kernel.schedule)
    again = convdsl.compile(text, target="wgsl", sizes=sizes, schedule=kernel.schedule)
    assert again.source == kernel.source
    assert again.schedule == kernel.schedule


def test_a_sum_over_taps_alone_is_not_laid_out() -> None:
    """A window is of channels and taps; with no channel there is nothing beside it to tile."""
    text, sizes = convdsl.ops.source("conv1d"), {"N": 1, "M": 128, "L": 100000, "K": 3}
    params = {"pad_begin": 1, "pad_end": 1}
    for channels, laid_out in ((1, False), (64, True)):
        kernel = convdsl.compile(
            text, target="wgsl", sizes=sizes | {"C": channels}, params=params, algorithm="phases"
        )
        assert ("layout" in str(kernel.schedule)) == laid_out
