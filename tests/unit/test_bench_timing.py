"""How calls are timed, on a clock that only moves when somebody works."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from convdsl.bench.timing import Entrant, HostTimed, Rules, Sample, measure, seconds_of


class Clock:
    """A clock, and a log of who worked."""

    def __init__(self) -> None:
        self.now, self.log = 0.0, [""]

    def __call__(self) -> float:
        return self.now


class Worker:
    """Takes `cost` seconds a call; fails from the call on that `fails` says."""

    def __init__(self, clock: Clock, name: str, cost: float, fails: int | None = None) -> None:
        self.clock, self.name, self.cost, self.fails, self.made = clock, name, cost, fails, 0

    def time(self, calls: int) -> Sample:
        self.clock.log.append(f"{self.name}{calls}")
        self.made += calls
        if self.fails is not None and self.made > self.fails:
            raise RuntimeError("worn out")
        self.clock.now += self.cost * calls
        return Sample(self.cost)


def test_a_short_call_is_repeated_until_a_round_is_long_enough() -> None:
    clock, rules = Clock(), Rules(least=0.02)
    for cost, least, most in ((1.0, 1, 1), (0.02, 1, 1), (0.006, 4, 5), (1e-5, 2000, 2600)):
        entrant = Entrant(Worker(clock, "a", cost))
        entrant.calibrate(rules)
        assert least <= entrant.calls <= most, cost
    entrant = Entrant(Worker(clock, "a", 0.0))
    entrant.calibrate(rules)
    assert entrant.calls == rules.most_calls


def test_all_have_their_turn_in_every_round_and_the_first_one_changes() -> None:
    clock = Clock()
    entrants = [Entrant(Worker(clock, name, 1.0)) for name in "abc"]
    rounds: list[int] = []
    measure(entrants, Rules(rounds=4, seconds=1e9), rounds.append, clock)
    assert clock.log[1:4] == ["a1", "b1", "c1"]  # calibration
    assert "".join(clock.log[4:]).replace("1", "") == "abcbcacababc"
    assert rounds == [1, 2, 3, 4]
    assert [len(e.samples) for e in entrants] == [4, 4, 4]


@pytest.mark.parametrize(("seconds", "rounds"), [(0.0, 1), (4.0, 1), (5.9, 2), (1e9, 7)])
def test_no_round_begins_when_the_time_is_over(seconds: float, rounds: int) -> None:
    clock = Clock()
    entrants = [Entrant(Worker(clock, name, 1.0)) for name in "ab"]
    measure(entrants, Rules(rounds=7, seconds=seconds), clock=clock)
    assert [len(e.samples) for e in entrants] == [rounds] * 2


@pytest.mark.parametrize("fails", [0, 1, 3])
def test_one_that_fails_leaves_the_others(fails: int) -> None:
    clock = Clock()
    entrants = [Entrant(Worker(clock, "a", 1.0, fails)), Entrant(Worker(clock, "b", 1.0))]
    measure(entrants, Rules(rounds=5, seconds=1e9), clock=clock)
    assert str(entrants[0].failure) == "worn out"
    assert len(entrants[0].samples) == max(0, fails - 1)
    assert entrants[1].failure is None
    assert len(entrants[1].samples) == 5


def test_host_time_has_a_wait_on_both_sides_and_inputs_that_alternate() -> None:
    """What was begun before is not counted, what was begun in time is waited for."""
    clock, pending, seen, inside = Clock(), [5.0], [], [0]

    def run(which: int) -> None:
        seen.append(which)
        pending[0] += 2.0
        assert inside == [1]

    def wait() -> None:
        clock.now += pending[0]
        pending[0] = 0.0

    @contextmanager
    def within() -> Iterator[None]:
        inside[0] += 1
        yield
        inside[0] -= 1

    timed = HostTimed(run, 2, wait, within, clock)
    assert timed.time(3).host == pytest.approx(2.0)
    assert timed.time(2).host == pytest.approx(2.0)
    assert seen == [0, 1, 0, 1, 0]
    assert inside == [0]


def test_the_devices_clock_is_used_only_where_all_have_it() -> None:
    assert seconds_of([]) == (None, "host")
    assert seconds_of([Sample(3.0), Sample(1.0), Sample(9.0)]) == (3.0, "host")
    assert seconds_of([Sample(3.0, 1.0), Sample(4.0, 2.0)]) == (1.5, "device")
    assert seconds_of([Sample(3.0, 1.0), Sample(5.0, None)]) == (4.0, "host")
