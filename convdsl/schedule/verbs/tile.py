"""tile: several loops into tiles."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from convdsl.diagnostics import CdslError
from convdsl.schedule.step import Compound, Step
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Tile(Compound):
    """Split several loops, and put the inner ones inside; short for `split`s and an `order`.

    before:  for m, for n                  tile y: m by 128, n by 64 -> m_tile, n_tile, m_in, n_in
    after:   for m_tile, for n_tile        split y: m by 128 -> m_tile, m_in
               for m_in, for n_in          split y: n by 64 -> n_tile, n_in
                                           order y: m_tile, n_tile, m_in, n_in

    The names are those of the new loops from the outside to the inside. A schedule keeps and prints
    the steps that it stands for.
    """

    verb: ClassVar[str] = "tile"
    form: ClassVar[str] = (
        "tile EQUATION: LOOP by NUMBER, ... -> OUTER, ..., INNER, ... [tail guard|cut|pad|perfect]"
    )
    equation: str
    loops: tuple[tuple[str, int], ...]
    outer: tuple[str, ...]
    inner: tuple[str, ...]
    tail: Literal["guard", "cut", "pad", "perfect"] = "guard"

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        loops: list[tuple[str, int]] = []
        while not loops or words.accept(","):
            name = words.name("a loop")
            words.take("by")
            loops.append((name, words.number()))
        words.take("->")
        names = [words.name()]
        while len(names) < 2 * len(loops):
            words.take(",")
            names.append(words.name())
        tail = words.choice("guard", "cut", "pad", "perfect") if words.accept("tail") else "guard"
        outer, inner = tuple(names[: len(loops)]), tuple(names[len(loops) :])
        return cls(equation, tuple(loops), outer, inner, tail)  # type: ignore[arg-type]

    def steps(self) -> tuple[Step, ...]:
        count = len(self.loops)
        if not count == len(self.outer) == len(self.inner):
            raise CdslError(
                "E0601",
                f"{count} loops are not split into {len(self.outer)} outer and {len(self.inner)} "
                "inner ones",
                help=f"write it as: {self.form}",
            )
        splits = tuple(
            Split(self.equation, loop, factor, outer, inner, self.tail)
            for (loop, factor), outer, inner in zip(self.loops, self.outer, self.inner, strict=True)
        )
        order = Order(self.equation, (*self.outer, *self.inner))
        return (*splits, order) if count > 1 else splits
