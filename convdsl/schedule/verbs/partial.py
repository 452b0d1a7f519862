"""partial: partial sums."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.schedule.nest import Nest
from convdsl.schedule.show import shown_names
from convdsl.schedule.step import LoopStep
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Partial(LoopStep):
    """Add up the terms of each iteration of a loop apart, and then to the total: blocked summation.

    before:  for ko                        after:  for ko
               for ki                                part = 0
                 acc += term                         for ki: part += term
                                                     acc += part

    Changes the order of the sum, and so its rounding: the error of long float sums falls.
    """

    verb: ClassVar[str] = "partial"
    form: ClassVar[str] = "partial EQUATION at LOOP"
    equation: str
    at: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take("at")
        return cls(equation, words.name("a loop"))

    def __str__(self) -> str:
        return f"partial {self.equation} at {self.at}"

    def on(self, nest: Nest) -> Nest:
        loop = self.find(nest, self.at)
        reduction = nest.reduction
        if reduction is None or reduction.op != "sum" or reduction.dtype != "f32":
            self.refuse(nest, "E0621", "only a sum of floats has partial sums", self.at)
        if not loop.reduced:
            summed = shown_names([x.name for x in nest.loops if x.reduced])
            self.refuse(
                nest, "E0621", f"`{self.at}` is not a summed loop", self.at,
                (f"the summed loops are: {summed}",),
            )  # fmt: skip
        if nest.partial not in (None, self.at):
            self.refuse(
                nest, "E0621", f"there are partial sums at `{nest.partial}` already", nest.partial
            )
        return replace(nest, partial=self.at)
