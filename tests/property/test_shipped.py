"""The shipped operators: every algorithm on every target equals the definition by ==."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import assume, given, note, settings
from hypothesis import strategies as st

import convdsl
from convdsl.kernel import Kernel
from tests.property.three_way import ALGORITHMS, Array, compiled, definition, same
from tests.strategies.arrays import seeds
from tests.strategies.shipped import PROGRAMS, Call, calls, inputs_of, tiled
from tests.wgsl_rules import check_wgsl_text

few = settings(max_examples=max(6, settings().max_examples // 4))
gpu = pytest.mark.gpu
_UNIT = 2.0**-24  # the largest relative error of one rounding to float32


def check(kernel: Kernel, inputs: dict[str, Array], want: Array) -> None:
    got = kernel(**inputs)
    note(kernel.source)
    same(got, want, f"{kernel.target} by {kernel.plan.algorithm}")
    if kernel.target == "wgsl":
        check_wgsl_text(kernel.source)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(calls(), st.booleans(), st.data())
def test_on_numpy(algorithm: str | None, call: Call, dynamic: bool, data: st.DataObject) -> None:
    tree = PROGRAMS[call.name]
    inputs = data.draw(inputs_of(call))
    kernel = compiled(tree, "numpy", algorithm, call.params, _sizes(tree) if dynamic else ())
    check(kernel, inputs, definition(tree, inputs, call.params))


@gpu
@pytest.mark.parametrize("algorithm", ALGORITHMS)
@few
@given(calls(), st.booleans(), st.data())
def test_on_wgsl(algorithm: str | None, call: Call, dynamic: bool, data: st.DataObject) -> None:
    tree = PROGRAMS[call.name]
    inputs = data.draw(inputs_of(call))
    kernel = compiled(tree, "wgsl", algorithm, call.params, _sizes(tree) if dynamic else ())
    check(kernel, inputs, definition(tree, inputs, call.params))


@given(tiled(), st.sampled_from(ALGORITHMS), st.data())
def test_larger_sizes_on_numpy(call: Call, algorithm: str | None, data: st.DataObject) -> None:
    tree = PROGRAMS[call.name]
    inputs = data.draw(inputs_of(call))
    kernel = compiled(tree, "numpy", algorithm, call.params)
    check(kernel, inputs, definition(tree, inputs, call.params))


@gpu
@pytest.mark.parametrize("algorithm", ["phases", "columns"])
@few
@given(tiled(), st.booleans(), st.data())
def test_edges_of_tiles(algorithm: str, call: Call, dynamic: bool, data: st.DataObject) -> None:
    tree = PROGRAMS[call.name]
    inputs = data.draw(inputs_of(call))
    kernel = compiled(tree, "wgsl", algorithm, call.params, _sizes(tree) if dynamic else ())
    check(kernel, inputs, definition(tree, inputs, call.params))
    if (
        call.name == "matmul"
        and algorithm == "phases"
        and 1 not in (*inputs["a"].shape, inputs["b"].shape[1])
    ):
        assert kernel.plan.tiles


def _sizes(tree: Any) -> list[str]:
    kernel = convdsl.compile(tree, params={"kernel": 1} if "kernel" in _parameters(tree) else {})
    return list(kernel.options.op.input_sizes)


def _parameters(tree: Any) -> set[str]:
    return {p.name.name for p in tree.ops[0].params if not hasattr(p, "axes")}


# -- real data --------------------------------------------------------------------------------------
def tolerance(tree: Any, inputs: dict[str, Array], params: Any, terms: int) -> Array:
    """What rounding may do: it scales with sum |x||w|, and with the depth of a blocked sum."""
    sizes = {name: np.abs(array) for name, array in inputs.items()}
    bound: Array = convdsl.evaluate(tree, sizes, params)
    return np.asarray((4 + 2 * np.sqrt(terms)) * _UNIT * bound)


def _real(shapes: dict[str, tuple[int, ...]], seed: int, low: float) -> dict[str, Array]:
    rng = np.random.default_rng(seed)
    return {n: rng.uniform(low, 1, shape).astype(np.float32) for n, shape in shapes.items()}


def _terms(call: Call) -> int:
    """At most so many products in one result."""
    if call.name == "matmul":
        return call.shapes["a"][1]
    groups = call.params.get("groups", 1)
    spatial = int(np.prod(call.shapes["w"][2:]))
    return max(1, call.shapes["x"][1] // groups * spatial)


_PRODUCTS = ("conv_transpose1d", "conv1d", "conv_transpose2d", "conv2d", "matmul")


@pytest.mark.parametrize("target", ["numpy", pytest.param("wgsl", marks=gpu)])
@few
@given(calls(_PRODUCTS) | tiled(), st.sampled_from(ALGORITHMS), seeds)
def test_real_data(target: str, call: Call, algorithm: str | None, seed: int) -> None:
    tree = PROGRAMS[call.name]
    inputs = _real(call.shapes, seed, -1.0)
    got = compiled(tree, target, algorithm, call.params)(**inputs)
    error = np.abs(got - convdsl.evaluate(tree, inputs, call.params))
    assert (error <= tolerance(tree, inputs, call.params, _terms(call)) + 1e-30).all()


@pytest.mark.parametrize("target", ["numpy", pytest.param("wgsl", marks=gpu)])
@settings(max_examples=5)
@given(st.integers(0, 15), st.integers(0, 63), seeds)
def test_a_dropped_tap_is_seen(target: str, tap: int, channel: int, seed: int) -> None:
    """F114: positive data, 1024 terms a result. The bound passes, and fails for one term less."""
    tree, params = PROGRAMS["conv_transpose1d"], {"stride": 1, "pad_begin": 4, "pad_end": 4}
    inputs = _real({"x": (1, 64, 40), "w": (64, 8, 16), "b": (8,)}, seed, 0.1)
    want = convdsl.evaluate(tree, inputs, params)
    allowed = tolerance(tree, inputs, params, 64 * 16)
    kernel = compiled(tree, target, None, params)
    assert (np.abs(kernel(**inputs) - want) <= allowed).all()
    inputs["w"][channel, :, tap] = 0
    assert (np.abs(kernel(**inputs) - want) > allowed).any(axis=(0, 2)).all()


@few
@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 9), st.integers(1, 6), seeds)
def test_istft_of_real_data(frames: int, k: int, hop: int, f: int, seed: int) -> None:
    tree = PROGRAMS["istft"]
    assume((frames - 1) * hop + k >= 0)
    shapes = {"spectrum": (2, f, frames), "basis": (f, k), "window": (k,)}
    inputs = _real(shapes, seed, 0.25)
    for algorithm in ALGORITHMS:
        got = compiled(tree, "numpy", algorithm, {"hop": hop})(**inputs)
        np.testing.assert_allclose(got, convdsl.evaluate(tree, inputs, {"hop": hop}), rtol=1e-5)
