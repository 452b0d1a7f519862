"""Tile sizes of a matrix product on a GPU, from the sizes of the product and the target's limits."""

from __future__ import annotations

from dataclasses import dataclass

from convdsl.passes.contraction import Contraction


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
_CANDIDATES: tuple[tuple[Tiles, float], ...] = (
    (Tiles(64, 128, 16, 8, 8), 1.0),
    (Tiles(128, 128, 16, 8, 8), 0.92),
    (Tiles(128, 64, 16, 8, 8), 0.9),
    (Tiles(64, 64, 16, 8, 8), 0.85),
    (Tiles(64, 64, 16, 4, 4), 0.6),
    (Tiles(32, 64, 16, 4, 4), 0.55),
    (Tiles(64, 32, 16, 4, 4), 0.55),
    (Tiles(32, 32, 16, 4, 4), 0.45),
    (Tiles(16, 64, 16, 4, 4), 0.42),
    (Tiles(64, 16, 16, 4, 4), 0.4),
    (Tiles(4, 256, 16, 4, 4), 0.35),
    (Tiles(256, 4, 16, 4, 4), 0.3),
)
_ANY_SIZE = Tiles(64, 64, 16, 4, 4)
_COMPUTE_UNITS = 128  # of a large GPU; a small one is filled by fewer groups, so this favours none


def choose_tiles(product: Contraction, max_threads: int, max_bytes: int) -> Tiles:
    """The tile with the least estimated time: whole waves of workgroups times work over rate."""
    legal = [
        (t, rate) for t, rate in _CANDIDATES
        if t.threads <= max_threads and t.workgroup_bytes <= max_bytes
    ]  # fmt: skip
    batch, m, n, _ = (e.as_int() for e in product.extents)
    if batch is None or m is None or n is None:
        return next((t for t, _ in legal if t == _ANY_SIZE), legal[-1][0])
    count, rows, columns = batch, m, n

    def time(candidate: tuple[Tiles, float]) -> float:
        tiles, rate = candidate
        groups = count * -(-rows // tiles.m) * -(-columns // tiles.n)
        return -(-groups // _COMPUTE_UNITS) * tiles.m * tiles.n / rate

    return min(legal, key=time)[0]
