"""Arrays of small integers in every memory layout that a user may pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.strategies.programs import Drawn

Array = np.ndarray[Any, np.dtype[Any]]
TYPES: dict[str, type[np.generic]] = {"f32": np.float32, "f16": np.float16, "i32": np.int32}
LAYOUTS = ("plain", "fortran", "reversed", "strided", "transposed", "broadcast", "offset")

seeds = st.integers(0, 2**31)
layouts = st.sampled_from(LAYOUTS)


def integers(shape: tuple[int, ...], dtype: str, most: int, seed: int) -> Array:
    """Integers of size at most `most`, a third of them zero."""
    rng = np.random.default_rng(seed)
    values = rng.integers(-most, most + 1, shape) * (rng.integers(0, 3, shape) > 0)
    return np.asarray(values, TYPES[dtype])


def laid_out(array: Array, layout: str) -> Array:
    """The same values (but for `broadcast`: those of the first row) in another layout, read-only."""
    out = array
    if array.ndim:
        match layout:
            case "fortran":
                out = np.asfortranarray(array)
            case "reversed":
                out = array[(slice(None, None, -1),) * array.ndim].copy()
                out = out[(slice(None, None, -1),) * array.ndim]
            case "strided":
                room = np.full([2 * n for n in array.shape], 99, array.dtype)
                out = room[(slice(None, None, 2),) * array.ndim]
                out[...] = array
            case "transposed":
                order = (*tuple(range(1, array.ndim)), 0)
                back = tuple(np.argsort(order))
                out = np.ascontiguousarray(array.transpose(order)).transpose(back)
            case "broadcast":
                out = np.broadcast_to(array[:1], array.shape) if array.shape[0] else array
            case "offset":
                room = np.full([n + 3 for n in array.shape], 99, array.dtype)
                out = room[tuple(slice(2, 2 + n) for n in array.shape)]
                out[...] = array
    out = out.view()
    out.flags.writeable = False
    return out


@st.composite
def arrays(draw: st.DrawFn, drawn: Drawn, call: int) -> dict[str, Array]:
    """The inputs of one call, each in a layout of its own."""
    shapes: Mapping[str, tuple[int, ...]] = drawn.shapes(call)
    seed = draw(seeds)
    out: dict[str, Array] = {}
    for tensor in drawn.inputs:
        if tensor.name in shapes:
            values = integers(shapes[tensor.name], tensor.dtype, tensor.bound.units, seed)
            out[tensor.name] = laid_out(values, draw(layouts))
            seed += 1
    return out
