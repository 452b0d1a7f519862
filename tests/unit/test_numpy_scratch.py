"""Arrays that a generated function makes once, for the products in its loops."""

from __future__ import annotations

import numpy as np
import pytest

from convdsl.backends.numpy.emit import emit_module
from convdsl.backends.numpy.module import load
from convdsl.ir.reader import read_program

NEVER = """
func f(N)
  buffer a: f32[4, 3] input
  buffer b: f32[3, N] input
  buffer y: f32[4, N] output
kernel y
  for m in 0..4 slice
    for n in 0..N slice
      y[m, n] = 0.0
  for q in 0..2 host
    for m in 0..EXTENT gemm.m
      for n in 0..N gemm.n
        for k in 0..3 gemm.k
          y[m, n] += a[m, k] * b[k, n]
"""


@pytest.mark.parametrize("extent", ["q - 3", "q + N - 6", "min(q, N - 4)"])
def test_the_array_for_a_product_that_never_runs_is_empty(extent: str) -> None:
    """It is made outside of the loops, whatever their bounds."""
    module = emit_module(read_program(NEVER.replace("EXTENT", extent)))
    assert "scratch = np.empty(" in module.text
    a, b = np.ones((4, 3), np.float32), np.ones((3, 2), np.float32)
    assert (load(module)(a, b) == 0).all()
