"""One step of a schedule: an immutable record that prints, parses and applies itself.

A step never changes what a program means. `apply` checks the verb's preconditions first; each has a
code, and its error shows the loop nest as it is at that step with the offending loop marked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from difflib import get_close_matches
from typing import ClassVar, NoReturn, Self

from convdsl.diagnostics import CdslError, Note
from convdsl.schedule.nest import Loop, Nest
from convdsl.schedule.show import show_nest
from convdsl.schedule.state import State
from convdsl.schedule.words import Words


class Step(ABC):
    """A verb with its arguments. `form` shows how it is written."""

    verb: ClassVar[str]
    form: ClassVar[str]

    @classmethod
    @abstractmethod
    def parse(cls, words: Words) -> Self:
        """The step from the words after its verb; E0601 when they do not fit the form."""

    @abstractmethod
    def __str__(self) -> str:
        """The step as it is written in a schedule; `parse` reads it back."""

    @abstractmethod
    def apply(self, state: State) -> State:
        """The state after the step; CdslError E06xx where a precondition does not hold."""


class LoopStep(Step):
    """A step on the loops of one piece, `equation`."""

    equation: str

    def apply(self, state: State) -> State:
        pieces = state.pieces()
        if self.equation not in pieces:
            refuse_equation(self, self.equation, pieces)
        nest = state.nest(self.equation)
        reduction = nest.reduction
        if reduction is not None and any(p.kind == "eq" for p in reduction.constraints):
            raise CdslError(
                "E0603",
                f"`{self}` comes before the relation of `{self.equation}` is solved",
                help=f"begin with `gather {self.equation}`, `solve`, `phases` or `columns`",
            )
        return state.with_nest(self.equation, self.on(nest))

    @abstractmethod
    def on(self, nest: Nest) -> Nest:
        """The nest after the step."""

    def find(self, nest: Nest, name: str) -> Loop:
        """The loop of that name; E0604 with what there is."""
        if nest.has(name):
            return nest.loop(name)
        names = [x.name for x in nest.loops]
        near = get_close_matches(name, names, 1)
        self.refuse(
            nest, "E0604", f"there is no loop `{name}`", None,
            (f"the loops are: {', '.join(names)}",),
            f"did you mean `{near[0]}`?" if near else None,
        )  # fmt: skip

    def fresh(self, nest: Nest, names: Iterable[str]) -> None:
        """The names must be new; E0605."""
        seen: set[str] = set()
        for name in names:
            if nest.has(name) or name in nest.values or name in seen:
                self.refuse(nest, "E0605", f"`{name}` is taken", name, (), "choose another name")
            seen.add(name)

    def refuse(
        self,
        nest: Nest,
        code: str,
        why: str,
        mark: str | None = None,
        notes: tuple[str, ...] = (),
        help: str | None = None,
    ) -> NoReturn:
        """Raise the error of a precondition, with the nest as it is now."""
        shown = Note(f"the loops of `{self.equation}` here:\n{show_nest(nest, mark)}")
        raise CdslError(code, f"`{self}`: {why}", None, notes=(*notes, shown), help=help)


def refuse_equation(step: Step, name: str, known: Iterable[str]) -> NoReturn:
    """E0602: a step on an equation that is not there."""
    names = list(known)
    near = get_close_matches(name, names, 1)
    raise CdslError(
        "E0602",
        f"`{step}`: there is no equation `{name}`",
        notes=(f"the equations are: {', '.join(names)}",),
        help=f"did you mean `{near[0]}`?" if near else None,
    )
