"""A schedule: the steps for one op and target, which print, parse and replay."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal, get_args

from convdsl.diagnostics import CdslError, Span
from convdsl.ir.equation import System
from convdsl.passes.layout import Axis
from convdsl.schedule.check import check_nest
from convdsl.schedule.check_numpy import check_numpy
from convdsl.schedule.check_sites import check_sites
from convdsl.schedule.nest import Memory, Target
from convdsl.schedule.show import shown_names
from convdsl.schedule.state import State, start
from convdsl.schedule.step import Compound, Step, suggestion
from convdsl.schedule.verbs import COMPOUNDS, VERBS
from convdsl.schedule.verbs.columns import Columns
from convdsl.schedule.verbs.compute import Compute
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.gather import Gather
from convdsl.schedule.verbs.inline import Inline
from convdsl.schedule.verbs.interior import Interior
from convdsl.schedule.verbs.layout import Layout
from convdsl.schedule.verbs.map import Map, Where
from convdsl.schedule.verbs.materialise import Materialise
from convdsl.schedule.verbs.order import Order
from convdsl.schedule.verbs.pack import Pack
from convdsl.schedule.verbs.pad import Pad
from convdsl.schedule.verbs.partial import Partial
from convdsl.schedule.verbs.phases import Phases
from convdsl.schedule.verbs.pipeline import Pipeline
from convdsl.schedule.verbs.reindex import Reindex
from convdsl.schedule.verbs.rfactor import Rfactor
from convdsl.schedule.verbs.solve import Solve
from convdsl.schedule.verbs.split import Split
from convdsl.schedule.verbs.stage import Stage
from convdsl.schedule.verbs.swizzle import Swizzle
from convdsl.schedule.verbs.taps import Taps
from convdsl.schedule.verbs.tile import Tile
from convdsl.schedule.verbs.toeplitz import Toeplitz
from convdsl.schedule.verbs.toom import Toom
from convdsl.schedule.verbs.unroll import Unroll
from convdsl.schedule.verbs.vectorize import Vectorize
from convdsl.schedule.words import Words, words_of
from convdsl.syntax import ast
from convdsl.syntax.parser import parse_schedules

TARGETS: tuple[Target, ...] = get_args(Target)

# What other languages call it.
ELSEWHERE = {
    "divide_loop": "`split`",
    "mult_loops": "`fuse`",
    "reorder": "`order`",
    "interchange": "`order`",
    "bind": "`map`",
    "parallel": "`map`",
    "gpu_blocks": "`map`, to `grid`",
    "gpu_threads": "`map`, to `thread`",
    "cache_read": "`stage`",
    "stage_mem": "`stage`",
    "compute_at": "`compute` for a tensor, `stage` for an operand",
    "transform_layout": "`layout`",
    "double_buffer": "`pipeline`",
    "prefetch": "`pipeline`",
    "partition": "`interior`",
    "loop_partition": "`interior`",
    "specialize": "`interior`",
    "split_k": "`rfactor`",
    "compute_inline": "`inline`",
    "compute_root": "`materialise`",
    "materialize": "`materialise`",
    "vectorise": "`vectorize`",
}


@dataclass(frozen=True, slots=True)
class Schedule:
    """Steps in order. `str(schedule)` is its text, and `Schedule.parse(text)` gives it back.

    Each verb is a method of the same name that returns the schedule with one more step:

        Schedule("matmul", "wgsl").split("y", "m", 8, "mo", "mi").map("y", {"mo": "grid"})
    """

    op: str
    target: Target = "wgsl"
    steps: tuple[Step, ...] = ()
    spans: tuple[Span | None, ...] = field(default=(), compare=False, repr=False)

    @staticmethod
    def parse(text: str, name: str = "<schedule>") -> Schedule:
        """The one schedule of a text; CdslError E0626 where there are none or several."""
        found = parse_schedules(text, name)
        if len(found) != 1:
            how = f"are {len(found)} schedules" if found else "is no schedule"
            span = found[1].span if found else None
            raise CdslError("E0626", f"there {how} in {name}, not one", span)
        return from_syntax(found[0])

    def __str__(self) -> str:
        lines = "".join(f"    {step}\n" for step in self.steps)
        return f"schedule {self.op} for {self.target} {{\n{lines}}}\n"

    def then(self, *steps: Step) -> Schedule:
        """The schedule with further steps; CdslError E0601 for one that could not be written."""
        for step in steps:
            _check_written(step)
        spans = (*self.spans, *(None for _ in self.steps[len(self.spans) :]))
        return replace(
            self, steps=(*self.steps, *steps), spans=spans + (None,) * len(steps) if spans else ()
        )

    def replay(self, system: System, complete: bool = True, accuracy: str = "standard") -> State:
        """What the steps make of a system; CdslError E06xx at the first that does not apply.

        `complete`: what the loops have become must be able to run, too. `accuracy`: the class that
        the steps have to keep to.
        """
        state = start(system, self.target, accuracy)
        for n, step in enumerate(self.steps):
            span = self.spans[n] if n < len(self.spans) else None
            try:
                state = step.apply(state)
            except CdslError as error:
                error.span = error.span or span
                raise
            if span is not None and step.equation in state.nests:
                nest = replace(state.nests[step.equation], span=span)
                state = state.with_nest(step.equation, nest)
        if complete:
            constants = {t.name for t in state.system.constants}
            for name, nest in state.nests.items():
                if self.target == "numpy":
                    check_numpy(name, nest, constants)
                else:
                    check_nest(name, nest)
            check_sites(state)
        return state

    @property
    def kept(self) -> frozenset[str]:
        """The lets that stay tensors; the system that is scheduled must be normalised with them."""
        return frozenset(s.equation for s in self.steps if isinstance(s, Materialise))

    # -- the verbs --------------------------------------------------------------------------------
    def materialise(self, equation: str) -> Schedule:
        return self.then(Materialise(equation))

    def inline(self, equation: str) -> Schedule:
        return self.then(Inline(equation))

    def gather(self, equation: str) -> Schedule:
        return self.then(Gather(equation))

    def solve(self, equation: str, variable: str) -> Schedule:
        return self.then(Solve(equation, variable))

    def phases(
        self, equation: str, output: str, tap: str, block: str, phase: str, taps: str
    ) -> Schedule:
        return self.then(Phases(equation, output, tap, block, phase, taps))

    def taps(self, equation: str, output: str, tap: str, taps: str) -> Schedule:
        return self.then(Taps(equation, output, tap, taps))

    def columns(self, equation: str, name: str) -> Schedule:
        return self.then(Columns(equation, name))

    def toeplitz(
        self,
        equation: str,
        output: str,
        data: str,
        length: int,
        block: str,
        inside: str,
        window: str,
    ) -> Schedule:
        return self.then(Toeplitz(equation, output, data, length, block, inside, window))

    def toom(
        self,
        equation: str,
        block: str,
        tap: str,
        results: int,
        tensors: tuple[str, str, str],
        loops: tuple[str, str, str],
    ) -> Schedule:
        return self.then(Toom(equation, block, tap, results, tensors, loops))

    def reindex(self, equation: str, operand: str, indices: Iterable[str], name: str) -> Schedule:
        return self.then(Reindex(equation, operand, tuple(indices), name))

    def layout(
        self,
        equation: str,
        operand: str,
        axes: Iterable[str | tuple[str, str | None, int]],
        name: str,
    ) -> Schedule:
        """An axis is an index, or (index, the one it goes over or None, its least length)."""
        made = tuple(Axis(a) if isinstance(a, str) else Axis(*a) for a in axes)
        return self.then(Layout(equation, operand, made, name))

    def pack(self, equation: str, tensor: str, axes: Iterable[int], name: str) -> Schedule:
        return self.then(Pack(equation, tensor, tuple(axes), name))

    def rfactor(self, equation: str, variable: str, length: int, part: str, name: str) -> Schedule:
        return self.then(Rfactor(equation, variable, length, part, name))

    def pad(self, equation: str, index: str, multiple: int) -> Schedule:
        return self.then(Pad(equation, index, multiple))

    def split(
        self,
        equation: str,
        loop: str,
        factor: int,
        outer: str,
        inner: str,
        tail: Literal["guard", "cut", "pad", "perfect"] = "guard",
    ) -> Schedule:
        return self.then(Split(equation, loop, factor, outer, inner, tail))

    def tile(
        self,
        equation: str,
        factors: Mapping[str, int],
        outer: Iterable[str],
        inner: Iterable[str],
        tail: Literal["guard", "cut", "pad", "perfect"] = "guard",
    ) -> Schedule:
        tile = Tile(equation, tuple(factors.items()), tuple(outer), tuple(inner), tail)
        return self.then(*tile.steps())

    def fuse(self, equation: str, loops: Iterable[str], name: str) -> Schedule:
        return self.then(Fuse(equation, tuple(loops), name))

    def order(self, equation: str, *loops: str) -> Schedule:
        return self.then(Order(equation, loops))

    def map(self, equation: str, places: Mapping[str, Where]) -> Schedule:
        return self.then(Map(equation, tuple(places.items())))

    def swizzle(self, equation: str, rows: str, columns: str, height: int) -> Schedule:
        return self.then(Swizzle(equation, rows, columns, height))

    def stage(self, equation: str, operand: str, at: str, memory: Memory, pad: int = 0) -> Schedule:
        return self.then(Stage(equation, operand, at, memory, pad))

    def pipeline(self, equation: str, *operands: str) -> Schedule:
        return self.then(Pipeline(equation, operands))

    def interior(self, equation: str, *operands: str) -> Schedule:
        return self.then(Interior(equation, operands))

    def unroll(self, equation: str, *loops: str) -> Schedule:
        return self.then(Unroll(equation, loops))

    def vectorize(self, equation: str, loop: str) -> Schedule:
        return self.then(Vectorize(equation, loop))

    def partial(self, equation: str, at: str) -> Schedule:
        return self.then(Partial(equation, at))

    def compute(self, equation: str, reader: str, loop: str) -> Schedule:
        return self.then(Compute(equation, reader, loop))


def from_syntax(tree: ast.Schedule) -> Schedule:
    """A schedule from its syntax; CdslError E0600 for an unknown verb, E0601 for a wrong form."""
    found = [(step, line.span) for line in tree.steps for step in _steps(line.words, line.span)]
    steps, spans = tuple(s for s, _ in found), tuple(span for _, span in found)
    return Schedule(tree.op.name, target_of(tree.target), steps, spans)


def target_of(name: ast.Ref) -> Target:
    """The target that a schedule names; CdslError E0627 for one without schedules."""
    for target in TARGETS:
        if target == name.name:
            return target
    raise CdslError(
        "E0627",
        f"kernels for `{name.name}` are not scheduled by hand",
        name.span,
        help=f"schedules are for: {', '.join(TARGETS)}",
    )


def _steps(line: tuple[str, ...], span: Span | None) -> tuple[Step, ...]:
    """The step of a line; several for a compound form."""
    verb, *rest = line
    known: dict[str, type[Step] | type[Compound]] = {**VERBS, **COMPOUNDS}
    kind = known.get(verb)
    if kind is None:
        elsewhere = ELSEWHERE.get(verb)
        raise CdslError(
            "E0600", f"there is no verb `{verb}`", span,
            notes=(f"the verbs are: {shown_names(list(known))}",),
            help=f"use {elsewhere}" if elsewhere is not None else suggestion(verb, known),
        )  # fmt: skip
    words = Words(rest, kind.form, span)
    step = kind.parse(words)
    words.end()
    return step.steps() if isinstance(step, Compound) else (step,)


def _check_written(step: Step) -> None:
    """A step made in Python must be one that its text gives back."""
    words = words_of(str(step))
    if words is None or _steps(words, None) != (step,):
        raise CdslError(
            "E0601", f"`{step}` is not a step that can be written", help=f"write it as: {step.form}"
        )


def pick(schedules: Iterable[ast.Schedule], op: str, target: str) -> Schedule | None:
    """The schedule for an op and target among those of a file; CdslError E0626 for two of them."""
    found = [s for s in schedules if s.op.name == op and s.target.name == target]
    if len(found) > 1:
        raise CdslError(
            "E0626", f"there are two schedules of `{op}` for {target}", found[1].span,
            help="put the steps of both into one",
        )  # fmt: skip
    return from_syntax(found[0]) if found else None
