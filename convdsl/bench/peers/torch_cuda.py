"""PyTorch on CUDA, with float32 products and with TF32 ones.

cuDNN chooses by measurement; of layers so large that measuring its slowest algorithms takes minutes it
takes its own first choice.

The device's clock stands around a graph of captured calls, so that what starting a kernel costs on
the host is left out, as the timestamps in one WGSL submission leave it out. The host's clock stands
around plain calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from convdsl.arguments import Array
from convdsl.bench.contestant import Calls, Ceilings, Contestant, Facts, Prepared, Settings
from convdsl.bench.data import Data
from convdsl.bench.extras import require
from convdsl.bench.layer import Layer
from convdsl.bench.ours import nominal
from convdsl.bench.peers.torch_calls import Call, folded, library
from convdsl.bench.timing import Sample
from convdsl.diagnostics import DeviceError

CAPTURED = 32  # calls in a graph, at most
MEASURED = 10**10  # operations up to which cuDNN measures its algorithms
SIDE, BYTES, REPEAT = 8192, 1 << 30, 5


class TorchCuda:
    """The peer `torch-cuda`."""

    def open(self, settings: Settings) -> list[Contestant]:
        torch = require("torch-cuda", "torch")
        if not torch.cuda.is_available():
            raise DeviceError(
                "`torch-cuda` finds no CUDA device",
                help="it needs an NVIDIA GPU, its driver, and a PyTorch that was built for CUDA",
            )
        versions = {
            "torch": str(torch.__version__),
            "cuda": str(torch.version.cuda),
            "cudnn": str(torch.backends.cudnn.version()),
        }
        facts = Facts("gpu", f"{torch.cuda.get_device_name()} (cuda)", versions)

        def exact(layer: Layer, data: Data) -> Prepared:
            return _OnCuda(torch, library(torch, layer), data, nominal(layer)[0], tf32=False)

        def rounded(layer: Layer, data: Data) -> Prepared:
            return _OnCuda(torch, library(torch, layer), data, nominal(layer)[0], tf32=True)

        def by_fold(layer: Layer, data: Data) -> Prepared:
            return _OnCuda(torch, folded(torch, layer), data, nominal(layer)[0], tf32=False)

        return [
            Contestant("torch-cuda", facts, exact, ceilings=lambda: _ceilings(torch)),
            Contestant("torch-cuda, matmul + fold", facts, by_fold),
            Contestant("torch-cuda, TF32", facts, rounded, precision="tf32"),
        ]


def _allow_tf32(torch: Any, allowed: bool) -> None:
    torch.backends.cudnn.allow_tf32 = allowed
    torch.backends.cuda.matmul.allow_tf32 = allowed


class _OnCuda(Prepared):
    def __init__(self, torch: Any, call: Call, data: Data, operations: int, *, tf32: bool) -> None:
        self._torch, self._call, self._tf32 = torch, call, tf32
        self._sets = [
            {n: torch.from_numpy(a).cuda() for n, a in data.all(which).items()}
            for which in range(len(data.sets))
        ]
        self._measured = operations <= MEASURED
        self._calls = Calls(
            self._run, self._fetch, len(self._sets), torch.cuda.synchronize, within=self._within
        )
        with self._within():
            self._graph = self._captured(2)
        if self._graph is None:
            self.plan = "device time with the cost of starting kernels: no graph could be captured"

    def time(self, calls: int) -> Sample:
        host = self._calls.time(calls).host
        with self._within():
            return Sample(host, self._on_device(calls))

    def result(self, which: int) -> Array:
        return self._calls.result(which)

    @contextmanager
    def _within(self) -> Iterator[None]:
        _allow_tf32(self._torch, self._tf32)
        self._torch.backends.cudnn.benchmark = self._measured
        with self._torch.inference_mode():
            yield

    def _run(self, which: int) -> Any:
        return self._call(self._sets[which])

    def _fetch(self, which: int) -> Array:
        array: Array = self._run(which).contiguous().cpu().numpy()
        return array

    def _on_device(self, calls: int) -> float:
        """Seconds a call between two events around a captured graph, replayed; or around calls."""
        wanted = min(CAPTURED, max(2, calls))
        if self._graph is not None and self._graph[1] < wanted:
            self._graph = self._captured(wanted)
        if self._graph is None:
            return self._between(lambda: self._in_turn(wanted)) / wanted
        graph, size = self._graph
        replays = -(-calls // size)
        return self._between(lambda: [graph.replay() for _ in range(replays)]) / (replays * size)

    def _between(self, work: Callable[[], object]) -> float:
        """Seconds between two events around some work, once it was done before."""
        torch = self._torch
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        work()
        begin.record()
        work()
        end.record()
        torch.cuda.synchronize()
        return float(begin.elapsed_time(end)) * 1e-3

    def _in_turn(self, calls: int) -> None:
        for turn in range(calls):
            self._run(turn % len(self._sets))

    def _captured(self, calls: int) -> tuple[Any, int] | None:
        """A graph of calls; None where the library does something that cannot be captured."""
        torch = self._torch
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # a capture needs a warm library on a stream of its own
            self._in_turn(len(self._sets))
        torch.cuda.current_stream().wait_stream(side)
        torch.cuda.synchronize()
        graph = torch.cuda.CUDAGraph()
        try:
            with torch.cuda.graph(graph):
                self._in_turn(calls)
        except RuntimeError:
            return None
        return graph, calls


def _ceilings(torch: Any) -> Ceilings:
    """By cuBLAS in float32, and a copy."""
    _allow_tf32(torch, False)
    a = torch.ones(SIDE, SIDE, device="cuda")
    x = torch.ones(BYTES // 4, device="cuda")
    y = torch.empty_like(x)

    def best(work: Callable[[], object]) -> float:
        times = []
        for _ in range(REPEAT + 1):
            begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            begin.record()
            work()
            end.record()
            torch.cuda.synchronize()
            times.append(float(begin.elapsed_time(end)) * 1e-3)
        return min(times[1:])

    return Ceilings(
        2 * SIDE**3 / best(lambda: torch.matmul(a, a)), 2 * BYTES / best(lambda: y.copy_(x))
    )
