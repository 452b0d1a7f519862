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
from convdsl.passes.lower_numpy import as_stated
from convdsl.passes.plan import Algorithm, Choice
from convdsl.passes.whole_matrix import matrix_sides
from convdsl.schedule.builder import Builder
from convdsl.schedule.check_numpy import check_numpy
from convdsl.schedule.check_sites import check_sites
from convdsl.schedule.chunks_numpy import chunked, in_chunks
from convdsl.schedule.columns_numpy import columned
from convdsl.schedule.default_numpy_toom import toom_loops
from convdsl.schedule.nest import Nest, conditions_of, product_factors
from convdsl.schedule.partial_numpy import partial_sums
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.slices_numpy import sliced
from convdsl.schedule.toeplitz_numpy import toeplitz_loops
from convdsl.schedule.verbs.gather import Gather
from convdsl.schedule.verbs.solve import Solve
from convdsl.schedule.verbs.toom import Toom


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
        if self.attempt(lambda: self._arranged(name, choice.algorithm, choice.results)):
            return True
        # Slices over the taps come last: they are no matrix product.
        plain = choice.algorithm in ("columns", "phases") and choice.results == 0
        return plain and self.attempt(lambda: self.dense(name) is not None and self.product(name))

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
                return columned(self, name, self.cap, self.cpu)
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
        outside |= (
            {x.name for x in nest.loops} - nest.depends_on(pair[0]) - nest.depends_on(pair[1])
        )
        blocks = [x.name for x in nest.loops if x.name in outside and x.name not in hosts]
        free = [x.name for x in nest.loops if not (x.reduced or x.name in blocks)]
        depth = [n for n in depth if n not in blocks]
        hosts = [*blocks, *partial_sums(self, name, hosts)]
        if hosts:
            self.order(name, *hosts, *free, *depth)
        self.map(name, host=hosts, gemm=[*free, *depth])
        return True


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
