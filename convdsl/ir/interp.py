"""The meaning of the loop IR: a slow, sequential interpreter in float64.

Every loop runs in order, whatever its level, and every i32 is exact. What a target may not rely
on shows: locals and temporaries start as nan (i32: a poison integer), workgroup and register
buffers do so again in each workgroup, worker buffers in each iteration of a worker loop, an access
outside its view is an error, and so is a register that is touched by another thread than its own. To
be quick, each kernel becomes a Python function built as a syntax tree (`convdsl.ir.interp_compile`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from convdsl.diagnostics import InternalError
from convdsl.ir.interp_compile import compile_kernel
from convdsl.ir.interp_values import POISON_INT
from convdsl.ir.loop import Buffer, LoopProgram

Array = np.ndarray[Any, np.dtype[Any]]


def run_program(
    program: LoopProgram, arrays: Mapping[str, Array], sizes: Mapping[str, int]
) -> dict[str, Array]:
    """The output and temporary buffers after running all kernels, each in the shape of its dims.

    `arrays` holds the inputs by buffer name (any shape with the right number of elements). Results
    are float64, or int64 for i32 buffers.
    """
    env = {name: int(sizes[name]) for name in program.sizes}
    for name, value in program.definitions:
        env[name] = int(value.evaluate(env))
    shapes = {b.name: _shape(b, env) for b in program.buffers}
    storage = {b.name: _initial(b, shapes[b.name], arrays) for b in program.buffers}
    for kernel in program.kernels:
        try:
            compile_kernel(kernel, program.buffers, env)(storage)
        except ZeroDivisionError as error:
            raise InternalError(f"kernel {kernel.name}: an index divides by zero") from error
    return {
        b.name: np.array(storage[b.name], _result_type(b)).reshape(shapes[b.name])
        for b in program.buffers
        if b.memory in ("output", "temp")
    }


def _shape(buffer: Buffer, env: Mapping[str, int]) -> tuple[int, ...]:
    shape = tuple(int(extent.evaluate(env)) for extent in buffer.dims)
    if min(shape, default=0) < 0:
        raise InternalError(f"buffer {buffer.name} has the negative shape {shape}")
    return shape


def _initial(buffer: Buffer, shape: tuple[int, ...], arrays: Mapping[str, Array]) -> list[Any]:
    count = math.prod(shape)
    if buffer.memory == "constant":
        return [float(v) for v in buffer.values]
    if buffer.memory != "input":
        return [POISON_INT if buffer.dtype == "i32" else math.nan] * count
    if buffer.name not in arrays:
        raise InternalError(f"no array for the input buffer {buffer.name}")
    array = np.asarray(arrays[buffer.name])
    if array.size != count:
        raise InternalError(f"{buffer.name} has shape {array.shape}, its buffer {shape}")
    values: list[Any] = array.astype(_result_type(buffer)).reshape(-1).tolist()
    return values


def _result_type(buffer: Buffer) -> type[Any]:
    return np.int64 if buffer.dtype == "i32" else np.float64
