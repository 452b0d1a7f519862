"""The table on the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from convdsl.bench import words
from convdsl.bench.record import LayerRecord, Record

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

WIDTH = 150  # where the output is no terminal


def show(console: Console, record: Record) -> None:
    """Who took part, a row for each of them and layer, means, and notes."""
    _participants(console, record)
    if record.layers:
        console.print(_table(record))
        console.print(words.WHAT, markup=False)
    lines = words.means(record)
    if lines:
        console.print("\nas fast as (geometric mean, over how many layers):")
        for line in lines:
            console.print(f"  {line}", markup=False, soft_wrap=True)
    for note in record.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)


def _participants(console: Console, record: Record) -> None:
    groups: dict[str, list[str]] = {}
    for name, facts in record.contestants.items():
        groups.setdefault(words.facts_line(facts), []).append(name)
    for line, names in groups.items():
        console.print(f"{' / '.join(names)}: {line}", markup=False, soft_wrap=True)
    for place, ceilings in record.ceilings.items():
        console.print(f"at most, {place}: {words.ceilings_line(ceilings)}", markup=False)
    console.print()


def _table(record: Record) -> Table:
    from rich.table import Table

    on_device = any(r.clock == "device" for x in record.layers for r in x.rows)
    table = Table(show_edge=False, pad_edge=False)
    table.add_column("layer", overflow="fold")
    table.add_column("who", overflow="fold")
    numbers = ["time, ms", "call, ms"] if on_device else ["time, ms"]
    for name in (*numbers, "GFLOP/s", "vs peer", "of floor", "error", "largest"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("plan", overflow="fold")
    for layer in record.layers:
        _layer(table, layer, record, on_device)
    return table


def _layer(table: Table, layer: LayerRecord, record: Record, on_device: bool) -> None:
    from rich.text import Text

    best, first = layer.best_peer(), layer.name
    for row in layer.rows:
        floor = layer.floor(record.ceilings.get(row.place))
        call = words.milliseconds(row.call if row.clock == "device" else None)
        style = {"wrong": "bold red", "failed": "red", "unfit": "dim"}.get(row.status, "")
        part = f"{floor[0] / row.seconds:.0%}" if floor and row.seconds else "-"
        cells = [
            first, row.name, words.milliseconds(row.seconds), *([call] if on_device else []),
            words.rate(layer, row), words.times(layer.against(row, best)), part,
            words.error(row.error.l2 if row.error else None),
            words.error(row.error.largest if row.error else None),
            words.remark(row),
        ]  # fmt: skip
        bold = "bold" if row.kind == "ours" and not style else style
        table.add_row(*(Text(c, style=bold) for c in cells))
        first = ""
    for place, ceilings in record.ceilings.items():
        floor = layer.floor(ceilings)
        if floor is not None:
            seconds, bound = floor
            speed = f"{layer.flops / seconds / 1e9:.4g}"
            blank = ["-"] if on_device else []
            cells = [
                "", f"floor, {place}", words.milliseconds(seconds), *blank, speed, "-", "100%",
                "-", "-", f"bound by {bound}",
            ]  # fmt: skip
            table.add_row(*(Text(c, style="dim") for c in cells))
    table.add_section()
