"""map: loops onto the hardware."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from convdsl.schedule.nest import Nest
from convdsl.schedule.show import shown_names
from convdsl.schedule.step import LoopStep
from convdsl.schedule.words import Words

Where = Literal["grid", "thread", "serial"]


@dataclass(frozen=True, slots=True)
class Map(LoopStep):
    """Say which part of the hardware runs a loop; also called `bind` (TVM), `gpu_blocks` (Halide).

    before:  for t in 0..N
    after:   for t in 0..N grid            one workgroup an iteration
             for t in 0..N thread          one invocation of the workgroup an iteration
    """

    verb: ClassVar[str] = "map"
    form: ClassVar[str] = "map EQUATION: LOOP -> grid|thread|serial, ..."
    equation: str
    places: tuple[tuple[str, Where], ...]

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        places: list[tuple[str, Where]] = []
        while True:
            name = words.name("a loop")
            words.take("->")
            places.append((name, words.choice("grid", "thread", "serial")))  # type: ignore[arg-type]
            if not words.accept(","):
                return cls(equation, tuple(places))

    def __str__(self) -> str:
        return f"map {self.equation}: " + ", ".join(f"{n} -> {w}" for n, w in self.places)

    def on(self, nest: Nest) -> Nest:
        for name, where in self.places:
            loop = self.find(nest, name)
            if loop.reduced and where != "serial":
                self.refuse(
                    nest, "E0613", f"the summed loop `{name}` cannot run in parallel", name, (),
                    f"map free loops: {shown_names([x.name for x in nest.loops if not x.reduced])}",
                )  # fmt: skip
            if where == "thread" and loop.extent.as_int() is None:
                self.refuse(
                    nest, "E0614", f"`{name}` has {loop.extent} iterations; threads need a number",
                    name, (), "split it by a number first and map the inner loop",
                )  # fmt: skip
            nest = nest.with_level(name, where)
        return nest
