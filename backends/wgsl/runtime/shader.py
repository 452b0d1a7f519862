"""Shader modules and compute pipelines, kept by their text; and what wgpu does not wrap."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from convdsl.backends.wgsl.module import Binding, WgslKernel
from convdsl.backends.wgsl.runtime.errors import invalid, is_loss, is_memory

PIPELINES, MODULES = 512, 128  # kept at most, the least recently used go first

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")
_KINDS = {"read": "read-only-storage", "read_write": "storage", "uniform": "uniform"}


def remember(cache: OrderedDict[K, V], key: K, value: V, most: int) -> V:
    """Add to a cache that keeps the `most` last used entries."""
    cache[key] = value
    if len(cache) > most:
        cache.popitem(last=False)
    return value


class Pipelines:
    """The pipelines of one opened device, by text, entry and bindings. `created` counts them.

    `checks=False` leaves out the bounds checks and loop bounds that the implementation adds, where
    it has a way to do so.
    """

    def __init__(self, gpu: Any) -> None:
        from wgpu import ShaderStage

        self._gpu = gpu
        self._stage: int = ShaderStage.COMPUTE
        self._modules: OrderedDict[tuple[str, bool], Any] = OrderedDict()
        self._layouts: dict[tuple[Binding, ...], tuple[Any, Any]] = {}
        self._pipelines: OrderedDict[Hashable, Any] = OrderedDict()
        self.created = 0

    def layout(self, bindings: tuple[Binding, ...]) -> Any:
        """The layout of bind group 0."""
        return self._both_layouts(bindings)[0]

    def pipeline(self, text: str, kernel: WgslKernel, checks: bool = True) -> Any:
        """The pipeline of one entry point; InternalError with the text's lines when refused."""
        key = (text, kernel.entry, kernel.bindings, checks)
        found = self._pipelines.get(key)
        if found is not None:
            self._pipelines.move_to_end(key)
            return found
        with _ours(text, f"fn {kernel.entry}("):
            pipeline = self._gpu.create_compute_pipeline(
                label=kernel.name,
                layout=self._both_layouts(kernel.bindings)[1],
                compute={"module": self._module(text, checks), "entry_point": kernel.entry},
            )
        self.created += 1
        return remember(self._pipelines, key, pipeline, PIPELINES)

    def _module(self, text: str, checks: bool) -> Any:
        found = self._modules.get((text, checks))
        if found is None:
            make = _checked if checks else _unchecked
            found = remember(self._modules, (text, checks), make(self._gpu, text), MODULES)
        return found

    def _both_layouts(self, bindings: tuple[Binding, ...]) -> tuple[Any, Any]:
        found = self._layouts.get(bindings)
        if found is None:
            group = self._gpu.create_bind_group_layout(
                entries=[
                    {
                        "binding": b.index,
                        "visibility": self._stage,
                        "buffer": {"type": _KINDS[b.kind]},
                    }
                    for b in bindings
                ]
            )
            whole = self._gpu.create_pipeline_layout(bind_group_layouts=[group])
            found = self._layouts[bindings] = (group, whole)
        return found


@contextmanager
def _ours(text: str, near: str) -> Iterator[None]:
    """A text that is refused is a bug of ours."""
    try:
        yield
    except Exception as error:
        wgpus = type(error).__name__.startswith("GPU")
        if not wgpus or is_memory(error) or is_loss(error):
            raise
        raise invalid(error, text, near) from error


def _checked(gpu: Any, text: str) -> Any:
    return gpu.create_shader_module(code=text)


def _unchecked(gpu: Any, text: str) -> Any:
    """A module without run-time checks; wgpu has the call but does not wrap it."""
    try:
        from wgpu.backends.wgpu_native import GPUShaderModule, ffi, lib
        from wgpu.backends.wgpu_native._api import libf, new_struct_p, to_c_string_view

        source = new_struct_p("WGPUShaderSourceWGSL *", code=to_c_string_view(text))
        source[0].chain.sType = lib.WGPUSType_ShaderSourceWGSL
        chain = ffi.cast("WGPUChainedStruct *", source)
        described = new_struct_p(
            "WGPUShaderModuleDescriptor *", nextInChain=chain, label=to_c_string_view("")
        )
        create = libf.wgpuDeviceCreateShaderModuleTrusted
        device = gpu._internal
    except (ImportError, AttributeError, TypeError, KeyError):
        return _checked(gpu, text)
    return GPUShaderModule("", create(device, described, 0), gpu)


def timestamp_period(queue: Any) -> float | None:
    """Nanoseconds a tick of timestamp queries; None when that cannot be found out."""
    try:
        from wgpu.backends.wgpu_native import lib

        period = float(lib.wgpuQueueGetTimestampPeriod(queue._internal))
    except (ImportError, AttributeError, TypeError):
        return None
    return period if period > 0 else None
