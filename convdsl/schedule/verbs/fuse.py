"""fuse: two loops into one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Self

from convdsl.ir.index import Index, const, floordiv, maximum, modulo, sym
from convdsl.ir.interval import interval
from convdsl.schedule.nest import Loop, Nest
from convdsl.schedule.show import shown_names
from convdsl.schedule.step import LoopStep
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Fuse(LoopStep):
    """Fuse neighbouring loops, the first one slowest; also called `mult_loops` (Exo).

    before:  for a in 0..N
               for b in 0..M
    after:   for ab in 0..N*M              with a = ab // M, b = ab % M
    """

    verb: ClassVar[str] = "fuse"
    form: ClassVar[str] = "fuse EQUATION: OUTER, INNER -> NAME"
    equation: str
    loops: tuple[str, ...]
    name: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        loops = words.names()
        words.take("->")
        return cls(equation, loops, words.name())

    def __str__(self) -> str:
        return f"fuse {self.equation}: {', '.join(self.loops)} -> {self.name}"

    def made(self) -> tuple[str, ...]:
        return (self.name,)

    def on(self, nest: Nest) -> Nest:
        found = [self.find(nest, name) for name in self.loops]
        if len(set(self.loops)) != len(self.loops) or len(self.loops) < 2:
            self.refuse(
                nest, "E0609", "it takes two or more different loops", self.loops[0], (),
                f"write it as: {self.form}",
            )  # fmt: skip
        for loop in found:
            self.plain(nest, loop)
        together = nest.neighbours(self.loops)
        if together is None:
            self.refuse(
                nest, "E0610", "the loops do not stand one inside the other", self.loops[1],
                (), f"put them together first: `order {self.equation}: {', '.join(self.loops)}`",
            )  # fmt: skip
        if len({x.reduced for x in found}) > 1:
            summed = shown_names([x.name for x in nest.loops if x.reduced])
            self.refuse(
                nest, "E0611", "a summed loop cannot be fused with a free one", self.loops[1],
                (f"the summed loops are: {summed}",), "fuse free loops, or summed ones",
            )  # fmt: skip
        if len({x.level for x in found}) > 1:
            levels = ", ".join(f"`{x.name}` {x.level}" for x in found)
            self.refuse(
                nest, "E0611", "the loops are mapped to different places", self.loops[1],
                (f"they are: {levels}",), "fuse them before they are mapped",
            )  # fmt: skip
        for loop in found:
            tied = nest.around(loop) & set(self.loops)
            if tied:
                self.refuse(
                    nest, "E0640", f"the extent of `{loop.name}` depends on `{min(tied)}`, so that "
                    "both together have no fixed number of iterations", loop.name,
                )  # fmt: skip
        values, rest = {}, sym(self.name)
        extent = _count(found[0])
        for loop in reversed(found[1:]):
            width = _count(loop)
            divisor = const(1) if width == 0 else width
            values[loop.name] = modulo(rest, divisor)
            rest = floordiv(rest, divisor)
            extent = extent * width
        values[found[0].name] = rest
        made = (Loop(self.name, extent, found[0].reduced, found[0].level),)
        return together.replaced(self.loops, made, values)


def _count(loop: Loop) -> Index:
    """The number of iterations. The bounds of a solved sum may cross: then there are none."""
    low = interval(loop.extent, {})[0]
    return maximum(loop.extent, 0) if loop.reduced and (low is None or low < 0) else loop.extent
