"""The NumPy target: a standalone Python module on host memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from convdsl.backends.base import Array, Backend, Executable, Request
from convdsl.backends.numpy.emit import emit_module
from convdsl.backends.numpy.module import NumpyModule, load
from convdsl.backends.report import plan_of
from convdsl.ir.equation import System
from convdsl.lowering.pipeline import Lowered, Trace, lower_to_numpy


class NumpyBackend(Backend):
    """Compiles to vectorized NumPy."""

    name = "numpy"

    def compile(self, request: Request) -> NumpyExecutable:
        trace = Trace()
        lowered = lower_to_numpy(request.system, request.algorithm, request.schedule, trace)
        axes = {
            t.name: tuple(len(axis) for axis in t.axes)
            for t in request.system.tensors
            if t.role != "let"
        }
        module = emit_module(lowered.program, axes, title=_title(lowered))
        trace.steps["numpy"] = module.text
        return NumpyExecutable(module, lowered, request.system, trace)


def _title(lowered: Lowered) -> str:
    return "\n".join(f"{t} by {c.algorithm}" for t, c in lowered.choices.items())


class NumpyExecutable(Executable):
    """One generated function."""

    def __init__(
        self, module: NumpyModule, lowered: Lowered, definition: System, trace: Trace
    ) -> None:
        self.module = module
        self.source = module.text
        self.schedule = str(lowered.schedule)
        self.trace = trace
        self.plan = plan_of(lowered, definition, dispatches=None)
        self._function = load(module)

    def files(self) -> dict[str, str]:
        return {f"{self.module.entry}.py": self.module.text}

    def manifest(self) -> dict[str, object]:
        return {"entry": self.module.entry, "inputs": list(self.module.parameters)}

    def run(self, arrays: Mapping[str, Any], sizes: Mapping[str, int], out: Array | None) -> Array:
        given = [arrays[name] for name in self.module.parameters]
        result: Array = self._function(*given, out=out)
        return result
