"""pad: an index to a multiple."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import ClassVar, Self

from convdsl.ir.equation import accesses
from convdsl.passes.padding import pad_index, padded_axes
from convdsl.schedule.state import State
from convdsl.schedule.step import Step
from convdsl.schedule.verbs.relations import main_piece, refuse_relation, refuse_scheduled
from convdsl.schedule.verbs.split import MOST
from convdsl.schedule.words import Words


@dataclass(frozen=True, slots=True)
class Pad(Step):
    """Pad an index to a multiple, so that tiles have no rest; the operands are longer, and zero there.

    before:  z[t] = sum[c in 0..10] a[c, t] * b[c]           pad z: c to 4
    after:   z[t] = sum[c in 0..12] a[c, t] * b[c]           a[c, t] = b[c] = 0 for c in 10..12

    The operands read along the index are tensors that the program makes (by `toom`, `pack`, a `let`),
    and so is EQUATION itself where the index is free: what is added to it nobody reads.
    """

    verb: ClassVar[str] = "pad"
    form: ClassVar[str] = "pad EQUATION: INDEX to NUMBER"
    equation: str
    index: str
    multiple: int

    @classmethod
    def parse(cls, words: Words) -> Self:
        equation = words.name("an equation")
        words.take(":")
        index = words.name("an index")
        words.take("to")
        return cls(equation, index, words.number("the number that its length is a multiple of"))

    def __str__(self) -> str:
        return f"pad {self.equation}: {self.index} to {self.multiple}"

    def apply(self, state: State) -> State:
        pieces = main_piece(self, state, self.equation)
        if not 1 <= self.multiple <= MOST:
            why = f"the multiple is a number from 1 to {MOST}"
            refuse_relation(self, pieces[0], "E0606", why, None)
        axes = padded_axes(state.system, self.equation, self.index)
        if isinstance(axes, str):
            refuse_relation(self, pieces[0], "E0674", axes, "use `tail pad` of `split` instead")
        for label in touching(state, axes):
            refuse_scheduled(self, state, label)
        system = pad_index(state.system, self.equation, self.index, self.multiple, axes)
        return replace(state, system=system)


def touching(state: State, tensors: Collection[str]) -> list[str]:
    """The pieces that make or read one of the tensors."""
    pieces = state.pieces().items()
    return [label for label, p in pieces if any(a.tensor in tensors for a in accesses(p))]
