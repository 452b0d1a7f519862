"""Each verb before and after, as text: equations or loops, and the loop program that comes of it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from convdsl.diagnostics import CdslError
from convdsl.ir.text import print_piece, print_program
from convdsl.ir.verify import verify
from convdsl.lowering.host_kernels import lower_host
from convdsl.lowering.kernels import lower_wgsl
from convdsl.passes.layout import Axis
from convdsl.passes.normalise import normalise
from convdsl.passes.tiles import WorkgroupLimits
from convdsl.schedule.nest import Target
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.show import show_nest
from convdsl.schedule.state import State
from convdsl.schedule.step import Compound, LoopStep, Step
from convdsl.schedule.verbs import COMPOUNDS, VERBS
from convdsl.schedule.verbs.columns import Columns
from convdsl.schedule.verbs.compute import Compute
from convdsl.schedule.verbs.fuse import Fuse
from convdsl.schedule.verbs.gather import Gather
from convdsl.schedule.verbs.inline import Inline
from convdsl.schedule.verbs.interior import Interior
from convdsl.schedule.verbs.layout import Layout
from convdsl.schedule.verbs.map import Map
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
from convdsl.schedule.verbs.toeplitz import Toeplitz
from convdsl.schedule.verbs.toom import Toom
from convdsl.schedule.verbs.unroll import Unroll
from convdsl.schedule.verbs.vectorize import Vectorize
from convdsl.sema.instantiate import instantiate
from convdsl.sema.resolve import resolve
from convdsl.syntax.parser import parse
from tests.unit.schedule_cases import CASES, HOST

GOLDEN = Path(__file__).parents[1] / "golden" / "schedule"


def _steps(text: str, op: str, target: str = "wgsl") -> tuple[Step, ...]:
    return Schedule.parse(f"schedule {op} for {target} {{\n{text}\n}}\n").steps


def _shown(state: State, step: Step) -> str:
    """The loops of a step on loops; the equations for one on relations."""
    if isinstance(step, LoopStep):
        return show_nest(state.nest(step.equation)) + "\n"
    return "".join(print_piece(piece, {}) for piece in state.pieces().values())


@pytest.mark.parametrize("name", [*CASES, *HOST])
def test_before_and_after(name: str, golden: Callable[[Path, str], None]) -> None:
    text, sizes, before, steps, after = (CASES | HOST)[name]
    target: Target = "numpy" if name in HOST else "wgsl"
    op = resolve(parse(text))
    first = Schedule(op.name, target, _steps(before, op.name, target))

    def state_of(schedule: Schedule) -> State:
        return schedule.replay(normalise(instantiate(op, {}, sizes), schedule.kept), complete=False)

    page: list[str] = []
    for step in _steps(steps, op.name, target):
        page += [_shown(state_of(first), step), f"\n-- {step}\n\n"]
        first = first.then(step)
    page += [_shown(state_of(first), step), "\n"]
    for step in _steps(after, op.name, target):
        first = first.then(step)
        page.append(f"-- {step}\n")
    state = state_of(first)
    limits = WorkgroupLimits(256, 16384)
    program = lower_host(state, {}) if target == "numpy" else lower_wgsl(state, limits)
    verify(program)
    golden(GOLDEN / f"{name}.txt", "".join([*page, "\n", print_program(program)]))


def test_every_verb_has_a_pair() -> None:
    shown = {
        step.verb
        for target, cases in (("wgsl", CASES), ("numpy", HOST))
        for _, _, _, steps, _ in cases.values()
        for step in _steps(steps, "x", target)
    }
    assert set(VERBS) == shown
    assert set(COMPOUNDS) <= set(CASES)
    assert {p.stem for p in GOLDEN.glob("*.txt")} >= {*CASES, *HOST}


@pytest.mark.parametrize("verb", [*VERBS.values(), *COMPOUNDS.values()])
def test_a_record_tells_what_it_does(verb: type[Step] | type[Compound]) -> None:
    """Immutable, with before -> after in its docstring, and with the form that it is written in."""
    assert verb.__dataclass_params__.frozen  # type: ignore[union-attr]
    text = verb.__doc__ or ""
    assert "before:" in text
    assert "after:" in text
    assert verb.form.startswith(f"{verb.verb} EQUATION")


def test_methods_make_the_same_steps() -> None:
    made = (
        Schedule("op")
        .materialise("h")
        .inline("e")
        .gather("y")
        .solve("y", "l")
        .phases("y", "o", "k", "t", "r", "j")
        .taps("y", "o", "k", "j")
        .columns("y", "col")
        .toeplitz("y", "o", "l", 32, "q", "u", "a")
        .toom("y", "t", "j", 4, ("xt", "wt", "zt"), ("tile", "u", "z"))
        .reindex("y", "x", ("c", "j", "t"), "xs")
        .layout("y", "x", ("c", ("t", "n", 24)), "xl")
        .pack("y", "w", (1, 0), "w_packed")
        .rfactor("y", "c", 64, "part", "y_part")
        .pad("y", "c", 16)
        .split("y", "c", 16, "co", "ci", tail="pad")
        .split("y", "m", 4, "mo", "mi")
        .fuse("y", ("n", "t"), "nt")
        .order("y", "nt", "mo", "mi")
        .map("y", {"nt": "grid", "mo": "thread"})
        .swizzle("y", "nt", "mo", 8)
        .stage("y", "x", "co", "workgroup", pad=1)
        .stage("y", "x", "ci", "register")
        .pipeline("y", "x")
        .interior("y", "x")
        .unroll("y", "ci", "mi")
        .vectorize("y", "mi")
        .partial("y", "co")
        .compute("col", "y", "n")
    )
    assert made.steps == (
        Materialise("h"), Inline("e"), Gather("y"), Solve("y", "l"),
        Phases("y", "o", "k", "t", "r", "j"), Taps("y", "o", "k", "j"), Columns("y", "col"),
        Toeplitz("y", "o", "l", 32, "q", "u", "a"),
        Toom("y", "t", "j", 4, ("xt", "wt", "zt"), ("tile", "u", "z")),
        Reindex("y", "x", ("c", "j", "t"), "xs"),
        Layout("y", "x", (Axis("c"), Axis("t", "n", 24)), "xl"),
        Pack("y", "w", (1, 0), "w_packed"), Rfactor("y", "c", 64, "part", "y_part"),
        Pad("y", "c", 16), Split("y", "c", 16, "co", "ci", "pad"),
        Split("y", "m", 4, "mo", "mi"),
        Fuse("y", ("n", "t"), "nt"), Order("y", ("nt", "mo", "mi")),
        Map("y", (("nt", "grid"), ("mo", "thread"))), Swizzle("y", "nt", "mo", 8),
        Stage("y", "x", "co", "workgroup", 1),
        Stage("y", "x", "ci", "register"), Pipeline("y", ("x",)), Interior("y", ("x",)),
        Unroll("y", ("ci", "mi")), Vectorize("y", "mi"), Partial("y", "co"),
        Compute("col", "y", "n"),
    )  # fmt: skip
    assert Schedule.parse(str(made)) == made
    assert {*VERBS, *COMPOUNDS} <= set(dir(Schedule))


def test_a_compound_form_is_its_steps() -> None:
    factors, outer, inner = {"m": 4, "n": 8}, ("mo", "no"), ("mi", "ni")
    made = Schedule("op").tile("y", factors, outer, inner, tail="pad")
    written = Schedule.parse(
        "schedule op for wgsl { tile y: m by 4, n by 8 -> mo, no, mi, ni tail pad\n }"
    )
    assert made == written
    assert made.steps == (
        Split("y", "m", 4, "mo", "mi", "pad"), Split("y", "n", 8, "no", "ni", "pad"),
        Order("y", ("mo", "no", "mi", "ni")),
    )  # fmt: skip
    assert Schedule.parse(str(made)) == made
    assert Schedule("op").tile("y", {"m": 4}, ["mo"], ["mi"]).steps == (
        Split("y", "m", 4, "mo", "mi"),
    )
    with pytest.raises(CdslError, match="E0601"):
        Schedule("op").tile("y", factors, outer, ("mi",))
