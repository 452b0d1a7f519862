"""Facts of the GPU that WGSL runs on, measured in a few seconds by programs that convdsl makes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from convdsl.machine.facts import TYPICAL_GPU, Gpu, Machine, numbers
from convdsl.machine.names import identity
from convdsl.machine.timing import Say, plausible
from convdsl.passes.tiles import Shape, estimate

if TYPE_CHECKING:
    from convdsl.kernel import Kernel

COPY = "op copy(x: f32[N]) -> y: f32[N] {\n    y[n] = x[n]\n}\n"
PRODUCT = """\
op product(a: f32[B, M, K], b: f32[B, K, N]) -> y: f32[B, M, N] {
    y[s, m, n] = sum[k] a[s, m, k] * b[s, k, n]
}
"""
ROWS, COLUMNS, DEPTH = 64, 128, 1024  # of a product for one workgroup
MOST, FULL = 2**11, 1.05  # such products at a time; all units have work once more gain less
LARGEST = 4096  # side of a product, whose tensors any browser can bind
BYTES, SOFTWARE_BYTES = 2**26, 2**24  # of a copy
TINY = 64  # elements
LONG = 0.1  # seconds of one run
REPEAT = 5
WAITING = 1024  # threads that keep a unit busy where each waits for memory
NEAR = 1.5  # times as many units: nearer than that their number cannot be told from the rate of one tile


def measure_gpu(say: Say, repeat: int = REPEAT, long: float = LONG) -> Gpu:
    """The facts of the adapter that is used.

    Raises:
        DeviceError: when there is none, or a number cannot be right.
    """
    from convdsl.backends.wgsl.runtime import get_device

    software = get_device().info.is_software
    say("launches and copies")
    launch = plausible("seconds of a launch", _copy(TINY, repeat), 1e-9, 1e-1)
    count = (SOFTWARE_BYTES if software else BYTES) // 4
    moved = 8 * count / max(_copy(count, repeat) - launch, 1e-9)
    found = replace(
        TYPICAL_GPU, launch=launch, bandwidth=plausible("bytes/s of a copy", moved, 1e7, 1e15)
    )
    if software:  # threads of one workgroup are one after the other
        found = replace(found, busy=1, single=1.0)
    say("compute units")
    threads, rates = _groups(repeat, long)
    best = max(rates.values())
    counted = False
    if 1 in rates:
        alone = found.single + (1 - found.single) * min(1.0, threads / found.busy)
        units = max(1, min(round(best / rates[1] * alone), 65536))
        counted = software or not 1 / NEAR <= units / found.units <= NEAR
        found = replace(found, units=units, full=units * WAITING) if counted else found
    say("products of matrices")
    found = replace(found, flops=_flops(found, best, repeat, long))
    said = {f"FLOP/s: {n} workgroup{'s' if n > 1 else ''}": r for n, r in rates.items()}
    typical = ["tested", "ahead", "ahead_wide", "windows"]
    typical += [] if software else ["busy", "single"]
    typical += [] if counted else ["units", "full"]
    origin = replace(
        identity("gpu"),
        measured=datetime.now(UTC).isoformat(timespec="seconds"),
        rates=tuple(said.items()),
        typical=tuple(n for n in numbers(found) if n in typical),
    )
    return replace(found, origin=origin)


def _copy(count: int, repeat: int) -> float:
    """Seconds to copy so many elements."""
    return _seconds(_kernel(COPY, {"N": count}, TYPICAL_GPU), {"x": (count,)}, repeat)


def _groups(repeat: int, long: float) -> tuple[int, dict[int, float]]:
    """The threads of a workgroup, and operations a second by how many there are, each with one tile."""
    # With these facts no smaller or larger tile pays, and no part of a sum.
    one = replace(TYPICAL_GPU, units=1, launch=1.0, ahead_wide=0.01)
    rates: dict[int, float] = {}
    m, n, threads, taken = ROWS, COLUMNS, 1, 0.0
    while m * n <= MOST * ROWS * COLUMNS and taken <= long:
        kernel = _kernel(PRODUCT, {"B": 1, "M": m, "N": n, "K": DEPTH}, one)
        groups, threads = _dispatched(kernel)
        taken = _product(kernel, m, n, DEPTH, repeat)
        rates[groups] = 2 * m * n * DEPTH / taken
        last = list(rates.values())[-3:]
        if len(last) == 3 and max(last[1] / last[0], last[2] / last[1]) < FULL:
            break
        m, n = (m * 2, n) if m <= n else (m, n * 2)
    return threads, rates


def _dispatched(kernel: Kernel) -> tuple[int, int]:
    """The workgroups of a program, and the threads of one."""
    kernels: Any = kernel.executable.manifest()["kernels"]
    return sum(prod(map(int, k["dispatch"])) for k in kernels), prod(kernels[0]["workgroup"])


def _flops(gpu: Gpu, rate: float, repeat: int, long: float) -> float:
    """Operations a second at the best tile: those that make the estimate right."""
    side = LARGEST
    while side > 256 and 2 * side**3 / rate > long:
        side //= 2
    gpu = replace(gpu, flops=rate)
    kernel = _kernel(PRODUCT, {"B": 1, "M": side, "N": side, "K": side}, gpu)
    taken = _product(kernel, side, side, side, repeat) - gpu.launch
    guess = estimate(gpu, Shape(1, side, side, side), "plain") - gpu.launch
    return plausible("FLOP/s of products", rate * guess / max(taken, 1e-9), 1e7, 1e17)


def _product(kernel: Kernel, m: int, n: int, k: int, repeat: int) -> float:
    return _seconds(kernel, {"a": (1, m, k), "b": (1, k, n)}, repeat)


def _kernel(text: str, sizes: Mapping[str, int], gpu: Gpu) -> Kernel:
    from convdsl.api import compile

    return compile(text, target="wgsl", sizes=sizes, machine=Machine(gpu=gpu))


def _seconds(kernel: Kernel, shapes: Mapping[str, tuple[int, ...]], repeat: int) -> float:
    """Seconds of a run by the device's clock, the median of some."""
    tensors = {n: kernel.upload(np.ones(s, np.float32)) for n, s in shapes.items()}
    return kernel.time(repeat=repeat, **tensors)
