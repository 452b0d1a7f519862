"""What a target is: a class that makes an executable from a system of equations.

A backend is registered under the entry point group `convdsl.backends`; those that ship use the same
door. `compile` is called once for each combination of known sizes and absent inputs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from convdsl.budget import CAP
from convdsl.diagnostics import InternalError
from convdsl.ir.equation import System
from convdsl.lowering.pipeline import Trace
from convdsl.machine.facts import TYPICAL, Machine, Part
from convdsl.passes.plan import Algorithm
from convdsl.schedule.schedule import Schedule

Array = npt.NDArray[Any]
NUMPY_TYPES: dict[str, np.dtype[Any]] = {
    "f32": np.dtype(np.float32), "f16": np.dtype(np.float16), "i32": np.dtype(np.int32),
}  # fmt: skip


PROFILES = ("webgpu", "adapter", "software")
"""What WGSL may use: what any browser has, what the adapter here has, or what suits a CPU."""


@dataclass(frozen=True, slots=True)
class Request:
    """What to compile: a system with its parameters (and perhaps sizes) as numbers.

    `limits` is a profile name; `algorithm` forces one where it is possible (None: choose). `cap` is how
    many bytes of temporaries a plan should keep to, where a target can. `machine` is what a plan
    is chosen for.
    """

    system: System
    accuracy: str = "standard"
    limits: str = "webgpu"
    algorithm: Algorithm | None = None
    schedule: Schedule | None = None
    cap: int = CAP
    machine: Machine = TYPICAL


@dataclass(frozen=True, slots=True, repr=False)
class Plan:
    """What a compiled kernel does, and why.

    `temporary_bytes`, `flops` (counting a multiply-add as two), `bytes_moved` (inputs and output once)
    and `dispatches` are None while sizes are unknown. `tiles` is empty where nothing is tiled. `folds`
    are intermediate results that depend on some inputs alone: once these are bound, they are kept.
    `machine` is the device for which it was chosen, and its rates.
    """

    algorithm: str
    reason: str
    tiles: str
    temporary_bytes: int | None
    flops: int | None
    bytes_moved: int | None
    dispatches: int | None
    equations: Mapping[str, str] = field(default_factory=dict)
    folds: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    machine: str = ""

    def __repr__(self) -> str:
        """What runs; `str` says why."""
        tiles = f" ({self.tiles})" if self.tiles else ""
        flops = "" if self.flops is None else f", {self.flops:,} flops"
        return f"<plan {self.algorithm}{tiles}{flops}>"

    def __str__(self) -> str:
        """One line: the algorithm, its tiles, why, and what it needs."""
        tiles = f" ({self.tiles})" if self.tiles else ""
        costs = [
            f"{value:,} {what}"
            for what, value in (
                ("flops", self.flops),
                ("bytes moved", self.bytes_moved),
                ("bytes of temporaries", self.temporary_bytes),
                ("dispatches", self.dispatches),
            )
            if value is not None
        ]
        return "; ".join([f"{self.algorithm}{tiles}: {self.reason}", *costs])

    def to_json(self) -> dict[str, object]:
        names = (
            "algorithm",
            "reason",
            "tiles",
            "temporary_bytes",
            "flops",
            "bytes_moved",
            "dispatches",
            "machine",
        )
        return {n: getattr(self, n) for n in names} | {
            "equations": dict(self.equations),
            "folds": {name: list(inputs) for name, inputs in self.folds.items()},
        }


class Fold(Protocol):
    """A part of an executable that depends on some inputs, and on the numbers of some sizes, alone.

    `results` are names that no input has. Where two executables have a fold of the same `key`, the
    results of one serve the other.
    """

    @property
    def inputs(self) -> frozenset[str]: ...
    @property
    def sizes(self) -> frozenset[str]: ...
    @property
    def results(self) -> tuple[str, ...]: ...
    @property
    def key(self) -> str: ...


class Executable(ABC):
    """A compiled variant: text, plan, and a way to run it.

    `folds` come in an order in which they can be run.
    """

    plan: Plan
    source: str
    trace: Trace
    schedule: str | None = None
    folds: Sequence[Fold] = ()

    @abstractmethod
    def files(self) -> dict[str, str]:
        """The generated files by name, the manifest excluded."""

    @abstractmethod
    def manifest(self) -> dict[str, object]:
        """JSON-able facts that a runner of the files needs."""

    @abstractmethod
    def run(self, arrays: Mapping[str, Any], sizes: Mapping[str, int], out: Array | None) -> Array:
        """Run on checked arrays (and what `prepare` returned), into `out` when it is given.

        A fold whose results are among `arrays` is not run.
        """

    def ready(
        self, names: Sequence[str], constants: Mapping[str, Any]
    ) -> Callable[[Sequence[Array], Array | None], Array] | None:
        """`run` for checked arrays in the order of `names`, beside what calls have in common.

        None where every call has to go through `run`.
        """
        return None

    def prepare(self, name: str, array: Array) -> Any:
        """A bound constant in the form that `run` of every variant of the kernel takes it."""
        return array

    def fold(
        self, number: int, arrays: Mapping[str, Any], sizes: Mapping[str, int]
    ) -> Mapping[str, Any]:
        """Run one of `folds`: its results by name. `arrays` has its inputs, and earlier results."""
        raise InternalError(f"{type(self).__name__} has no folds")

    def usable(self, prepared: Mapping[str, Any]) -> bool:
        """Whether what `prepare` made is still there (a device may have been lost since)."""
        return True


class Backend(ABC):
    """A target of the compiler. It runs on one `part` of a machine."""

    name: str
    part: Part = "cpu"

    @abstractmethod
    def compile(self, request: Request) -> Executable:
        """Lower and emit; CdslError where the program cannot be had within the limits."""
