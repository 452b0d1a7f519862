"""The schedule for NumPy of a product whose results go to their places a chunk of positions at a time.

    for chunk                                    worker: chunks in parallel
      xs[taps, c, t] = windows of x              where taps are added to positions: `reindex`
      acc[m, r, t] = ws[m, r, (taps, c)] @ xs    one matrix product for all taps
      y[m, t*s + r] = acc[m, r, t]               for each phase

What a chunk reads and makes stays in the caches. Nothing is added up but by the product.
"""

from __future__ import annotations

from collections.abc import Sequence

from convdsl.ir.expr import Load
from convdsl.machine.facts import Cpu
from convdsl.passes.contraction import Operand
from convdsl.passes.phases import the_reduction
from convdsl.passes.sides import LONG_PHASES, Sides, chunk_sides, count
from convdsl.schedule.builder import Builder
from convdsl.schedule.nest import operands
from convdsl.schedule.verbs.compute import Compute
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.phases import Phases
from convdsl.schedule.verbs.reindex import Reindex
from convdsl.schedule.verbs.split import Split

FEWEST, MOST = 256, 4096  # positions of a chunk: fewer make the product slow
FEW_ROWS = 64  # below which only a long product is fast
FEWEST_OF_LARGE = 512
FEWEST_ROWS = 64
LINE = 16  # floats


