"""map: loops onto the hardware."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, Self

from convdsl.diagnostics import CdslError
from convdsl.schedule.nest import Nest, Target
from convdsl.schedule.show import shown_names
from convdsl.schedule.state import State
from convdsl.schedule.step import LoopStep
from convdsl.schedule.words import Words

Where = Literal["grid", "thread", "serial", "host", "worker", "slice", "gemm"]
PLACES: dict[Target, tuple[Where, ...]] = {
    "wgsl": ("grid", "thread", "serial"),
    "numpy": ("host", "worker", "slice", "gemm"),
}


@dataclass(frozen=True, slots=True)
class Map(LoopStep):
    """Say what runs a loop; also called `bind` (TVM), `gpu_blocks` (Halide).

    before:  for t in 0..N
    after:   for t in 0..N grid            one workgroup an iteration
             for t in 0..N thread          one invocation of the workgroup an iteration
             for t in 0..N serial          an ordinary loop of a thread
             for t in 0..N host            a Python loop
             for t in 0..N worker          a Python loop, shared out among threads
             for t in 0..N slice           an axis of a NumPy expression
             for t in 0..N gemm            an axis of np.matmul; rows, columns or terms by its operands

    The first three are for WGSL, the others for NumPy.
    """

    verb: ClassVar[str] = "map"
    form: ClassVar[str] = "map EQUATION: LOOP -> grid|thread|serial|host|worker|slice|gemm, ..."
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
            places.append((name, words.choice(*(w for some in PLACES.values() for w in some))))  # type: ignore[arg-type]
            if not words.accept(","):
                return cls(equation, tuple(places))

    def __str__(self) -> str:
        return f"map {self.equation}: " + ", ".join(f"{n} -> {w}" for n, w in self.places)

    def apply(self, state: State) -> State:
        for name, where in self.places:
            if where not in PLACES[state.target]:
                raise CdslError(
                    "E0667", f"`{self}`: nothing in a schedule for {state.target} is mapped to {where}",
                    help=f"map `{name}` to one of: {', '.join(PLACES[state.target])}",
                )  # fmt: skip
        return super(Map, self).apply(state)

    def on(self, nest: Nest) -> Nest:
        for name, where in self.places:
            loop = self.find(nest, name)
            if loop.reduced and where in ("grid", "thread", "worker"):
                self.refuse(
                    nest, "E0613", f"the summed loop `{name}` cannot run in parallel", name, (),
                    f"map free loops: {shown_names([x.name for x in nest.loops if not x.reduced])}",
                )  # fmt: skip
            if where == "thread" and loop.extent.as_int() is None:
                self.refuse(
                    nest, "E0614", f"`{name}` has {loop.extent} iterations; threads need a number",
                    name, (), "split it by a number first and map the inner loop",
                )  # fmt: skip
            if where != "grid" and nest.swizzle is not None and name in nest.swizzle.loops:
                self.refuse(
                    nest, "E0628", f"`{name}` has its place already: it orders the workgroups", name,
                    (), "put `swizzle` after this step",
                )  # fmt: skip
            nest = nest.with_level(name, where)
        return nest
