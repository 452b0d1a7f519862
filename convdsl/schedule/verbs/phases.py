"""phases: a relation with a stride as dense filters, one for each phase."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from convdsl.passes.phases import equation_with, split_relation, the_reduction
from convdsl.schedule.state import State
from convdsl.schedule.step import Step, why_not_new
from convdsl.schedule.verbs.relations import main_piece, refuse_relation
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Phases(Step):
    """Split an output index by the stride, so that each phase is a dense filter along the blocks.

    before:  y[o] = sum[k, l | l*s + k*d == o + p] x[l] * w[k]
    after:   y[t*s + r*d - p] = sum[j] x[t - d'*j] * w[j*s' + r]
                                         where 0 <= t - d'*j < L and j*s' + r < K

    with s' = s / gcd(s, d) and d' = d / gcd(s, d). Outputs that no tap reaches become the pieces
    `EQUATION.hole`, which hold the empty sum.
    """

    verb: ClassVar[str] = "phases"
    form: ClassVar[str] = "phases EQUATION over OUTPUT, TAP -> BLOCK, PHASE, TAPS"
    equation: str
    output: str
    tap: str
    block: str
    phase: str
    taps: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take("over")
        output = words.name("an output index")
        words.take(",")
        tap = words.name("a summed index")
        words.take("->")
        block = words.name()
        words.take(",")
        phase = words.name()
        words.take(",")
        return cls(equation, output, tap, block, phase, words.name())

    def __str__(self) -> str:
        new = f"{self.block}, {self.phase}, {self.taps}"
        return f"phases {self.equation} over {self.output}, {self.tap} -> {new}"

    def apply(self, state: State) -> State:
        pieces = main_piece(self, state, self.equation)
        fresh = (self.block, self.phase, self.taps)
        reduction = the_reduction(pieces[0].value)
        free = {v.name for v in pieces[0].vars}
        summed = {v.name for v in reduction.vars} if reduction is not None else set()
        why = why_not_new(fresh, free | summed, state)
        if why is not None:
            refuse_relation(self, pieces[0], "E0605", why, "choose another name")
        split = None
        if self.output in free and self.tap in summed:
            taken = {t.name for t in state.system.tensors}
            split = split_relation(pieces[0], self.output, self.tap, fresh, taken)
        if split is None:
            why = (
                f"no relation of `{self.equation}` ties the output `{self.output}` (with coefficient 1) "
                f"to `{self.tap}` and one more summed index"
            )
            if equation_with(pieces[0]) is None:
                why = f"`{self.equation}` has no relation"
            refuse_relation(self, pieces[0], "E0623", why, "use `solve` or `gather`")
        return state.with_pieces(self.equation, (split[0], *pieces[1:], *split[1:]))
