"""What was measured, as values; `to_json` is the format of `--json`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from math import exp, log
from statistics import median
from typing import Any, Literal

from convdsl.bench.contestant import Ceilings, Facts, Kind, Place
from convdsl.bench.error import Error
from convdsl.bench.timing import Sample, seconds_of

FORMAT = 1
Status = Literal["right", "wrong", "unfit", "failed", "untimed"]


@dataclass(slots=True)
class Row:
    """One contestant on one layer; `note` says why where there is no time."""

    name: str
    kind: Kind
    place: Place
    precision: str
    status: Status = "untimed"
    note: str = ""
    plan: str = ""
    schedule: str | None = None
    calls: int = 0
    samples: list[Sample] = field(default_factory=list)
    error: Error | None = None

    @property
    def seconds(self) -> float | None:
        """Of a call; the median over rounds, by the device's clock where there is one."""
        return seconds_of(self.samples)[0]

    @property
    def call(self) -> float | None:
        """Of a call as the host sees it; the median over rounds."""
        return median(s.host for s in self.samples) if self.samples else None

    @property
    def clock(self) -> str:
        return seconds_of(self.samples)[1]

    @property
    def ranked(self) -> bool:
        return self.status == "right" and bool(self.samples)

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name, "kind": self.kind, "place": self.place,
            "precision": self.precision, "status": self.status, "note": self.note,
            "plan": self.plan, "schedule": self.schedule, "seconds": self.seconds,
            "clock": self.clock if self.samples else None, "calls": self.calls,
            "samples": [asdict(s) for s in self.samples],
            "error": None if self.error is None else self.error.to_json(),
        }  # fmt: skip


@dataclass(slots=True)
class LayerRecord:
    """One layer with its rows."""

    name: str
    source: str
    op: str
    sizes: Mapping[str, int]
    params: Mapping[str, int | float]
    flops: int = 0
    bytes: int = 0
    rows: list[Row] = field(default_factory=list)

    def best_peer(self) -> Row | None:
        """The fastest peer that is right, in full precision."""
        fit = [r for r in self.rows if r.kind == "peer" and r.precision == "f32" and r.ranked]
        return min(fit, key=lambda r: r.seconds or 0.0, default=None)

    def against(self, row: Row, other: Row | None) -> float | None:
        """How many times as fast as another row this one is."""
        if other is None or not row.ranked or not row.seconds or not other.seconds:
            return None
        return other.seconds / row.seconds

    def floor(self, ceilings: Ceilings | None) -> tuple[float, str] | None:
        """The seconds that the machine needs at least, and what bounds it."""
        if ceilings is None or not (self.flops or self.bytes):
            return None
        compute, memory = self.flops / ceilings.flops, self.bytes / ceilings.bytes
        return (compute, "compute") if compute > memory else (memory, "memory")


@dataclass(slots=True)
class Record:
    """A whole run."""

    command: str
    convdsl: str
    python: str
    system: str
    accuracy: str
    threads: int | None
    contestants: dict[str, Facts] = field(default_factory=dict)
    ceilings: dict[Place, Ceilings] = field(default_factory=dict)
    layers: list[LayerRecord] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def ratios(self, row: str) -> dict[str, tuple[float, int]]:
        """How many times as fast as others a row is: geometric means, and over how many layers.

        `best peer` is the fastest of each layer.
        """
        found: dict[str, list[float]] = {}
        for layer in self.layers:
            mine = next((r for r in layer.rows if r.name == row), None)
            if mine is None:
                continue
            others = {r.name: r for r in layer.rows if r.kind != "ours" and r.ranked}
            pairs = [("best peer", layer.best_peer()), *others.items()]
            for name, other in pairs:
                ratio = layer.against(mine, other)
                if ratio is not None:
                    found.setdefault(name, []).append(ratio)
        return {name: (geometric(values), len(values)) for name, values in found.items()}

    def ours(self) -> list[str]:
        """The rows of convdsl, in order."""
        return list(dict.fromkeys(r.name for x in self.layers for r in x.rows if r.kind == "ours"))

    def to_json(self) -> dict[str, Any]:
        names = ("command", "convdsl", "python", "system", "accuracy", "threads")
        return {
            "format": FORMAT,
            **{n: getattr(self, n) for n in names},
            "contestants": {
                n: asdict(f) | {"versions": dict(f.versions)} for n, f in self.contestants.items()
            },
            "ceilings": {place: asdict(c) for place, c in self.ceilings.items()},
            "layers": [_layer(x, self.ceilings) for x in self.layers],
            "means": {
                row: {n: {"ratio": r, "layers": k} for n, (r, k) in self.ratios(row).items()}
                for row in self.ours()
            },
            "notes": list(self.notes),
        }


def _layer(layer: LayerRecord, ceilings: Mapping[Place, Ceilings]) -> dict[str, Any]:
    best = layer.best_peer()
    floors = {p: f for p, c in ceilings.items() if (f := layer.floor(c)) is not None}
    return {
        "name": layer.name, "source": layer.source, "op": layer.op,
        "sizes": dict(layer.sizes), "params": dict(layer.params),
        "flops": layer.flops, "bytes": layer.bytes,
        "floors": {p: {"seconds": s, "bound": b} for p, (s, b) in floors.items()},
        "best_peer": None if best is None else best.name,
        "rows": [r.to_json() | {"ratio": layer.against(r, best)} for r in layer.rows],
    }  # fmt: skip


def geometric(values: Iterable[float]) -> float:
    """The geometric mean of positive numbers."""
    logs = [log(v) for v in values]
    return exp(sum(logs) / len(logs))
