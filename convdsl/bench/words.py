"""Numbers and devices in words, the same in the table and on the page."""

from __future__ import annotations

from convdsl.bench.contestant import Ceilings, Facts
from convdsl.bench.record import LayerRecord, Record, Row
from convdsl.cli.plan_text import quantity

WHAT = (
    "time: the median over rounds of back-to-back calls; by the device's clock for GPUs, where "
    "call is what the host sees\n"
    "GFLOP/s: nominal, two operations a term of the definition whatever the plan saves\n"
    "vs peer: how many times as fast as the fastest right float32 peer; of floor: the floor is\n"
    "         max(operations / rate of a large product, bytes / rate of a copy), as measured here\n"
    "error: relative L2 against float64; largest: largest difference over the root mean square"
)


def milliseconds(value: float | None) -> str:
    """In ms, three digits or more."""
    if value is None:
        return "-"
    ms = value * 1e3
    return f"{ms:.0f}" if ms >= 1000 else f"{ms:.3g}" if ms >= 0.001 else f"{ms:.1e}"


def rate(layer: LayerRecord, row: Row) -> str:
    """Nominal GFLOP/s."""
    seconds = row.seconds
    return f"{layer.flops / seconds / 1e9:.4g}" if seconds and layer.flops else "-"


def times(value: float | None) -> str:
    """How many times as fast."""
    return "-" if value is None else f"{value:.3g}x"


def error(value: float | None) -> str:
    return "-" if value is None else f"{value:.1e}"


def remark(row: Row) -> str:
    """The plan, or why there is no time or no rank."""
    match row.status:
        case "wrong":
            return f"WRONG, not ranked{': ' + row.plan if row.plan else ''}"
        case "unfit":
            return f"not run: {row.note}"
        case "failed":
            return f"FAILED: {row.note}"
        case _:
            return row.plan


def layer_line(layer: LayerRecord) -> str:
    """Its numbers in one line."""
    shown = {**layer.params, **layer.sizes}
    numbers = ", ".join(f"{n}={v:g}" for n, v in shown.items())
    work = f"{quantity(layer.flops, 1000)}flop, {quantity(layer.bytes, 1024)}B"
    return f"{layer.op}: {numbers}; {work}"


def facts_line(facts: Facts) -> str:
    """Device, threads and versions."""
    parts = [facts.device + (" (software)" if facts.software else "")]
    if facts.threads is not None:
        parts.append(f"{facts.threads} thread{'' if facts.threads == 1 else 's'}")
    parts.append(", ".join(f"{n} {v}" for n, v in facts.versions.items()))
    return "; ".join(parts)


def ceilings_line(ceilings: Ceilings) -> str:
    return f"{quantity(ceilings.flops, 1000)}flop/s, {quantity(ceilings.bytes, 1000)}B/s"


def means(record: Record) -> list[str]:
    """The geometric means, a line for each row of convdsl."""
    lines = []
    for row in record.ours():
        ratios = record.ratios(row)
        said = [f"{times(r)} {name} ({count})" for name, (r, count) in ratios.items()]
        if said:
            lines.append(f"{row}: {', '.join(said)}")
    return lines
