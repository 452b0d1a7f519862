"""Peers that tests register: they compute by the definition, and then perhaps spoil it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import convdsl
from convdsl.bench.contestant import Contestant, Facts, Prepared, Settings, Unfit
from convdsl.bench.data import Data
from convdsl.bench.layer import Layer
from convdsl.bench.timing import Sample
from convdsl.diagnostics import CdslError, DeviceError

Array = np.ndarray[Any, np.dtype[Any]]
FACTS = Facts("cpu", "an abacus", {"beads": "1.0"}, 1)


@dataclass
class Fake(Prepared):
    """Takes `seconds` a call, by its own word."""

    results: list[Array]
    seconds: float
    device: float | None = None
    fails: bool = False
    plan = "by hand"

    def time(self, calls: int) -> Sample:
        if self.fails:
            raise RuntimeError("a bead\nfell off")
        return Sample(self.seconds, self.device)

    def result(self, which: int) -> Array:
        return self.results[which]


@dataclass
class FakePeer:
    """One row; `spoil` changes its results."""

    name: str
    seconds: float = 1.0
    spoil: Callable[[Array], Array] = lambda y: y
    precision: Any = "f32"
    unfit: bool = False
    fails: bool = False

    def open(self, settings: Settings) -> list[Contestant]:
        def prepare(layer: Layer, data: Data) -> Prepared:
            if self.unfit:
                raise Unfit("it has no beads for it")
            results = [
                self.spoil(
                    convdsl.evaluate(layer.program, data.all(which), layer.params).astype(
                        np.float32
                    )
                )
                for which in range(len(data.sets))
            ]
            return Fake(results, self.seconds, fails=self.fails)

        return [Contestant(self.name, FACTS, prepare, precision=self.precision)]


class Missing:
    """A peer whose package is not there."""

    def open(self, settings: Settings) -> list[Contestant]:
        raise CdslError("E0901", "`missing` needs the package beads", help="pip install beads")


class NoDevice:
    """A peer whose device is not there."""

    def open(self, settings: Settings) -> list[Contestant]:
        raise DeviceError("there is no abacus", help="buy one")


def right() -> FakePeer:
    return FakePeer("right", 2.0)


def fast() -> FakePeer:
    """The fastest, and wrong."""

    def spoil(y: Array) -> Array:
        y = y.copy()
        y.flat[-1] += 1
        return y

    return FakePeer("fast", 1e-9, spoil)


def rounded() -> FakePeer:
    return FakePeer("rounded", 1e-6, lambda y: (y * 1.0005).astype(np.float32), "tf32")


def unfit() -> FakePeer:
    return FakePeer("unfit", unfit=True)


def breaks() -> FakePeer:
    return FakePeer("breaks", fails=True)


PEERS = {
    name: f"tests.unit.bench_peers:{made}"
    for name, made in {
        "right": "right", "fast": "fast", "rounded": "rounded", "unfit": "unfit",
        "breaks": "breaks", "missing": "Missing", "nodevice": "NoDevice",
    }.items()
}  # fmt: skip
