"""The states of a compiled kernel's schedule, one after each step, as text."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from convdsl.diagnostics import CdslError, InternalError
from convdsl.ir.equation import System
from convdsl.ir.index import sym
from convdsl.ir.text_expr import pred_text
from convdsl.schedule.nest import Nest
from convdsl.schedule.schedule import Schedule, pick
from convdsl.schedule.show import show_nest
from convdsl.schedule.state import State
from convdsl.schedule.state import start as begin
from convdsl.schedule.step import Step
from convdsl.syntax.parser import parse_schedules

if TYPE_CHECKING:
    from convdsl.kernel import Kernel


@dataclass(frozen=True, slots=True)
class Shot:
    """The program after a step; `step` is None before the first, `given` where the user wrote it."""

    step: Step | None
    given: bool
    state: State

    @property
    def nests(self) -> dict[str, str]:
        """The loops of each piece, and how its indices follow from them."""
        return {name: _text(self.state.nest(name)) for name in self.state.pieces()}


def _text(nest: Nest) -> str:
    out = [show_nest(nest)]
    indent = "  " * len(nest.loops)
    for name, value in nest.values.items():
        start = value - sym(name)
        if name in value.free and name not in start.free:  # the loop has the variable's name
            out += [f"{indent}  {name} from {start}"] if start != 0 else []
        else:
            out.append(f"{indent}  {name} = {value}")
    for tail in nest.tails:
        out.append(f"{indent}  where {pred_text(tail.condition)} (tail {tail.policy})")
    return "\n".join(out)


def applied(kernel: Kernel) -> Schedule:
    """The schedule of the variant that `kernel.source` shows.

    Raises:
        CdslError: E0627 for a target without schedules.
    """
    text, target = kernel.schedule, kernel.target
    if text is None:
        raise CdslError(
            "E0627",
            f"kernels for {target} have no schedule",
            help="show the kernel for wgsl; `--emit lower` prints the loops of any target",
        )
    found = pick(parse_schedules(text, "<schedule>"), kernel.options.op.name, target)
    if found is None:
        raise InternalError("the applied schedule is of another operator")
    return found


def shots(kernel: Kernel) -> list[Shot]:
    """The program before the first step and after each."""
    schedule, given = applied(kernel), kernel.options.schedule
    count = 0 if given is None else len(given.steps)
    system = kernel.executable.trace.steps["normalise"]
    assert isinstance(system, System)
    state = begin(system, schedule.target, kernel.options.accuracy)
    out = [Shot(None, False, state)]
    for number, step in enumerate(schedule.steps):
        out.append(Shot(step, number < count, step.apply(out[-1].state)))
    return out


def changes(before: Shot, after: Shot) -> dict[str, tuple[str, str]]:
    """The pieces whose loops a step changed: how they were, and are; empty where there was none."""
    old, new = before.nests, after.nests
    names = [*old, *(n for n in new if n not in old)]
    pairs = {n: (old.get(n, ""), new.get(n, "")) for n in names}
    return {n: pair for n, pair in pairs.items() if pair[0] != pair[1]}


def nest_lines(kernel: Kernel, steps: bool) -> list[str]:
    """The loops of each piece after the last step, or with what each step changed."""
    seen = shots(kernel)
    if not steps:
        return _nests(seen[-1], seen[-1].nests, "")
    out = ["before the first step", *_nests(seen[0], seen[0].nests, "  ")]
    for before, after in pairwise(seen):
        changed = {n: new for n, (_, new) in changes(before, after).items() if new}
        out += ["", str(after.step), *(_nests(after, changed, "  ") or ["  no change"])]
    return out


def _nests(shot: Shot, nests: dict[str, str], indent: str) -> list[str]:
    out: list[str] = []
    for name, text in nests.items():
        if out:
            out.append("")
        out.append(f"{indent}{name}:{how(shot.state, name)}")
        out += [f"{indent}  {line}" for line in text.split("\n")]
    return out


def how(state: State, name: str) -> str:
    """How a piece runs that no loop verb has touched."""
    if name in state.nests:
        return ""
    return " one thread a result" if state.target == "wgsl" else " slices over its taps"
