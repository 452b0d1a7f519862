"""vectorize: a loop as the lanes of a vec4."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from convdsl.ir.loop import LANES
from convdsl.schedule.nest import Nest
from convdsl.schedule.show import shown_names
from convdsl.schedule.step import LoopStep
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Vectorize(LoopStep):
    """Run the innermost loop, of four iterations, as one vec4 operation.

    before:  for j in 0..4                 after:  y[4*e .. 4*e + 3] += x * w[4*e .. 4*e + 3]
               y[4*e + j] += x * w[4*e + j]
    """

    verb: ClassVar[str] = "vectorize"
    form: ClassVar[str] = "vectorize EQUATION: LOOP"
    targets: ClassVar[tuple[str, ...]] = ("wgsl",)
    equation: str
    loop: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        return cls(equation, words.name("a loop"))

    def __str__(self) -> str:
        return f"vectorize {self.equation}: {self.loop}"

    def on(self, nest: Nest) -> Nest:
        loop = self.find(nest, self.loop)
        self.serial(nest, loop)
        if loop.extent != LANES:
            self.refuse(
                nest, "E0619", f"a vector has {LANES} lanes, `{self.loop}` has {loop.extent} iterations",
                self.loop, (), f"split it by {LANES} and vectorize the inner loop",
            )  # fmt: skip
        if loop.reduced:
            free = shown_names([x.name for x in nest.loops if not x.reduced])
            self.refuse(
                nest, "E0620", "a summed loop cannot be vectorized", self.loop, (),
                f"the free loops are: {free}",
            )  # fmt: skip
        return nest.with_level(self.loop, "vector")
