"""pipeline: tiles that are read ahead."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.schedule.nest import Nest
from convdsl.schedule.step import LoopStep
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Pipeline(LoopStep):
    """Read the next tile into registers while the current one is used; software pipelining (TVM).

    before:  for ko                        after:  next = x[...]              of the first tile
               x_tile = x[...]                     for ko
               y += x_tile * ...                     x_tile = next
                                                     next = x[...]            of the following tile
                                                     y += x_tile * ...

    The loops around the one at which the tile is staged go on into each other where each has an
    iteration for certain. `stage` the operands in workgroup memory first.
    """

    verb: ClassVar[str] = "pipeline"
    form: ClassVar[str] = "pipeline EQUATION: OPERAND, ..."
    targets: ClassVar[tuple[str, ...]] = ("wgsl",)
    equation: str
    operands: tuple[str, ...]

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        return cls(equation, words.names())

    def __str__(self) -> str:
        return f"pipeline {self.equation}: {', '.join(self.operands)}"

    def on(self, nest: Nest) -> Nest:
        for operand in self.operands:
            stage = self.tile(nest, operand)
            if stage.ahead:
                self.refuse(nest, "E0644", f"`{operand}` is read ahead already", stage.at)
            made = replace(stage, ahead=True)
            nest = replace(nest, stages=tuple(made if s is stage else s for s in nest.stages))
        return nest
