"""interior: conditions tested once for a whole tile."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.schedule.nest import Nest
from convdsl.schedule.step import LoopStep
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Interior(LoopStep):
    """Fill tiles that lie inside without tests for their elements; loop partitioning (Halide, TVM).

    before:  x_tile[i] = 0 <= i - p < N ? x[i - p] : 0
    after:   if all i of the tile are inside:  x_tile[i] = x[i - p]
             else:                             x_tile[i] = 0 <= i - p < N ? x[i - p] : 0

    The test is the same for all threads of a workgroup and is made once a tile. A tile over fused loops
    is inside only where it does not run past the end of the inner one. What fills the tile is written
    twice, what uses it once. `stage` the operands in workgroup memory first.
    """

    verb: ClassVar[str] = "interior"
    form: ClassVar[str] = "interior EQUATION: OPERAND, ..."
    targets: ClassVar[tuple[str, ...]] = ("wgsl",)
    equation: str
    operands: tuple[str, ...]

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        return cls(equation, words.names())

    def __str__(self) -> str:
        return f"interior {self.equation}: {', '.join(self.operands)}"

    def on(self, nest: Nest) -> Nest:
        for operand in self.operands:
            stage = self.tile(nest, operand)
            if stage.interior:
                self.refuse(nest, "E0644", f"tiles of `{operand}` are tested already", stage.at)
            made = replace(stage, interior=True)
            nest = replace(nest, stages=tuple(made if s is stage else s for s in nest.stages))
        return nest
