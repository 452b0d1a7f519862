"""What the compiler's own schedules for each target are built with."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from convdsl.ir.equation import System
from convdsl.passes.contraction import contraction_of
from convdsl.passes.names import Names
from convdsl.passes.phases import Phased, Solved, dense_form, equation_with
from convdsl.passes.plan import Choice
from convdsl.passes.plan_toom import filter_in
from convdsl.schedule.nest import Target, nest_of
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.state import State
from convdsl.schedule.step import Step
from convdsl.schedule.verbs.columns import Columns
from convdsl.schedule.verbs.gather import Gather
from convdsl.schedule.verbs.map import Map
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.phases import Phases
from convdsl.schedule.verbs.rfactor import Rfactor
from convdsl.schedule.verbs.solve import Solve
from convdsl.schedule.verbs.taps import Taps
from convdsl.schedule.verbs.toeplitz import Toeplitz
from convdsl.schedule.verbs.toom import Toom
from convdsl.syntax.scene import RESERVED

RELATIONS = Gather | Solve | Phases | Taps | Columns | Rfactor | Toeplitz | Toom


class Builder:
    """Applies each step as it adds it, so that later ones see what the loops have become.

    The steps of a `given` schedule come first.
    """

    def __init__(
        self, system: System, target: Target, given: Schedule | None, accuracy: str = "standard"
    ) -> None:
        self.given = given if given is not None else Schedule(system.name, target)
        self.state: State = self.given.replay(system, accuracy=accuracy)
        self.steps: list[Step] = []
        self.stated = {q.tensor for q in system.equations}
        self.data_first = [t.name for t in system.inputs]
        self.outside = {t.name for t in self.state.system.tensors} | set(system.sizes)
        self.outside |= {*(n for n, _ in system.definitions), *RESERVED}

    def pending(self, choices: Mapping[str, Choice]) -> Iterator[tuple[str, Choice | None]]:
        """Equations whose loops nobody has arranged.

        Without a choice where the given steps have treated the relations, or made the equation so
        that it has none.
        """
        treated = {s.equation for s in self.given.steps if isinstance(s, RELATIONS)}
        for equation in self.state.system.equations:
            name = equation.tensor
            stated = name in self.stated or equation_with(equation.pieces[0]) is not None
            if name not in self.state.nests and name not in self.state.sites:
                yield name, choices[name] if stated and name not in treated else None

    def schedule(self) -> Schedule:
        return self.given.then(*self.steps)

    def do(self, step: Step) -> None:
        self.state = step.apply(self.state)
        self.steps.append(step)

    def order(self, name: str, *loops: str) -> None:
        """Order loops, where there are some."""
        if loops:
            self.do(Order(name, loops))

    def map(self, name: str, **places: Sequence[str]) -> None:
        """Map loops, `map("y", grid=["n"], thread=["m"])`."""
        pairs = [(loop, where) for where, loops in places.items() for loop in loops]
        if pairs:
            self.do(Map(name, tuple(pairs)))  # type: ignore[arg-type]

    def dense(self, name: str, data: frozenset[str] = frozenset()) -> list[Phases] | None:
        """Solve the relations of an equation or split them into phases; None where that has no form.

        `data` names the variables that are solved for where sizes are unknown.
        """
        piece = self.state.pieces()[name]
        form = dense_form(piece, self.data_first, data)
        if form is None:
            return None
        phases: list[Phases] = []
        names = Names(nest_of(piece).taken | self.outside)
        known: dict[str, str] = {}
        for way in form.ways:
            match way:
                case Solved(variable):
                    self.do(Solve(name, known.get(variable, variable)))
                case Phased(output, tap, block, phase, taps):
                    known |= {n: names.fresh(n) for n in (block, phase, taps)}
                    new = (known[block], known[phase], known[taps])
                    phases.append(Phases(name, output, known.get(tap, tap), *new))
                    self.do(phases[-1])
        return phases

    def tied(self, name: str) -> bool:
        """Whether there is a relation left, which slices over the taps follow by themselves."""
        return equation_with(self.state.pieces()[name]) is not None

    def names(self, name: str) -> Names:
        """Fresh names for loops of an equation."""
        return Names(self.state.nest(name).taken | self.outside)

    def tensor(self, wanted: str) -> str:
        """The name of a new tensor, which no loop has either."""
        loops = (self.state.nest(n).taken for n in self.state.pieces())
        found = Names(self.outside.union(*loops)).fresh(wanted)
        self.outside.add(found)
        return found

    def toom(self, name: str, results: int) -> Toom | None:
        """Toom-Cook for an equation whose relations are solved, where it is one filter."""
        gemm = contraction_of(self.state.pieces()[name])
        found = filter_in(gemm) if gemm is not None else None
        if found is None:
            return None
        data, taps, made = (self.tensor(f"{name}_{n}") for n in ("data", "taps", "product"))
        fresh = self.names(name).fresh
        loops = fresh("tile"), fresh("u"), fresh("z")
        step = Toom(name, found.block.name, found.tap.name, results, (data, taps, made), loops)
        self.do(step)
        return step
