"""A schedule: the steps for one op and target, which print, parse and replay."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches

from convdsl.diagnostics import CdslError, Span
from convdsl.ir.equation import System
from convdsl.schedule.state import State, start
from convdsl.schedule.step import Step
from convdsl.schedule.verbs import VERBS
from convdsl.schedule.words import Words
from convdsl.syntax import ast


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps in order. `str(schedule)` is its text, and `parse_schedule(text)` gives it back."""

    op: str
    target: str
    steps: tuple[Step, ...] = ()
    spans: tuple[Span | None, ...] = ()

    def __str__(self) -> str:
        lines = "".join(f"    {step}\n" for step in self.steps)
        return f"schedule {self.op} for {self.target} {{\n{lines}}}\n"

    def then(self, *steps: Step) -> Schedule:
        """The schedule with further steps."""
        return replace(self, steps=(*self.steps, *steps), spans=())

    def replay(self, system: System) -> State:
        """What the steps make of a system; CdslError E06xx at the first that does not apply."""
        state = start(system)
        for n, step in enumerate(self.steps):
            try:
                state = step.apply(state)
            except CdslError as error:
                if error.span is None and n < len(self.spans):
                    error.span = self.spans[n]
                raise
        return state


def from_syntax(tree: ast.Schedule) -> Schedule:
    """A schedule from its syntax; CdslError E0600 for an unknown verb, E0601 for a wrong form."""
    steps = tuple(_step(line) for line in tree.steps)
    spans = tuple(line.span for line in tree.steps)
    return Schedule(tree.op.name, tree.target.name, steps, spans)


def _step(line: ast.Step) -> Step:
    verb, *rest = line.words
    kind = VERBS.get(verb)
    if kind is None:
        near = get_close_matches(verb, VERBS, 1)
        raise CdslError(
            "E0600", f"there is no verb `{verb}`", line.span,
            notes=(f"the verbs are: {', '.join(VERBS)}",),
            help=f"did you mean `{near[0]}`?" if near else None,
        )  # fmt: skip
    words = Words(rest, kind.form, line.span)
    step = kind.parse(words)
    words.end()
    return step


def pick(schedules: Iterable[ast.Schedule], op: str, target: str) -> Schedule | None:
    """The schedule for an op and target among those of a file; CdslError E0626 for two of them."""
    found = [s for s in schedules if s.op.name == op and s.target.name == target]
    if len(found) > 1:
        raise CdslError("E0626", f"there are two schedules of `{op}` for {target}", found[1].span)
    return from_syntax(found[0]) if found else None
