"""Small programs and data for the tests of the Python interface."""

from __future__ import annotations

from typing import Any

import numpy as np

Array = np.ndarray[Any, np.dtype[Any]]

AXPY = """
op axpy(x: f32[N], y: f32[N], b: f32[N] = 0, times: int = 1, scale: float = 1) -> z: f32[N]
where times >= 1
{
    z[n] = x[n]*times*scale + 2*y[n] + b[n]
}
"""
FIR = """
op fir(x: f32[N, L], w: f32[K], stride: int = 1) -> y: f32[N, LO]
where LO == (L - K) // stride + 1, K >= 1, stride >= 1
{
    y[n, o] = sum[k, l | l == o*stride + k] x[n, l] * w[k]
}
"""
PRODUCT = (
    "op product(a: f32[M, K], b: f32[K, N]) -> c: f32[M, N] { c[m, n] = sum[k] a[m, k] * b[k, n] }"
)


def whole(*shape: int, seed: int = 0) -> Array:
    """Small integers as float32, so that sums are exact."""
    return np.random.default_rng(seed).integers(-5, 6, shape).astype(np.float32)


def fir(x: Array, w: Array, stride: int = 1) -> Array:
    """FIR by its definition."""
    windows = np.lib.stride_tricks.sliding_window_view(x, len(w), axis=1)[:, ::stride]
    return np.asarray((windows * w).sum(-1), np.float32)
