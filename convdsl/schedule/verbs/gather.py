"""gather: solve every relation, so that loops visit only points that count."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from convdsl.passes.gather import gather_piece
from convdsl.schedule.state import State
from convdsl.schedule.step import Step, refuse_equation
from convdsl.schedule.verbs.relations import refuse_scheduled
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Gather(Step):
    """Each result adds up its own terms; loops run only over taps that reach it.

    before:  y[o] = sum[k, l | l*s + k*d == o + p] x[l] * w[k]
    after:   y[o] = sum[l in max(0, ..)..min(L, ..)] x[l] * w[(o + p - l*s) // d]
    """

    verb: ClassVar[str] = "gather"
    form: ClassVar[str] = "gather EQUATION"
    equation: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        return cls(words.name("an equation"))

    def __str__(self) -> str:
        return f"gather {self.equation}"

    def apply(self, state: State) -> State:
        pieces = state.pieces()
        if self.equation not in pieces:
            refuse_equation(self, self.equation, pieces)
        refuse_scheduled(self, state, self.equation)
        tensor = self.equation.split(".")[0]
        mine = {n: p for n, p in pieces.items() if n.split(".")[0] == tensor}
        mine[self.equation] = gather_piece(mine[self.equation])
        return state.with_pieces(tensor, tuple(mine.values()))
