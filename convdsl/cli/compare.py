"""`convdsl run --check`: a result against the float64 definition."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from convdsl.diagnostics import InternalError

if TYPE_CHECKING:
    from convdsl.cli.inputs import Array
    from convdsl.kernel import Kernel
    from convdsl.syntax.ast import Program

MOST = 200_000_000  # flops; the definition is slow
# Relative L2 error that no plan comes near unless something is wrong.
BOUND = {"f32": 1e-4, "f16": 1e-2, "i32": 0.0}


def compare(
    program: Program,
    op: str,
    arrays: Mapping[str, Array],
    params: Mapping[str, int | float],
    kernel: Kernel,
    result: Array,
) -> dict[str, Any]:
    """How far the result is from the definition.

    Raises:
        InternalError: when it is too far: no input explains that.
    """
    flops = kernel.plan.flops
    if flops is not None and flops > MOST:
        text = f"left out: {flops} operations are too many for the definition (at most {MOST})"
        return {"done": False, "text": text}
    import convdsl

    wanted = convdsl.evaluate(program, arrays, params, op=op)
    error = relative_error(result, wanted)
    bound = BOUND[kernel.output.dtype]
    if not error <= bound:
        raise InternalError(
            f"the result of `{op}` for {kernel.target} differs from the definition: relative L2 "
            f"error {error:.3g}, at most {bound:g} is expected"
        )
    text = f"relative L2 error {error:.3g} against the float64 definition"
    return {"done": True, "relative_error": error, "text": text}


def relative_error(result: Array, wanted: Array) -> float:
    """The L2 norm of the difference over that of `wanted`; NaN and infinities must be equal."""
    finite = np.isfinite(wanted)
    if result.shape != wanted.shape or not np.array_equal(
        result[~finite], wanted[~finite].astype(result.dtype), equal_nan=True
    ):
        return float("inf")
    difference = result[finite].astype(np.float64) - wanted[finite]
    norm = float(np.linalg.norm(wanted[finite]))
    error = float(np.linalg.norm(difference))
    return error / norm if norm else error
