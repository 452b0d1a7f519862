"""Who takes part: convdsl's own targets, peers, and the floor; and the door for further peers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Literal, Protocol

from convdsl.arguments import Array
from convdsl.bench.data import Data
from convdsl.bench.error import Error
from convdsl.bench.layer import Layer
from convdsl.bench.timing import HostTimed, Sample
from convdsl.budget import CAP
from convdsl.machine.facts import TYPICAL, Machine

Place = Literal["cpu", "gpu"]
Kind = Literal["ours", "peer", "floor"]


@dataclass(frozen=True, slots=True)
class Facts:
    """What a contestant runs on. `threads` are None where it is a GPU, or not known."""

    place: Place
    device: str
    versions: Mapping[str, str]
    threads: int | None = None
    software: bool = False


@dataclass(frozen=True, slots=True)
class Settings:
    """What all take part under; `threads` None leaves each library its own default."""

    targets: tuple[str, ...] = ("numpy",)
    threads: int | None = None
    accuracy: str = "standard"
    limits: str = "webgpu"
    cap: int = CAP
    machine: Machine = TYPICAL


@dataclass(frozen=True, slots=True)
class Ceilings:
    """What a machine can do at most, as measured: operations and bytes a second."""

    flops: float
    bytes: float


class Unfit(Exception):
    """A contestant has no such layer; the message says why."""


class Prepared(ABC):
    """A contestant with a layer's data in place, ready to be called."""

    plan: str = ""
    schedule: str | None = None

    @abstractmethod
    def time(self, calls: int) -> Sample:
        """See `convdsl.bench.timing.Timed`; calls take the sets of inputs in turn."""

    @abstractmethod
    def result(self, which: int) -> Array:
        """A new array with the result for one set of inputs."""

    def own_error(self) -> Error | None:
        """The error, of those who compute something else than the layer."""
        return None


class Calls(Prepared):
    """Calls that the host's clock times; `fetch` is the result of one, the rest as in `HostTimed`."""

    def __init__(
        self,
        run: Callable[[int], object],
        fetch: Callable[[int], Array],
        sets: int,
        wait: Callable[[], object] = lambda: None,
        plan: str = "",
        within: Callable[[], AbstractContextManager[object]] = nullcontext,
    ) -> None:
        self.plan, self._fetch, self._within = plan, fetch, within
        self._timed = HostTimed(run, sets, wait, within)

    def time(self, calls: int) -> Sample:
        return self._timed.time(calls)

    def result(self, which: int) -> Array:
        with self._within():
            return self._fetch(which)


@dataclass(frozen=True, slots=True)
class Contestant:
    """One row of the table. `precision` is f32, or tf32 for one that rounds its operands more."""

    name: str
    facts: Facts
    prepare: Callable[[Layer, Data], Prepared] = field(repr=False)
    kind: Kind = "peer"
    precision: Literal["f32", "tf32"] = "f32"
    ceilings: Callable[[], Ceilings] | None = field(default=None, repr=False)


class Peer(Protocol):
    """A library that may take part; the module is imported when it is asked for."""

    def open(self, settings: Settings) -> list[Contestant]:
        """Its rows.

        Raises:
            CdslError: E0901 when a package is missing.
            DeviceError: when the machine lacks what it runs on.
        """
