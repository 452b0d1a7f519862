"""rfactor: partial results as an equation of their own."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Reduce
from convdsl.passes.phases import the_reduction
from convdsl.passes.rfactor import is_box, rfactor_equations
from convdsl.schedule.show import shown_names
from convdsl.schedule.state import State
from convdsl.schedule.step import Step, why_not_new
from convdsl.schedule.verbs.relations import main_piece, refuse_relation, with_made
from convdsl.schedule.verbs.split import MOST
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Rfactor(Step):
    """Reduce blocks of a summed index apart, the block being an index of the result; split-K.

    before:  y[m] = b[m] + sum[c in 0..C] f(c, m)          rfactor y: c by F -> p, y_part
    after:   y_part[p, m] = sum[c in 0..F | p*F + c < C] f(p*F + c, m)
             y[m] = b[m] + sum[p in 0..ceil(C / F)] y_part[p, m]

    NUMBER is the length of a block: for P of them it is ceil(C / P). The summed index keeps its name and
    counts within a block. Sums, products, maxima and minima have partial results; what stands around
    them stays in EQUATION. So few results with many terms fill a GPU: `p` goes to the grid, and no order
    depends on time. Changes the order in which terms are added, and so the rounding.
    """

    verb: ClassVar[str] = "rfactor"
    form: ClassVar[str] = "rfactor EQUATION: VARIABLE by NUMBER -> PART, NAME"
    equation: str
    variable: str
    length: int
    part: str
    name: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        variable = words.name("a summed index")
        words.take("by")
        length = words.number("the length of a block")
        words.take("->")
        part = words.name("a name for the index of the blocks")
        words.take(",")
        return cls(equation, variable, length, part, words.name("a name for the partial results"))

    def __str__(self) -> str:
        new = f"{self.part}, {self.name}"
        return f"rfactor {self.equation}: {self.variable} by {self.length} -> {new}"

    def apply(self, state: State) -> State:
        pieces = main_piece(self, state, self.equation)
        reduction = self._reduction(pieces[0])
        if not 1 <= self.length <= MOST:
            why = f"a block has from 1 to {MOST} terms, not {self.length}"
            refuse_relation(self, pieces[0], "E0606", why, None)
        if reduction.otherwise is not None and not is_box(pieces[0], reduction):
            why = f"a block of the {reduction.op} may be empty where another one is not"
            help = "without `else`, or without a relation, there is nothing to tell apart"
            refuse_relation(self, pieces[0], "E0655", why, help)
        loops = set().union(*(state.nest(name).taken for name in state.pieces()))
        why_not = why_not_new((self.part,), state.nest(self.equation).taken, state)
        why_not = why_not or why_not_new((self.name,), {*loops, self.part}, state)
        if why_not is not None:
            refuse_relation(self, pieces[0], "E0605", why_not, "choose another name")
        tensor, blocks, rest = rfactor_equations(
            self.name, self.part, pieces[0], reduction, self.variable, self.length
        )
        system = with_made(state.system, self.equation, [tensor], [blocks], (rest, *pieces[1:]))
        return replace(state, system=system)

    def _reduction(self, piece: Piece) -> Reduce:
        """The reduction over the variable, whose range must not depend on other variables."""
        reduction = the_reduction(piece.value)
        summed = {v.name: v for v in reduction.vars} if reduction is not None else {}
        if reduction is None or self.variable not in summed:
            why = f"`{self.variable}` is not summed in `{self.equation}`"
            help = f"the summed indices are: {shown_names(list(summed))}"
            refuse_relation(self, piece, "E0653", why, help)
        var = summed[self.variable]
        around = {*summed, *(v.name for v in piece.vars)}
        depends = sorted((var.low.free | var.high.free) & around)
        if depends:
            why = (
                f"the range of `{self.variable}` depends on {', '.join(f'`{n}`' for n in depends)}"
            )
            help = "put it before the step that solved the relation, or use `phases`"
            refuse_relation(self, piece, "E0654", why, help)
        return reduction
