"""The matrices of Toom-Cook: the identity that they are for, exactly, and what makes them accurate."""

from __future__ import annotations

from fractions import Fraction
from itertools import product
from math import sqrt

import numpy as np
import pytest

from convdsl.passes.toom_accuracy import error_multiple, most_results, within
from convdsl.passes.toom_points import LEAST, MOST_RESULTS, MOST_TAPS, transforms
from tests.conformance.toom_error import error

SIZES = list(product(range(LEAST, MOST_RESULTS + 1), range(LEAST, MOST_TAPS + 1)))


@pytest.mark.parametrize(("results", "taps"), SIZES)
def test_identity(results: int, taps: int) -> None:
    """For all data and all taps, as each is a sum of units."""
    m = transforms(results, taps)
    assert (len(m.a), len(m.b), len(m.g)) == (results, results + taps - 1, results + taps - 1)
    for u, k, i in product(range(results), range(taps), range(m.products)):
        found = sum(m.a[u][z] * m.g[z][k] * m.b[z][i] for z in range(m.products))
        assert found == (i == u + k)


@pytest.mark.parametrize(("results", "taps"), SIZES)
def test_numbers(results: int, taps: int) -> None:
    """The matrices of the data and of the results are exact in float32; no row is large or small."""
    m = transforms(results, taps)
    for row in (*m.a, *m.b):
        assert all(Fraction(float(np.float32(float(x)))) == x for x in row)
    for row in (*m.b, *m.g):
        assert 1 <= sqrt(sum(x * x for x in row)) < 2


@pytest.mark.parametrize("terms", [3, 40, 200])
@pytest.mark.parametrize(("results", "taps"), SIZES)
def test_error_table(results: int, taps: int, terms: int) -> None:
    """The measured numbers, on other data and between the sizes that were measured."""
    most = error_multiple(results, taps, terms)
    assert 0.5 * most <= error(results, taps, terms, seed=11) <= 1.1 * most


def test_classes() -> None:
    def most(terms: int, accuracy: str) -> list[int | None]:
        return [most_results(taps, terms, accuracy) for taps in range(LEAST, MOST_TAPS + 1)]

    assert most(4096, "strict") == most(1, "strict") == [None] * 4
    assert most(4096, "standard") == [5, 4, 4, 3]
    assert most(256, "standard") == [6, 5, 4, 3]
    assert most(1, "standard") == [3, 3, None, None]
    assert most(4096, "fast") == [6, 6, 5, 4]
    assert not any(within(m, j, 4096, "strict") for m, j in SIZES)
