"""The WGSL target: one text with all kernels, run through wgpu or a browser."""

from __future__ import annotations

from collections.abc import Mapping
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np

from convdsl.backends.base import PROFILES, Array, Backend, Executable, Request
from convdsl.backends.report import plan_of
from convdsl.backends.wgsl.emit import emit_module
from convdsl.backends.wgsl.module import Limits, WgslModule
from convdsl.diagnostics import CdslError
from convdsl.ir.equation import System
from convdsl.ir.index_text import plain_text
from convdsl.lowering.pipeline import Lowered, Trace, lower_to_wgsl
from convdsl.passes.tiles import WorkgroupLimits

if TYPE_CHECKING:
    from convdsl.backends.wgsl.runtime import DeviceTensor, Runner


class WgslBackend(Backend):
    """Compiles to WGSL within a limits record."""

    name, part = "wgsl", "gpu"

    def compile(self, request: Request) -> WgslExecutable:
        limits = limits_for(request.limits)
        workgroup = WorkgroupLimits(
            limits.max_invocations_per_workgroup,
            limits.max_workgroup_storage_bytes,
            limits.max_storage_binding_bytes,
            limits.software,
        )
        trace = Trace()
        lowered = lower_to_wgsl(
            request.system, request.algorithm, request.schedule, workgroup, trace, request.accuracy,
            request.machine.gpu,
        )  # fmt: skip
        shapes = {t.name: t.shape for t in request.system.tensors if t.role != "let"}
        module = emit_module(lowered.program, limits, shapes)
        trace.steps["wgsl"] = module.text
        return WgslExecutable(module, lowered, request.system, trace)


def limits_for(profile: str) -> Limits:
    """The limits record of a profile; DeviceError when an adapter is asked for and there is none."""
    if profile == "webgpu":
        return Limits()
    if profile == "software":
        return Limits(profile, software=True)
    if profile == "adapter":
        from convdsl.backends.wgsl.runtime import adapter_limits, choose_adapter

        return adapter_limits(choose_adapter())
    raise CdslError(
        "E0506", f"unknown limits `{profile}`", help=f"choose one of: {', '.join(PROFILES)}"
    )


class WgslExecutable(Executable):
    """One generated module and, once it runs, its runner."""

    def __init__(
        self, module: WgslModule, lowered: Lowered, definition: System, trace: Trace
    ) -> None:
        self.module = module
        self.source = module.text
        self.trace = trace
        self.schedule = str(lowered.schedule)
        self.folds = module.folds
        self.plan = plan_of(lowered, definition, len(module.kernels), module.folds)
        self._runner: Runner | None = None
        self._lock = Lock()

    def files(self) -> dict[str, str]:
        return {f"{self.module.name}.wgsl": self.module.text}

    def manifest(self) -> dict[str, object]:
        """Buffers, kernels and dispatches; extents are expressions in the sizes."""
        m = self.module
        return {
            "sizes": list(m.sizes),
            "definitions": {name: plain_text(value) for name, value in m.definitions},
            "uniforms": list(m.uniforms),
            "features": sorted(m.features),
            "buffers": [
                {
                    "name": b.name, "dtype": b.dtype, "memory": b.memory,
                    "shape": [plain_text(e) for e in m.shapes.get(b.name, b.dims)],
                }
                for b in m.buffers
            ],
            "kernels": [
                {
                    "name": k.name, "entry": k.entry, "workgroup": list(k.workgroup),
                    "dispatch": [plain_text(e) for e in k.dispatch],
                    "bindings": [
                        {"binding": b.index, "buffer": b.buffer, "kind": b.kind} for b in k.bindings
                    ],
                }
                for k in m.kernels
            ],
            "folds": [
                {
                    "inputs": sorted(f.inputs), "sizes": sorted(f.sizes),
                    "kernels": list(f.kernels), "results": list(f.results),
                }
                for f in m.folds
            ],
            "limits": _limits_json(m.limits),
        }  # fmt: skip

    @property
    def runner(self) -> Runner:
        """The runner on the preferred adapter; DeviceError when there is none."""
        from convdsl.backends.wgsl.runtime import Runner

        with self._lock:
            if self._runner is None:
                self._runner = Runner(self.module)
            return self._runner

    def run(self, arrays: Mapping[str, Any], sizes: Mapping[str, int], out: Array | None) -> Array:
        result = self.run_on_device(arrays, sizes).numpy()
        if out is None:
            return result
        np.copyto(out, result)
        return out

    def run_on_device(self, tensors: Mapping[str, Any], sizes: Mapping[str, int]) -> DeviceTensor:
        """Start a run and return its output on the device."""
        return self.runner.run(tensors, sizes)

    def prepare(self, name: str, array: Array) -> DeviceTensor:
        return self.runner.upload(array, name)

    def fold(
        self, number: int, arrays: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> Mapping[str, Any]:
        return self.runner.fold(number, arrays, sizes)

    def usable(self, prepared: Mapping[str, Any]) -> bool:
        return not any(tensor.session.lost for tensor in prepared.values())


def _limits_json(limits: Limits) -> dict[str, object]:
    names = [n for n in Limits.__dataclass_fields__ if n != "features"]
    return {n: getattr(limits, n) for n in names} | {"features": sorted(limits.features)}
