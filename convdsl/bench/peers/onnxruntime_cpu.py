"""ONNX Runtime on the CPU, inputs and output bound."""

from __future__ import annotations

from typing import Any

from convdsl.bench.contestant import Calls, Contestant, Facts, Prepared, Settings
from convdsl.bench.data import Data
from convdsl.bench.extras import require
from convdsl.bench.layer import Layer
from convdsl.bench.peers.onnx_model import model_of
from convdsl.diagnostics import DeviceError
from convdsl.machine.names import cores, cpu_name


class OnnxRuntime:
    """The peer `onnxruntime`."""

    def open(self, settings: Settings) -> list[Contestant]:
        ort, onnx = require("onnxruntime", "onnxruntime"), require("onnxruntime", "onnx")
        require("onnxruntime", "onnx.numpy_helper")
        threads = settings.threads or cores()
        versions = {"onnxruntime": str(ort.__version__)}
        facts = Facts("cpu", cpu_name(), versions, threads)

        def prepare(layer: Layer, data: Data) -> Prepared:
            options = ort.SessionOptions()
            options.intra_op_num_threads = threads
            options.inter_op_num_threads = 1
            model = model_of(onnx, layer, data)
            session = open_session(ort, model, options, "CPUExecutionProvider")
            bindings = bound(ort, session, data, "cpu")
            return Calls(
                lambda which: session.run_with_iobinding(bindings[which]),
                lambda which: fetched(session, bindings[which]),
                len(bindings),
            )

        return [Contestant("onnxruntime", facts, prepare)]


def open_session(ort: Any, model: bytes, options: Any, provider: str) -> Any:
    """A session on a provider and no other.

    Raises:
        DeviceError: when it runs on another one.
    """
    options.log_severity_level = 3
    if provider != "CPUExecutionProvider":
        options.add_session_config_entry("session.disable_cpu_ep_fallback", "1")
    session = ort.InferenceSession(model, options, providers=[provider])
    session.disable_fallback()
    if (used := session.get_providers()[0]) != provider:
        raise DeviceError(f"ONNX Runtime was asked for {provider} and runs on {used}")
    return session


def bound(ort: Any, session: Any, data: Data, device: str) -> list[Any]:
    """A binding for each set of inputs, which lie on the device; so does the output."""
    bindings = []
    for arrays in data.sets:
        binding = session.io_binding()
        for name, array in arrays.items():
            value = ort.OrtValue.ortvalue_from_numpy(array, device, 0)
            binding.bind_ortvalue_input(name, value)
        binding.bind_output("y", device)
        bindings.append(binding)
    return bindings


def fetched(session: Any, binding: Any) -> Any:
    """The result of one run, in host memory."""
    session.run_with_iobinding(binding)
    return binding.copy_outputs_to_cpu()[0]
