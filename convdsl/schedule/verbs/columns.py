"""columns: all products first, then overlapping ones are added up."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.passes.columns import column_equations, columns_of
from convdsl.passes.contraction import contraction_of
from convdsl.schedule.state import State
from convdsl.schedule.step import Step, why_not_new
from convdsl.schedule.verbs.relations import main_piece, refuse_relation
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Columns(Step):
    """Sum the indices that stand in no relation into a tensor of its own; im2col, GEMM + col2im.

    before:  y[n, o] = sum[c, k, l | l*s + k == o] x[n, c, l] * w[c, k]
    after:   col[n, l, k] = sum[c] x[n, c, l] * w[c, k]
             y[n, o]      = sum[k, l | l*s + k == o] col[n, l, k]
    """

    verb: ClassVar[str] = "columns"
    form: ClassVar[str] = "columns EQUATION -> NAME"
    equation: str
    name: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take("->")
        return cls(equation, words.name("a name for the columns"))

    def __str__(self) -> str:
        return f"columns {self.equation} -> {self.name}"

    def apply(self, state: State) -> State:
        pieces = main_piece(self, state, self.equation)
        contraction = contraction_of(pieces[0], related=True)
        columns = columns_of(contraction) if contraction is not None else None
        if columns is None:
            why = "it is no sum of products whose relations tie each operand to the result alone"
            refuse_relation(self, pieces[0], "E0624", why, "use `solve`, `phases` or `gather`")
        others = [nest.taken for nest in (state.nest(name) for name in state.pieces())]
        taken = why_not_new((self.name,), set().union(*others), state)
        if taken is not None:
            refuse_relation(self, pieces[0], "E0605", taken, "choose another name")
        tensor, product, rest = column_equations(self.name, pieces[0], columns)
        equations = []
        for equation in state.system.equations:
            if equation.tensor == self.equation:
                equations.append(product)
                equation = replace(equation, pieces=(rest, *pieces[1:]))
            equations.append(equation)
        tensors = (*state.system.tensors, tensor)
        system = replace(state.system, tensors=tensors, equations=tuple(equations))
        return replace(state, system=system)
