"""unroll: a loop written out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from convdsl.schedule.nest import Nest
from convdsl.schedule.step import LoopStep
from convdsl.schedule.words import Words

MOST = 64


@dataclass(frozen=True, slots=True)
class Unroll(LoopStep):
    """Write the iterations of short loops out in the text.

    before:  for k in 0..4                 after:  body with k = 0, then 1, 2, 3
    """

    verb: ClassVar[str] = "unroll"
    form: ClassVar[str] = "unroll EQUATION: LOOP, ..."
    targets: ClassVar[tuple[str, ...]] = ("wgsl",)
    equation: str
    loops: tuple[str, ...]

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        return cls(equation, words.names())

    def __str__(self) -> str:
        return f"unroll {self.equation}: {', '.join(self.loops)}"

    def on(self, nest: Nest) -> Nest:
        for name in self.loops:
            loop = self.find(nest, name)
            self.serial(nest, loop)
            extent = loop.extent.as_int()
            if extent is None or extent > MOST:
                shown = nest.loop(name).extent
                self.refuse(
                    nest, "E0618", f"`{name}` has {shown} iterations; at most {MOST} are written out",
                    name, (), "split it first and unroll the inner loop",
                )  # fmt: skip
            nest = nest.with_level(name, "unroll")
        return nest
