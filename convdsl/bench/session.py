"""A run: who takes part, then layer by layer prepare, compare with float64, and time in turn."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from convdsl.arguments import Array
from convdsl.bench.contestant import Contestant, Prepared, Settings, Unfit
from convdsl.bench.data import Data, make_data
from convdsl.bench.error import Error, errors_of, worst
from convdsl.bench.layer import Layer
from convdsl.bench.ours import nominal, ours
from convdsl.bench.peers import peer
from convdsl.bench.record import LayerRecord, Record, Row
from convdsl.bench.timing import Entrant, Rules, measure
from convdsl.diagnostics import CdslError, DeviceError, InternalError


class Progress(Protocol):
    """Where it is said what goes on."""

    def layer(self, name: str, number: int, count: int) -> None:
        """A layer begins."""

    def step(self, text: str) -> None:
        """Something that may take a while begins."""


@dataclass(slots=True)
class Session:
    """One run of the benchmark. `record` can be shown at any moment.

    `errors` are failures of convdsl itself, by the name of the layer: they decide the exit code.
    """

    record: Record
    rules: Rules
    progress: Progress
    contestants: list[Contestant] = field(default_factory=list)
    errors: list[tuple[str, Exception]] = field(default_factory=list)

    def enter(
        self,
        settings: Settings,
        peers: Sequence[str],
        schedule: Path | None = None,
        plans: bool = False,
    ) -> None:
        """Open all who take part.

        A peer that cannot take part is noted, unless none of those asked for can.

        Raises:
            CdslError, DeviceError: for a target, and for the first peer when none can take part.
        """
        for target in settings.targets:
            self.progress.step(f"opening {target}")
            self.contestants += ours(target, settings, schedule, plans)
        refused: list[Exception] = []
        for name in peers:
            self.progress.step(f"opening {name}")
            try:
                self.contestants += peer(name).open(settings)
            except (CdslError, DeviceError) as error:
                refused.append(error)
                self.record.notes.append(f"{name} is left out: {_said(error)}")
        if refused and len(refused) == len(peers):
            raise refused[0]
        self.record.contestants = {c.name: c.facts for c in self.contestants}

    def measure_ceilings(self) -> None:
        """What each place can do at most: the best that any contestant there measures."""
        for contestant in self.contestants:
            if contestant.ceilings is None:
                continue
            self.progress.step(f"measuring the machine by {contestant.name}")
            place = contestant.facts.place
            try:
                found = contestant.ceilings()
            except (CdslError, DeviceError) as error:
                self.record.notes.append(f"{contestant.name}: no ceilings: {_said(error)}")
                continue
            best = self.record.ceilings.get(place, found)
            self.record.ceilings[place] = type(found)(
                max(found.flops, best.flops), max(found.bytes, best.bytes)
            )

    def run(self, layers: Sequence[Layer]) -> None:
        """Measure layers; one that fails does not end the others."""
        for number, layer in enumerate(layers):
            self.progress.layer(layer.name, number + 1, len(layers))
            try:
                self._layer(layer)
            except Exception as error:
                self.errors.append((layer.name, error))
                self.record.notes.append(f"{layer.name} failed: {_said(error)}")
            gc.collect()  # arrays on devices go before those of the next layer come

    def _layer(self, layer: Layer) -> None:
        record = LayerRecord(
            layer.name, layer.source, layer.op.name, dict(layer.sizes), dict(layer.params)
        )
        self.progress.step("making the data")
        data = make_data(layer)
        record.flops, record.bytes = nominal(layer)
        self.record.layers.append(record)
        ready: list[tuple[Row, Prepared]] = []
        results: list[dict[str, Array]] = [{} for _ in data.sets]
        for contestant in self.contestants:
            prepared = self._prepare(layer, data, contestant, record, results)
            if prepared is not None:
                ready.append((record.rows[-1], prepared))
        self._compare(layer, data, record, ready, results)
        results.clear()
        entrants = [Entrant(prepared) for _, prepared in ready]
        for (row, _), entrant in zip(ready, entrants, strict=True):
            row.samples = entrant.samples  # seen while it grows
        self.progress.step("timing")
        measure(entrants, self.rules, lambda n: self.progress.step(f"timing, round {n} is done"))
        for (row, _), entrant in zip(ready, entrants, strict=True):
            row.calls = entrant.calls
            if entrant.failure is not None:
                self._fail(layer, row, entrant.failure)

    def _prepare(
        self,
        layer: Layer,
        data: Data,
        contestant: Contestant,
        record: LayerRecord,
        results: list[dict[str, Array]],
    ) -> Prepared | None:
        """Its row, and its first runs, which are never timed."""
        self.progress.step(f"preparing {contestant.name}")
        row = Row(contestant.name, contestant.kind, contestant.facts.place, contestant.precision)
        record.rows.append(row)
        try:
            prepared = contestant.prepare(layer, data)
            row.plan, row.schedule = prepared.plan, prepared.schedule
            own = prepared.own_error()
            if own is not None:
                self._judge(layer, row, own, "f32")
                return prepared
            for which, found in enumerate(results):
                found[row.name] = prepared.result(which)
        except Unfit as reason:
            row.status, row.note = "unfit", str(reason)
            if contestant.kind == "ours":
                record.rows.remove(row)
            return None
        except Exception as error:
            self._fail(layer, row, error)
            for found in results:
                found.pop(row.name, None)
            return None
        return prepared

    def _compare(
        self,
        layer: Layer,
        data: Data,
        record: LayerRecord,
        ready: list[tuple[Row, Prepared]],
        results: list[dict[str, Array]],
    ) -> None:
        self.progress.step("comparing with float64")
        errors: dict[str, list[Error]] = {}
        for which, found in enumerate(results):
            for name, error in errors_of(layer, data.all(which), record.flops, found).items():
                errors.setdefault(name, []).append(error)
        dtype = layer.op.output.dtype
        for row, _ in ready:
            if row.name in errors:
                kind = row.precision if dtype == "f32" else dtype
                self._judge(layer, row, worst(errors[row.name]), kind)

    def _judge(self, layer: Layer, row: Row, error: Error, kind: str) -> None:
        row.error = error
        row.status = "right" if error.within(kind) else "wrong"
        if row.status == "wrong" and row.kind != "peer":
            said = f"{row.name} is wrong on {layer.name}: relative L2 error {error.l2:.3g}"
            self.errors.append((layer.name, InternalError(said)))

    def _fail(self, layer: Layer, row: Row, error: Exception) -> None:
        """A row without a time. Ours are failures of the run too."""
        row.status, row.note = "failed", _said(error)
        row.samples = []
        if row.kind == "ours":
            self.errors.append((layer.name, error))


def _said(error: Exception) -> str:
    """An error in one line, with its remedy."""
    match error:
        case CdslError() | DeviceError():
            text = error.message + (f" ({error.help})" if error.help else "")
        case InternalError():
            text = error.message
        case _:
            text = f"{type(error).__name__}: {error}"
    lines = [line.strip() for line in text.strip().splitlines()]
    return " ".join(lines)[:500]
