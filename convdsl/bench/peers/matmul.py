"""The bare matrix product in a layer, which a plan of the same shape cannot beat.

It is the product of the layer's phase form, on random operands that are laid out for it: no padding,
no overlaps, no strided stores. On the CPU by `np.matmul`, on a GPU by convdsl.
"""

from __future__ import annotations

from math import inf

import numpy as np

from convdsl.api import compile
from convdsl.arguments import Array
from convdsl.bench.contestant import Calls, Contestant, Prepared, Settings, Unfit
from convdsl.bench.data import SETS, Data
from convdsl.bench.error import Error, difference
from convdsl.bench.layer import Layer
from convdsl.bench.machine import facts_of
from convdsl.bench.resident import Resident
from convdsl.machine.measure_gpu import PRODUCT
from convdsl.passes.normalise import normalise
from convdsl.passes.plan import gemm_of

MOST = 1 << 28  # elements of an operand
ROWS = 16  # of the result that are compared with float64


class Matmul:
    """The peer `matmul`; a row for each target that convdsl runs on."""

    def open(self, settings: Settings) -> list[Contestant]:
        ways = {"numpy": _on_cpu, "wgsl": _OnDevice}
        return [
            Contestant(f"matmul {target}", facts_of(target), ways[target], "floor")
            for target in settings.targets
            if target in ways
        ]


def extents(layer: Layer) -> tuple[int, int, int, int]:
    """Batch, m, n and k of the layer's last product.

    Raises:
        Unfit: where there is none, and where its operands would be very large.
    """
    system = normalise(layer.system())
    names = [t.name for t in system.inputs]
    for equation in reversed(system.equations):
        form = gemm_of(equation.pieces[0], names) if len(equation.pieces) == 1 else None
        if form is None:
            continue
        numbers = [e.as_int() for e in form.extents]
        batch, m, n, k = (e or 0 for e in numbers)
        if not batch * m * n * k or batch * max(m * k, k * n, m * n) > MOST:
            raise Unfit(f"its product of {batch} x {m} x {n} x {k} is empty or too large")
        return batch, m, n, k
    raise Unfit("it is no matrix product")


def _operands(shape: tuple[int, int, int, int]) -> tuple[Array, list[Array]]:
    """The constant operand, and sets of the other."""
    batch, m, n, k = shape
    generator = np.random.default_rng(3)
    a = generator.standard_normal((batch, m, k), np.float32)
    return a, [generator.standard_normal((batch, k, n), np.float32) for _ in range(SETS)]


def _said(shape: tuple[int, int, int, int]) -> str:
    batch, *rest = shape
    product = " x ".join(map(str, rest))
    return product if batch == 1 else f"{batch} times {product}"


def _error(a: Array, b: Array, y: Array) -> Error:
    """Of some rows of the first product and of the last."""
    if y.shape != (a.shape[0], a.shape[1], b.shape[2]):
        return Error(inf, inf, 0)
    rows = np.unique(np.linspace(0, a.shape[1] - 1, ROWS, dtype=np.int64))
    wanted = np.matmul(a[[0, -1]][:, rows].astype(np.float64), b[[0, -1]].astype(np.float64))
    return difference(y[[0, -1]][:, rows], wanted)


class _OnCpu(Calls):
    def __init__(self, a: Array, sets: list[Array], plan: str) -> None:
        self._a, self._b = a, sets
        y = np.empty((*a.shape[:2], sets[0].shape[2]), np.float32)
        super().__init__(
            lambda which: np.matmul(a, sets[which], out=y),
            lambda which: np.matmul(a, sets[which]),
            len(sets),
            plan=plan,
        )

    def own_error(self) -> Error:
        return _error(self._a, self._b[0], self.result(0))


def _on_cpu(layer: Layer, data: Data) -> Prepared:
    shape = extents(layer)
    return _OnCpu(*_operands(shape), _said(shape))


class _OnDevice(Resident):
    def __init__(self, layer: Layer, data: Data) -> None:
        batch, m, n, k = shape = extents(layer)
        self._a, self._b = _operands(shape)
        sizes = {"B": batch, "M": m, "N": n, "K": k}
        kernel = compile(PRODUCT, target="wgsl", sizes=sizes, limits="adapter").bind(a=self._a)
        plan = kernel.plan.tiles or kernel.plan.algorithm
        super().__init__(kernel, [{"b": b} for b in self._b], f"{_said(shape)}, {plan}")

    def own_error(self) -> Error:
        return _error(self._a, self._b[0], self.result(0))
