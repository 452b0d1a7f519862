"""materialise: a `let` as a tensor."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from convdsl.schedule.state import State
from convdsl.schedule.step import Step, refuse_equation
from convdsl.schedule.verbs.relations import refuse_relation
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Materialise(Step):
    """Store a `let` that would be fused into what reads it; `compute_root` (Halide).

    before:  y[m, t] = sum[c] sin(a[c]*x[c, t]) * w[c, m]          materialise h
    after:   h[c, t] = sin(a[c]*x[c, t])
             y[m, t] = sum[c] h[c, t] * w[c, m]

    A `let` is fused where that repeats no work. Stored it is computed once, by a kernel that has a
    schedule of its own. Wherever the step stands, the `let` is an equation from the first step on.
    """

    verb: ClassVar[str] = "materialise"
    form: ClassVar[str] = "materialise EQUATION"
    equation: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        return cls(words.name("a let"))

    def __str__(self) -> str:
        return f"materialise {self.equation}"

    def apply(self, state: State) -> State:
        """Nothing is left to do: `normalise` has kept the `let` (`Schedule.kept`)."""
        pieces = {q.tensor: q.pieces for q in state.system.equations}
        if self.equation not in pieces:
            refuse_equation(self, self.equation, pieces)
        if state.system.tensor(self.equation).role == "output":
            why = f"`{self.equation}` is the result, which is stored anyway"
            refuse_relation(self, pieces[self.equation][0], "E0660", why, None)
        return state
