"""swizzle: neighbouring workgroups share what they read."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.schedule import swizzle
from convdsl.schedule.nest import Nest
from convdsl.schedule.show import shown_names
from convdsl.schedule.step import LoopStep
from convdsl.schedule.words import Words

MOST = 65536  # rows of a group


@dataclass(frozen=True, slots=True)
class Swizzle(LoopStep):
    """Let workgroups run in groups of rows, column by column; also called grouped ordering (Triton).

    before:  for i grid                    after:  for g in groups of NUMBER rows
               for j grid                            for j
                                                       for i in the rows of g

    Those that run at the same time then read fewer rows and columns of the operands, which stay in
    the cache. Where NUMBER does not divide the rows, the last group has fewer; there are as many
    workgroups as before.
    """

    verb: ClassVar[str] = "swizzle"
    form: ClassVar[str] = "swizzle EQUATION: ROWS, COLUMNS by NUMBER"
    targets: ClassVar[tuple[str, ...]] = ("wgsl",)
    equation: str
    rows: str
    columns: str
    height: int

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        rows = words.name("a loop")
        words.take(",")
        columns = words.name("a loop")
        words.take("by")
        return cls(equation, rows, columns, words.number())

    def __str__(self) -> str:
        return f"swizzle {self.equation}: {self.rows}, {self.columns} by {self.height}"

    def on(self, nest: Nest) -> Nest:
        for name in (self.rows, self.columns):
            loop = self.find(nest, name)
            if loop.level != "grid":
                grid = [x.name for x in nest.loops if x.level == "grid"]
                self.refuse(
                    nest, "E0646", f"`{name}` does not run on the grid", name,
                    (f"the loops that do are: {shown_names(grid)}",),
                    f"map it first: `map {self.equation}: {name} -> grid`",
                )  # fmt: skip
        if self.rows == self.columns:
            self.refuse(
                nest, "E0646", "it takes two different loops", self.rows, (),
                f"write it as: {self.form}",
            )  # fmt: skip
        if nest.swizzle is not None:
            other = ", ".join(nest.swizzle.loops)
            self.refuse(
                nest, "E0646", f"the workgroups have an order already, by {other}", self.rows
            )
        if not 1 <= self.height <= MOST:
            self.refuse(nest, "E0606", f"a group has from 1 to {MOST} rows", self.rows)
        return replace(nest, swizzle=swizzle.Swizzle(self.rows, self.columns, self.height))
