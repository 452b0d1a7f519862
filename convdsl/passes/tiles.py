"""Tile sizes of a matrix product on a GPU, from the sizes of the product and the target's limits.

The time of each legal tiling is estimated from whole rounds of workgroups. The typical facts of a GPU
and the rates of tiles are fitted to 156 measured tilings of four layers on one large GPU, where the
tiling that was chosen took at most 1.14 of the time of the best one; smaller GPUs rank them alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from convdsl.ir.equation import Piece
from convdsl.ir.index import const
from convdsl.machine.facts import Gpu
from convdsl.passes.contraction import Contraction

Reads = Literal["tested", "plain", "padded", "windows"]
"""How operands are read: with tests; as they are; made here, so without rests of tiles; in windows."""


@dataclass(frozen=True, slots=True)
class WorkgroupLimits:
    """What a workgroup may use, invocations and bytes of memory, and the bytes of a buffer.

    On a `software` adapter that memory is no faster than any other.
    """

    threads: int
    bytes: int
    buffer: int = 2**27
    software: bool = False


@dataclass(frozen=True, slots=True)
class Tiles:
    """A workgroup makes `m` x `n` results, `k` terms a step; a thread makes `rows` x `columns`."""

    m: int
    n: int
    k: int
    rows: int
    columns: int

    @property
    def threads(self) -> int:
        return (self.m // self.rows) * (self.n // self.columns)

    @property
    def workgroup_bytes(self) -> int:
        return 4 * self.k * (self.m + self.n)

    def __str__(self) -> str:
        return f"{self.m}x{self.n}x{self.k}, {self.rows}x{self.columns} a thread"


# Rate relative to the best, as far as it depends on the tile alone: results a thread keeps in
# registers pay for the reads of workgroup memory, and few threads hide little latency.
CANDIDATES: tuple[tuple[Tiles, float], ...] = (
    (Tiles(64, 128, 16, 8, 8), 1.0),
    (Tiles(128, 128, 16, 8, 8), 0.92),
    (Tiles(128, 64, 16, 8, 8), 0.9),
    (Tiles(64, 64, 16, 8, 8), 0.83),
    (Tiles(64, 64, 16, 4, 4), 0.61),
    (Tiles(32, 64, 16, 4, 4), 0.61),
    (Tiles(64, 32, 16, 4, 4), 0.58),
    (Tiles(32, 32, 16, 4, 4), 0.56),
    (Tiles(16, 64, 16, 4, 4), 0.42),
    (Tiles(64, 16, 16, 4, 4), 0.4),
    (Tiles(4, 256, 16, 4, 4), 0.35),
    (Tiles(256, 4, 16, 4, 4), 0.3),
)
_ANY_SIZE = Tiles(64, 64, 16, 4, 4)
PARTS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
LEAST_TERMS = 128  # of a part of a sum
WIDE = 128 * 128  # results of a tile
LEAST_LENGTH = 16  # of its longest index
APART = 1.75  # terms for each result of a thread, which stores one at a time


@dataclass(frozen=True, slots=True)
class Tiled:
    """How a product is tiled: the tile, and in how many parts its sum is cut."""

    tiles: Tiles
    parts: int


@dataclass(frozen=True, slots=True)
class Shape:
    """The sizes of a product."""

    batch: int
    m: int
    n: int
    k: int


def shape_of(product: Contraction) -> Shape | None:
    """The sizes of a product, where all are known."""
    batch, m, n, k = (e.as_int() for e in product.extents)
    if batch is None or m is None or n is None or k is None:
        return None
    return Shape(batch, m, n, k)


def choose_tiles(
    product: Contraction,
    gpu: Gpu,
    limits: WorkgroupLimits,
    reads: Reads | None = None,
) -> Tiled:
    """The tile and the parts with the least estimated time.

    `reads` of operands are tested, by default, where the product has conditions.
    """
    legal = [
        (t, rate) for t, rate in CANDIDATES
        if t.threads <= limits.threads and t.workgroup_bytes <= limits.bytes
    ]  # fmt: skip
    shape = shape_of(product)
    if shape is None:
        return Tiled(next((t for t, _ in legal if t == _ANY_SIZE), legal[-1][0]), 1)
    longest = max((v.extent.as_int() or 1 for v in product.k), default=1)
    results = 4 * shape.batch * shape.m * shape.n
    most = min(longest // LEAST_LENGTH, limits.buffer // max(1, results))
    apart = reads != "padded" and stores_apart(product.piece)
    return _best(gpu, shape, longest, most, legal, reads or reads_of(product), apart)[1]


def reads_of(product: Contraction) -> Reads:
    """How a product as it stands is read."""
    return "tested" if product.a.conditions or product.b.conditions else "plain"


def stores_apart(piece: Piece) -> bool:
    """Whether results cannot be stored as vectors: rows or their beginnings are no multiples of four."""
    last = piece.access.index[-1] if piece.access.index else const(0)
    rows = [c for _, c in piece.access.dims[-1].terms] if piece.access.dims else []
    return last.constant % 4 != 0 or any(c % 4 for c in rows)


def estimate(gpu: Gpu, shape: Shape, reads: Reads, apart: bool = False) -> float:
    """The estimated seconds of a product; `apart`: its results are stored one at a time."""
    return _best(gpu, shape, shape.k, PARTS[-1], CANDIDATES, reads, apart)[0]


def _best(
    gpu: Gpu,
    shape: Shape,
    longest: int,
    most: int,
    legal: Sequence[tuple[Tiles, float]],
    reads: Reads,
    apart: bool,
) -> tuple[float, Tiled]:
    """The best tiling with at most so many parts of the `longest` summed index."""
    parts = [p for p in PARTS if p == 1 or (p <= most and shape.k >= LEAST_TERMS * p)]
    made = reads in ("padded", "windows")
    found: list[tuple[float, Tiled]] = []
    for p in parts:
        uneven = longest % p != 0 and not made  # reads of the last part are tested
        for t, rate in legal:
            gained = rate * _gain(gpu, t, shape, reads) * (gpu.tested if uneven else 1)
            stored = replace(
                shape, k=shape.k + int(APART * t.rows * t.columns) * p if apart else shape.k
            )
            found.append((_seconds(gpu, t, gained, stored, p), Tiled(t, p)))
    return min(found, key=lambda f: f[0])


def _gain(gpu: Gpu, tiles: Tiles, shape: Shape, reads: Reads) -> float:
    """What tests cost, and what a product without tests and rests gains by reading ahead."""
    if reads == "tested":
        return gpu.tested
    if reads == "windows":
        return gpu.windows
    rests = shape.m % tiles.m or shape.n % tiles.n or shape.k % tiles.k
    if rests and reads == "plain":
        return 1.0
    return gpu.ahead_wide if tiles.m * tiles.n >= WIDE else gpu.ahead


def _seconds(gpu: Gpu, tiles: Tiles, rate: float, shape: Shape, parts: int) -> float:
    """The estimated time of a product.

    The busiest compute unit has `load` workgroups, of which as many run together as hide each other's
    latency; parts of sums are written and read once more.
    """
    groups = shape.batch * -(-shape.m // tiles.m) * -(-shape.n // tiles.n) * parts
    load = -(-groups // gpu.units)
    together = max(1, gpu.busy // tiles.threads)
    steps = -(-shape.k // (parts * tiles.k))  # a rest takes as long as a whole one
    work = 2 * tiles.m * tiles.n * steps * tiles.k
    full, rest = divmod(load, together)
    alone = min(1.0, gpu.single + (1 - gpu.single) * rest * tiles.threads / gpu.busy)
    spent = full * together + (rest / alone if rest else 0)
    total = spent * work / (gpu.flops / gpu.units * rate) + gpu.launch
    if parts > 1:
        total += 4 * shape.batch * shape.m * shape.n * (2 * parts + 1) / gpu.bandwidth + gpu.launch
    return total
