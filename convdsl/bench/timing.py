"""How calls are timed: back to back, in turn with the others, round by round.

A round has as many calls of each contestant as take `least` seconds together, so that neither the
clock nor the one wait at the end weighs. The order rotates from round to round. What was slow in one
round, because the machine was, was so for all. Libraries let idle threads spin for some milliseconds, so
that their next call begins at once; nobody is timed while the threads of another one still do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from math import ceil
from statistics import median
from time import perf_counter, process_time, sleep
from typing import Protocol

Clock = Callable[[], float]
REST, MOST_REST = 0.004, 0.5  # seconds


@dataclass(frozen=True, slots=True)
class Sample:
    """Seconds a call in one round, by the host's clock and, where there is one, by the device's."""

    host: float
    device: float | None = None


class Timed(Protocol):
    """What can be called many times."""

    def time(self, calls: int) -> Sample:
        """Make so many calls back to back, all begun work finished before and after."""


class HostTimed:
    """Calls by the host's clock: `run` begins one, `wait` lasts until all are done.

    Calls take the `sets` of inputs in turn, from round to round too. `within` is a context around
    them, which switches what a program would switch once.
    """

    def __init__(
        self,
        run: Callable[[int], object],
        sets: int = 1,
        wait: Callable[[], object] = lambda: None,
        within: Callable[[], AbstractContextManager[object]] = nullcontext,
        clock: Clock = perf_counter,
    ) -> None:
        self._run, self._sets, self._wait, self._within = run, sets, wait, within
        self._clock, self._turn = clock, 0

    def time(self, calls: int) -> Sample:
        run, wait, clock, sets, first = self._run, self._wait, self._clock, self._sets, self._turn
        self._turn += calls
        with self._within():
            wait()
            begin = clock()
            for turn in range(first, first + calls):
                run(turn % sets)
            wait()
            return Sample((clock() - begin) / calls)


@dataclass(frozen=True, slots=True)
class Rules:
    """When enough was measured: after `rounds`, or when `seconds` have passed for a layer."""

    rounds: int = 7
    seconds: float = 10.0
    least: float = 0.02
    most_calls: int = 10_000


@dataclass(slots=True)
class Entrant:
    """One that is timed, and its samples so far; `failure` ends its part."""

    timed: Timed
    calls: int = 0
    samples: list[Sample] = field(default_factory=list)
    failure: Exception | None = None

    def calibrate(self, rules: Rules) -> None:
        """Find how many calls a round has."""
        calls = 1
        while True:
            took = self.timed.time(calls).host * calls
            if took >= rules.least or calls >= rules.most_calls:
                break
            wanted = ceil(calls * 1.2 * rules.least / max(took, 1e-9))
            calls = min(rules.most_calls, max(calls + 1, min(wanted, 32 * calls)))
        self.calls = calls

    def sample(self) -> None:
        come_to_rest()
        self.samples.append(self.timed.time(self.calls))


def come_to_rest(
    clock: Clock = perf_counter, busy: Clock = process_time, pause: Callable[[float], None] = sleep
) -> None:
    """Wait until no thread of this process is running, at most `MOST_REST` seconds."""
    begin = clock()
    while clock() - begin < MOST_REST:
        before = busy()
        pause(REST)
        if busy() - before < REST / 4:
            return


def seconds_of(samples: Sequence[Sample]) -> tuple[float | None, str]:
    """The median, and whose clock it is by: the device's where all samples have it."""
    device = [s.device for s in samples if s.device is not None]
    if device and len(device) == len(samples):
        return median(device), "device"
    return (median(s.host for s in samples) if samples else None), "host"


def measure(
    entrants: Sequence[Entrant],
    rules: Rules,
    after_round: Callable[[int], None] = lambda number: None,
    clock: Clock = perf_counter,
) -> None:
    """Calibrate all, then sample them in turn; no round begins when the time is over.

    What one of them raises is kept in its `failure`, and the others go on.
    """
    begin = clock()
    for entrant in entrants:
        _guarded(entrant, lambda e: e.calibrate(rules))
    for number in range(rules.rounds):
        for place in range(len(entrants)):
            _guarded(entrants[(place + number) % len(entrants)], Entrant.sample)
        after_round(number + 1)
        if clock() - begin >= rules.seconds:
            break


def _guarded(entrant: Entrant, work: Callable[[Entrant], None]) -> None:
    if entrant.failure is None:
        try:
            work(entrant)
        except Exception as error:
            entrant.failure = error
