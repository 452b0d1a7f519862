"""What a machine can do at most: the rate of a large matrix product, and that of a copy."""

from __future__ import annotations

from time import perf_counter

import numpy as np

from convdsl.api import compile
from convdsl.bench.contestant import Ceilings
from convdsl.diagnostics import CdslError, DeviceError

COPY = "op copy(x: f32[N]) -> y: f32[N] {\n    y[n] = x[n]\n}\n"
PRODUCT = """\
op product(a: f32[B, M, K], b: f32[B, K, N]) -> y: f32[B, M, N] {
    y[s, m, n] = sum[k] a[s, m, k] * b[s, k, n]
}
"""
CPU_SIDE, CPU_BYTES = 2048, 1 << 27
GPU_SIDE, GPU_BYTES = 4096, 120 << 20  # a binding of any browser has 128 MiB
SOFTWARE_SIDE, SOFTWARE_BYTES = 512, 1 << 24
REPEAT = 5


def cpu_ceilings() -> Ceilings:
    """By `np.matmul` and `np.copyto`, the best of a few."""
    a = np.ones((CPU_SIDE, CPU_SIDE), np.float32)
    y, x = np.empty_like(a), np.ones(CPU_BYTES // 4, np.float32)
    z = np.empty_like(x)
    products, copies = [], []
    for _ in range(REPEAT):
        start = perf_counter()
        np.matmul(a, a, out=y)
        middle = perf_counter()
        np.copyto(z, x)
        products.append(middle - start)
        copies.append(perf_counter() - middle)
    return Ceilings(2 * CPU_SIDE**3 / min(products), 2 * CPU_BYTES / min(copies))


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
