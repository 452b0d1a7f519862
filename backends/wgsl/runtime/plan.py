"""A module with its sizes filled in: shapes, bytes and dispatches, checked against limits.

Pure arithmetic: no device is touched.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from convdsl.backends.wgsl.module import Limits, WgslKernel, WgslModule
from convdsl.backends.wgsl.runtime.tensor import NUMPY
from convdsl.diagnostics import DeviceError, InternalError


@dataclass(frozen=True, slots=True)
class Slot:
    """A buffer with numbers: its shape, and the bytes of its elements."""

    name: str
    shape: tuple[int, ...]
    dtype: np.dtype[Any]

    @property
    def nbytes(self) -> int:
        return prod(self.shape) * self.dtype.itemsize


@dataclass(frozen=True, slots=True)
class Step:
    """One dispatch: the number of the kernel in the module, and the workgroups in x, y and z."""

    kernel: int
    dispatch: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Plan:
    """`steps` leaves out kernels whose dispatch has a zero; what those would write is in `cleared`.

    `uniform` are the bytes of the sizes struct (a multiple of 16), empty when there is none.
    """

    inputs: tuple[Slot, ...]
    temps: tuple[Slot, ...]
    output: Slot
    steps: tuple[Step, ...]
    cleared: tuple[str, ...]
    uniform: bytes


def make_plan(module: WgslModule, sizes: Mapping[str, int], limits: Limits, adapter: str) -> Plan:
    """The plan for given sizes; DeviceError when a dispatch or a size exceeds the limits."""
    try:
        env: dict[str, int] = {name: int(sizes[name]) for name in module.sizes}
        for name, value in module.definitions:
            env[name] = int(value.evaluate(env))
        slots = [
            Slot(b.name, tuple(max(0, int(d.evaluate(env))) for d in shape), NUMPY[b.dtype])
            for b in module.buffers
            for shape in (module.shapes.get(b.name, b.dims),)
        ]
        dispatches = [_three(k, env) for k in module.kernels]
    except KeyError as error:
        raise InternalError(f"module '{module.name}' needs the size {error}") from error
    by_memory = {
        m: tuple(s for s, b in zip(slots, module.buffers, strict=True) if b.memory == m)
        for m in ("input", "temp", "output")
    }
    if len(by_memory["output"]) != 1:
        raise InternalError(f"module '{module.name}' has {len(by_memory['output'])} outputs")
    output = by_memory["output"][0]
    steps: list[Step] = []
    cleared: dict[str, None] = {}
    for number, (kernel, dispatch) in enumerate(zip(module.kernels, dispatches, strict=True)):
        if output.nbytes == 0:
            continue
        if min(dispatch) <= 0:
            cleared |= {b.buffer: None for b in kernel.bindings if b.kind == "read_write"}
            continue
        _check_dispatch(kernel, dispatch, limits, adapter)
        steps.append(Step(number, dispatch))
    return Plan(
        inputs=by_memory["input"],
        temps=by_memory["temp"] if steps else (),
        output=output,
        steps=tuple(steps),
        cleared=tuple(cleared),
        uniform=_uniform(module, env, adapter),
    )


def check_memory(module: WgslModule, limits: Limits, adapter: str) -> None:
    """DeviceError when a module may use more workgroup memory than the device has.

    Drivers need not notice it. What a text uses is not recorded, so its limits stand for it.
    """
    made = module.limits
    if made.max_workgroup_storage_bytes > limits.max_workgroup_storage_bytes:
        raise DeviceError(
            f"'{module.name}' was generated for {made.profile} with "
            f"{made.max_workgroup_storage_bytes} bytes of workgroup memory, but {adapter} has "
            f"{limits.max_workgroup_storage_bytes}",
            help="compile again for this adapter's limits, or for the profile webgpu",
        )


def check_kernel(kernel: WgslKernel, limits: Limits, adapter: str) -> None:
    """DeviceError when an entry point needs more than the device has, whatever the sizes."""
    used = sum(b.kind != "uniform" for b in kernel.bindings)
    if used > limits.max_storage_buffers:
        raise DeviceError(
            f"kernel '{kernel.name}' binds {used} buffers, but {adapter} allows "
            f"{limits.max_storage_buffers}"
        )
    threads = prod(kernel.workgroup)
    too_wide = any(n > m for n, m in zip(kernel.workgroup, limits.max_workgroup_size, strict=True))
    if threads > limits.max_invocations_per_workgroup or too_wide:
        raise DeviceError(
            f"kernel '{kernel.name}' has workgroups of {_times(kernel.workgroup)} = {threads} "
            f"invocations, but {adapter} allows {limits.max_invocations_per_workgroup}, at most "
            f"{_times(limits.max_workgroup_size)}",
            help="compile for this adapter's limits, or use smaller tiles",
        )


def _check_dispatch(
    kernel: WgslKernel, dispatch: tuple[int, int, int], limits: Limits, adapter: str
) -> None:
    most = limits.max_workgroups_per_dimension
    if max(dispatch) > most:
        raise DeviceError(
            f"kernel '{kernel.name}' needs {_times(dispatch)} workgroups, but {adapter} allows "
            f"{most} a dimension",
            help="use larger tiles, or a smaller batch",
        )


def _three(kernel: WgslKernel, env: Mapping[str, int]) -> tuple[int, int, int]:
    x, y, z = (int(d.evaluate(env)) for d in kernel.dispatch)
    return x, y, z


def _uniform(module: WgslModule, env: Mapping[str, int], adapter: str) -> bytes:
    """The i32 fields, padded to 16 bytes."""
    for name in module.uniforms:
        if not -(2**31) <= env[name] < 2**31:
            raise DeviceError(
                f"the size {name} = {env[name]} does not fit the 32-bit integers of {adapter}"
            )
    data = np.array([env[name] for name in module.uniforms], "<i4").tobytes()
    return data + bytes(-len(data) % 16)


def _times(numbers: tuple[int, ...]) -> str:
    return " x ".join(map(str, numbers))
