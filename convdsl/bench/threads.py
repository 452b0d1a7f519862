"""How many threads a CPU library takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from convdsl.bench.extras import require


@contextmanager
def limited(threads: int | None) -> Iterator[None]:
    """NumPy's BLAS with so many threads while it lasts; None changes nothing.

    Raises:
        CdslError: E0901 without threadpoolctl.
    """
    if threads is None:
        yield
        return
    import numpy as np

    np.zeros((2, 2), np.float32) @ np.zeros((2, 2), np.float32)  # its library is loaded by now
    with require("--threads", "threadpoolctl").threadpool_limits(threads, user_api="blas"):
        yield


def blas_threads() -> int | None:
    """Of NumPy's BLAS; None when threadpoolctl is not there to tell."""
    try:
        import threadpoolctl
    except ImportError:
        return None
    pools: list[dict[str, Any]] = threadpoolctl.threadpool_info()
    counts = [int(p["num_threads"]) for p in pools if p.get("user_api") == "blas"]
    return max(counts, default=None)
