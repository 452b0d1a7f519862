"""Sequences of schedule steps, legal and not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from hypothesis import strategies as st

from convdsl.diagnostics import CdslError
from convdsl.ir.expr import loads
from convdsl.passes.layout import Axis, Line, line_of
from convdsl.passes.names import Names
from convdsl.passes.reindex import indices_of
from convdsl.passes.toeplitz import ties_of
from convdsl.schedule.nest import Nest, Target, operands, unsolved
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.state import State, start
from convdsl.schedule.step import Step
from convdsl.schedule.verbs.columns import Columns
from convdsl.schedule.verbs.compute import Compute
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.gather import Gather
from convdsl.schedule.verbs.inline import Inline
from convdsl.schedule.verbs.interior import Interior
from convdsl.schedule.verbs.layout import Layout
from convdsl.schedule.verbs.map import PLACES, Map
from convdsl.schedule.verbs.materialise import Materialise
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.pack import Pack
from convdsl.schedule.verbs.pad import Pad
from convdsl.schedule.verbs.partial import Partial
from convdsl.schedule.verbs.phases import Phases
from convdsl.schedule.verbs.pipeline import Pipeline
from convdsl.schedule.verbs.reindex import Reindex
from convdsl.schedule.verbs.rfactor import Rfactor
from convdsl.schedule.verbs.solve import Solve
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.verbs.stage import Stage
from convdsl.schedule.verbs.swizzle import Swizzle
from convdsl.schedule.verbs.taps import Taps
from convdsl.schedule.verbs.toeplitz import Toeplitz
from convdsl.schedule.verbs.toom import Toom
from convdsl.schedule.verbs.unroll import Unroll
from convdsl.schedule.verbs.vectorize import Vectorize
from tests.strategies.chooser import WILD, Chooser
from tests.strategies.subjects import Subject, subjects

Tail = Literal["guard", "cut", "pad", "perfect"]

# -- steps -----------------------------------------------------------------------------------------
_FACTORS = (1, 2, 2, 3, 3, 4, 4, 4, 4, 5, 8, 16)
_ODD_FACTORS = (0, 1, 7, 31, 64, 4096, 65536, 65537, 999_999_999)
_TAILS = ("guard", "guard", "cut", "pad", "perfect")
_CUTS: tuple[Tail, ...] = ("guard", "cut")


class Draw(Chooser):
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

    def relation(self, state: State, equation: str) -> Step:
        piece = state.pieces()[equation]
        nest = state.nest(equation)
        free = [v.name for v in piece.vars] or ["o"]
        summed = ([v.name for v in nest.reduction.vars] if nest.reduction else []) or ["k"]
        if self.chance(3):
            free = summed = list(WILD)
        kind = self.number(0, 17)
        if kind >= 16:
            return self.toeplitz(state, equation, free, summed)
        if kind >= 14:
            return Taps(equation, self.pick(free), self.pick(summed), self.new(state, nest))
        if kind >= 12:
            length = self.pick(_FACTORS if self.chance(95) else _ODD_FACTORS)
            part = self.new(state, nest)
            return Rfactor(equation, self.pick(summed), length, part, f"{part}s")
        if kind <= 3:
            block = self.new(state, nest)
            new = (block, f"{block}r", f"{block}j")
            return Phases(equation, self.pick(free), self.pick(summed), *new)
        if kind <= 6:
            return Solve(equation, self.pick(summed))
        if kind <= 8:
            return Columns(equation, self.new(state, nest))
        if kind <= 9:
            reads = loads(piece.value)
            if reads:
                access = self.pick(reads).access
                axes = self.draw(st.permutations(range(len(access.dims))))
                name = self.new(state, nest)
                if axes:
                    return Pack(equation, access.tensor, tuple(axes), name)
        if kind <= 11:
            return Pad(equation, self.pick([*free, *summed]), self.pick((2, 3, 4, 0)))
        return Gather(equation)

    def toeplitz(
        self, state: State, equation: str, free: Sequence[str], summed: Sequence[str]
    ) -> Step:
        """Over indices that a relation ties, in whole steps, most often."""
        ties = ties_of(state.pieces()[equation])
        block = self.new(state, state.nest(equation))
        new = (block, f"{block}u", f"{block}a")
        if not ties or self.chance(5):
            out, data, length = self.pick(free), self.pick(summed), self.pick(_ODD_FACTORS)
            return Toeplitz(equation, out, data, length, *new)
        tie = self.pick(ties)
        length = self.number(1, 6) * (tie.least if self.chance(95) else 1)
        return Toeplitz(equation, tie.out.name, tie.data.name, length, *new)

    def reindex(self, state: State, equation: str) -> Step:
        """Of an operand by the indices that it depends on, most often."""
        piece, nest = state.pieces()[equation], state.nest(equation)
        reduction = nest.reduction
        known = operands(reduction) if reduction is not None else {}
        if reduction is None or not known or self.chance(3):
            return Reindex(equation, self.pick(WILD), self.some(WILD), self.new(state, nest))
        operand = self.pick(list(known))
        used = indices_of(piece, reduction, known[operand])
        indices = tuple(self.draw(st.permutations(used))) if self.chance(97) else self.some(WILD)
        if state.target == "wgsl" and self.chance(50):
            return self.layout(state, equation, operand, indices)
        return Reindex(equation, operand, indices, self.new(state, nest))

    def layout(self, state: State, equation: str, operand: str, indices: tuple[str, ...]) -> Step:
        """Along these indices, one of each sum; now and then rows of one over another."""
        piece, nest = state.pieces()[equation], state.nest(equation)
        reduction = nest.reduction
        assert reduction is not None
        axes: list[Axis] = []
        said: set[str] = set()
        for index in indices:
            if index in said:
                continue
            over = self.pick(indices) if self.chance(30) else None
            over = None if over in {*said, index} else over
            line = line_of(piece, reduction, operands(reduction)[operand], Axis(index, over))
            if isinstance(line, str) and over is not None and self.chance(95):
                over, line = (
                    None,
                    line_of(piece, reduction, operands(reduction)[operand], Axis(index)),
                )
            said |= set(line.terms) if isinstance(line, Line) else {index}
            said |= {over} if over is not None else set()
            axes.append(Axis(index, over, self.number(0, 40) if self.chance(20) else 0))
        return Layout(equation, operand, tuple(axes), self.new(state, nest))

    def toom(self, state: State, equation: str) -> Step:
        """Of sizes that are exact, so that results compare by ==, or of one that is refused."""
        piece, nest = state.pieces()[equation], state.nest(equation)
        summed = nest.reduction.vars if nest.reduction is not None else ()
        short = [v for v in summed if v.extent.as_int() in (2, 3)]
        along = [v.name for v in piece.vars] or ["o"]
        tap = self.pick(short) if short else None
        results = 7 if tap is None else 2 if tap.extent == 3 else self.number(2, 3)
        name = self.new(state, nest)
        tensors = (f"{name}x", f"{name}w", f"{name}z")
        loops = (f"{name}t", f"{name}u", f"{name}p")
        at = tap.name if tap is not None else "k"
        return Toom(equation, self.pick(along), at, results, tensors, loops)

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
            factor = self.pick(_FACTORS if self.chance(95) else _ODD_FACTORS)
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
