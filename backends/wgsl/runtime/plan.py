"""A module, or a part of it, with its sizes filled in: shapes, bytes and dispatches, within limits.

Pure arithmetic: no device is touched.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from convdsl.backends.wgsl.module import Limits, WgslKernel, WgslModule
from convdsl.backends.wgsl.runtime.tensor import NUMPY
from convdsl.diagnostics import DeviceError, InternalError
from convdsl.ir.folding import Fold


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
class Part:
    """Kernels, by number, that are run together.

    They take inputs and `given` buffers, and make `made`: new ones in each run, for the caller.
    """

    kernels: tuple[int, ...]
    given: frozenset[str]
    made: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Plan:
    """`steps` leaves out kernels whose dispatch has a zero; what those would write is in `cleared`.

    `uniform` are the bytes of the sizes struct (a multiple of 16), empty when there is none.
    """

    inputs: tuple[Slot, ...]
    temps: tuple[Slot, ...]
    outputs: tuple[Slot, ...]
    steps: tuple[Step, ...]
    cleared: tuple[str, ...]
    uniform: bytes


def whole(module: WgslModule, done: Iterable[Fold] = ()) -> Part:
    """All of a module but for folds whose results there are already."""
    outputs = tuple(b.name for b in module.buffers if b.memory == "output")
    if len(outputs) != 1:
        raise InternalError(f"module '{module.name}' has {len(outputs)} outputs")
    left_out = {k for fold in done for k in fold.kernels}
    kernels = tuple(k for k in range(len(module.kernels)) if k not in left_out)
    return Part(kernels, frozenset(r for fold in done for r in fold.results), outputs)


def only(module: WgslModule, fold: Fold) -> Part:
    """A fold alone. It makes all that its kernels write; what is no result is for the pool again."""
    bindings = [b for k in fold.kernels for b in module.kernels[k].bindings]
    made = {b.buffer: None for b in bindings if b.kind == "read_write"}
    others = frozenset(r for other in module.folds if other != fold for r in other.results)
    return Part(fold.kernels, others, tuple(made))


def make_plan(
    module: WgslModule, part: Part, sizes: Mapping[str, int], limits: Limits, adapter: str
) -> Plan:
    """The plan for given sizes; DeviceError when a dispatch or a size exceeds the limits."""
    try:
        env: dict[str, int] = {name: int(sizes[name]) for name in module.sizes}
        for name, value in module.definitions:
            env[name] = int(value.evaluate(env))
        slots = {
            b.name: Slot(b.name, tuple(max(0, int(d.evaluate(env))) for d in shape), NUMPY[b.dtype])
            for b in module.buffers
            for shape in (module.shapes.get(b.name, b.dims),)
        }
        dispatches = {k: _three(module.kernels[k], env) for k in part.kernels}
    except KeyError as error:
        raise InternalError(f"module '{module.name}' needs the size {error}") from error
    outputs = tuple(slots[name] for name in part.made)
    empty = not any(s.nbytes for s in outputs)
    steps: list[Step] = []
    cleared: dict[str, None] = {}
    used: set[str] = set()
    for number, dispatch in dispatches.items():
        kernel = module.kernels[number]
        used.update(b.buffer for b in kernel.bindings)
        if empty:
            continue
        if min(dispatch) <= 0:
            cleared |= {b.buffer: None for b in kernel.bindings if b.kind == "read_write"}
            continue
        _check_dispatch(kernel, dispatch, limits, adapter)
        steps.append(Step(number, dispatch))
    taken = {b.name for b in module.buffers if b.memory == "input"} | part.given
    between = used - taken - frozenset(part.made) if steps else frozenset[str]()
    return Plan(
        inputs=tuple(s for s in slots.values() if s.name in taken & used),
        temps=tuple(s for s in slots.values() if s.name in between),
        outputs=outputs,
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
