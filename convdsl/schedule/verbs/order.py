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
        twice = next((n for n in self.loops if self.loops.count(n) > 1), None)
        if twice is not None:
            self.refuse(nest, "E0612", f"`{twice}` is named twice", twice)
        wanted = iter([nest.loop(n) for n in self.loops])
        loops = tuple(next(wanted) if x.name in self.loops else x for x in nest.loops)
        seen: set[str] = set()
        for loop in loops:
            missing = nest.around(loop) - seen
            if missing:
                self.refuse(
                    nest, "E0640", f"the extent of `{loop.name}` depends on `{min(missing)}`, which "
                    "must stay around it", loop.name,
                )  # fmt: skip
            seen.add(loop.name)
        return replace(nest, loops=loops)
