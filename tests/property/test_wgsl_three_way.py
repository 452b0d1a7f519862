"""Whole programs on the software adapter: emitted WGSL equals the definition by ==."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, note, settings
from hypothesis import strategies as st

from tests.property.test_three_way import run, sizes_of
from tests.property.three_way import ALGORITHMS, compiled, definition
from tests.strategies.arrays import arrays
from tests.strategies.programs import Drawn, programs
from tests.wgsl_rules import check_wgsl_text

pytestmark = pytest.mark.gpu

# Every drawn program is a pipeline to be made, which takes the driver 20 to 100 ms a kernel.
few = settings(max_examples=max(8, settings().max_examples // 2))


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@few
@given(programs(calls=1), st.data())
def test_numeric_sizes(algorithm: str | None, drawn: Drawn, data: st.DataObject) -> None:
    kernel = compiled(drawn.tree, "wgsl", algorithm, drawn.params)
    inputs = data.draw(arrays(drawn, 0))
    want = definition(drawn.tree, inputs, drawn.params)
    kernel.specialise(sizes_of(drawn, kernel, 0), drawn.absent)
    note(kernel.source)
    check_wgsl_text(kernel.source)
    run(kernel, inputs, want, spaced=False)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@few
@given(programs(calls=3), st.data())
def test_dynamic_sizes(algorithm: str | None, drawn: Drawn, data: st.DataObject) -> None:
    """One pipeline for all sizes."""
    kernel = compiled(drawn.tree, "wgsl", algorithm, drawn.params, drawn.sizes)
    executable = kernel.specialise({}, drawn.absent)
    note(kernel.source)
    check_wgsl_text(kernel.source)
    for call in range(3):
        inputs = data.draw(arrays(drawn, call))
        run(kernel, inputs, definition(drawn.tree, inputs, drawn.params), spaced=call == 1)
    assert kernel.executable is executable


@few
@given(programs(calls=1), st.data())
def test_bound_inputs_and_device_tensors(drawn: Drawn, data: st.DataObject) -> None:
    """Some inputs bound, some uploaded, the result fetched: the same numbers."""
    kernel = compiled(drawn.tree, "wgsl", None, drawn.params)
    inputs = data.draw(arrays(drawn, 0))
    want = definition(drawn.tree, inputs, drawn.params)
    constant = data.draw(st.sets(st.sampled_from(sorted(inputs)))) if inputs else set()
    bound = kernel.bind(**{n: inputs[n] for n in constant})
    tensors = {n: kernel.upload(a) for n, a in inputs.items() if n not in constant}
    for _ in range(2):
        got = bound.run(**tensors).numpy()
        np.testing.assert_array_equal(got.astype(np.float64), want)
