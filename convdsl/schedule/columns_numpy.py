"""The schedule for NumPy of columns: all products first, then overlapping blocks are added up.

    for part                                      of the batch, and of the positions within the cap
      columns[n, l, (m, k)] = x[n, c, l] @ w      worker: parts, or blocks of one
      for j                                       taps
        y[n, m, t*s + r] += columns[n, t - j, m, j*s + r]

Every product is a term, and every term one product, so that infinities stay where they belong.
"""

from __future__ import annotations

from collections.abc import Sequence

from convdsl.ir.expr import free_names, loads
from convdsl.ir.index import product
from convdsl.machine.facts import Cpu
from convdsl.passes.columns import Columns as Roles
from convdsl.passes.columns import columns_of
from convdsl.passes.contraction import contraction_of
from convdsl.passes.phases import the_reduction
from convdsl.passes.sides import LONG_PHASES, count
from convdsl.schedule.builder import Builder
from convdsl.schedule.nest import operands
from convdsl.schedule.partial_numpy import partial_sums
from convdsl.schedule.verbs.columns import Columns
from convdsl.schedule.verbs.compute import Compute
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.phases import Phases
from convdsl.schedule.verbs.reindex import Reindex
from convdsl.schedule.verbs.split import Split

SHORT = 32  # a data axis below this length is merged with the others into one product
BLOCK = 512  # positions at a time where sizes are unknown
ROWS = 2048  # of a product, beyond which the matrix beside them is packed often enough
BLOCKS = 2  # of a stage for each thread: one that is held up leaves some to the others
FEWEST = 64  # rows or columns of a block
FEWEST_POSITIONS = 256  # of a part: fewer make the product slow
FEWEST_OF_LARGE = 512  # beside a matrix that is read anew for each part


def columned(builder: Builder, name: str, cap: int, cpu: Cpu) -> bool:
    """Arrange an equation as one product for all taps whose results are added up; whether it can be."""
    piece = builder.state.pieces()[name]
    contraction = contraction_of(piece, related=True)
    roles = columns_of(contraction) if contraction is not None else None
    if roles is None:
        return False
    made = builder.tensor("columns")
    builder.do(Columns(name, made))
    plan = _Columns(builder, name, made, roles, cap, cpu)
    rows = plan.together()
    phases = builder.dense(name, frozenset(v.name for v in roles.data))
    if phases is None:
        return False
    plan.loops(phases, rows)
    return True


