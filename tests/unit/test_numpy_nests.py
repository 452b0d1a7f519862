"""Scheduled nests for NumPy whose loops do not begin at zero."""

from __future__ import annotations

import numpy as np

import convdsl

PEAK = """
op peak(x: f32[A], w: f32[]) -> y: f32[A] {
    y[i] = max[j in 0..A, k in 0..9 | k == 3, j*-1 == k + i + -4] x[j] else w[]
}
"""
BLOCKS = "schedule peak for numpy { phases y over i, j -> a, ar, aj\n }"


def test_marks_of_blocks_before_zero() -> None:
    """`phases` may count blocks from below zero; the results that a maximum reaches are still marked."""
    x, w = np.array([2, -3, 5], np.float32), np.array(-7, np.float32)
    plain = convdsl.compile(PEAK)(x, w)
    assert plain.tolist() == [-3, 2, -7]
    assert convdsl.compile(PEAK, schedule=BLOCKS)(x, w).tolist() == plain.tolist()
