"""The NumPy target: a standalone Python module on host memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from convdsl.backends.base import Array, Backend, Executable, Request
from convdsl.backends.numpy.emit import emit_module
from convdsl.backends.numpy.finite import all_finite
from convdsl.backends.numpy.module import NumpyModule, namespace_of
from convdsl.backends.report import plan_of
from convdsl.lowering.pipeline import Lowered, Trace, lower_to_numpy


class NumpyBackend(Backend):
    """Compiles to vectorized NumPy."""

    name = "numpy"

    def compile(self, request: Request) -> NumpyExecutable:
        trace = Trace()
        lowered = lower_to_numpy(
            request.system,
            request.algorithm,
            request.schedule,
            trace,
            request.accuracy,
            request.cap,
            request.machine.cpu,
        )
        axes = {
            t.name: tuple(len(axis) for axis in t.axes)
            for t in request.system.tensors
            if t.role != "let"
        }
        module = emit_module(lowered.program, axes, title=_title(lowered))
        trace.steps["numpy"] = module.text
        return NumpyExecutable(module, lowered, request, trace)


def _title(lowered: Lowered) -> str:
    return "\n".join(f"{t} by {c.algorithm}" for t, c in lowered.choices.items())


class NumpyExecutable(Executable):
    """One generated module."""

    def __init__(
        self, module: NumpyModule, lowered: Lowered, request: Request, trace: Trace
    ) -> None:
        self.module = module
        self.source = module.text
        self.schedule = str(lowered.schedule)
        self.trace = trace
        self.plan = plan_of(lowered, request.system, None, module.folds)
        self.folds = module.folds
        self.finite = lowered.finite
        self._request = request
        self._namespace = namespace_of(module)
        self._function = self._namespace[module.entry]

    def files(self) -> dict[str, str]:
        return {f"{self.module.entry}.py": self.module.text}

    def manifest(self) -> dict[str, object]:
        return {
            "entry": self.module.entry,
            "inputs": list(self.module.parameters),
            "folds": [
                {
                    "inputs": sorted(f.inputs), "sizes": sorted(f.sizes),
                    "function": f.function, "results": list(f.results),
                }
                for f in self.module.folds
            ],
        }  # fmt: skip

    def run(self, arrays: Mapping[str, Any], sizes: Mapping[str, int], out: Array | None) -> Array:
        return self.ready((), arrays)((), out)

    def ready(
        self, names: Sequence[str], constants: Mapping[str, Any]
    ) -> Callable[[Sequence[Array], Array | None], Array]:
        inputs = {n: constants[n] for n in self.module.parameters if n in constants}
        if not all(all_finite(inputs[n]) for n in self.finite & inputs.keys()):
            # Given inputs alone: its folds are others, and may have the same names.
            return self.exact.ready(names, inputs)
        function, options = self._function, self._options(constants)
        watched = [at for at, n in enumerate(names) if n in self.finite]
        known = [constants.get(name) for name in self.module.parameters]
        places = [(self.module.parameters.index(n), at) for at, n in enumerate(names)]

        def run(arrays: Sequence[Array], out: Array | None) -> Array:
            for at in watched:
                if not all_finite(arrays[at]):
                    return self.exact.ready(names, inputs)(arrays, out)
            given = known.copy()
            for place, at in places:
                given[place] = arrays[at]
            result: Array = function(*given, out=out, **options)
            return result

        return run

    @cached_property
    def exact(self) -> NumpyExecutable:
        """The program for inputs that are not finite: no zero stands in it for a term that is none."""
        request = replace(self._request, accuracy="strict", algorithm=None, schedule=None)
        return NumpyBackend().compile(request)

    def _options(self, constants: Mapping[str, Any]) -> dict[str, Any]:
        """What is passed besides the inputs: a `run` that knows the folds among the constants."""
        kept: dict[str, Any] = {}
        for fold in self.module.folds:
            if constants.keys() >= set(fold.results):
                found = tuple(constants[r] for r in fold.results)
                kept[fold.function] = found[0] if len(found) == 1 else found
        if not kept:
            return {}

        def run(function: Callable[..., Any], *given: Any) -> Any:
            name = function.__name__
            return kept[name] if name in kept else function(*given)

        return {"run": run}

    def fold(
        self, number: int, arrays: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> Mapping[str, Any]:
        fold = self.module.folds[number]
        env = {name: sizes[name] for name in self.module.sizes}
        for name, value in self.module.definitions:
            env[name] = int(value.evaluate(env))
        found = self._namespace[fold.function](
            *[arrays[name] for name in fold.arrays], *[env[name] for name in fold.numbers]
        )
        return dict(
            zip(fold.results, (found if isinstance(found, tuple) else (found,)), strict=True)
        )
