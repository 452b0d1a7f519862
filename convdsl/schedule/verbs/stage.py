"""stage: an operand in faster memory."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.schedule import nest as nests
from convdsl.schedule.nest import Memory, Nest, operands
from convdsl.schedule.show import shown_names
from convdsl.schedule.step import LoopStep, suggestion
from convdsl.schedule.words import Words

MOST_PAD = 64


@dataclass(frozen=True, slots=True)
class Stage(LoopStep):
    """Copy what one iteration of a loop reads of an operand; `cache_read` (TVM), `stage_mem` (Exo).

    before:  for ko                        after:  for ko
               for ki, i, j                          x_tile[ki, i] = x[...]     all threads together
                 y[i, j] += x[...] * w[...]          for ki, i, j
                                                       y[i, j] += x_tile[ki, i] * w[...]

    In `workgroup` memory all threads fill and share a tile; in `register`s each has a row of its own,
    with each element once where iterations written out share them.
    Where a tail or the domain leaves out a term the copy is zero, so a product needs no test. `pad`
    widens rows of a tile by that many elements, against bank conflicts; by a multiple of four they
    are still read as vectors.
    """

    verb: ClassVar[str] = "stage"
    form: ClassVar[str] = "stage EQUATION: OPERAND at LOOP in workgroup|register [pad NUMBER]"
    targets: ClassVar[tuple[str, ...]] = ("wgsl",)
    equation: str
    operand: str
    at: str
    memory: Memory
    pad: int = 0

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        operand = words.name("an operand")
        words.take("at")
        at = words.name("a loop")
        words.take("in")
        memory = words.choice("workgroup", "register")
        pad = words.number() if words.accept("pad") else 0
        return cls(equation, operand, at, memory, pad)  # type: ignore[arg-type]

    def __str__(self) -> str:
        pad = f" pad {self.pad}" if self.pad else ""
        return f"stage {self.equation}: {self.operand} at {self.at} in {self.memory}{pad}"

    def on(self, nest: Nest) -> Nest:
        loop = self.find(nest, self.at)
        reduction = nest.reduction
        known = operands(reduction) if reduction is not None and reduction.op == "sum" else {}
        if self.operand not in known:
            self.refuse(
                nest, "E0615", f"`{self.operand}` is no operand that can be staged", None,
                ("only factors of a sum of products can be", f"they are: {shown_names(list(known))}"),
                suggestion(self.operand, known),
            )  # fmt: skip
        if not loop.reduced:
            summed = shown_names([x.name for x in nest.loops if x.reduced])
            self.refuse(
                nest, "E0616", f"`{self.at}` is not a summed loop", self.at,
                (f"the summed loops are: {summed}",),
            )  # fmt: skip
        if any(s.operand == self.operand and s.memory == self.memory for s in nest.stages):
            why = f"`{self.operand}` is staged in {self.memory} memory already"
            self.refuse(nest, "E0617", why, self.at)
        if self.pad and (self.memory == "register" or self.pad > MOST_PAD):
            why = (
                "the rows of registers have no banks, so nothing is gained by a pad"
                if self.memory == "register"
                else f"a pad is a number from 0 to {MOST_PAD}"
            )
            self.refuse(nest, "E0606", why, self.at)
        made = nests.Stage(self.operand, self.at, self.memory, self.pad)
        return replace(nest, stages=(*nest.stages, made))
