"""Sequences of schedule steps, legal and not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from convdsl.diagnostics import CdslError
from convdsl.passes.names import Names
from convdsl.schedule.nest import Nest, Target, operands, unsolved
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.state import State, start
from convdsl.schedule.step import Step
from convdsl.schedule.verbs.compute import Compute
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.gather import Gather
from convdsl.schedule.verbs.inline import Inline
from convdsl.schedule.verbs.interior import Interior
from convdsl.schedule.verbs.map import PLACES, Map
from convdsl.schedule.verbs.materialise import Materialise
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.partial import Partial
from convdsl.schedule.verbs.pipeline import Pipeline
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.verbs.stage import Stage
from convdsl.schedule.verbs.swizzle import Swizzle
from convdsl.schedule.verbs.unroll import Unroll
from convdsl.schedule.verbs.vectorize import Vectorize
from tests.strategies.chooser import WILD
from tests.strategies.relation_steps import FACTORS, ODD_FACTORS, RelationSteps
from tests.strategies.subjects import Subject, subjects

Tail = Literal["guard", "cut", "pad", "perfect"]

# -- steps -----------------------------------------------------------------------------------------
_TAILS = ("guard", "guard", "cut", "pad", "perfect")
_CUTS: tuple[Tail, ...] = ("guard", "cut")


class Draw(RelationSteps):
    """Draws steps that mostly fit a state."""

    def step(self, state: State) -> Step:
        pieces = state.pieces()
        equation = self.pick(list(pieces))
        if self.chance(2):
            equation = self.pick(WILD)
        if equation not in pieces:
            return Gather(equation) if self.chance(50) else Unroll(equation, ("k",))
        if self.chance(6):
            names = [t.name for t in state.system.tensors if t.role == "let"] or [equation]
            return self.pick((Inline, Inline, Materialise))(self.pick(names))
        tied = unsolved(pieces[equation]) is not None
        if not tied and equation not in state.nests and self.chance(12):
            return self.toom(state, equation)
        if not tied and equation not in state.nests and self.chance(12):
            return self.reindex(state, equation)
        if tied or self.chance(7):
            return self.relation(state, equation)
        return self.loops(state, equation, state.nest(equation))

    def loops(self, state: State, equation: str, nest: Nest) -> Step:
        names = [x.name for x in nest.loops] or ["zz"]
        free = [x.name for x in nest.loops if not x.reduced] or names
        summed = [x.name for x in nest.loops if x.reduced] or names
        if self.chance(4):
            names = free = summed = list(WILD)
        if self.chance(8):
            return self.tile_filling(equation, nest)
        if self.chance(6):
            return self.swizzle(equation, nest, names)
        kind = self.number(0, 24)
        if state.target == "numpy" and 14 <= kind <= 22:
            return self.on_host(state, equation, nest)
        if kind <= 6:
            factor = self.pick(FACTORS if self.chance(95) else ODD_FACTORS)
            tail = self.pick(_TAILS)
            outer = self.new(state, nest)
            inner = f"{outer}i" if self.chance(97) else outer
            return Split(equation, self.pick(names), factor, outer, inner, tail)  # type: ignore[arg-type]
        if kind <= 9:
            at = self.number(0, len(names) - 1)
            some = tuple(names[at : at + self.number(2, 3)])
            return Fuse(equation, some, self.new(state, nest))
        if kind <= 13:
            return Order(equation, self.some(names))
        if kind <= 17:
            some = self.some(free) if self.chance(85) else self.some(names)
            places = PLACES[state.target if self.chance(97) else "numpy"]
            return Map(equation, tuple((n, self.pick(places)) for n in some))
        if kind <= 20:
            known = list(operands(nest.reduction)) if nest.reduction is not None else ["x"]
            operand = self.pick(known or ["x"]) if self.chance(95) else self.pick(WILD)
            pad = self.pick((0, 0, 0, 1, 3, 65))
            return Stage(equation, operand, self.pick(summed), self.memory(), pad)  # type: ignore[arg-type]
        if kind <= 21:
            return Unroll(equation, self.some(names))
        if kind <= 22:
            fours = [x.name for x in nest.loops if x.extent == 4 and not x.reduced]
            return Vectorize(equation, self.pick(fours if fours and self.chance(80) else names))
        return Partial(equation, self.pick(summed))

    def tile_filling(self, equation: str, nest: Nest) -> Step:
        """A step on how a tile is filled."""
        tiles = [s.operand for s in nest.stages if s.memory == "workgroup"] or ["x"]
        if self.chance(5):
            tiles = list(WILD)
        kind: type[Pipeline | Interior] = Pipeline if self.chance(50) else Interior
        return kind(equation, self.some(tiles))

    def swizzle(self, equation: str, nest: Nest, names: Sequence[str]) -> Step:
        grid = [x.name for x in nest.loops if x.level == "grid"]
        one, two = self.some(grid, 2)[:2] if len(grid) > 1 else (names[0], names[-1])
        return Swizzle(equation, one, two, self.pick((1, 2, 2, 3, 4, 8, 0, 65537)))

    def on_host(self, state: State, equation: str, nest: Nest) -> Step:
        """Host loops outside, products inside, and tensors that are made there."""
        names = [x.name for x in nest.loops] or ["zz"]
        hosts = [x.name for x in nest.loops if x.on_host]
        kind = self.number(0, 9)
        if kind <= 3:
            some = self.some(names)
            rest = [n for n in names if n not in some]
            return Order(equation, (*some, *rest))
        if kind <= 5:
            others = [n for n in names if n not in hosts] or names
            return Map(equation, tuple((n, "gemm") for n in others))
        if kind <= 8:
            made = [q.tensor for q in state.system.equations if q.tensor != equation] or ["x"]
            return Compute(self.pick(made), equation, self.pick(hosts or names))
        return Unroll(equation, self.some(names))

    def memory(self) -> str:
        return self.pick(("workgroup", "workgroup", "register"))

    def tiles(self, state: State, equation: str) -> Iterator[Step]:
        """What a person would write for a sum of products: tiles, threads, copies, vectors."""
        nest = state.nest(equation)
        free = [x.name for x in nest.loops if not x.reduced]
        summed = [x.name for x in nest.loops if x.reduced]
        taken = set(nest.taken) | {t.name for t in state.system.tensors}
        names = Names(taken)
        tail: tuple[Tail, ...] = ("pad", "pad", "guard", "cut")
        grid, threads, mine = free[:-2], [], []
        for loop in free[-2:]:
            outer, rest = names.fresh("t"), names.fresh("r")
            yield Split(equation, loop, self.pick((4, 4, 8, 3)), outer, rest, self.pick(tail))
            grid.append(outer)
            if self.chance(60):
                lane, vector = names.fresh("l"), names.fresh("v")
                yield Split(equation, rest, self.pick((4, 4, 2)), lane, vector)
                threads.append(lane)
                mine.append(vector)
            else:
                threads.append(rest)
        deep: list[str] = summed or free or ["zz"]
        if summed:
            k, step, inside = summed[-1], names.fresh("ko"), names.fresh("ki")
            yield Split(equation, k, self.pick((2, 3, 4, 5)), step, inside, self.pick(tail))
            deep = [*summed[:-1], step, inside]
        yield Order(equation, (*grid, *threads, *(deep if summed else ()), *mine))
        yield Map(equation, (*((g, "grid") for g in grid), *((t, "thread") for t in threads)))
        if len(grid) > 1 and self.chance(40):
            yield Swizzle(equation, grid[-2], grid[-1], self.pick((2, 2, 3)))
        known = list(operands(nest.reduction)) if nest.reduction is not None else []
        for operand in known:
            if self.chance(75):
                yield Stage(equation, operand, self.pick(deep), "workgroup", self.number(0, 1))
                if self.chance(50):
                    yield Pipeline(equation, (operand,))
                if self.chance(40):
                    yield Interior(equation, (operand,))
            if self.chance(50):
                yield Stage(equation, operand, self.pick(deep), "register")
        if summed and self.chance(60):
            yield Partial(equation, self.pick(deep))
        if deep and self.chance(40):
            yield Unroll(equation, (deep[-1], *mine[:-1]))
        if mine and self.chance(60):
            yield Vectorize(equation, mine[-1])

    def products(self, state: State, equation: str) -> Iterator[Step]:
        """What a person would write for NumPy: taps and blocks on the host, products inside."""
        nest = state.nest(equation)
        names = Names(set(nest.taken) | {t.name for t in state.system.tensors})
        hosts: list[str] = []
        free: list[str] = []
        rest = [x.name for x in nest.loops]
        for loop in nest.loops:
            if self.chance(30):
                outer, inner = names.fresh("b"), names.fresh("i")
                yield Split(
                    equation,
                    loop.name,
                    self.pick((2, 3, 4)),
                    outer,
                    inner,
                    self.pick(("guard", "cut")),
                )
                hosts.append(outer)
                free += [] if loop.reduced else [outer]
                rest[rest.index(loop.name)] = inner
            elif self.chance(60 if loop.reduced else 30):
                hosts.append(loop.name)
                free += [] if loop.reduced else [loop.name]
                rest.remove(loop.name)
        worker = self.pick(free) if free and self.chance(50) else None
        hosts.sort(key=lambda n: n != worker)
        summed = [n for n in hosts if n in {x.name for x in nest.loops if x.reduced}]
        yield Order(equation, (*hosts, *rest))
        yield Map(equation, tuple((n, "worker" if n == worker else "host") for n in hosts))
        if self.chance(60):
            yield Map(equation, tuple((n, "gemm") for n in rest))
        if summed and self.chance(40):
            yield Partial(equation, self.pick(summed))
        for made in (q.tensor for q in reversed(state.system.equations)):  # readers first
            if made != equation and hosts and self.chance(70):
                yield Compute(made, equation, self.pick(hosts))

    def last(self, nest: Nest, equation: str, target: Target) -> list[Step]:
        """Steps that make it likely that the nest can run."""
        out: list[Step] = []
        free = [x for x in nest.loops if not x.reduced]
        if target == "numpy":
            hosts = [x.name for x in nest.loops if x.on_host]
            mine = [x.name for x in free if x.on_host] or [x.name for x in free]
            if mine and all(x.level != "worker" for x in nest.loops) and self.chance(90):
                worker = self.pick(mine)
                hosts = [worker, *(n for n in hosts if n != worker)]
                out.append(Map(equation, ((worker, "worker"),)))
            rest = [x.name for x in nest.loops if x.name not in hosts]
            return [*out, Order(equation, (*hosts, *rest))]
        threads = [x for x in free if x.level == "thread"]
        numbers = [x.name for x in free if x.level == "serial" and x.extent.as_int()]
        if not threads and numbers:
            out.append(Map(equation, tuple((n, "thread") for n in numbers[-self.number(1, 2) :])))
        vectors = [x.name for x in free if x.level == "vector"]
        if vectors:
            last = [x.name for x in nest.loops if x.level not in ("grid", "thread")][-1]
            if last != vectors[0]:
                out.append(Order(equation, (last, vectors[0])))
        return out


@dataclass(frozen=True, slots=True, repr=False)
class Scheduled:
    """A schedule of steps that apply, the state they lead to, and the refusals of those that do not."""

    subject: Subject
    schedule: Schedule
    state: State
    refused: tuple[CdslError, ...]

    def __repr__(self) -> str:
        return f"{self.subject!r}\n{self.schedule}"

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"\n{self!r}\n")


@st.composite
def scheduled(draw: st.DrawFn, target: Target = "wgsl", most: int = 14) -> Scheduled:
    """Steps that apply one after the other; those that are refused leave no trace."""
    subject = draw(subjects())
    drawn = Draw(draw)
    state = start(subject.system, target)
    schedule = Schedule(subject.system.name, target)
    arrange = drawn.products if target == "numpy" else drawn.tiles
    refused: list[CdslError] = []

    def do(step: Step) -> None:
        nonlocal schedule, state
        try:
            longer = schedule.then(step)
            state = step.apply(state)
            schedule = longer
        except CdslError as error:
            refused.append(error)

    for name in subject.kept:
        do(Materialise(name))
    if drawn.chance(30):
        for name in [t.name for t in state.system.tensors if t.role == "let"]:
            if drawn.chance(60):
                do(Inline(name))
    if drawn.chance(40):
        for name in list(state.pieces()):
            if unsolved(state.pieces()[name]) is not None:
                do(drawn.relation(state, name))
            if drawn.chance(30):
                do(drawn.toom(state, name))
        for name in list(state.pieces()):
            if unsolved(state.pieces()[name]) is None and drawn.chance(70):
                for step in arrange(state, name):
                    do(step)
        most = 2
    for _ in range(drawn.number(1, most) + drawn.number(0, most)):
        do(drawn.step(state))
    if drawn.chance(90):
        for name in list(state.nests):
            for step in drawn.last(state.nests[name], name, target):
                do(step)
    return Scheduled(subject, schedule, state, tuple(refused))
