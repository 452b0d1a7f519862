"""Facts of a machine that the choice of a plan depends on, and where they come from.

The defaults are typical: a core and a memory as many machines have them, and one large GPU. So the same
text comes out everywhere unless a caller says otherwise. All are checked where a record is made.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from math import inf
from typing import Any, Literal

from convdsl.diagnostics import CdslError

Part = Literal["cpu", "gpu"]
PAYS = 10  # times as long as it takes to wake a thread: work that is worth another one


@dataclass(frozen=True, slots=True)
class Origin:
    """Where facts come from: the device, when it was measured, and with which versions.

    `about` is what else is known of the device, `rates` what was measured besides, `typical` the names
    of the facts that were not. Nothing is said of facts that a caller makes up.
    """

    device: str = ""
    measured: str = ""
    versions: tuple[tuple[str, str], ...] = ()
    about: tuple[tuple[str, str | int], ...] = ()
    rates: tuple[tuple[str, float], ...] = ()
    typical: tuple[str, ...] = ()


_NONE = Origin()


def _fact(default: float, least: float, most: float, unit: str = "") -> Any:
    """A number with its bounds and unit; an integer where the default is one."""
    return field(default=default, metadata={"least": least, "most": most, "unit": unit})


def _count(default: int, most: int) -> Any:
    return _fact(default, 1, most)


def _bytes(default: int) -> Any:
    return _fact(default, 1, 2**40, "B")


def _rate(default: float, unit: str) -> Any:
    return _fact(default, 1.0, 1e30, unit)


def _seconds(default: float) -> Any:
    return _fact(default, 0.0, 1e3, "s")


def _factor(default: float, most: float = 10.0) -> Any:
    """Of the rate of something else."""
    return _fact(default, 0.01, most)


def _check(facts: Cpu | Gpu) -> None:
    """Whether each fact is a number within its bounds."""
    for f in fields(facts):
        if f.name == "origin":
            continue
        value, whole = getattr(facts, f.name), isinstance(f.default, int)
        least, most = f.metadata["least"], f.metadata["most"]
        kinds = (int,) if whole else (int, float)
        if type(value) not in kinds or not least <= value <= most:
            what, shown = "an integer" if whole else "a number", _shown(value)
            raise CdslError(
                "E0912",
                f"the fact `{f.name}` of a {type(facts).__name__.upper()} is {shown}",
                notes=(f"it is {what} from {least:g} to {most:g}; a typical one is {f.default:g}",),
                help="measure again with `convdsl devices --measure`, or put the number right",
            )


def _shown(value: object) -> str:
    """A value in few characters; Python writes out no integer of thousands of digits."""
    if isinstance(value, int) and value.bit_length() > 10000:
        return f"an integer of {value.bit_length()} bits"
    return repr(value)[:40]


def _name(facts: Cpu | Gpu, what: str) -> str:
    """The device, or where else the facts are from."""
    return facts.origin.device or f"{'typical' if facts == type(facts)() else 'given'} {what}"


@dataclass(frozen=True, slots=True)
class Cpu:
    """A CPU under NumPy: `flops` a second of a core, seconds an element or a call, bytes of caches.

    A product with a side of `half` has half the rate. An element of a pass over arrays in the caches
    takes `copy`, of an addition in memory `add`. Of a product with a small matrix it takes `transform`
    from windows of data, `store` to results, and `scattered` where those that are neighbours are none in
    memory. `near` bytes stay in the caches of a core, `far` in those of all. `call` is what NumPy takes
    for nothing, `wake` a thread.
    """

    threads: int = _count(2, 1024)
    flops: float = _rate(130e9, "FLOP/s")
    half: int = _count(8, 4096)
    copy: float = _seconds(0.14e-9)
    add: float = _seconds(0.4e-9)
    transform: float = _seconds(1.4e-9)
    store: float = _seconds(0.8e-9)
    scattered: float = _seconds(8e-9)
    near: int = _bytes(3 * 2**20)
    far: int = _bytes(16 * 2**20)
    call: float = _seconds(0.57e-6)
    wake: float = _seconds(14e-6)
    origin: Origin = _NONE

    def __post_init__(self) -> None:
        _check(self)

    @property
    def worth(self) -> float:
        """Seconds of work that are worth another thread."""
        return PAYS * self.wake

    def workers(self, seconds: float) -> int:
        """How many threads so much work is worth; 0 is work that nobody knows."""
        if not seconds:
            return 1
        times = seconds / self.worth if self.worth else inf
        return self.threads if times >= self.threads else 1 + int(times)

    @property
    def name(self) -> str:
        return _name(self, "CPU")

    def __str__(self) -> str:
        return f"{quantity(self.flops)}FLOP/s a core ({self.name})"


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU: `flops` a second of products in float32 at the best tile, `bandwidth` in bytes a second.

    Seconds a `launch`; a unit is `busy` with so many threads, and one with few still reaches the part
    `single`; `full` threads keep all units busy where each waits for memory. `tested` is the part of the
    rate that reads with tests have, `ahead` and `ahead_wide` what reading ahead gains, `windows` what
    reading windows does.
    """

    units: int = _count(132, 65536)
    flops: float = _rate(41e12, "FLOP/s")
    bandwidth: float = _rate(2.6e12, "B/s")
    launch: float = _seconds(2e-6)
    busy: int = _count(256, 65536)
    single: float = _factor(0.3, 1.0)
    full: int = _count(2**17, 2**30)
    tested: float = _factor(0.8)
    ahead: float = _factor(1.02)
    ahead_wide: float = _factor(1.14)
    windows: float = _factor(1.07)
    origin: Origin = _NONE

    def __post_init__(self) -> None:
        _check(self)

    @property
    def name(self) -> str:
        return _name(self, "GPU")

    def __str__(self) -> str:
        rates = f"{quantity(self.flops)}FLOP/s and {quantity(self.bandwidth)}B/s"
        return f"{rates} ({self.name})"


TYPICAL_CPU, TYPICAL_GPU = Cpu(), Gpu()


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts of a machine; typical ones of what nobody has measured."""

    cpu: Cpu = TYPICAL_CPU
    gpu: Gpu = TYPICAL_GPU


TYPICAL = Machine()


def numbers(facts: Cpu | Gpu) -> dict[str, float]:
    """The facts by name."""
    return {f.name: getattr(facts, f.name) for f in fields(facts) if f.name != "origin"}


def names(kind: type[Cpu] | type[Gpu]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind) if f.name != "origin")


def units(facts: Cpu | Gpu) -> tuple[str, ...]:
    """The unit of each fact, in the order of `numbers`; "" for a count or a factor."""
    return tuple(f.metadata["unit"] for f in fields(facts) if f.name != "origin")


def quantity(value: float) -> str:
    """Two digits and a prefix: `41 T`, `0.12 M`."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= size * 0.995 or prefix == "M":
            scaled = value / size
            return f"{scaled:.0f} {prefix}" if scaled >= 9.95 else f"{scaled:.2g} {prefix}"
    raise AssertionError
