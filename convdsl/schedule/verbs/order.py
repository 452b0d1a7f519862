"""order: another order of loops."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.schedule.nest import Nest
from convdsl.schedule.step import LoopStep
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Order(LoopStep):
    """Put loops in this order, the first one outermost; also called `reorder` (Halide, Exo).

    before:  for a, for b, for c           order y: c, a
    after:   for c, for b, for a           (loops that are not named keep their places)
    """

    verb: ClassVar[str] = "order"
    form: ClassVar[str] = "order EQUATION: LOOP, LOOP, ..."
    equation: str
    loops: tuple[str, ...]

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        return cls(equation, words.names())

    def __str__(self) -> str:
        return f"order {self.equation}: {', '.join(self.loops)}"

    def on(self, nest: Nest) -> Nest:
        for name in self.loops:
            self.find(nest, name)
        if len(set(self.loops)) != len(self.loops):
            self.refuse(nest, "E0612", "a loop is named twice")
        wanted = iter([nest.loop(n) for n in self.loops])
        loops = tuple(next(wanted) if x.name in self.loops else x for x in nest.loops)
        return replace(nest, loops=loops)
