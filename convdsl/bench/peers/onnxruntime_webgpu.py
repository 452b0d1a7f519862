"""ONNX Runtime's native WebGPU provider; device times are those of its own kernel profile."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from convdsl.arguments import Array
from convdsl.bench.contestant import Calls, Contestant, Facts, Prepared, Settings
from convdsl.bench.data import Data
from convdsl.bench.extras import require
from convdsl.bench.layer import Layer
from convdsl.bench.peers.onnx_model import model_of
from convdsl.bench.peers.onnxruntime_cpu import bound, fetched, open_session
from convdsl.bench.timing import Sample
from convdsl.diagnostics import CdslError

PROVIDER = "WebGpuExecutionProvider"
PROFILED = 20  # calls in one profile, at most


class OnnxRuntimeWebGpu:
    """The peer `onnxruntime-webgpu`."""

    def open(self, settings: Settings) -> list[Contestant]:
        install = "onnxruntime-webgpu onnx"
        ort = require("onnxruntime-webgpu", "onnxruntime", install)
        onnx = require("onnxruntime-webgpu", "onnx", install)
        require("onnxruntime-webgpu", "onnx.numpy_helper", install)
        if PROVIDER not in ort.get_available_providers():
            raise CdslError(
                "E0901",
                f"the installed onnxruntime {ort.__version__} has no {PROVIDER}",
                notes=(f"it has: {', '.join(ort.get_available_providers())}",),
                help=f"pip uninstall onnxruntime; pip install {install}",
            )
        facts = Facts("gpu", f"{PROVIDER} (it does not name its adapter)",
                      {"onnxruntime-webgpu": str(ort.__version__)})  # fmt: skip

        def prepare(layer: Layer, data: Data) -> Prepared:
            return _OnWebGpu(ort, model_of(onnx, layer, data), data)

        return [Contestant("onnxruntime-webgpu", facts, prepare)]


class _Live:
    """A session with its bindings. They go before it does: ONNX Runtime crashes the other way round."""

    def __init__(self, ort: Any, model: bytes, data: Data, options: Any) -> None:
        self.session = open_session(ort, model, options, PROVIDER)
        self.bindings = bound(ort, self.session, data, "cpu")

    def __del__(self) -> None:
        if hasattr(self, "bindings"):
            self.bindings.clear()

    def run(self, which: int) -> None:
        self.session.run_with_iobinding(self.bindings[which])


class _OnWebGpu(Prepared):
    def __init__(self, ort: Any, model: bytes, data: Data) -> None:
        self._ort, self._model, self._data = ort, model, data
        live = self._live = _Live(ort, model, data, ort.SessionOptions())
        self._calls = Calls(live.run, self.result, len(live.bindings))

    def time(self, calls: int) -> Sample:
        return Sample(self._calls.time(calls).host, self._profiled(min(calls, PROFILED)))

    def result(self, which: int) -> Array:
        array: Array = fetched(self._live.session, self._live.bindings[which])
        return array

    def _profiled(self, calls: int) -> float | None:
        """Seconds of kernels a call, from the profile of a session of their own."""
        with TemporaryDirectory(prefix="convdsl-profile-") as folder:
            options = self._ort.SessionOptions()
            options.enable_profiling = True
            options.profile_file_prefix = str(Path(folder, "run"))
            live = _Live(self._ort, self._model, self._data, options)
            for turn in range(1 + calls):
                live.run(turn % len(live.bindings))
            path = Path(live.session.end_profiling())
            events = json.loads(path.read_text("utf-8"))
        return kernel_seconds(events, calls)


def kernel_seconds(events: Iterable[Any], calls: int) -> float | None:
    """Seconds a call of what ran on the GPU; of a profile of one call more, the first left out.

    None when the profile has no times of kernels, or not the same number for each call.
    """
    kernels = [e for e in events if isinstance(e, dict) and e.get("cat") == "Api"]
    kernels.sort(key=lambda e: e["ts"])
    each, rest = divmod(len(kernels), calls + 1)
    if not each or rest:
        return None
    return float(sum(e["dur"] for e in kernels[each:])) * 1e-6 / calls
