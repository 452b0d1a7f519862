"""Times of short pieces of work on the host, and whether a number can be one of a machine."""

from __future__ import annotations

from collections.abc import Callable
from statistics import median
from time import perf_counter

from convdsl.diagnostics import DeviceError

Say = Callable[[str], None]
ROUNDS = 3
FEWEST = 3  # samples of a round
SAMPLE = 1e-4  # seconds, within the resolution of any clock


def seconds_of(work: Callable[[], object], enough: float) -> float:
    """Seconds of a piece of work: the median of its samples, of three rounds the least.

    What else runs on the machine only adds. About `enough` seconds are spent.
    """
    work()
    begin = perf_counter()
    work()
    once = perf_counter() - begin
    calls = max(1, min(1000, round(SAMPLE / max(once, 1e-9))))
    return min(_round(work, calls, enough / ROUNDS) for _ in range(ROUNDS))


def _round(work: Callable[[], object], calls: int, enough: float) -> float:
    samples: list[float] = []
    while len(samples) < FEWEST or sum(samples) < enough / calls:
        begin = perf_counter()
        for _ in range(calls):
            work()
        samples.append((perf_counter() - begin) / calls)
    return median(samples)


def plausible(what: str, value: float, least: float, most: float) -> float:
    """The value.

    Raises:
        DeviceError: when no machine is like that, so that something went wrong.
    """
    if not least <= value <= most:
        raise DeviceError(
            f"measuring failed: {what} came out as {value:.3g}, not {least:.3g} to {most:.3g}",
            help="measure again on a machine that does nothing else: `convdsl devices --measure`",
        )
    return value
