"""How much Toom-Cook errs, in multiples of E0, and which accuracy classes that leaves.

E0 is the rms error, against float64, of the float32 sum in blocks of at most 128 terms. A sum of few
terms hardly errs, and the transforms do: so the multiple depends on how many terms there are a tap.
The numbers hold where the products are added up in blocks of `block_of(terms)` (`partial`), which makes
up for a part of what the transforms amplify.
"""

from __future__ import annotations

from bisect import bisect_right

TERMS = (1, 2, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512, 1024, 2048, 4096)
"""The numbers of terms a tap (channels, mostly) that were measured."""

ALLOWED: dict[str, float] = {"strict": 0.0, "standard": 3.0, "fast": 5.0}
"""The multiple of E0 up to which a class goes with other algorithms than the sum."""

# The rms error over E0 for each of `TERMS`, the largest of three draws rounded up: what
# `python -m tests.conformance.toom_error` prints.
_MEASURED: dict[tuple[int, int], tuple[float, ...]] = {
    (2, 2): (1.9, 1.6, 1.6, 1.4, 1.3, 1.2, 1.3, 1.0, 0.9, 1.0, 0.9, 1.0, 1.0, 1.1, 1.3, 1.3),
    (3, 2): (1.8, 1.7, 1.5, 1.3, 1.2, 1.1, 1.1, 0.9, 0.8, 0.9, 0.9, 0.9, 0.9, 1.0, 1.1, 1.2),
    (4, 2): (3.2, 2.8, 2.4, 2.3, 2.0, 1.8, 1.8, 1.4, 1.3, 1.5, 1.4, 1.4, 1.4, 1.5, 1.8, 1.9),
    (5, 2): (4.5, 4.0, 3.2, 2.8, 2.4, 2.2, 2.1, 1.7, 1.6, 1.7, 1.6, 1.7, 1.7, 1.9, 2.1, 2.1),
    (6, 2): (9.1, 7.7, 6.6, 5.4, 4.4, 4.0, 3.8, 3.0, 2.8, 3.1, 2.7, 2.8, 3.0, 3.1, 3.6, 3.7),
    (2, 3): (1.7, 1.7, 1.4, 1.2, 1.1, 1.1, 1.0, 0.9, 1.0, 0.9, 0.9, 0.9, 0.9, 1.0, 1.1, 1.1),
    (3, 3): (2.8, 2.5, 2.1, 1.8, 1.6, 1.5, 1.5, 1.3, 1.4, 1.3, 1.3, 1.3, 1.4, 1.5, 1.6, 1.7),
    (4, 3): (3.9, 3.5, 2.8, 2.4, 1.9, 1.8, 1.8, 1.6, 1.6, 1.6, 1.5, 1.6, 1.6, 1.7, 1.9, 1.9),
    (5, 3): (7.4, 7.3, 5.2, 4.2, 3.5, 3.1, 2.9, 2.6, 2.8, 2.7, 2.6, 2.6, 2.7, 3.0, 3.1, 3.2),
    (6, 3): (8.1, 7.2, 5.6, 4.9, 4.0, 3.7, 3.5, 3.0, 3.4, 3.2, 3.2, 3.3, 3.4, 3.6, 3.8, 3.9),
    (2, 4): (3.5, 3.0, 2.2, 1.8, 1.6, 1.6, 1.4, 1.5, 1.4, 1.4, 1.4, 1.5, 1.6, 1.6, 1.7, 1.7),
    (3, 4): (3.8, 3.1, 2.7, 2.1, 1.8, 1.6, 1.5, 1.6, 1.5, 1.6, 1.5, 1.7, 1.7, 1.7, 1.8, 1.8),
    (4, 4): (7.4, 5.5, 4.7, 3.9, 3.1, 2.7, 2.7, 2.7, 2.5, 2.6, 2.6, 2.6, 2.8, 2.8, 3.0, 2.9),
    (5, 4): (7.4, 6.2, 5.2, 4.1, 3.5, 3.1, 2.9, 3.1, 3.0, 3.0, 3.0, 3.1, 3.2, 3.5, 3.7, 3.6),
    (6, 4): (15.3, 12.6, 9.6, 7.8, 6.5, 5.9, 5.5, 5.7, 5.3, 5.5, 5.6, 5.8, 5.9, 6.0, 6.5, 6.3),
    (2, 5): (4.0, 3.6, 2.7, 2.1, 1.9, 1.6, 1.9, 1.8, 1.8, 1.9, 1.9, 1.8, 1.8, 1.9, 1.9, 1.8),
    (3, 5): (7.2, 5.5, 4.6, 3.6, 2.7, 2.6, 2.8, 2.6, 2.8, 2.7, 2.6, 2.8, 2.8, 3.0, 2.9, 2.7),
    (4, 5): (6.8, 5.8, 4.9, 3.9, 3.2, 2.8, 3.2, 3.0, 3.2, 3.1, 3.0, 3.1, 3.2, 3.3, 3.5, 3.4),
    (5, 5): (14.8, 12.0, 8.9, 7.3, 5.6, 5.3, 5.7, 5.4, 5.7, 5.5, 5.3, 5.6, 5.6, 5.9, 6.0, 5.8),
    (6, 5): (18.4, 15.6, 12.8, 9.8, 7.9, 6.9, 7.8, 7.3, 7.5, 7.4, 7.3, 7.4, 7.7, 7.9, 8.0, 7.6),
}  # fmt: skip


def block_of(terms: int) -> int:
    """How many products are added up before they go to the total, for the least error."""
    return 32 if terms <= 1024 else 64


def error_multiple(results: int, taps: int, terms: int) -> float:
    """The rms error of F(results, taps) over E0; between two numbers of terms the larger of both."""
    at = bisect_right(TERMS, max(terms, 1))
    return max(_MEASURED[results, taps][at - 1 : at + 1])


def within(results: int, taps: int, terms: int, accuracy: str, blocks: float = 1.0) -> bool:
    """Whether a class allows F(results, taps); `blocks` multiplies the error: of longer ones."""
    return error_multiple(results, taps, terms) * blocks <= ALLOWED[accuracy]


def most_results(taps: int, terms: int, accuracy: str, blocks: float = 1.0) -> int | None:
    """The largest number of results at a time that a class allows; None where it allows none."""
    allowed = (m for m, j in _MEASURED if j == taps and within(m, j, terms, accuracy, blocks))
    return max(allowed, default=None)
