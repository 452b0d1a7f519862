"""The libraries that may stand beside convdsl, one module each, imported when asked for."""

from __future__ import annotations

from importlib import import_module

from convdsl.bench.contestant import Peer

PEERS = {
    "torch": "convdsl.bench.peers.torch_cpu:Torch",
    "torch-cuda": "convdsl.bench.peers.torch_cuda:TorchCuda",
    "onnxruntime": "convdsl.bench.peers.onnxruntime_cpu:OnnxRuntime",
    "onnxruntime-webgpu": "convdsl.bench.peers.onnxruntime_webgpu:OnnxRuntimeWebGpu",
    "jax": "convdsl.bench.peers.jax_cpu:Jax",
    "matmul": "convdsl.bench.peers.matmul:Matmul",
}
"""From the names of `--vs` to classes."""


def peer(name: str) -> Peer:
    """The peer of a name in `PEERS`."""
    module, _, attribute = PEERS[name].partition(":")
    made: Peer = getattr(import_module(module), attribute)()
    return made