class _Chunks:
    """Adds the steps for one equation, whose relations are solved."""

    def __init__(self, builder: Builder, name: str, sides: Sides, share: int, cpu: Cpu) -> None:
        self.builder = builder
        self.name = name
        self.sides = sides
        self.share = share  # of the temporaries that a chunk may have
        self.cpu = cpu
        self.seconds = 2 * count(sides.every) / cpu.flops
        self.workers = cpu.workers(self.seconds)  # threads that the product is worth
        self.sizes = {v.name: v.extent.as_int() or 0 for v in sides.every}

    def windows(self) -> str | None:
        """Both operands as matrices; the tensor of windows where they are copied."""
        sides, do = self.sides, self.builder.do
        summed = [v.name for v in sides.summed]
        made = None
        if sides.taps:
            made = self.builder.tensor(f"{self._operand(sides.data)}_windows")
            batch, positions = ([v.name for v in vs] for vs in (sides.batch, sides.positions))
            axes = (*batch, *summed, *positions)
            do(Reindex(self.name, self._operand(sides.data), axes, made))
        if not self._is_matrix():
            matrix = self.builder.tensor(f"{self._operand(sides.matrix)}_matrix")
            axes = (*(v.name for v in (*sides.batch, *sides.rows)), *summed)
            do(Reindex(self.name, self._operand(sides.matrix), axes, matrix))
        return made

    def _operand(self, operand: Operand) -> str:
        reduction = the_reduction(self.builder.state.pieces()[self.name].value)
        assert reduction is not None
        return next(n for n, f in operands(reduction).items() if f == operand.value)

    def _is_matrix(self) -> bool:
        """Whether the matrix is read as it lies in memory, so that no copy is needed."""
        value = self.sides.matrix.value
        if not isinstance(value, Load) or self.sides.matrix.conditions:
            return False
        wanted = [v.name for v in (*self.sides.batch, *self.sides.rows, *self.sides.summed)]
        found = [sorted(i.free & set(self.sizes)) for i in value.access.index]
        return [[n] for n in wanted] == [f for f in found if f]

    def loops(self, phases: Sequence[Phases], windows: str | None) -> None:
        """Chunks on threads, and the product in each."""
        name, do, sides = self.name, self.builder.do, self.sides
        rows, positions = ([v.name for v in vs] for vs in (sides.rows, sides.positions))
        by_rows = self._by_rows()
        if by_rows:
            hosts, rows = self._cut_rows()
        else:
            hosts, positions = self._cut()
        wide = {p.phase for p in phases if self.sizes.get(p.phase, 0) >= LONG_PHASES}
        last = rows[-1:] if sides.rows[-1].name in wide else []
        batch, summed = ([v.name for v in vs] for vs in (sides.batch, sides.summed))
        free = [*batch, *(n for n in rows if n not in last), *positions, *last]
        do(Order(name, (*hosts, *free, *summed)))
        if len(hosts) > 1:
            chunk = self.builder.names(name).fresh("chunk")
            do(Fuse(name, tuple(hosts), chunk))
            hosts = [chunk]
        self.builder.map(name, worker=hosts, gemm=[*free, *summed])
        if windows is not None and by_rows:
            self._copy_windows(windows)
        elif windows is not None and hosts:
            do(Compute(windows, name, hosts[-1]))

    def _by_rows(self) -> bool:
        """Whether to cut the rows: BLAS packs both operands of each product.

        Each chunk of positions has the whole matrix packed, each chunk of rows all windows.
        """
        sides = self.sides
        windows = 4 * count((*sides.batch, *sides.summed, *sides.positions))
        shared = windows <= min(self.cpu.far, 2 * self.share)
        fewer = count(sides.rows) > count(sides.positions)
        return fewer and shared and self.seconds >= self.cpu.worth

    def _cut_rows(self) -> tuple[list[str], list[str]]:
        """The loop over chunks of rows, and the rows of one."""
        rows = count(self.sides.rows)
        made = 4 * rows * count((*self.sides.batch, *self.sides.positions))
        most = min(self.cpu.near * 4 // 3, max(1, self.share))  # bytes of the results of a chunk
        workers = min(self.workers, max(2, rows // FEWEST_ROWS))
        chunks = max(workers, min(-(-made // most), rows // FEWEST_ROWS))
        cut = max(self.sides.rows, key=lambda v: self.sizes[v.name])
        fresh = self.builder.names(self.name).fresh
        outer, inner = fresh(f"{cut.name}_chunk"), fresh(f"{cut.name}_in")
        length = -(-self.sizes[cut.name] // _multiple(chunks, workers))
        self.builder.do(Split(self.name, cut.name, length, outer, inner))
        return [outer], [inner if v is cut else v.name for v in self.sides.rows]

    def _copy_windows(self, windows: str) -> None:
        """Two threads copy them, where there are many."""
        cut = max(self.sides.summed, key=lambda v: self.sizes[v.name])
        elements = count((*self.sides.batch, *self.sides.summed, *self.sides.positions))
        seconds = elements * (self.cpu.add + self.cpu.copy)  # read in memory, written near
        if self.cpu.workers(seconds) < 2 or self.sizes[cut.name] < 2:
            return
        fresh = self.builder.names(windows).fresh
        outer, inner = fresh(f"{cut.name}_half"), fresh(f"{cut.name}_in")
        self.builder.do(Split(windows, cut.name, -(-self.sizes[cut.name] // 2), outer, inner))
        others = [x.name for x in self.builder.state.nest(windows).loops if x.name != outer]
        self.builder.do(Order(windows, (outer, *others)))
        self.builder.map(windows, worker=[outer])

    def _cut(self) -> tuple[list[str], list[str]]:
        """The loops over chunks and those inside of one, slowest first."""
        sides = self.sides
        depth = count(sides.summed) if sides.taps else 0
        rows = count((*sides.batch, *sides.rows))
        matrix = 4 * rows * count(sides.summed)
        near = matrix < self.cpu.far // 2  # and not read anew from memory for each chunk
        fewest = FEWEST if near and rows >= FEW_ROWS else FEWEST_OF_LARGE
        position = 4 * (count(sides.batch) * depth + rows)
        room = min(MOST, self.cpu.near // position, self.share // position)
        most = max(1, min(fewest, self.share // position), room)
        if self.workers > 1:
            most = min(most, -(-count(sides.positions) // self.workers))
        loops = [(v.name, self.sizes[v.name]) for v in sides.positions]
        return cut_loops(self.builder, self.name, loops, most, self.cpu)


def cut_loops(
    builder: Builder, name: str, loops: Sequence[tuple[str, int]], most: int, cpu: Cpu
) -> tuple[list[str], list[str]]:
    """Cut loops of known lengths into chunks of about `most` iterations: the outer and inner loops."""
    sizes = dict(loops)
    hosts, inside, held = list(sizes), list[str](), 1
    while hosts:
        length = sizes[hosts[-1]]
        if held * length > most + most // 4:
            break
        held *= length
        inside.insert(0, hosts.pop())
    if hosts and held * 2 <= most:
        long = hosts.pop()
        chunks = -(-sizes[long] * held // most)
        chunks = _multiple(chunks, min(cpu.threads, chunks))
        fresh = builder.names(name).fresh
        outer, inner = fresh(f"{long}_chunk"), fresh(f"{long}_in")
        builder.do(Split(name, long, _even(sizes[long], chunks), outer, inner))
        hosts.append(outer)
        inside.insert(0, inner)
    return hosts, inside


def _multiple(chunks: int, threads: int) -> int:
    """As many chunks or more, the same number for each thread."""
    return -(-chunks // threads) * threads


def _even(length: int, chunks: int) -> int:
    """The length of a chunk: whole cache lines, if it has some."""
    each = -(-length // chunks)
    return each if each < 4 * LINE else -(-each // LINE) * LINE


def chunked(builder: Builder, name: str, phases: Sequence[Phases], cap: int, cpu: Cpu) -> bool:
    """Arrange an equation whose relations are solved in chunks; whether it is worthwhile."""
    state = builder.state
    made = [p.phase for p in phases]
    sides = chunk_sides(state.pieces()[name], made, state.system, state.accuracy, cpu)
    return sides is not None and in_chunks(builder, name, sides, phases, cap, cpu)


def in_chunks(
    builder: Builder, name: str, sides: Sides, phases: Sequence[Phases], cap: int, cpu: Cpu
) -> bool:
    """Arrange a product with these sides in chunks."""
    chunks = _Chunks(builder, name, sides, cap // max(4, cpu.threads), cpu)
    chunks.loops(phases, chunks.windows())
    return True
