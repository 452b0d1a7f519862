"""Whole programs: the definition, each system, the loop program and the emitted NumPy agree by ==."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, note
from hypothesis import strategies as st

from convdsl.sema.sizes import complete_sizes
from convdsl.syntax.parser import parse
from convdsl.syntax.printer import print_program
from tests.property.three_way import ALGORITHMS, Array, check_steps, compiled, definition, same
from tests.strategies.arrays import TYPES, arrays
from tests.strategies.programs import Drawn, programs


def sizes_of(drawn: Drawn, kernel: Any, call: int) -> dict[str, int]:
    given_sizes = {n: drawn.calls[call][n] for n in kernel.options.op.input_sizes}
    return complete_sizes(kernel.options.op, kernel.options.params, given_sizes)


def run(kernel: Any, given_arrays: dict[str, Array], want: Array, spaced: bool) -> None:
    """Call the kernel, perhaps into memory with gaps that must stay as they are."""
    before = {name: array.tobytes() for name, array in given_arrays.items()}
    room = None
    if spaced:
        room = np.full((*want.shape, 2), 77, TYPES[kernel.output.dtype])
        got = kernel(**given_arrays, out=room[..., 0])
        assert (room[..., 1] == 77).all()
    else:
        got = kernel(**given_arrays)
    assert got.dtype == TYPES[kernel.output.dtype]
    same(got, want, f"emitted {kernel.target}\n{kernel.source}")
    assert all(array.tobytes() == before[name] for name, array in given_arrays.items())


@given(programs())
def test_programs_print_and_parse(drawn: Drawn) -> None:
    assert parse(print_program(drawn.tree)) == drawn.tree


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(programs(calls=2), st.data())
def test_numeric_sizes_on_numpy(algorithm: str | None, drawn: Drawn, data: st.DataObject) -> None:
    kernel = compiled(parse(print_program(drawn.tree)), "numpy", algorithm, drawn.params)
    for call in range(2):
        inputs = data.draw(arrays(drawn, call))
        want = definition(drawn.tree, inputs, drawn.params)
        run(kernel, inputs, want, spaced=call == 1)
        check_steps(kernel, inputs, {}, want)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(programs(), st.data())
def test_dynamic_sizes_on_numpy(algorithm: str | None, drawn: Drawn, data: st.DataObject) -> None:
    """One text for all sizes, or for some of them."""
    dynamic = data.draw(st.sets(st.sampled_from(drawn.sizes))) or set(drawn.sizes)
    kernel = compiled(drawn.tree, "numpy", algorithm, drawn.params, sorted(dynamic))
    for call in range(3):
        inputs = data.draw(arrays(drawn, call))
        want = definition(drawn.tree, inputs, drawn.params)
        run(kernel, inputs, want, spaced=call == 2)
        note(kernel.source)
        check_steps(kernel, inputs, sizes_of(drawn, kernel, call), want)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
@given(programs(calls=2), st.booleans(), st.data())
def test_lowering_to_wgsl(
    algorithm: str | None, drawn: Drawn, dynamic: bool, data: st.DataObject
) -> None:
    """The systems and the loop program for GPUs, run by the interpreter: no adapter is needed."""
    symbols = drawn.sizes if dynamic else []
    kernel = compiled(drawn.tree, "wgsl", algorithm, drawn.params, symbols)
    inputs = data.draw(arrays(drawn, 0))
    want = definition(drawn.tree, inputs, drawn.params)
    sizes = sizes_of(drawn, kernel, 0)
    kernel.specialise(sizes, drawn.absent)
    check_steps(kernel, inputs, sizes, want)
