"""A program against its limits: refused with the numbers, before any device sees it."""

from __future__ import annotations

from convdsl.backends.wgsl.memory import Place
from convdsl.backends.wgsl.module import Limits
from convdsl.diagnostics import CdslError
from convdsl.ir.index import Index
from convdsl.ir.loop import Buffer

_BYTES = {"f32": 4, "i32": 4, "f16": 2}


def check_workgroup(kernel: str, size: tuple[int, int, int], limits: Limits) -> None:
    """The number of invocations, and the size along each axis."""
    count = size[0] * size[1] * size[2]
    shape = " x ".join(map(str, size))
    if count > limits.max_invocations_per_workgroup:
        raise CdslError(
            "E0501",
            f"kernel {kernel} has {count} threads in a workgroup",
            notes=(f"{shape} = {count}; {_allows(limits, limits.max_invocations_per_workgroup)}",),
            help="give each thread a larger tile, or make the workgroup's tile smaller",
        )
    for axis, extent, most in zip("xyz", size, limits.max_workgroup_size, strict=True):
        if extent > most:
            raise CdslError(
                "E0502",
                f"kernel {kernel} has a workgroup of {extent} threads along {axis}",
                notes=(f"{shape}; {_allows(limits, most)} along {axis}",),
                help="map the longer thread loop to x, or make it shorter",
            )


def check_storage(kernel: str, places: list[Place], limits: Limits) -> None:
    """The bytes of all workgroup buffers of a kernel together."""
    total = sum(p.bytes for p in places)
    if total > limits.max_workgroup_storage_bytes:
        parts = ", ".join(f"{p.buffer.name} {p.elements} elements {p.bytes} B" for p in places)
        raise CdslError(
            "E0503",
            f"kernel {kernel} needs {total} bytes of workgroup memory",
            notes=(f"{parts}; {_allows(limits, limits.max_workgroup_storage_bytes)} B",),
            help="make the tile smaller, above all along the reduction, or stage one operand less",
        )


def check_buffers(kernel: str, buffers: list[Buffer], limits: Limits) -> None:
    """The number of storage buffers that an entry point uses."""
    names = ", ".join(b.name for b in buffers)
    if len(buffers) > limits.max_storage_buffers:
        raise CdslError(
            "E0504",
            f"kernel {kernel} uses {len(buffers)} buffers",
            notes=(f"{names}; {_allows(limits, limits.max_storage_buffers)}",),
            help="materialise an intermediate tensor, so that two kernels share the operands",
        )


def check_binding(buffer: Buffer, shape: tuple[Index, ...], limits: Limits) -> None:
    """The bytes of one buffer, as far as they are known now; `shape` is what its user sees."""
    elements = buffer.elements.as_int()
    most = min(limits.max_storage_binding_bytes, limits.max_buffer_bytes)
    if elements is None or elements * _BYTES[buffer.dtype] <= most:
        return
    raise CdslError(
        "E0505",
        f"buffer {buffer.name} has {elements * _BYTES[buffer.dtype]} bytes",
        notes=(f"{buffer.dtype}[{', '.join(map(str, shape))}]; {_allows(limits, most)}",),
        help="compile with the limits of the adapter, or run the operator on parts of its batch",
    )


def _allows(limits: Limits, most: int) -> str:
    return f"profile {limits.profile} allows {most}"
