"""solve: one relation solved for one of its variables."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from convdsl.passes.phases import equation_with, solve_for, the_reduction
from convdsl.schedule.state import State
from convdsl.schedule.step import Step
from convdsl.schedule.verbs.relations import main_piece, refuse_relation
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Solve(Step):
    """Put a summed variable with coefficient 1 or -1 in terms of the others.

    before:  y[o] = sum[k, l | o*s + k*d == l + p] x[l] * w[k]
    after:   y[o] = sum[k] x[o*s + k*d - p] * w[k]        where 0 <= o*s + k*d - p < L
    """

    verb: ClassVar[str] = "solve"
    form: ClassVar[str] = "solve EQUATION for VARIABLE"
    equation: str
    variable: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take("for")
        return cls(equation, words.name("a variable"))

    def __str__(self) -> str:
        return f"solve {self.equation} for {self.variable}"

    def apply(self, state: State) -> State:
        pieces = main_piece(self, state, self.equation)
        reduction = the_reduction(pieces[0].value)
        summed = [v.name for v in reduction.vars] if reduction is not None else []
        solved = solve_for(pieces[0], self.variable) if self.variable in summed else None
        if solved is None:
            found = equation_with(pieces[0], self.variable)
            why = (
                f"`{self.variable}` is not summed"
                if self.variable not in summed
                else f"`{self.variable}` stands in no relation"
                if found is None
                else f"the coefficient of `{self.variable}` in the relation is not 1 or -1"
            )
            can = [f"`{n}`" for n in summed if solve_for(pieces[0], n) is not None]
            help = f"solve for {' or '.join(can)}" if can else "use `phases` or `gather`"
            refuse_relation(self, pieces[0], "E0622", why, help)
        return state.with_pieces(self.equation, (solved, *pieces[1:]))
