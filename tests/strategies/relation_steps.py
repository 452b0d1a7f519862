"""Steps on relations and operands, as `tests.strategies.schedules` draws them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from hypothesis import strategies as st

from convdsl.ir.expr import loads
from convdsl.passes.layout import Axis, Line, line_of
from convdsl.passes.reindex import indices_of
from convdsl.passes.toeplitz import ties_of
from convdsl.schedule.nest import operands
from convdsl.schedule.state import State
from convdsl.schedule.step import Step
from convdsl.schedule.verbs.columns import Columns
from convdsl.schedule.verbs.gather import Gather
from convdsl.schedule.verbs.layout import Layout
from convdsl.schedule.verbs.pack import Pack
from convdsl.schedule.verbs.pad import Pad
from convdsl.schedule.verbs.phases import Phases
from convdsl.schedule.verbs.reindex import Reindex
from convdsl.schedule.verbs.rfactor import Rfactor
from convdsl.schedule.verbs.solve import Solve
from convdsl.schedule.verbs.taps import Taps
from convdsl.schedule.verbs.toeplitz import Toeplitz
from convdsl.schedule.verbs.toom import Toom
from tests.strategies.chooser import WILD, Chooser

Tail = Literal["guard", "cut", "pad", "perfect"]


FACTORS = (1, 2, 2, 3, 3, 4, 4, 4, 4, 5, 8, 16)
ODD_FACTORS = (0, 1, 7, 31, 64, 4096, 65536, 65537, 999_999_999)


class RelationSteps(Chooser):
    """Draws steps that rewrite equations, most of them possible."""

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
            length = self.pick(FACTORS if self.chance(95) else ODD_FACTORS)
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
            out, data, length = self.pick(free), self.pick(summed), self.pick(ODD_FACTORS)
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
