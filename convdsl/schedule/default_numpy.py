"""The schedule for NumPy that is used when there is none: the chosen plan, in the verbs of users."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from convdsl.budget import CAP
from convdsl.diagnostics import CdslError
from convdsl.ir.equation import System
from convdsl.ir.expr import loads
from convdsl.ir.index import product
from convdsl.machine.facts import TYPICAL_CPU, Cpu
from convdsl.passes.columns import Columns as Roles
from convdsl.passes.columns import columns_of
from convdsl.passes.contraction import contraction_of
from convdsl.passes.lower_numpy import as_stated
from convdsl.passes.numpy_partial import TAPS
from convdsl.passes.plan import Algorithm, Choice
from convdsl.passes.sides import LONG_PHASES
from convdsl.passes.whole_matrix import matrix_sides
from convdsl.schedule.builder import Builder
from convdsl.schedule.check_numpy import check_numpy
from convdsl.schedule.check_sites import check_sites
from convdsl.schedule.chunks_numpy import chunked, in_chunks
from convdsl.schedule.default_numpy_toom import toom_loops
from convdsl.schedule.nest import Nest, conditions_of, product_factors
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.slices_numpy import sliced
from convdsl.schedule.toeplitz_numpy import toeplitz_loops
from convdsl.schedule.verbs.columns import Columns
from convdsl.schedule.verbs.compute import Compute
from convdsl.schedule.verbs.gather import Gather
from convdsl.schedule.verbs.partial import Partial
from convdsl.schedule.verbs.phases import Phases
from convdsl.schedule.verbs.solve import Solve
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.verbs.toom import Toom

SHORT = 32  # a data axis below this length is merged with the others into one product
BLOCK = 512  # positions at a time where sizes are unknown


def default_numpy(
    system: System,
    choices: Mapping[str, Choice],
    given: Schedule | None = None,
    accuracy: str = "standard",
    cap: int = CAP,
    cpu: Cpu = TYPICAL_CPU,
) -> Schedule:
    """The schedule for the chosen algorithms; equations without a matrix product need no steps.

    The steps of a `given` schedule come first; what it says nothing of is filled in. Temporaries take
    about `cap` bytes at most.
    """
    builder = _Builder(system, "numpy", given, accuracy)
    builder.cap, builder.cpu = cap, cpu
    for step in builder.given.steps:
        if isinstance(step, Toom):
            builder.toom_given(step)
    for name, choice in builder.pending(choices):
        done = builder.equation(name, Choice("phases", "") if choice is None else choice)
        done = done or builder.attempt(partial(sliced, builder, name, cpu))
        if not done and not (
            builder.as_stated(name) and (choice is not None or builder.tied(name))
        ):
            builder.solved(name)
            for label in [n for n in builder.state.pieces() if n.split(".")[0] == name]:
                builder.slices(label)
    for equation in builder.state.system.equations:  # those that steps have made
        if not builder.settled(equation.tensor):
            builder.attempt(partial(sliced, builder, equation.tensor, cpu))
    return builder.schedule()


class _Builder(Builder):
    cap, cpu = CAP, TYPICAL_CPU

    def equation(self, name: str, choice: Choice) -> bool:
        """Arrange an equation as matrix products, where it has such a form."""
        if choice.solved and self.attempt(lambda: self._whole(name, choice.solved)):
            return True
        return self.attempt(lambda: self._arranged(name, choice.algorithm, choice.results))

    def toom_given(self, step: Toom) -> None:
        """Arrange what a given step has made, where nobody has."""
        if not {step.equation, *step.tensors} & self.state.nests.keys():
            self.attempt(lambda: toom_loops(self, step, self.cap, self.cpu))

    def attempt(self, arrange: Callable[[], bool]) -> bool:
        """What `arrange` does, where it says that it has, and the loops can run; else nothing."""
        before, count = self.state, len(self.steps)
        try:
            if arrange():
                constants = {t.name for t in self.state.system.constants}
                for label, nest in self.state.nests.items():
                    check_numpy(label, nest, constants)
                check_sites(self.state)
                return True
        except CdslError:
            pass  # slices over the taps do it, too
        self.state = before
        del self.steps[count:]
        return False

    def _arranged(self, name: str, algorithm: Algorithm, results: int) -> bool:
        match algorithm:
            case "phases" if results:
                return toeplitz_loops(self, name, results, self.cap, self.cpu)
            case "phases":
                phases = self.dense(name)
                if phases is None:
                    return False
                return chunked(self, name, phases, self.cap, self.cpu) or self.product(name)
            case "columns":
                return self.columns(name)
            case "toom":
                step = self.toom(name, results) if self.dense(name) is not None else None
                return step is not None and toom_loops(self, step, self.cap, self.cpu)
            case "gather":
                return False

    def _whole(self, name: str, solved: str) -> bool:
        """One product with a matrix of all terms."""
        self.do(Solve(name, solved))
        sides = matrix_sides(self.state.pieces()[name], self.state.system)
        return sides is not None and in_chunks(self, name, sides, [], self.cap, self.cpu)

    def settled(self, name: str) -> bool:
        """Whether it was decided on: stated in the program, arranged, or computed in a reader."""
        return name in self.stated or name in self.state.nests or name in self.state.sites

    def as_stated(self, name: str) -> bool:
        """Whether the equation can run as it is, as slices over its taps."""
        return as_stated(next(q for q in self.state.system.equations if q.tensor == name))

    def solved(self, name: str) -> None:
        """Solve the relations of an equation, in the form that it takes."""
        if self.tied(name) and self.dense(name) is None:
            self.do(Gather(name))

    def slices(self, name: str) -> None:
        """Host loops over what the ranges of others depend on, slices inside."""
        nest = self.state.nest(name)
        hosts = _tied(nest, {n for x in nest.loops for n in nest.around(x)})
        order = [x.name for x in nest.loops if x.name in hosts]
        if order:
            self.order(name, *order, *(x.name for x in nest.loops if x.name not in hosts))
            self.map(name, host=order)

    def product(self, name: str) -> bool:
        """A matrix product, for each setting of the summed loops that are none of its terms."""
        nest = self.state.nest(name)
        pair = product_factors(nest)
        if pair is None:
            return False
        both = nest.depends_on(pair[0]) & nest.depends_on(pair[1])
        taps = _mixed(nest)
        summed = [x for x in nest.loops if x.reduced]
        depth = [x.name for x in summed if x.name in both - taps]
        hosts = [x.name for x in summed if x.name not in depth]
        if product(nest.loop(n).extent for n in depth) == 1:
            return False
        outside = _tied(nest, set(hosts), depth)
        blocks = [x.name for x in nest.loops if x.name in outside and x.name not in hosts]
        free = [x.name for x in nest.loops if not (x.reduced or x.name in blocks)]
        depth = [n for n in depth if n not in blocks]
        hosts = [*blocks, *self._partial_sums(name, hosts)]
        if hosts:
            self.order(name, *hosts, *free, *depth)
        self.map(name, host=hosts, gemm=[*free, *depth])
        return True

    def _partial_sums(self, name: str, taps: list[str]) -> list[str]:
        """Taps whose terms are added up in blocks of `TAPS`: a longer sum loses accuracy."""
        nest = self.state.nest(name)
        if nest.reduction is None or nest.reduction.dtype != "f32":
            return taps
        lengths = [(n, nest.loop(n).extent.as_int()) for n in taps]
        long = next((n for n, length in reversed(lengths) if length is None or length > TAPS), None)
        if long is None:
            return taps
        fresh = self.names(name).fresh
        block, inside = fresh(f"{long}_block"), fresh(f"{long}_in")
        self.do(Split(name, long, TAPS, block, inside))
        self.do(Partial(name, block))
        at = taps.index(long)
        return [*taps[:at], block, inside, *taps[at + 1 :]]

    def columns(self, name: str) -> bool:
        """One product for all taps, then overlapping blocks are added up, within the cap."""
        piece = self.state.pieces()[name]
        contraction = contraction_of(piece, related=True)
        roles = columns_of(contraction) if contraction is not None else None
        if roles is None:
            return False
        made = self.tensor("columns")
        self.do(Columns(name, made))
        phases = self.dense(name, frozenset(v.name for v in roles.data))
        if phases is None:
            return False
        wide = bool(phases) and all(self._wide(name, step) for step in phases)
        data, outer = [v.name for v in roles.data], [v.name for v in roles.outer]
        flat = [v.name for v in (*roles.inner, *roles.taps)]
        merged = bool(data) and (roles.data[0].extent.as_int() or SHORT) < SHORT
        hosts = [v.name for v in roles.batch] + ([] if merged else outer)
        rows = [*(outer if merged else ()), *data]
        order = [*hosts, *rows, *flat] if wide else [*hosts, *flat, *rows]
        depth = [v.name for v in roles.depth]
        self.order(made, *order, *depth)
        if depth:
            self.map(made, gemm=[*order, *depth])
        hosts += self._blocks(name, made, roles, hosts)
        self._overlap(name, hosts, phases, wide)
        if hosts:
            self.do(Compute(made, name, hosts[-1]))
        return True

    def _wide(self, name: str, step: Phases) -> bool:
        """Whether results are in the order of block and phase, and phases are long."""
        nest = self.state.nest(name)
        length = nest.loop(step.phase).extent.as_int() or 0
        steps = [
            (i.coefficient(step.block).as_int(), i.coefficient(step.phase).as_int())
            for i in nest.piece.access.index
            if step.phase in i.free
        ]
        return length >= LONG_PHASES and steps == [(length, 1)]

    def _blocks(self, name: str, made: str, roles: Roles, hosts: Sequence[str]) -> list[str]:
        """Cut the results along the longest data axis, so that the columns of a block fit the cap."""
        nest, tensor = self.state.nest(name), self.state.system.tensor(made)
        every = [*roles.batch, *roles.outer, *roles.data, *roles.inner, *roles.taps]
        if not roles.data:
            return []
        long = max(roles.data, key=lambda v: v.extent.as_int() or 1 << 31)
        other = product(v.extent for v in every if v is not long and v.name not in hosts) * 4
        axis = every.index(long)
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
        if along is None or (size is not None and length is not None and size * length <= self.cap):
            return []
        block = BLOCK
        if size is not None:
            steps = (
                (index.coefficient(x.name).as_int(), x.extent.as_int())
                for x in nest.loops
                if x.reduced
            )
            halo = sum(abs(c or 0) * ((n or 1) - 1) for c, n in steps)
            block = min(65536, max(1, self.cap // max(1, size) - halo))
        known = along.extent.as_int()
        if known is not None and known <= block:
            return []
        fresh = self.names(name).fresh
        outer, inner = fresh(f"{along.name}_block"), fresh(f"{along.name}_in")
        self.do(Split(name, along.name, block, outer, inner))
        return [outer]

    def _overlap(
        self, name: str, hosts: Sequence[str], phases: Sequence[Phases], wide: bool
    ) -> None:
        """Taps on the host; held with blocks innermost, unless the results are in their own order."""
        nest = self.state.nest(name)
        taps = [x.name for x in nest.loops if x.reduced]
        own = [x.name for x in nest.loops if x.name not in (*hosts, *taps)]
        if not wide:
            blocks = [n for n in own if any(n.split("_in")[0] == s.block for s in phases)]
            own = [n for n in own if n not in blocks] + blocks
        taps = self._partial_sums(name, taps)
        self.order(name, *hosts, *taps, *own)
        self.map(name, host=[*hosts, *taps])


def _tied(nest: Nest, hosts: set[str], kept: Sequence[str] = ()) -> set[str]:
    """With these host loops, those of which a condition leaves one slice at most.

    Of two that it ties the longer one stays a slice, or the free one; one of `kept` before all others.
    """
    for pred in conditions_of(nest):
        tied = [x for x in nest.loops if x.name in pred.index.free and x.name not in hosts]
        plain = pred.kind == "ge" and all(pred.index.is_affine_in([x.name]) for x in tied)
        tied.sort(key=lambda x: (x.name in kept, x.extent.as_int() or 1 << 31, not x.reduced))
        hosts = hosts | {x.name for x in (tied[:-1] if plain else tied)}
    return hosts


def _mixed(nest: Nest) -> frozenset[str]:
    """Summed loops that are added to a free one in an index."""
    found: set[str] = set()
    reduction = nest.reduction
    for load in loads(reduction.body) if reduction is not None else ():
        for index in load.access.index:
            names = [x for x in nest.loops if x.name in nest.put(index).free]
            if any(not x.reduced for x in names):
                found |= {x.name for x in names if x.reduced}
    return frozenset(found)
