"""The matrices of Toom-Cook, F(m, j): m results of a filter of j taps by m + j - 1 products.

    sum[k in 0..j] taps[k] * data[u + k]  =  sum[z] a[u, z] * (sum[k] g[z, k] * taps[k])
                                                            * (sum[i] b[z, i] * data[i])

Each product stands for the value of a polynomial at a point, the last one for infinity (A. Lavin and
S. Gray, Fast Algorithms for Convolutional Neural Networks, 2016, after S. Winograd, Arithmetic
Complexity of Computations, 1980). Which points makes the error: it grows with the numbers in a, b and g
(B. Barabasz et al., Error Analysis and Improving the Accuracy of Winograd Convolution for Deep Neural
Networks, 2020). Those below have, among sets of fractions in eighths that are mostly pairs of opposite
sign, the least mean over u of

    sqrt(sum[z] a[u, z]^2 * sum[i] b[z, i]^2 * sum[k] g[z, k]^2 / j)

which is how much the rounding of one product adds to a result, for data without structure; where sets
differ by less than a thirtieth, the one with simpler fractions. They have powers of two below, so that
a and b are exact in float32.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from math import frexp, prod, sqrt

Row = tuple[Fraction, ...]

_POINTS: dict[int, str] = {
    3: "0 1",
    4: "0 1 -1",
    5: "0 1/2 -1 2",
    6: "0 5/8 -5/8 3/2 -3/2",
    7: "0 7/8 -7/8 3/8 -3/2 9/4",
    8: "0 1/2 -1/2 1 -1 2 -2",
    9: "0 7/8 -7/8 11/8 -11/8 3/8 -1/2 3",
    10: "0 3/8 -3/8 5/4 -5/4 19/8 -19/8 3/4 -7/8",
}
"""The finite points, by the number of products."""

LEAST, MOST_RESULTS, MOST_TAPS = 2, 6, 5


@dataclass(frozen=True, slots=True)
class Transforms:
    """`a` has a row for each result, `b` and `g` one for each product."""

    a: tuple[Row, ...]
    b: tuple[Row, ...]
    g: tuple[Row, ...]

    @property
    def products(self) -> int:
        return len(self.b)

    def amplification(self) -> float:
        """What the points are chosen by: see above."""
        sizes = [_norm(b) * _norm(g) for b, g in zip(self.b, self.g, strict=True)]
        total = sum(
            _norm([float(x) * s for x, s in zip(r, sizes, strict=True)]) ** 2 for r in self.a
        )
        return sqrt(total / (len(self.a) * len(self.g[0])))


@cache
def transforms(results: int, taps: int) -> Transforms:
    """The matrices of F(results, taps), exact.

    The rows of b and g are scaled by powers of two to a norm in 1..2, and a makes up for it: this
    changes no rounding, and keeps transformed data of the size of the data.
    """
    points = tuple(Fraction(p) for p in _POINTS[results + taps - 1].split())
    a: list[Row] = []
    b: list[Row] = []
    g: list[Row] = []
    for point in points:
        others = [p for p in points if p != point]
        weight = prod((point - p for p in others), start=Fraction(1))
        a.append(_powers(point, results))
        b.append((*_polynomial(others), Fraction(0)))
        g.append(tuple(p / weight for p in _powers(point, taps)))
    a.append(_last(results))
    b.append(_polynomial(points))
    g.append(_last(taps))
    for z in range(len(b)):
        up, down = _scale(b[z]), _scale(g[z])
        b[z] = tuple(x * up for x in b[z])
        g[z] = tuple(x * down for x in g[z])
        a[z] = tuple(x / (up * down) for x in a[z])
    return Transforms(tuple(zip(*a, strict=True)), tuple(b), tuple(g))


def _powers(base: Fraction, count: int) -> Row:
    return tuple(base**n for n in range(count))


def _last(count: int) -> Row:
    """The value at infinity: the leading coefficient."""
    return (*(Fraction(0) for _ in range(count - 1)), Fraction(1))


def _polynomial(roots: Sequence[Fraction]) -> Row:
    """The coefficients of the product of all (x - root), constant one first."""
    out = [Fraction(1)]
    for root in roots:
        shifted, scaled = [Fraction(0), *out], [*(root * c for c in out), Fraction(0)]
        out = [s - r for s, r in zip(shifted, scaled, strict=True)]
    return tuple(out)


def _norm(row: Sequence[Fraction | float]) -> float:
    return sqrt(sum(float(x) ** 2 for x in row))


def _scale(row: Row) -> Fraction:
    """The power of two that brings the norm of a row into 1..2."""
    return Fraction(2) ** (1 - frexp(_norm(row))[1])
