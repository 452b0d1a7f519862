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
from convdsl.passes.contraction import Operand, contraction_of
from convdsl.passes.phases import the_reduction
from convdsl.passes.sides import Sides, count, sides_of
from convdsl.schedule.builder import Builder
from convdsl.schedule.nest import operands
from convdsl.schedule.verbs.compute import Compute
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.phases import Phases
from convdsl.schedule.verbs.reindex import Reindex
from convdsl.schedule.verbs.split import Split

CHUNK = 3 * 2**20  # bytes of windows and results that stay in the caches
FEWEST, MOST = 256, 4096  # positions of a chunk: fewer make the product slow
LARGE = 8 * 2**20  # bytes of a matrix from which it is read anew for each chunk
FEWEST_OF_LARGE = 512
WORK = 2e7  # operations from which a sum is worth two threads
LINE = 16  # floats
LONG_PHASES = 16  # a run of this many floats (a cache line) is worth keeping contiguous


class _Chunks:
    """Adds the steps for one equation, whose relations are solved."""

    def __init__(self, builder: Builder, name: str, sides: Sides) -> None:
        self.builder = builder
        self.name = name
        self.sides = sides
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
        """Chunks of positions on the host, the product and what it reads in each."""
        name, do, sides = self.name, self.builder.do, self.sides
        hosts, inside = self._cut()
        rows = [v.name for v in sides.rows]
        batch = [v.name for v in sides.batch]
        wide = [p for p in phases if p.phase in rows and self.sizes[p.phase] >= LONG_PHASES]
        last = [p.phase for p in wide[-1:]]
        free = [*batch, *(n for n in rows if n not in last), *inside, *last]
        if not last:
            free = [*batch, *rows, *inside]
        summed = [v.name for v in sides.summed]
        do(Order(name, (*hosts, *free, *summed)))
        if len(hosts) > 1:
            chunk = self.builder.names(name).fresh("chunk")
            do(Fuse(name, tuple(hosts), chunk))
            hosts = [chunk]
        self.builder.map(name, worker=hosts, gemm=[*free, *summed])
        if windows is not None and hosts:
            do(Compute(windows, name, hosts[-1]))

    def _cut(self) -> tuple[list[str], list[str]]:
        """The loops over chunks and those inside of one, slowest first."""
        sides = self.sides
        depth = count(sides.summed) if sides.taps else 0
        rows = count((*sides.batch, *sides.rows))
        matrix = 4 * rows * count(sides.summed)
        fewest = FEWEST if matrix < LARGE else FEWEST_OF_LARGE
        room = CHUNK // (4 * (count(sides.batch) * depth + rows))
        most = max(fewest, min(MOST, room))
        positions = count(sides.positions)
        if 2 * rows * count(sides.summed) * positions >= WORK:
            most = min(most, -(-positions // 2))
        inside: list[str] = []
        hosts = [v.name for v in sides.positions]
        held = 1
        while hosts:
            length = self.sizes[hosts[-1]]
            if held * length > most + most // 4:
                break
            held *= length
            inside.insert(0, hosts.pop())
        if hosts and held * 2 <= most:
            long = hosts.pop()
            chunks = -(-self.sizes[long] * held // most)
            chunks += chunks % 2  # for two threads
            fresh = self.builder.names(self.name).fresh
            outer, inner = fresh(f"{long}_chunk"), fresh(f"{long}_in")
            self.builder.do(Split(self.name, long, _even(self.sizes[long], chunks), outer, inner))
            hosts.append(outer)
            inside.insert(0, inner)
        return hosts, inside


def _even(length: int, chunks: int) -> int:
    """The length of a chunk: whole cache lines, if it has some."""
    each = -(-length // chunks)
    return each if each < 4 * LINE else -(-each // LINE) * LINE


def chunked(builder: Builder, name: str, phases: Sequence[Phases]) -> bool:
    """Arrange an equation whose relations are solved in chunks; whether it is worthwhile."""
    state = builder.state
    gemm = contraction_of(state.pieces()[name])
    if gemm is None or gemm.reduction.dtype != "f32" or not gemm.k:
        return False
    sides = sides_of(gemm, [p.phase for p in phases])
    if sides is None or not sides.windows_pay(state.system):
        return False
    if not sides.exact and (state.accuracy == "strict" or not sides.may_meet_zeros(state.system)):
        return False
    chunks = _Chunks(builder, name, sides)
    chunks.loops(phases, chunks.windows())
    return True
