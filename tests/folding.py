"""Programs with folds, and counting which parts of compiled kernels run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl.backends.numpy.backend import NumpyExecutable
from convdsl.backends.wgsl.runtime.prepared import Dispatch, Prepared, Ready
from convdsl.kernel import Kernel
from tests.unit.api_programs import Array, whole

SIZES = {"N": 2, "C": 4, "L": 9, "M": 3, "K": 2}
LAYER = """
op layer(x: f32[N, C, L], w: f32[C, M, K], g: f32[M], stride: int = 2) -> y: f32[N, M, LO]
where LO == (L - 1)*stride + K, K >= 1
{
    let v[c, m, k] = w[c, m, k] * g[m] - sum[j in 0..K] w[c, m, j] * w[c, m, j]
    y[n, m, o] = sum[c, k, l | l*stride + k == o] x[n, c, l] * v[c, m, k]
}
"""
# `norm` depends on the window and on a size that only x has.
FRAMES = """
op frames(x: f32[N, T, K], window: f32[K]) -> y: f32[N, LO]
where LO == (T - 1)*2 + K
{
    let norm[o] = sum[k, t in 0..T | t*2 + k == o] window[k] * window[k]
    y[n, o] = norm[o] + sum[k, t | t*2 + k == o] x[n, t, k] * window[k]
}
"""


def arrays(n: int = 2, length: int = 9) -> dict[str, Array]:
    return {"x": whole(n, 4, length), "w": whole(4, 3, 2, seed=1), "g": whole(3, seed=2)}


def layer(given: dict[str, Array]) -> Array:
    return np.asarray(convdsl.evaluate(LAYER, given), np.float32)


class Ran:
    """What ran since the last look: on NumPy functions of folds, on WGSL the kernels of each run."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self._seen: list[str] = []
        bind = Prepared.bind

        def recorded(prepared: Prepared, ready: Ready, *blocks: Any) -> list[Dispatch]:
            names = [prepared.module.kernels[s.kernel].name for s in ready.plan.steps]
            self._seen.append("+".join(names))
            return bind(prepared, ready, *blocks)

        patch.setattr(Prepared, "bind", recorded)

    def watch(self, kernel: Kernel, result: str) -> None:
        """Record the function that makes this result, if the kernel's variant is for NumPy."""
        executable = kernel.executable
        if not isinstance(executable, NumpyExecutable):
            return
        space = executable._namespace
        for fold in executable.module.folds:
            if result not in fold.results:
                continue
            space[fold.function] = self._recorded(space[fold.function], fold.function)

    def look(self) -> list[str]:
        seen, self._seen[:] = list(self._seen), []
        return seen

    def _recorded(self, function: Any, name: str) -> Any:
        def run(*given: Any) -> Any:
            self._seen.append(name)
            return function(*given)

        run.__name__ = name
        return run


def results(kernel: Kernel) -> Sequence[Mapping[str, Any]]:
    """The results of folds that a bound kernel keeps."""
    return list(kernel._constants._results.values())
