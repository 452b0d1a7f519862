"""`evaluate`: what a program means, computed in float64."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from convdsl.diagnostics import CdslError
from convdsl.ir.equation import Tensor
from convdsl.ir.evaluate import evaluate_system
from convdsl.sema.instantiate import check_absent, instantiate
from convdsl.sema.places import place_of
from convdsl.sema.resolve import resolve
from convdsl.sema.sizes import bind_parameters, complete_sizes, solve_sizes
from convdsl.sema.without import without
from convdsl.syntax import ast


def evaluate(
    program: ast.Program | str,
    arrays: Mapping[str, Any],
    params: Mapping[str, int | float] | None = None,
    op: str | None = None,
) -> np.ndarray[Any, np.dtype[np.float64]]:
    """The result of an op on arrays, by its definition, as float64.

    Lets and sums are float64 too; a tensor declared f16 is rounded once where it is stored, as the
    language says. `program` may be the text itself. Inputs that have a default may be left out.

    Raises:
        CdslError: as for compiling and calling the op with these arrays.
    """
    if isinstance(program, str):
        from convdsl.syntax.parser import parse

        program = parse(program)
    resolved = resolve(program, op)
    parameters = bind_parameters(resolved, params or {})
    inputs = {t.name: t for t in resolved.inputs}
    ready = {
        name: _array(inputs[name], value) if name in inputs else np.asarray(value)
        for name, value in arrays.items()
    }
    absent = frozenset(inputs) - ready.keys()
    check_absent(resolved, absent)
    resolved = without(resolved, absent)
    sizes = solve_sizes(resolved, parameters, {name: a.shape for name, a in ready.items()})
    sizes = complete_sizes(resolved, parameters, sizes, absent=absent)
    system = instantiate(resolved, parameters, sizes, absent)
    out = evaluate_system(system, ready, place=partial(place_of, resolved))
    return out[resolved.output.name].astype(np.float64)


def _array(tensor: Tensor, value: Any) -> np.ndarray[Any, np.dtype[Any]]:
    """The input as an array of real numbers, of integers for an i32 tensor."""
    array = np.asarray(value)
    kinds = "iub" if tensor.dtype == "i32" else "iubf"
    if array.dtype.kind not in kinds and array.size:
        raise CdslError(
            "E0312",
            f"`{tensor.name}` is {tensor.dtype}, but its array is {array.dtype}",
            help="convert the array first",
        )
    if tensor.dtype == "i32":
        return array.astype(np.int64)
    return array.astype(np.float64)
