"""taps: a relation with a stride as a sum over the taps that reach each output."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from convdsl.passes.phases import equation_with, the_reduction
from convdsl.passes.taps import taps_relation
from convdsl.schedule.state import State
from convdsl.schedule.step import Step, why_not_new
from convdsl.schedule.verbs.relations import main_piece, refuse_relation
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Taps(Step):
    """Sum over the taps that reach each output; the output index stays whole, without holes.

    before:  y[o] = sum[k, l | l*s + k*d == o + p] x[l] * w[k]
    after:   y[o] = sum[j] x[t - d'*j] * w[j*s' + r]       with o + p = t*s + r*d, 0 <= r < s'
                                         where 0 <= t - d'*j < L and j*s' + r < K

    with s' = s / gcd(s, d) and d' = d / gcd(s, d). Written out along whole steps of the output, the
    phase r of each result is a number. An output that no tap reaches has the empty sum.
    """

    verb: ClassVar[str] = "taps"
    form: ClassVar[str] = "taps EQUATION over OUTPUT, TAP -> TAPS"
    targets: ClassVar[tuple[str, ...]] = ("wgsl",)
    equation: str
    output: str
    tap: str
    taps: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take("over")
        output = words.name("an output index")
        words.take(",")
        tap = words.name("a summed index")
        words.take("->")
        return cls(equation, output, tap, words.name())

    def __str__(self) -> str:
        return f"taps {self.equation} over {self.output}, {self.tap} -> {self.taps}"

    def apply(self, state: State) -> State:
        pieces = main_piece(self, state, self.equation)
        reduction = the_reduction(pieces[0].value)
        free = {v.name for v in pieces[0].vars}
        summed = {v.name for v in reduction.vars} if reduction is not None else set()
        why = why_not_new((self.taps,), free | summed, state)
        if why is not None:
            refuse_relation(self, pieces[0], "E0605", why, "choose another name")
        solved = None
        if self.output in free and self.tap in summed:
            solved = taps_relation(pieces[0], self.output, self.tap, self.taps)
        if solved is None:
            why = (
                f"no relation of `{self.equation}` ties the output `{self.output}` (with coefficient 1) "
                f"to `{self.tap}` and one more summed index"
            )
            if equation_with(pieces[0]) is None:
                why = f"`{self.equation}` has no relation"
            refuse_relation(self, pieces[0], "E0697", why, "use `solve` or `gather`")
        return state.with_pieces(self.equation, (solved, *pieces[1:]))