class _Columns:
    """Adds the steps for one equation; `made` are its columns."""

    def __init__(
        self, builder: Builder, name: str, made: str, roles: Roles, cap: int, cpu: Cpu
    ) -> None:
        self.builder = builder
        self.name = name
        self.made = made
        self.roles = roles
        self.cap = cap
        self.cpu = cpu
        self.flat = (*roles.inner, *roles.taps)
        self.every = (*roles.batch, *roles.outer, *roles.data, *self.flat)
        known = all(v.extent.as_int() for v in (*self.every, *roles.depth))
        work = 2 * count((*self.every, *roles.depth)) if known else 0
        self.workers = cpu.workers(work / cpu.flops) if roles.depth else 1
        self.threads = self.workers > 1
        self.group = 1  # signals in one product
        short = bool(roles.data) and (roles.data[0].extent.as_int() or SHORT) < SHORT
        self.merged = [v.name for v in roles.outer] if short else []

    def together(self) -> str | None:
        """Copy the data of several signals to the rows of one matrix, which the name is of.

        BLAS packs the weights for each product. Where columns are more than rows, copies are fewer.
        """
        roles = self.roles
        data = count(roles.data)
        if not self.threads or self.merged or roles.batch or len(roles.outer) != 1:
            return None
        if count(self.flat) <= data:
            return None
        signals = count(roles.outer)
        room = self.cap // (4 * data * (count(roles.depth) + count(self.flat)))
        most = min(signals, room, -(-ROWS // data))
        if most < 2:
            return None
        self.group = -(-signals // -(-signals // most))
        copy = self.builder.tensor("rows")
        indices = [v.name for v in (*roles.depth, *roles.outer, *roles.data)]
        self.builder.do(Reindex(self.made, self._data(), tuple(indices), copy))
        return copy

    def _data(self) -> str:
        reduction = the_reduction(self.builder.state.pieces()[self.made].value)
        assert reduction is not None
        names = {v.name for v in self.roles.data}
        return next(n for n, f in operands(reduction).items() if names <= free_names(f))

    def loops(self, phases: Sequence[Phases], rows: str | None) -> None:
        """The loops of both, and what is computed where."""
        roles, builder = self.roles, self.builder
        wide = bool(phases) and all(self._wide(step) for step in phases)
        hosts = [v.name for v in roles.batch]
        inside: list[str] = []
        if self.group > 1 and self.group < count(roles.outer):
            block, inner = self._split(self.name, roles.outer[0].name, self.group)
            hosts, inside = [*hosts, block], [inner]
        elif self.group > 1:
            inside = [roles.outer[0].name]
        elif not self.merged:
            hosts += [v.name for v in roles.outer]
        hosts += self._blocks(hosts)
        self._product(wide, self.threads and (self.group > 1 or not hosts))
        hosts = self._overlap(hosts, inside, phases, wide)
        if hosts:
            builder.do(Compute(self.made, self.name, hosts[-1]))
        if rows is not None:
            self._copy(rows, hosts)

    def _wide(self, step: Phases) -> bool:
        """Whether results are in the order of block and phase, and phases are long."""
        nest = self.builder.state.nest(self.name)
        length = nest.loop(step.phase).extent.as_int() or 0
        steps = [
            (i.coefficient(step.block).as_int(), i.coefficient(step.phase).as_int())
            for i in nest.piece.access.index
            if step.phase in i.free
        ]
        return length >= LONG_PHASES and steps == [(length, 1)]

    def _split(self, name: str, loop: str, length: int) -> tuple[str, str]:
        fresh = self.builder.names(name).fresh
        outer, inner = fresh(f"{loop}_block"), fresh(f"{loop}_in")
        self.builder.do(Split(name, loop, length, outer, inner))
        return outer, inner

    def _blocks(self, hosts: Sequence[str]) -> list[str]:
        """Cut the results along the longest data axis, so that the columns of a block fit in."""
        nest, roles = self.builder.state.nest(self.name), self.roles
        tensor = self.builder.state.system.tensor(self.made)
        if not roles.data or self.group > 1:
            return []
        long = max(roles.data, key=lambda v: v.extent.as_int() or 1 << 31)
        other = product(v.extent for v in self.every if v is not long and v.name not in hosts) * 4
        axis = self.every.index(long)
        index = next(
            load.access.index[axis]
            for load in loads(nest.piece.value)
            if load.access.tensor == tensor.name
        )
        along = next(
            (
                x
                for x in nest.loops
                if not x.reduced and index.coefficient(x.name).as_int() in (1, -1)
            ),
            None,
        )
        size, length = other.as_int(), long.extent.as_int()
        room = self.cap if size is None else self._room(size)
        if along is None or (size is not None and length is not None and size * length <= room):
            return []
        block = BLOCK
        if size is not None:
            steps = (
                (index.coefficient(x.name).as_int(), x.extent.as_int())
                for x in nest.loops
                if x.reduced
            )
            halo = sum(abs(c or 0) * ((n or 1) - 1) for c, n in steps)
            block = min(65536, max(1, room // max(1, size) - halo))
        known = along.extent.as_int()
        if known is not None and known <= block:
            return []
        if known is not None and self.threads:
            parts = -(-known // block)
            block = -(-known // (-(-parts // self.workers) * self.workers))
        return [self._split(self.name, along.name, block)[0]]

    def _room(self, size: int) -> int:
        """Bytes of the columns of a part, of which a position has `size`."""
        if not self.threads:
            return self.cap
        matrix = 4 * count((*self.roles.depth, *self.flat))
        fewest = FEWEST_POSITIONS if matrix < self.cpu.far // 2 else FEWEST_OF_LARGE
        share = self.cap // max(4, self.cpu.threads)
        return min(share, max(self.cpu.far // 2, fewest * size))

    def _product(self, wide: bool, stage: bool) -> None:
        """One product of all rows and columns; a `stage` of its own on several threads."""
        roles, made = self.roles, self.made
        outer = [v.name for v in roles.outer]
        lead = self.merged or (outer if self.group > 1 else [])
        hosts = [v.name for v in roles.batch] + ([] if lead else outer)
        data, flat = [v.name for v in roles.data], [v.name for v in self.flat]
        rows = [*lead, *data]
        order = [*hosts, *rows, *flat] if wide else [*hosts, *flat, *rows]
        depth = [v.name for v in roles.depth]
        cut = None
        if stage:
            side = self.flat if lead or count(self.flat) > count(roles.data) else roles.data
            first = next((v for v in side if v.extent != 1), side[0])
            cut = self._cut(made, first.name, min(BLOCKS * self.workers, count(side) // FEWEST))
        if cut is not None:
            order = [cut[1] if n == first.name else n for n in order]
        worker = [cut[0]] if cut is not None else []
        self.builder.order(made, *worker, *order, *depth)
        if depth:
            self.builder.map(made, worker=worker, gemm=[*order, *depth])

    def _copy(self, copy: str, hosts: Sequence[str]) -> None:
        """The rows, by several threads where there are many; of a part only where there are parts."""
        long = max(self.roles.depth, key=lambda v: v.extent.as_int() or 0)
        workers = self._copiers(count((*self.roles.depth, *self.roles.data)) * self.group)
        if workers > 1:
            cut = self._cut(copy, long.name, BLOCKS * workers)
            if cut is not None:
                others = [x.name for x in self.builder.state.nest(copy).loops if x.name != cut[0]]
                self.builder.order(copy, cut[0], *others)
                self.builder.map(copy, worker=[cut[0]])
        if hosts:
            self.builder.do(Compute(copy, self.name, hosts[-1]))

    def _copiers(self, elements: int) -> int:
        """How many threads so many elements are worth that are read in memory and written near."""
        return self.cpu.workers(elements * (self.cpu.add + self.cpu.copy))

    def _cut(self, name: str, loop: str, blocks: int) -> tuple[str, str] | None:
        """A loop in so many blocks, where it can be."""
        length = self.builder.state.nest(name).loop(loop).extent.as_int() or 1
        blocks = min(blocks, length)
        return self._split(name, loop, -(-length // blocks)) if blocks > 1 else None

    def _overlap(
        self, hosts: list[str], inside: Sequence[str], phases: Sequence[Phases], wide: bool
    ) -> list[str]:
        """Taps on the host; held with blocks innermost, unless the results are in their own order.

        The loops around: parts on threads, or else what each of them has to add up.
        """
        builder, name = self.builder, self.name
        worker = hosts if self.threads and not inside else []
        if (self.threads and not hosts) or inside:
            worker = self._adders(inside, phases)
        nest = builder.state.nest(name)
        taps = [x.name for x in nest.loops if x.reduced]
        around = [*hosts, *(n for n in worker if n not in hosts)]
        own = [x.name for x in nest.loops if x.name not in (*around, *taps)]
        if not wide:
            blocks = [n for n in own if any(n.split("_in")[0] == s.block for s in phases)]
            own = [n for n in own if n not in blocks] + blocks
        taps = partial_sums(builder, name, taps)
        builder.order(name, *around, *taps, *own)
        if worker == hosts and len(hosts) > 1:
            part = builder.names(name).fresh("part")
            builder.do(Fuse(name, tuple(hosts), part))
            hosts = worker = [part]
        builder.map(name, host=[n for n in (*hosts, *taps) if n not in worker], worker=worker)
        return hosts

    def _adders(self, inside: Sequence[str], phases: Sequence[Phases]) -> list[str]:
        """The loop over results that threads share, where columns are a stage of their own."""
        workers = self._copiers(count(self.every))
        if workers < 2:
            return []
        if inside:
            return list(inside)
        nest, blocks = self.builder.state.nest(self.name), {s.block for s in phases}
        own = [x for x in nest.loops if not x.reduced and x.name not in blocks]
        if not own:
            return []
        loop = max(own, key=lambda x: x.extent.as_int() or 0)
        cut = self._cut(self.name, loop.name, workers)
        return [cut[0]] if cut is not None else []
