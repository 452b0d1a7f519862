"""How long a run takes on the device."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import ceil
from statistics import median
from time import perf_counter
from typing import Any, Literal, TypeVar

import numpy as np

from convdsl.backends.wgsl.runtime.memory import Block
from convdsl.backends.wgsl.runtime.prepared import Prepared, Ready, dispatch
from convdsl.backends.wgsl.runtime.tensor import DeviceTensor

T = TypeVar("T")
LEAST = 0.02  # seconds that one measurement takes at least, by repeating the run ...
MOST_RUNS = 256  # ... so often at most


@dataclass(frozen=True, slots=True)
class Timing:
    """Seconds of one run: the median of `samples`, each the mean of `runs` back-to-back runs.

    `method` is `timestamps` (the device's clock around the kernels), or `wall` (the host's clock
    around submissions and one wait at the end).
    """

    seconds: float
    method: Literal["timestamps", "wall"]
    runs: int
    samples: tuple[float, ...]


class Stopwatch:
    """Times one plan on given buffers; back-to-back runs take the sets of inputs in turn.

    It holds what the buffers belong to: memory whose tensor is gone is used for others.
    """

    def __init__(
        self,
        prepared: Prepared,
        ready: Ready,
        sets: Sequence[Sequence[DeviceTensor]],
        output: DeviceTensor,
    ) -> None:
        self._prepared, self._ready, self._tensors = prepared, ready, (sets, output)
        self._sets: list[list[Block]] = [[t.block for t in tensors] for tensors in sets]
        self._output = output.block
        self._turn = 0  # how many runs there were: whose turn it is
        self._session = prepared.session
        self._marks: tuple[Any, Any] | None = None

    def measure(self, repeat: int) -> Timing:
        """The median of `repeat` measurements (at least one), after a warm-up."""
        self.wall(1)
        method: Literal["timestamps", "wall"] = "timestamps"
        sample: Callable[[int], float | None] = self.stamps
        once = self.stamps(1)
        if once is None:
            method, sample, once = "wall", self.wall, self.wall(1)
        runs = min(MOST_RUNS, max(1, ceil(LEAST / max(once, 1e-9))))
        samples = tuple(s for _ in range(max(1, repeat)) if (s := sample(runs)) is not None)
        return Timing(median(samples) if samples else once, method, runs, samples)

    def wall(self, runs: int) -> float:
        """Seconds a run by the host's clock: runs handed over one by one, one wait at the end."""
        session = self._session
        with session.guard():
            begin = perf_counter()
            for blocks in self._turns(self._sets, runs):
                self._prepared.submit(self._ready, blocks, [self._output])
        session.read(self._output.buffer, np.empty(4, np.uint8))
        return (perf_counter() - begin) / runs

    def stamps(self, runs: int) -> float | None:
        """Seconds a run by the device's clock; None when it has none or it does not advance."""
        session = self._session
        if session.period is None or not self._ready.plan.steps:
            return None
        with session.guard():
            bind = self._prepared.bind
            dispatches = [bind(self._ready, blocks, [self._output]) for blocks in self._sets]
            queries, resolved = self._queries()
            encoder = session.gpu.create_command_encoder()
            onto = encoder.begin_compute_pass(
                timestamp_writes={
                    "query_set": queries,
                    "beginning_of_pass_write_index": 0,
                    "end_of_pass_write_index": 1,
                }
            )
            for one in self._turns(dispatches, runs):
                dispatch(onto, one)
            onto.end()
            encoder.resolve_query_set(queries, 0, 2, resolved, 0)
            session.queue.submit([encoder.finish()])
        ticks = np.zeros(2, np.uint64)
        session.read(resolved, ticks.view(np.uint8))
        passed = int(ticks[1]) - int(ticks[0])
        return passed * session.period * 1e-9 / runs if passed > 0 else None

    def _turns(self, sets: list[T], runs: int) -> Iterator[T]:
        """The sets in turn, from where the last runs ended."""
        for _ in range(runs):
            yield sets[self._turn % len(sets)]
            self._turn += 1

    def _queries(self) -> tuple[Any, Any]:
        if self._marks is None:
            from wgpu import BufferUsage

            gpu, usage = self._session.gpu, BufferUsage.QUERY_RESOLVE | BufferUsage.COPY_SRC
            queries = gpu.create_query_set(type="timestamp", count=2)
            self._marks = queries, gpu.create_buffer(size=256, usage=usage)
        return self._marks
