"""The pictures of the page: the roofline, and bars of times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, floor, log10

from convdsl.bench import words
from convdsl.bench.contestant import Ceilings, Place
from convdsl.bench.record import LayerRecord, Row
from convdsl.cli.plan_text import quantity
from convdsl.report.drawing import Box, drawing, label, line, rect, turned
from convdsl.report.markup import Child, Markup, tag

WIDTH, HEIGHT = 640.0, 400.0
FRAME = Box(62, 14, 562, 340)
BAR, GAP, NAMES, BARS = 17.0, 5.0, 170.0, 330.0


@dataclass(frozen=True, slots=True)
class _Log:
    """A logarithmic axis between two powers of ten."""

    low: int
    high: int

    def at(self, value: float) -> float:
        """Where a value stands, from 0 to 1."""
        place = (log10(value) - self.low) / (self.high - self.low)
        return min(1.0, max(0.0, place))

    @property
    def marks(self) -> list[float]:
        return [10.0**n for n in range(self.low, self.high + 1)]


def _axis(values: Sequence[float]) -> _Log:
    low = floor(log10(min(values)))
    return _Log(low, max(low + 1, ceil(log10(max(values)))))


def roofline(place: Place, ceilings: Ceilings, layers: Sequence[LayerRecord]) -> Markup | None:
    """Nominal rates over operations a byte, below what the machine can do; None without points."""
    points = [
        (number, layer, row, layer.flops / layer.bytes, layer.flops / row.seconds)
        for number, layer in enumerate(layers, 1)
        for row in _shown(layer, place)
        if row.seconds and layer.flops and layer.bytes
    ]
    if not points:
        return None
    ridge = ceilings.flops / ceilings.bytes
    x = _axis([ridge, *(p[3] for p in points)])
    y = _axis([ceilings.flops, *(p[4] for p in points)])

    def spot(intensity: float, speed: float) -> tuple[float, float]:
        left = FRAME.x + x.at(intensity) * FRAME.width
        return left, FRAME.y + (1 - y.at(speed)) * FRAME.height

    children: list[Child] = [rect(FRAME, "matrix"), *_grid(x, y)]
    first = max(10.0**x.low, 10.0**y.low / ceilings.bytes)
    roof = [spot(first, first * ceilings.bytes), spot(ridge, ceilings.flops)]
    roof.append(spot(10.0**x.high, ceilings.flops))
    for (x1, y1), (x2, y2) in pairwise(roof):
        children.append(line(x1, y1, x2, y2, "roof"))
    # Ours last, on top of the others.
    for number, layer, row, intensity, speed in sorted(points, key=lambda p: p[2].kind == "ours"):
        left, top = spot(intensity, speed)
        mine = row.kind == "ours"
        said = f"{layer.name}, {row.name}: {quantity(speed, 1000)}flop/s"
        children.append(
            tag("circle", tag("title", said), cx=left, cy=top, r=4.5 if mine else 3.5,
                class_="mine" if mine else "other")
        )  # fmt: skip
        if mine:
            children.append(label(left + 6, top + 4, str(number), kind="small"))
    return drawing(
        WIDTH, HEIGHT, f"Roofline of the {place}: rates over operations a byte", *children
    )


def _shown(layer: LayerRecord, place: Place) -> list[Row]:
    """What is right and was timed there; of peers the best."""
    rows = [r for r in layer.rows if r.ranked and r.place == place]
    peers = [r for r in rows if r.kind == "peer" and r.precision == "f32"]
    best = min(peers, key=lambda r: r.seconds or 0.0, default=None)
    return [r for r in rows if r.kind == "ours" or r is best]


def _grid(x: _Log, y: _Log) -> list[Markup]:
    out: list[Markup] = []
    bottom = FRAME.y + FRAME.height
    for value in x.marks:
        at = FRAME.x + x.at(value) * FRAME.width
        out += [
            line(at, FRAME.y, at, bottom, "fine"),
            label(at, bottom + 16, f"{value:g}", "middle"),
        ]
    for value in y.marks:
        at = FRAME.y + (1 - y.at(value)) * FRAME.height
        out.append(line(FRAME.x, at, FRAME.x + FRAME.width, at, "fine"))
        out.append(label(FRAME.x - 5, at + 4, quantity(value, 1000), "end"))
    out.append(label(FRAME.x + FRAME.width / 2, HEIGHT - 8, "operations a byte", "middle"))
    return [*out, turned(12, FRAME.y + FRAME.height / 2, "operations a second, nominal")]


def bars(layer: LayerRecord, ceilings: dict[Place, Ceilings]) -> Markup:
    """Times of all who have one, shorter is faster, with the floor of each place as a line."""
    timed = [r for r in layer.rows if r.seconds]
    longest = max((r.seconds or 0.0 for r in timed), default=1.0)
    best = layer.best_peer()
    children: list[Child] = []
    for number, row in enumerate(timed):
        top, seconds = number * (BAR + GAP), row.seconds or 0.0
        kind = "wrong" if row.status == "wrong" else _KINDS[row.kind]
        box = Box(NAMES, top, max(1.0, BARS * seconds / longest), BAR)
        children += [label(NAMES - 6, top + 13, row.name, "end"), rect(box, kind)]
        found = layer.floor(ceilings.get(row.place))
        if found is not None and found[0] <= longest:
            at = NAMES + BARS * found[0] / longest
            children.append(line(at, top - 1, at, top + BAR + 1, "floor"))
        ratio = layer.against(row, best)
        said = f"{words.milliseconds(seconds)} ms"
        if row.status == "wrong":
            said += ", wrong"
        elif ratio is not None and row is not best:
            said += f", {words.times(ratio)}"
        children.append(label(NAMES + box.width + 6, top + 13, said))
    height = max(1.0, len(timed) * (BAR + GAP))
    return drawing(NAMES + BARS + 110, height, f"Times of {layer.name}", *children)


_KINDS = {"ours": "mine", "peer": "staged", "floor": "band"}
