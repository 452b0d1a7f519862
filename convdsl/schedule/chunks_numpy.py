"""The schedule for NumPy of a product whose results go to their places a chunk of positions at a time.

    for chunk                                    host, in parallel
      xs[taps, c, t] = windows of x              where taps are added to positions: `reindex`
      acc[m, r, t] = ws[m, r, (taps, c)] @ xs    one matrix product for all taps
      y[m, t*s + r] = acc[m, r, t]               for each phase

What a chunk reads and makes stays in the caches. Nothing is added up but by the product.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from convdsl.ir.expr import Call, Const, Load, Scalar, Var, free_names, loads, walk
from convdsl.ir.index import Index
from convdsl.passes.contraction import Contraction, Operand, contraction_of
from convdsl.passes.phases import the_reduction
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
WASTE = 1.25  # times as many windows as data and taps have pairs
TAME = {"abs", "relu", "leaky_relu", "sin", "cos", "tanh", "sigmoid"}
LINE = 16  # floats
LONG_PHASES = 16  # a run of this many floats (a cache line) is worth keeping contiguous


@dataclass(frozen=True, slots=True)
class Sides:
    """A product by what moves along the results (`data`) and what stays (`matrix`).

    `taps` are summed indices that are added to positions in the data; `positions` and `rows` the
    indices of the result that only one side has, slowest first.
    """

    data: Operand
    matrix: Operand
    batch: tuple[Var, ...]
    positions: tuple[Var, ...]
    rows: tuple[Var, ...]
    summed: tuple[Var, ...]
    taps: frozenset[str]


def sides_of(gemm: Contraction, phases: Sequence[Phases]) -> Sides | None:
    """The sides, if one operand alone has taps, or has none of the phases.

    And if each index is one of an operand, and each summed one of both.
    """
    taps = [_taps(gemm, operand) for operand in (gemm.a, gemm.b)]
    if taps[0] and taps[1]:
        return None
    made = {p.phase for p in phases}
    phased = [bool(made & free_names(o.value)) for o in (gemm.a, gemm.b)]
    if not any(taps) and phased[0] == phased[1]:
        return None
    first = bool(taps[0]) if any(taps) else phased[1]
    data, matrix = (gemm.a, gemm.b) if first else (gemm.b, gemm.a)
    positions, rows = (gemm.m, gemm.n) if first else (gemm.n, gemm.m)
    used = [free_names(o.value) for o in (data, matrix)]
    alone = ((positions, used[0]), (rows, used[1]), (gemm.k, used[0] & used[1]))
    if any(v.name not in names for variables, names in alone for v in variables):
        return None
    reads = loads(matrix.value)[0].access.index
    places = {
        v.name: min((n for n, i in enumerate(reads) if v.name in i.free), default=0) for v in gemm.k
    }
    summed = tuple(sorted(gemm.k, key=lambda v: places[v.name]))
    return Sides(data, matrix, gemm.batch, positions, rows, summed, taps[0] or taps[1])


def _taps(gemm: Contraction, operand: Operand) -> frozenset[str]:
    """Summed indices whose windows overlap: `t - j`, but not `j*8 + r` for r in 0..8."""
    free, summed = gemm.piece.vars, gemm.k
    indices = [i for load in loads(operand.value) for i in load.access.index]
    return frozenset(v.name for i in indices for v in summed for o in free if _overlap(i, v, o))


def _overlap(index: Index, one: Var, other: Var) -> bool:
    """Whether two variables reach an element in several ways."""
    if not {one.name, other.name} <= index.free:
        return False
    steps = [abs(index.coefficient(v.name).as_int() or 0) for v in (one, other)]
    spans = [step * (v.extent.as_int() or 1) for step, v in zip(steps, (one, other), strict=True)]
    return steps[0] < spans[1] and steps[1] < spans[0]


class Chunks:
    """Adds the steps for one equation, whose relations are solved."""

    def __init__(self, builder: Builder, name: str, sides: Sides) -> None:
        self.builder = builder
        self.name = name
        self.sides = sides
        self.sizes = {v.name: v.extent.as_int() or 0 for v in self._every(sides)}

    @staticmethod
    def _every(sides: Sides) -> tuple[Var, ...]:
        return (*sides.batch, *sides.positions, *sides.rows, *sides.summed)

    def count(self, variables: Sequence[Var]) -> int:
        return prod(self.sizes[v.name] for v in variables)

    def worthwhile(self) -> bool:
        """Whether there are rows and positions, and windows hold little but data."""
        sides = self.sides
        if not sides.rows or not sides.positions or 0 in self.sizes.values():
            return False
        if not sides.taps:
            return True
        taps = [v for v in sides.summed if v.name in sides.taps]
        system = self.builder.state.system
        read = loads(sides.data.value)[0].access.tensor
        elements = system.tensor(read).elements.as_int() or 0
        windows = self.count((*sides.batch, *sides.summed, *sides.positions))
        return windows <= WASTE * elements * self.count(taps)

    def windows(self) -> str | None:
        """Both operands as matrices; the tensor of windows where they are copied."""
        sides, do = self.sides, self.builder.do
        summed = [v.name for v in sides.summed]
        made = None
        if sides.taps:
            made = self.builder.tensor(f"{self._operand(sides.data)}_windows")
            axes = [*(v.name for v in (*sides.batch,)), *summed, *(v.name for v in sides.positions)]
            do(Reindex(self.name, self._operand(sides.data), tuple(axes), made))
        if not self._is_matrix():
            matrix = self.builder.tensor(f"{self._operand(sides.matrix)}_matrix")
            axes = [v.name for v in (*sides.batch, *sides.rows)] + summed
            do(Reindex(self.name, self._operand(sides.matrix), tuple(axes), matrix))
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
        self.builder.map(name, host=hosts, gemm=[*free, *summed])
        if windows is not None and hosts:
            do(Compute(windows, name, hosts[-1]))

    def _cut(self) -> tuple[list[str], list[str]]:
        """The loops over chunks and those inside of one, slowest first."""
        sides = self.sides
        depth = self.count(sides.summed) if sides.taps else 0
        rows = self.count((*sides.batch, *sides.rows))
        batch = self.count(sides.batch)
        matrix = 4 * rows * self.count(sides.summed)
        fewest = FEWEST if matrix < LARGE else FEWEST_OF_LARGE
        room = CHUNK // (4 * (batch * depth + rows))
        most = max(fewest, min(MOST, room))
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


def _may_meet_zeros(builder: Builder, operand: Operand) -> bool:
    """Whether products of an operand with zeros that stand for no term are zero, or can be found out.

    Inputs are looked through before each call, and bound ones once; of a function of inputs no
    infinity may come that was none.
    """
    system = builder.state.system
    inputs = {t.name for t in system.inputs}
    reads = all(load.access.tensor in inputs for load in loads(operand.value))
    calls = [e for e in walk(operand.value) if not isinstance(e, Load | Const | Scalar)]
    tame = all(isinstance(e, Call) and e.name in TAME for e in calls)
    return builder.state.accuracy != "strict" and reads and tame


def _even(length: int, chunks: int) -> int:
    """The length of a chunk: whole cache lines, if it has some."""
    each = -(-length // chunks)
    return each if each < 4 * LINE else -(-each // LINE) * LINE


def chunked(builder: Builder, name: str, phases: Sequence[Phases]) -> bool:
    """Arrange an equation whose relations are solved in chunks; whether it is worthwhile."""
    gemm = contraction_of(builder.state.pieces()[name])
    if gemm is None or gemm.reduction.dtype != "f32" or not gemm.k:
        return False
    for one, other in ((gemm.a, gemm.b), (gemm.b, gemm.a)):
        if one.conditions and not _may_meet_zeros(builder, other):
            return False
    sides = sides_of(gemm, phases)
    if sides is None or any(v.extent.as_int() is None for v in Chunks._every(sides)):
        return False
    chunks = Chunks(builder, name, sides)
    if not chunks.worthwhile():
        return False
    chunks.loops(phases, chunks.windows())
    return True
