"""The error of Toom-Cook against E0, measured in float32 as a target computes it: the table of
`convdsl.passes.toom_accuracy` is what `python -m tests.conformance.toom_error` prints.

Data and taps are normal; the data are short rows with zeros around them, where a few results at the
ends have fewer terms and E0 is smaller. The transforms, the sums of products in blocks and the transform
of results are float32 with each operation rounded, as on a target without fused multiply-adds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from fractions import Fraction
from math import ceil
from typing import Any

import numpy as np
import numpy.typing as npt

from convdsl.passes.toom_accuracy import TERMS, block_of
from convdsl.passes.toom_points import LEAST, MOST_RESULTS, MOST_TAPS, transforms

Array = npt.NDArray[Any]
SEEDS = (0, 1, 2)
ROWS, TILES, COLUMNS = 6, 5, 32


def error(results: int, taps: int, terms: int, seed: int = 0) -> float:
    """The rms error of F(results, taps), with so many terms a tap, over that of the plain sum."""
    draw = np.random.default_rng(seed)
    count = TILES * results
    data = np.zeros((terms, ROWS, count + taps - 1), np.float32)
    inside = data[:, :, taps - 1 : count]
    inside[:] = draw.standard_normal(inside.shape, dtype=np.float32)
    weights = draw.standard_normal((terms, taps, COLUMNS), dtype=np.float32)
    seen = np.stack([data[:, :, k : k + count].reshape(terms, -1) for k in range(taps)], 1)
    exact = np.einsum("ckt,ckn->tn", seen.astype(float), weights.astype(float), optimize=True)
    plain = blocked(seen.reshape(terms * taps, -1), weights.reshape(-1, COLUMNS), 128)
    return rms(toom(data, weights, results) - exact) / rms(plain - exact)


def toom(data: Array, weights: Array, results: int) -> Array:
    """[results in all, columns]"""
    m = transforms(results, weights.shape[1])
    windows = data[:, :, np.arange(TILES)[:, None] * results + np.arange(m.products)]
    moved = windows.reshape(len(data), -1, m.products).transpose(2, 0, 1)
    pairs = zip(mixed(m.b, moved), mixed(m.g, weights.transpose(1, 0, 2)), strict=True)
    made = np.stack([blocked(x, w, block_of(len(data))) for x, w in pairs])
    return mixed(m.a, made).transpose(1, 0, 2).reshape(-1, weights.shape[2])


def mixed(matrix: Sequence[Sequence[Fraction]], values: Array) -> Array:
    """The matrix times the first axis, one term after the other; zeros are no terms."""
    out = np.zeros((len(matrix), *values.shape[1:]), np.float32)
    for row, numbers in zip(out, matrix, strict=True):
        for number, value in zip(numbers, values, strict=True):
            if number:
                row += np.float32(float(number)) * value
    return out


def blocked(a: Array, b: Array, block: int) -> Array:
    """The sum over the first axis of outer products, added up in blocks."""
    total = np.zeros((a.shape[1], b.shape[1]), np.float32)
    for start in range(0, len(a), block):
        part = np.zeros_like(total)
        for left, right in zip(a[start : start + block], b[start : start + block], strict=True):
            part += left[:, None] * right
        total += part
    return total


def rms(values: Array) -> float:
    return float(np.sqrt(np.mean(np.square(values, dtype=np.float64))))


def main() -> None:
    for taps in range(LEAST, MOST_TAPS + 1):
        for results in range(LEAST, MOST_RESULTS + 1):
            found = [max(error(results, taps, n, seed) for seed in SEEDS) for n in TERMS]
            shown = ", ".join(str(ceil(e * 10) / 10) for e in found)
            sys.stdout.write(f"({results}, {taps}): ({shown}),\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main()
