"""What a machine can do at most: the rate of a large matrix product, and that of a copy."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter

import numpy as np

from convdsl.api import compile
from convdsl.bench.contestant import Ceilings
from convdsl.diagnostics import CdslError, DeviceError
from convdsl.machine.measure_gpu import COPY, PRODUCT

CPU_BYTES = 1 << 27
LARGE, LARGEST, LONG = 2048, 8192, 0.03  # sides of matrices, and seconds of a product
ENOUGH = 0.5  # seconds of one measurement
GPU_SIDE, GPU_BYTES = 4096, 120 << 20  # a binding of any browser has 128 MiB
SOFTWARE_SIDE, SOFTWARE_BYTES = 512, 1 << 24
REPEAT = 5


def cpu_ceilings(threads: int) -> Ceilings:
    """By `np.matmul` of growing matrices, and by copies in so many threads; the best of a few."""
    flops, side, took = 0.0, 512, 0.0
    while side <= LARGE or (took < LONG and side <= LARGEST):
        a = np.ones((side, side), np.float32)
        y = np.empty_like(a)
        took = _best(lambda a=a, y=y: np.matmul(a, a, out=y))  # type: ignore[misc]
        flops, side = max(flops, 2 * side**3 / took), 2 * side
    x, z = (np.ones(CPU_BYTES // 4, np.float32) for _ in range(2))
    parts = list(zip(np.array_split(z, threads), np.array_split(x, threads), strict=True))
    with ThreadPoolExecutor(threads) as pool:
        copied = _best(lambda: list(pool.map(lambda pair: np.copyto(*pair), parts)))
    return Ceilings(flops, 2 * CPU_BYTES / copied)


def _best(work: Callable[[], object]) -> float:
    """Seconds, of the fastest of a few."""
    times: list[float] = []
    while len(times) < REPEAT and sum(times) < ENOUGH:
        begin = perf_counter()
        work()
        times.append(perf_counter() - begin)
    return min(times)


def wgsl_ceilings() -> Ceilings:
    """By convdsl's own product and copy: no other program runs there."""
    from convdsl.backends.wgsl.runtime import get_device

    software = get_device().info.is_software
    side = SOFTWARE_SIDE if software else GPU_SIDE
    count = (SOFTWARE_BYTES if software else GPU_BYTES) // 4
    flops = 0.0
    for limits in ("webgpu", "adapter"):
        product = compile(
            PRODUCT, target="wgsl", sizes={"B": 1, "M": side, "N": side, "K": side}, limits=limits
        )
        a = product.upload(np.ones((1, side, side), np.float32))
        try:
            flops = max(flops, 2 * side**3 / product.time(a=a, b=a, repeat=REPEAT))
        except (CdslError, DeviceError):  # one of the two profiles is enough
            continue
    copy = compile(COPY, target="wgsl", sizes={"N": count})
    x = copy.upload(np.ones(count, np.float32))
    return Ceilings(flops, 8 * count / copy.time(x=x, repeat=REPEAT))
