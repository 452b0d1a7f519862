"""A WGSL kernel on tensors that stay on the device."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from convdsl.arguments import Array
from convdsl.bench.contestant import Prepared
from convdsl.bench.timing import Sample
from convdsl.kernel import Kernel

STAMPED = 256  # runs between two timestamps, at most


class Resident(Prepared):
    """Timed by the device's clock and, as a caller sees it, by the host's."""

    def __init__(self, kernel: Kernel, sets: Sequence[Mapping[str, Any]], plan: str) -> None:
        self._kernel, self.plan = kernel, plan
        self._sets = [{n: kernel.upload(a) for n, a in arrays.items()} for arrays in sets]
        self._watch = kernel.stopwatch(self._sets)
        self.schedule = kernel.schedule

    def time(self, calls: int) -> Sample:
        self._watch.wall(1)
        return Sample(self._watch.wall(calls), self._watch.stamps(min(calls, STAMPED)))

    def result(self, which: int) -> Array:
        array: Array = self._kernel.run(**self._sets[which]).numpy()
        return array
