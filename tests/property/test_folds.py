"""Drawn programs with drawn inputs bound: equal to the definition, and no fold runs twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

import convdsl
from convdsl.backends.base import Executable
from convdsl.ir.folding import folds
from convdsl.ir.interp import run_program
from convdsl.ir.loop import LoopProgram
from tests.property.test_three_way import sizes_of
from tests.property.three_way import compiled, definition, same
from tests.strategies.arrays import arrays, integers
from tests.strategies.programs import Drawn, programs

BOTH = ["numpy", pytest.param("wgsl", marks=pytest.mark.gpu)]
few = settings(max_examples=max(8, settings().max_examples // 2))


class Counted:
    """Counts how often each fold of an executable runs for a kernel that keeps its results."""

    def __init__(self, executable: Executable) -> None:
        self.runs: Counter[tuple[str, tuple[int, ...]]] = Counter()
        fold = executable.fold

        def counted(
            number: int, arrays: Mapping[str, Any], sizes: Mapping[str, int]
        ) -> Mapping[str, Any]:
            record = executable.folds[number]
            self.runs[record.key, tuple(sizes[n] for n in sorted(record.sizes))] += 1
            return fold(number, arrays, sizes)

        executable.fold = counted  # type: ignore[method-assign]


@pytest.mark.parametrize("target", BOTH)
@few
@given(programs(calls=3), st.data())
def test_drawn_programs(target: str, drawn: Drawn, data: st.DataObject) -> None:
    """One text for all sizes; what is bound are inputs that have one shape in all calls."""
    kernel = compiled(drawn.tree, target, None, drawn.params, drawn.sizes)
    counted = Counted(kernel.specialise({}, drawn.absent))
    note(kernel.source)
    shapes = [drawn.shapes(call) for call in range(3)]
    steady = sorted(n for n, s in shapes[0].items() if all(o[n] == s for o in shapes))
    names = data.draw(st.sets(st.sampled_from(steady))) if steady else set()
    drawn_arrays = [data.draw(arrays(drawn, call)) for call in range(3)]
    constants = {n: drawn_arrays[0][n] for n in names}
    bound = kernel.bind(**constants)
    for call in (0, 1, 2, 1, 0):
        inputs = drawn_arrays[call] | constants
        want = definition(drawn.tree, inputs, drawn.params)
        got = bound(**{n: a for n, a in inputs.items() if n not in names})
        same(got, want, f"bound {sorted(names)}")
    kept = [f for f in kernel.executable.folds if f.inputs <= names]
    assert counted.runs.keys() >= ({(f.key, ()) for f in kept if not f.sizes} if names else set())
    assert all(count == 1 for count in counted.runs.values())


@given(programs(calls=1), st.data())
def test_folds_can_run_first(drawn: Drawn, data: st.DataObject) -> None:
    """The loop program with its folds moved to the front, in their order, means the same."""
    for target in ("numpy", "wgsl"):
        kernel = compiled(drawn.tree, target, None, drawn.params)
        executable = kernel.specialise(sizes_of(drawn, kernel, 0), drawn.absent)
        program = next(s for s in executable.trace.steps.values() if isinstance(s, LoopProgram))
        inputs = data.draw(arrays(drawn, 0))
        first = [k for f in folds(program) for k in f.kernels]
        assert len(set(first)) == len(first)
        rest = [k for k in range(len(program.kernels)) if k not in first]
        moved = LoopProgram(
            program.name,
            program.sizes,
            program.definitions,
            program.buffers,
            tuple(program.kernels[k] for k in (*first, *rest)),
        )
        output = kernel.output.name
        given_arrays = {b.name: inputs[b.name] for b in program.buffers if b.memory == "input"}
        got = run_program(moved, given_arrays, {})[output]
        want = run_program(program, given_arrays, {})[output]
        assert np.array_equal(got, want, equal_nan=True)


TERMS = ["w[c, m, k]", "g[m]", "h[c]", "2", "relu(w[c, m, k])", "(sum[j in 0..K] w[c, m, j])"]


@pytest.mark.parametrize("target", BOTH)
@few
@given(
    st.lists(st.sampled_from(TERMS), min_size=1, max_size=3),
    st.lists(st.sampled_from("+-*"), min_size=2, max_size=2),
    st.sampled_from([None, "gather", "phases", "columns"]),
    st.lists(st.tuples(st.integers(0, 2), st.integers(1, 6)), min_size=2, max_size=4),
    st.integers(1, 4),
    st.sampled_from([(), ("N", "L"), ("N", "L", "C", "M", "K")]),
    st.integers(0, 99),
)
def test_a_let_over_weights(
    target: str,
    terms: list[str],
    operators: list[str],
    algorithm: Any,
    calls: list[tuple[int, int]],
    taps: int,
    dynamic: tuple[str, ...],
    seed: int,
) -> None:
    value = "".join(f"{t} {o} " for t, o in zip(terms, operators, strict=False)) + "w[c, m, k]"
    text = f"""
op f(x: f32[N, C, L], w: f32[C, M, K], g: f32[M], h: f32[C]) -> y: f32[N, M, LO]
where LO == (L - 1)*2 + K
{{
    let v[c, m, k] = {value}
    y[n, m, o] = sum[c, k, l | l*2 + k == o] x[n, c, l] * v[c, m, k]
}}
"""
    kernel = convdsl.compile(text, target=target, algorithm=algorithm, dynamic=dynamic)
    constants = {
        "w": integers((3, 2, taps), "f32", 4, seed),
        "g": integers((2,), "f32", 4, seed + 1),
        "h": integers((3,), "f32", 4, seed + 2),
    }
    bound = kernel.bind(**constants)
    for n, length in calls:
        x = integers((n, 3, length), "f32", 4, seed + 3)
        want = convdsl.evaluate(text, {"x": x, **constants})
        same(bound(x), want, "bound")
        same(kernel(x, **constants), want, "not bound")
    weights = {f.key for f in kernel.executable.folds if "v" in f.results}
    kept = [key for key, _ in bound._constants._results if key in weights]
    assert len(kept) == len(weights)
