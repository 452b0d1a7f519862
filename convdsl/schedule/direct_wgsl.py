"""Kernels without workgroup memory: each thread keeps a few neighbouring results and what they read.

    taps      y over o, k -> j              each result sums over its own taps, without holes
    split     o into blocks of whole steps  the phase of each result of a block is a number
    stage     x and w in registers          each element once for all results of the block
    vectorize                               four neighbours a store, where rows are whole vectors

Of a long step a thread makes one phase, or four neighbouring ones, of several steps instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Expr, Reduce, Var, free_names, loads
from convdsl.ir.loop import LANES
from convdsl.passes.contraction import slowest_first
from convdsl.passes.phases import Solved, dense_form, the_reduction
from convdsl.passes.reduce_loops import FLUSH
from convdsl.passes.tiles import WorkgroupLimits
from convdsl.schedule.builder import Builder
from convdsl.schedule.direct_block import Block, Shape, block_of, shape_of
from convdsl.schedule.nest import operands
from convdsl.schedule.step import Step
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.partial import Partial
from convdsl.schedule.verbs.solve import Solve
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.verbs.stage import Stage
from convdsl.schedule.verbs.taps import Taps
from convdsl.schedule.verbs.unroll import Unroll
from convdsl.schedule.verbs.vectorize import Vectorize

WRITTEN_TAPS = 8  # taps that are written out
WRITTEN = 64  # terms that are written out, with those of all taps
REGISTERS = 512  # products that are written out


def direct(builder: Builder, name: str, limits: WorkgroupLimits) -> bool:
    """Arrange the loops of a sum; False, and nothing done, where it has no shape."""
    shape = shape_of(builder, name)
    if shape is None:
        return False
    arrange(builder, name, shape, block_of(shape, limits))
    return True


def arrange(builder: Builder, name: str, shape: Shape, block: Block) -> None:
    """Arrange the loops of a sum for a block a thread."""
    _Direct(builder, name, block, shape).steps()


class _Direct:
    def __init__(self, builder: Builder, name: str, block: Block, shape: Shape) -> None:
        self.builder = builder
        self.name = name
        self.block = block
        self.shape = shape
        self.results = 1  # that a thread makes
        self.data: frozenset[str] = frozenset()  # the tensors that are read along the result

    @property
    def piece(self) -> Piece:
        return self.builder.state.pieces()[self.name]

    @property
    def reduction(self) -> Reduce:
        found = the_reduction(self.piece.value)
        assert found is not None
        return found

    def steps(self) -> None:
        name = self.name
        fastest = self.shape.fastest
        for factor in operands(self.reduction).values():
            if fastest.name in free_names(factor):
                self.data |= _tensors(factor)
        taps = self.solve()
        self.fresh = self.builder.names(name).fresh
        outer = [v.name for v in slowest_first(self.piece, self.piece.vars)]
        outer.remove(fastest.name)
        rows = self.rows() if self.block.rows > 1 else []
        own: list[str] = []
        along = self.block.along
        if rows:
            row = rows[-1].name
            outside, inside = self.split(row, self.block.rows, "block", "own")
            outer[outer.index(row)] = outside
            own.append(inside)
        elif self.block.wide:
            along *= 2
        made, mine, vector = self.along(fastest.name, along)
        outer += made
        own += mine
        nest = self.builder.state.nest(name)
        kept = [nest.loop(n).extent.as_int() or 1 for n in (*own, *vector)]
        self.results = prod(kept)
        groups, terms = self.terms(taps)
        grid, lane = self.lanes(outer, (*groups, *terms, *own, *vector))
        self.do(Order(name, (*grid, lane, *groups, *terms, *own, *vector)))
        self.builder.map(name, grid=grid, thread=[lane])
        for operand in operands(self.reduction) if groups else ():
            self.do(Stage(name, operand, groups[-1], "register"))
        if terms or own:
            self.do(Unroll(name, (*terms, *own)))
        if vector:
            self.do(Vectorize(name, vector[0]))

    def do(self, step: Step) -> None:
        self.builder.do(step)

    def split(self, loop: str, factor: int, outer: str, inner: str) -> tuple[str, str]:
        outside, inside = self.fresh(f"{loop}_{outer}"), self.fresh(f"{loop}_{inner}")
        self.do(Split(self.name, loop, factor, outside, inside))
        return outside, inside

    def solve(self) -> list[str]:
        """The relations solved for the taps of each result; the names of the taps."""
        taps: list[str] = []
        while True:
            reduction = self.reduction
            form = dense_form(self.piece, self.builder.data_first)
            assert form is not None
            if not form.ways:
                left = {v.name for v in reduction.vars}
                return [t for t in dict.fromkeys(taps) if t in left]
            way = form.ways[0]
            summed = {v.name for v in reduction.vars}
            related = [p.index.free & summed for p in reduction.constraints if p.kind == "eq"]
            if isinstance(way, Solved):
                data = way.name
                taps += sorted(next(r for r in related if data in r) - {data})
                self.do(Solve(self.name, data))
            else:
                (data,) = next(r for r in related if way.tap in r) - {way.tap}
                taps.append(way.taps)
                self.do(Taps(self.name, way.output, way.tap, way.taps))
            for factor in operands(reduction).values():
                if data in free_names(factor):
                    self.data |= _tensors(factor)

    def rows(self) -> list[Var]:
        """The free indices of the other operand: results along them share what is read of the data."""
        data: set[str] = set()
        others: set[str] = set()
        for factor in operands(self.reduction).values():
            (data if _tensors(factor) & self.data else others).update(free_names(factor))
        mine = [v for v in self.piece.vars if v.name in others - data - {self.shape.fastest.name}]
        return list(slowest_first(self.piece, mine))

    def along(self, fastest: str, count: int) -> tuple[list[str], list[str], list[str]]:
        """The fastest index split: loops outside, those of the thread's block, and a vector."""
        step, whole = self.shape.step, self.shape.whole
        if self.block.phase:
            steps, phase = self.split(fastest, step, "step", "phase")
            block, inside = self.split(steps, count, "block", "own")
            if not (whole and step % LANES == 0):
                return [block, phase], [inside], []
            four, lane = self.split(phase, LANES, "four", "vec")
            return [block, four], [inside], [lane]
        block, inside = self.split(fastest, count, "block", "own")
        if not (whole and count % LANES == 0):
            return [block], [inside], []
        four, lane = self.split(inside, LANES, "four", "vec")
        return [block], [four], [lane]

    def terms(self, taps: Sequence[str]) -> tuple[list[str], list[str]]:
        """The summed loops: serial ones, and those that are written out."""
        extents = {v.name: v.extent.as_int() or 1 for v in self.reduction.vars}
        serial = sorted((n for n in extents if n not in taps), key=lambda n: extents[n])
        written: list[str] = []
        room = min(WRITTEN, max(1, REGISTERS // self.results))
        counts: dict[str, int] = {}
        for tap in reversed(taps):
            counts[tap] = _written(extents[tap], room)
            room //= counts[tap]
        together = min(self.block.terms, room)
        if serial and together > 1:
            outside, inside = self.split(serial.pop(), together, "group", "in")
            serial.append(outside)
            written.append(inside)
        for tap in taps:
            outside, inside = self.split(tap, counts[tap], "group", "in")
            serial.append(outside)
            written.append(inside)
        if not serial:  # one term a result, of loops that have one iteration
            serial = [x.name for x in self.builder.state.nest(self.name).loops if x.reduced][:1]
        return self.in_blocks(serial, written), written

    def in_blocks(self, serial: Sequence[str], written: Sequence[str]) -> list[str]:
        """The serial loops, one of them cut so that its parts add up at most `FLUSH` terms apart."""
        nest = self.builder.state.nest(self.name)
        counts = {x.name: x.extent.as_int() or 1 for x in nest.loops}
        terms = prod(counts[n] for n in written)
        for at, loop in reversed(list(enumerate(serial))):
            if terms * counts[loop] > FLUSH:
                part, turn = self.split(loop, max(1, FLUSH // terms), "part", "turn")
                self.do(Partial(self.name, part))
                return [*serial[:at], part, turn, *serial[at + 1 :]]
            terms *= counts[loop]
        return list(serial)

    def lanes(self, outer: Sequence[str], inside: Sequence[str]) -> tuple[list[str], str]:
        """Loops of the grid, and of the threads, which run over the fastest outer loops."""
        self.do(Order(self.name, (*outer, *inside)))
        nest, threads = self.builder.state.nest(self.name), self.block.threads
        count, first = 1, len(outer)
        while first > 0 and (count < threads or first == len(outer)):
            first -= 1
            count *= nest.loop(outer[first]).extent.as_int() or 1
        loop = outer[first]
        if first < len(outer) - 1:
            loop = self.fresh("flat")
            self.do(Fuse(self.name, tuple(outer[first:]), loop))
        size = min(threads, max(32, 1 << (count - 1).bit_length()))
        tile, lane = self.fresh("tile"), self.fresh("lane")
        self.do(Split(self.name, loop, size, tile, lane))
        return [*outer[:first], tile], lane


def _tensors(value: Expr) -> frozenset[str]:
    return frozenset(load.access.tensor for load in loads(value))


def _written(count: int, room: int) -> int:
    """How many taps are written out at a time: all of a few, else a divisor where there is one."""
    most = min(WRITTEN_TAPS, room)
    if count <= most:
        return count
    return next((n for n in range(most, 3, -1) if count % n == 0), most)
