"""What the WGSL backend makes of a loop program: text, and all that a runner needs to run it.

Plain data: a browser runner and the Python runner read the same record.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from convdsl.ir.folding import Fold
from convdsl.ir.index import Index
from convdsl.ir.loop import Buffer

Extent3 = tuple[Index, Index, Index]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits a module is generated against, in WebGPU's units (bytes, invocations, counts).

    The defaults are the WebGPU specification's: profile `webgpu`, any browser. On a `software` adapter,
    which runs on a CPU, workgroup memory is memory like any other.
    """

    profile: str = "webgpu"
    max_invocations_per_workgroup: int = 256
    max_workgroup_size: tuple[int, int, int] = (256, 256, 64)
    max_workgroups_per_dimension: int = 65535
    max_workgroup_storage_bytes: int = 16384
    max_storage_buffers: int = 8
    max_storage_binding_bytes: int = 134217728
    max_buffer_bytes: int = 268435456
    software: bool = False
    features: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Binding:
    """`@group(0) @binding(index)`; the buffer named `buffer`, or the sizes uniform (buffer "")."""

    index: int
    buffer: str
    kind: Literal["read", "read_write", "uniform"]


@dataclass(frozen=True, slots=True)
class WgslKernel:
    """One entry point; `bindings` are those its text uses. `dispatch` counts workgroups, x y z."""

    name: str
    entry: str
    bindings: tuple[Binding, ...]
    workgroup: tuple[int, int, int]
    dispatch: Extent3


@dataclass(frozen=True, slots=True)
class WgslModule:
    """All kernels of a program in one WGSL text, to be run in order.

    `uniforms` names the sizes, in the order of the i32 fields of the uniform struct (empty when all
    sizes are numbers). `buffers` are inputs, temps and the output; a runner allocates temps and output.
    A kernel whose dispatch has a zero is not run. `shapes` are those of the tensors that users see,
    where axes are products: the dims of a buffer are their factors. A fold is left out where a runner
    has its results from an earlier run on the same inputs.
    """

    name: str
    text: str
    uniforms: tuple[str, ...]
    sizes: tuple[str, ...]
    definitions: tuple[tuple[str, Index], ...]
    buffers: tuple[Buffer, ...]
    kernels: tuple[WgslKernel, ...]
    limits: Limits
    features: frozenset[str] = field(default_factory=frozenset)
    shapes: Mapping[str, tuple[Index, ...]] = field(default_factory=dict)
    folds: tuple[Fold, ...] = ()
