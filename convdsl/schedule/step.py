"""One step of a schedule: an immutable record that prints, parses and applies itself.

A step never changes what a program means. `apply` checks the verb's preconditions first; each has a
code, and its error shows the loop nest as it is at that step with the offending loop marked.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from difflib import get_close_matches
from typing import ClassVar, NoReturn, Self

from convdsl.diagnostics import CdslError, Note
from convdsl.ir.text_expr import pred_text
from convdsl.schedule.nest import Loop, Nest, Stage, unsolved
from convdsl.schedule.show import show_nest, shown_names
from convdsl.schedule.state import State
from convdsl.schedule.words import Words
from convdsl.syntax.scene import RESERVED

MOST_LOOPS = 64
MOST_WEIGHT = 2000


class Step(ABC):
    """A verb with its arguments. `form` shows how it is written."""

    verb: ClassVar[str]
    form: ClassVar[str]
    targets: ClassVar[tuple[str, ...]] = ("wgsl", "numpy")
    equation: str

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

    def check_target(self, state: State) -> None:
        """E0667: a verb that schedules for this target do not have."""
        if state.target not in self.targets:
            raise CdslError(
                "E0667",
                f"`{self}`: schedules for {state.target} have no `{self.verb}`",
                help=f"it is for: {', '.join(self.targets)}",
            )


class Compound(ABC):
    """A verb that is short for several steps, which take its place when a schedule is read."""

    verb: ClassVar[str]
    form: ClassVar[str]

    @classmethod
    @abstractmethod
    def parse(cls, words: Words) -> Self:
        """As that of a step."""

    @abstractmethod
    def steps(self) -> tuple[Step, ...]:
        """The steps that it stands for."""


class LoopStep(Step):
    """A step on the loops of one piece, `equation`."""

    def apply(self, state: State) -> State:
        self.check_target(state)
        pieces = state.pieces()
        if self.equation not in pieces:
            refuse_equation(self, self.equation, pieces)
        nest = state.nest(self.equation)
        relation = unsolved(nest.piece)
        if relation is not None:
            verbs = "`solve`, `phases` or `columns`"
            raise CdslError(
                "E0603",
                f"`{self}`: the relation of `{self.equation}` is not solved yet",
                notes=(f"it is: {pred_text(relation)}",),
                help=f"begin with `gather {self.equation}`, or with {verbs}",
            )
        why = why_not_new(self.made(), nest.taken, state)
        if why is not None:
            mark = next((n for n in self.made() if nest.has(n)), None)
            self.refuse(nest, "E0605", why, mark, (), "choose another name")
        after = self.on(nest)
        if len(after.loops) > MOST_LOOPS:
            why = f"the nest would have {len(after.loops)} loops, at most {MOST_LOOPS} are allowed"
            self.refuse(nest, "E0629", why)
        if after.weight > MOST_WEIGHT:
            why = "splits of fused loops have made the positions in the tensors too long to write"
            self.refuse(nest, "E0629", why, None, (), "fuse and split fewer times")
        return state.with_nest(self.equation, after)

    @abstractmethod
    def on(self, nest: Nest) -> Nest:
        """The nest after the step."""

    def made(self) -> tuple[str, ...]:
        """The names of the loops that the step makes."""
        return ()

    def find(self, nest: Nest, name: str) -> Loop:
        """The loop of that name; E0604 with what there is."""
        if nest.has(name):
            return nest.loop(name)
        names = [x.name for x in nest.loops]
        self.refuse(
            nest, "E0604", f"there is no loop `{name}`", None,
            (f"the loops are: {shown_names(names)}",), suggestion(name, names),
        )  # fmt: skip

    def plain(self, nest: Nest, loop: Loop) -> None:
        """The loop must be one that nothing else is tied to yet; E0628."""
        ties = [f"`{s.operand}` is staged at it" for s in nest.stages if s.at == loop.name]
        if nest.partial == loop.name:
            ties.append("its iterations are summed up apart")
        if nest.swizzle is not None and loop.name in nest.swizzle.loops:
            ties.append("it orders the workgroups")
        if loop.level in ("unroll", "vector"):
            ties.append("it is unrolled" if loop.level == "unroll" else "it is vectorized")
        if ties:
            self.refuse(
                nest, "E0628", f"`{loop.name}` has its place already: {ties[0]}", loop.name,
                (), f"put `{self.verb}` before that step",
            )  # fmt: skip

    def serial(self, nest: Nest, loop: Loop) -> None:
        """The loop must not be mapped to the grid or to threads; E0628."""
        if loop.level in _HARDWARE:
            self.refuse(
                nest, "E0628", f"`{loop.name}` is mapped to {_HARDWARE[loop.level]}", loop.name,
                (), f"`map {self.equation}: {loop.name} -> serial` takes it back",
            )  # fmt: skip

    def tile(self, nest: Nest, operand: str) -> Stage:
        """The tile in workgroup memory of an operand; E0644 where it has none."""
        tiles = {s.operand: s for s in nest.stages if s.memory == "workgroup"}
        if operand not in tiles:
            self.refuse(
                nest, "E0644", f"`{operand}` has no tile in workgroup memory", None,
                (f"those that have are: {shown_names(list(tiles))}",),
                suggestion(operand, tiles) or f"put `stage {self.equation}: ... in workgroup` first",
            )  # fmt: skip
        return tiles[operand]

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


_HARDWARE = {"grid": "the grid", "thread": "threads"}


def why_not_new(names: Sequence[str], taken: Iterable[str], state: State) -> str | None:
    """Why a name cannot be that of a new loop or tensor; None where all of them can."""
    system, seen = state.system, set(taken)
    tensors = {t.name for t in system.tensors}
    sizes = {*system.sizes, *(n for n, _ in system.definitions)}
    for name in names:
        if name in tensors:
            return f"`{name}` is the name of a tensor"
        if name in sizes:
            return f"`{name}` is the name of a size"
        if name in seen:
            return f"`{name}` is taken"
        if name in RESERVED:
            return f"`{name}` is a word of the language and never a name"
        if not (name.isascii() and name.replace("_", "a").isalnum()):
            return f"`{name}` is not one word of letters, digits and _"
        if not name[0].islower():
            return f"`{name}` does not begin with a lower-case letter, as names of loops do"
        seen.add(name)
    return None


def suggestion(name: str, names: Iterable[str]) -> str | None:
    """`did you mean ...?`, where something is near."""
    near = get_close_matches(name, list(names), 1)
    return f"did you mean `{near[0]}`?" if near else None


def refuse_equation(step: Step, name: str, known: Iterable[str]) -> NoReturn:
    """E0602: a step on an equation that is not there."""
    names = list(known)
    raise CdslError(
        "E0602",
        f"`{step}`: there is no equation `{name}`",
        notes=(f"the equations are: {shown_names(names)}",),
        help=suggestion(name, names),
    )
