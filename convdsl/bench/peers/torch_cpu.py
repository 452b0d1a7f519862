"""PyTorch on the CPU: with oneDNN, without it, and by a product and `fold`."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from convdsl.arguments import Array
from convdsl.bench.contestant import Calls, Contestant, Facts, Prepared, Settings
from convdsl.bench.data import Data
from convdsl.bench.extras import require
from convdsl.bench.layer import Layer
from convdsl.bench.peers.torch_calls import Call, folded, library
from convdsl.machine.names import cpu_name


class Torch:
    """The peer `torch`."""

    def open(self, settings: Settings) -> list[Contestant]:
        torch = require("torch", "torch")
        if settings.threads is not None:
            torch.set_num_threads(settings.threads)
        versions = {"torch": str(torch.__version__)}
        facts = Facts("cpu", cpu_name(), versions, int(torch.get_num_threads()))

        def with_onednn(layer: Layer, data: Data) -> Prepared:
            return _prepare(torch, library(torch, layer), data, onednn=True)

        def without_onednn(layer: Layer, data: Data) -> Prepared:
            return _prepare(torch, library(torch, layer), data, onednn=False)

        def by_fold(layer: Layer, data: Data) -> Prepared:
            return _prepare(torch, folded(torch, layer), data, onednn=True)

        return [
            Contestant("torch", facts, with_onednn),
            Contestant("torch, no oneDNN", facts, without_onednn),
            Contestant("torch, matmul + fold", facts, by_fold),
        ]


def _prepare(torch: Any, call: Call, data: Data, *, onednn: bool) -> Prepared:
    sets = [
        {n: torch.from_numpy(a) for n, a in data.all(which).items()}
        for which in range(len(data.sets))
    ]

    @contextmanager
    def within() -> Iterator[None]:
        with warnings.catch_warnings(), torch.inference_mode():
            warnings.simplefilter("ignore")  # the switch warns of GPUs that this build is not for
            with torch.backends.mkldnn.flags(enabled=onednn):
                yield

    def fetch(which: int) -> Array:
        array: Array = call(sets[which]).contiguous().numpy()
        return array

    return Calls(lambda which: call(sets[which]), fetch, len(sets), within=within)
