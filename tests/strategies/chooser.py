"""Draws of names and of parts of sequences, for steps of schedules."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from convdsl.schedule.nest import Nest
from convdsl.schedule.state import State
from tests.strategies.drawing import Drawing, T

WILD = (
    "zz", "y", "x", "y.hole", "y.hole2", "N", "L", "sum", "else", "for", "in", "where", "k", "o",
)  # fmt: skip
_NEW = (
    "a", "b", "c", "ko", "ki", "acc", "part", "u", "v", "x_tile", "hit", "flat", "thread", "grid",
)  # fmt: skip


class Chooser(Drawing):
    """Draws that mostly fit."""

    def __init__(self, draw: st.DrawFn) -> None:
        self.draw = draw

    def some(self, items: Sequence[T], least: int = 1) -> tuple[T, ...]:
        """Some of the items in any order, or without any, what is drawn for `least` of none."""
        chosen = self.draw(st.permutations(list(items)))
        return tuple(chosen[: self.number(min(least, len(items)), len(items))])

    def new(self, state: State, nest: Nest | None) -> str:
        """A name that is new, most often."""
        if self.chance(3):
            return self.pick(WILD)
        tensors = {t.name for t in state.system.tensors}
        taken = tensors | (nest.taken if nest is not None else set())
        wanted, at = self.pick(_NEW), 0
        name = wanted
        while name in taken:
            at += 1
            name = f"{wanted}{at}"
        return name
