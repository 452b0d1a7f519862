"""Runs an emitted module on the software adapter: no cache, one dispatch after the other."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np

from convdsl.backends.wgsl.module import WgslModule
from convdsl.ir.index import Index
from convdsl.ir.loop import Buffer

Array = np.ndarray[Any, np.dtype[Any]]
_TYPES = {"f32": np.float32, "f16": np.float16, "i32": np.int32}
_SLACK = 64  # bytes behind each buffer, so that a view of no elements can be bound too


@cache
def device() -> Any:
    """A device of the first adapter; a test that needs one fails without."""
    import wgpu

    adapters = wgpu.gpu.enumerate_adapters_sync()
    assert adapters, "no WebGPU adapter: install the software Vulkan driver (make vulkan)"
    features = [f for f in ("shader-f16",) if f in adapters[0].features]
    return adapters[0].request_device_sync(required_features=features)


def compile_module(module: WgslModule) -> list[Any]:
    """The pipelines of all kernels; a text that is not valid raises."""
    shader = device().create_shader_module(code=module.text)
    return [
        device().create_compute_pipeline(
            layout="auto", compute={"module": shader, "entry_point": kernel.entry}
        )
        for kernel in module.kernels
    ]


def run_module(
    module: WgslModule, arrays: Mapping[str, Array], sizes: Mapping[str, int] | None = None
) -> dict[str, Array]:
    """All temps and outputs after running the kernels in order. Memory starts as NaN."""
    import wgpu

    env: dict[str, int] = dict(sizes or {})
    for name, value in module.definitions:
        env[name] = int(value.evaluate(env))
    pipelines = compile_module(module)
    usage = wgpu.BufferUsage.STORAGE | wgpu.BufferUsage.COPY_SRC
    shapes = {b.name: tuple(_number(d, env) for d in b.dims) for b in module.buffers}
    storage = {
        b.name: device().create_buffer_with_data(
            data=_bytes(b, shapes[b.name], arrays), usage=usage
        )
        for b in module.buffers
    }
    if module.uniforms:
        data = struct.pack(f"<{len(module.uniforms)}i", *(env[n] for n in module.uniforms))
        data += bytes(-len(data) % 16)
        storage[""] = device().create_buffer_with_data(data=data, usage=wgpu.BufferUsage.UNIFORM)
    for kernel, pipeline in zip(module.kernels, pipelines, strict=True):
        count = [_number(d, env) for d in kernel.dispatch]
        if 0 in count:
            continue
        entries = [
            {"binding": b.index, "resource": {"buffer": storage[b.buffer]}} for b in kernel.bindings
        ]
        group = device().create_bind_group(
            layout=pipeline.get_bind_group_layout(0), entries=entries
        )
        encoder = device().create_command_encoder()
        compute = encoder.begin_compute_pass()
        compute.set_pipeline(pipeline)
        compute.set_bind_group(0, group)
        compute.dispatch_workgroups(*count)
        compute.end()
        device().queue.submit([encoder.finish()])
    out: dict[str, Array] = {}
    for b in module.buffers:
        if b.memory != "input":
            raw = device().queue.read_buffer(storage[b.name])
            flat = np.frombuffer(raw, _TYPES[b.dtype])[: int(np.prod(shapes[b.name]))]
            out[b.name] = flat.reshape(shapes[b.name])
    return out


def _number(index: Index, env: Mapping[str, int]) -> int:
    return int(index.evaluate(env))


def _bytes(buffer: Buffer, shape: tuple[int, ...], arrays: Mapping[str, Array]) -> bytes:
    dtype = _TYPES[buffer.dtype]
    if buffer.memory == "input":
        array = np.ascontiguousarray(arrays[buffer.name], dtype)
        assert array.shape == shape, (buffer.name, array.shape, shape)
        data = array.tobytes()
    else:
        count = int(np.prod(shape)) * np.dtype(dtype).itemsize
        data = b"\xff" * count  # NaN as f32 and f16, -1 as i32
    return data + b"\xff" * (_SLACK + -len(data) % 4)
