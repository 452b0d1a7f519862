"""compute: an intermediate tensor, a part at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, NoReturn, Self

from convdsl.diagnostics import CdslError, Note
from convdsl.ir.expr import loads
from convdsl.ir.index import sym
from convdsl.schedule.show import show_nest, shown_names
from convdsl.schedule.state import Site, State, is_read_at, readers_of
from convdsl.schedule.step import Step, refuse_equation, suggestion
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Compute(Step):
    """Compute what one iteration of a Python loop reads of a tensor just there; `compute_at` (Halide).

    before:  col[0..N, 0..L] = ...         after:  for n in 0..N
             for n in 0..N                           col[0..L] = ...       the part for this n
               y[n, ..] += col[n, ..]                y[n, ..] += col[..]

    The tensor is held as that part only, one for each thread in a worker loop. Neighbouring parts may
    overlap: what both need is computed twice. What an equation reads that is itself computed at LOOP may
    be computed there, too.
    """

    verb: ClassVar[str] = "compute"
    form: ClassVar[str] = "compute EQUATION at READER: LOOP"
    targets: ClassVar[tuple[str, ...]] = ("numpy",)
    equation: str
    reader: str
    loop: str

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take("at")
        reader = words.name("the equation that reads it")
        words.take(":")
        return cls(equation, reader, words.name("a loop"))

    def __str__(self) -> str:
        return f"compute {self.equation} at {self.reader}: {self.loop}"

    def apply(self, state: State) -> State:
        self.check_target(state)
        pieces = state.pieces()
        for name in (self.equation, self.reader):
            if name not in pieces:
                refuse_equation(self, name, pieces)
        site = Site(self.reader, self.loop)
        if not is_read_at(state, self.equation, site):
            shown = shown_names([f"`{n}`" for n in readers_of(state, self.equation)])
            self._refuse(f"`{self.equation}` is read by {shown}, not by `{self.reader}` alone")
        nest = state.nest(self.reader)
        if not nest.has(self.loop):
            names = [x.name for x in nest.loops]
            raise CdslError(
                "E0604", f"`{self}`: `{self.reader}` has no loop `{self.loop}`",
                notes=(f"the loops are: {shown_names(names)}",), help=suggestion(self.loop, names),
            )  # fmt: skip
        if not nest.loop(self.loop).on_host:
            self._refuse(
                f"`{self.loop}` is no host loop of `{self.reader}`",
                show_nest(nest, self.loop),
                f"`map {self.reader}: {self.loop} -> host`",
            )
        tensor = state.system.tensor(self.equation)
        (reader,) = readers_of(state, self.equation)
        split = any(load.access.dims != tensor.dims for load in loads(pieces[reader].value)
                    if load.access.tensor == self.equation)  # fmt: skip
        mine = [p for n, p in pieces.items() if n.split(".")[0] == self.equation]
        plain = all(p.access.index == tuple(sym(v.name) for v in p.vars) for p in mine)
        if split or not plain or tensor.role != "let":
            self._refuse(f"`{self.equation}` is not made and read an element an index")
        return replace(state, sites={**state.sites, self.equation: site})

    def _refuse(self, why: str, shown: str | None = None, help: str | None = None) -> NoReturn:
        notes = (Note(f"the loops of `{self.reader}` here:\n{shown}"),) if shown else ()
        raise CdslError("E0672", f"`{self}`: {why}", notes=notes, help=help)
