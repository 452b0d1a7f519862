"""Sequences of schedule steps: each applies and keeps the meaning, or is refused by its precondition."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np
import pytest
from hypothesis import event, given, note, settings

import convdsl
from convdsl.backends.wgsl.emit import emit_module
from convdsl.backends.wgsl.module import Limits
from convdsl.diagnostics import CdslError
from convdsl.ir.cover import Verdict, prove_covers
from convdsl.ir.evaluate import evaluate_system
from convdsl.ir.interp import run_program
from convdsl.ir.loop import LoopProgram
from convdsl.ir.reader import read_program
from convdsl.ir.text import print_program
from convdsl.ir.verify import verify, verify_system
from convdsl.lowering.host_kernels import lower_host
from convdsl.lowering.kernels import lower_wgsl
from convdsl.passes.tiles import WorkgroupLimits
from convdsl.schedule.nest import Nest
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.show import show_nest
from convdsl.schedule.state import State
from tests.strategies.schedules import Scheduled, scheduled
from tests.strategies.subjects import Subject
from tests.wgsl_rules import check_wgsl_text

MOST_RUNS = 20_000
MANY = {"default": 500, "quick": 40, "nightly": 20_000}
many = settings(max_examples=MANY[os.environ.get("CONVDSL_PROFILE", "default")])


@many
@given(scheduled())
def test_steps_keep_the_meaning_or_are_refused(drawn: Scheduled) -> None:
    for error in drawn.refused:
        check_refusal(error)
    check_replay(drawn)
    check_system(drawn.subject, drawn.state)
    program = lowered(drawn)
    if program is not None:
        check_program(drawn.subject, drawn.state, program)


@many
@given(scheduled("numpy"))
def test_steps_for_numpy(drawn: Scheduled) -> None:
    """The same for host programs, and the emitted module besides."""
    for error in drawn.refused:
        check_refusal(error)
    check_replay(drawn)
    subject, state = drawn.subject, drawn.state
    check_system(subject, state)
    try:
        drawn.schedule.replay(subject.system)
        program = lower_host(state, {})
    except CdslError as error:
        check_refusal(error)
        event(f"not lowered {error.code}")
        return
    check_text(program)
    verify(program)
    output = next(b.name for b in program.buffers if b.memory == "output")
    env = {n: subject.sizes[n] for n in program.sizes}
    found = run_program(program, subject.arrays, env)[output]
    same(found.reshape(subject.want.shape), subject, "the loop program")
    event("run" if state.nests else "run without loops")
    if any(x.level == "worker" for nest in state.nests.values() for x in nest.loops):
        event("run on workers")
    kernel = compiled(drawn)
    same(kernel(**subject.arrays), subject, "the module")
    if "_products_on_threads" in kernel.source:
        event("run with products on workers")


@pytest.mark.gpu
@settings(max_examples=max(6, settings().max_examples // 20))
@given(scheduled())
def test_steps_on_a_device(drawn: Scheduled) -> None:
    """The same on an adapter, through the door that users take."""
    subject = drawn.subject
    try:
        kernel = compiled(drawn)
        found = kernel(**subject.arrays)
    except CdslError as error:
        check_refusal(error)
        return
    note(kernel.source)
    event("ran")
    same(found, subject, "the kernel")


def compiled(drawn: Scheduled) -> convdsl.Kernel:
    """Through the door that users take."""
    subject, schedule = drawn.subject, drawn.schedule
    fixed = {n: v for n, v in subject.sizes.items() if n not in subject.system.sizes}
    symbols = tuple(n for n in subject.system.sizes if n not in fixed)
    return convdsl.compile(
        subject.tree,
        target=schedule.target,
        params=subject.params,
        dynamic=symbols,
        schedule=schedule,
    )


def check_refusal(error: CdslError) -> None:
    """A refusal names a precondition, and can be shown."""
    event(f"refused {error.code}")
    assert error.code.startswith(("E05", "E06")), error
    assert error.message in str(error)
    assert max(map(len, str(error).splitlines())) < 5_000


def check_replay(drawn: Scheduled) -> None:
    """print -> parse -> replay."""
    schedule = drawn.schedule
    again = Schedule.parse(str(schedule))
    assert again == schedule
    assert str(again) == str(schedule)
    assert again.replay(drawn.subject.system, complete=False) == drawn.state
    for nest in drawn.state.nests.values():
        assert show_nest(nest)


def check_system(subject: Subject, state: State) -> None:
    """The rewritten equations: their rules, meaning and cover."""
    system = state.system
    verify_system(system)
    env = {n: subject.sizes[n] for n in system.sizes}
    found = evaluate_system(system, subject.arrays, env)[system.output.name]
    same(found, subject, "the system")
    for tensor, verdict in prove_covers(system).items():
        assert verdict in (Verdict.PROVED, Verdict.UNPROVED), tensor


def lowered(drawn: Scheduled) -> LoopProgram | None:
    """The loop program, or None where the schedule cannot run as it is."""
    try:
        drawn.schedule.replay(drawn.subject.system)
        program = lower_wgsl(drawn.state, WorkgroupLimits(256, 16384))
    except CdslError as error:
        check_refusal(error)
        event(f"not lowered {error.code}")
        return None
    event("lowered" if drawn.state.nests else "lowered without loops")
    return program


def check_program(subject: Subject, state: State, program: LoopProgram) -> None:
    """The loop program: its rules, text and meaning; and its WGSL, where it fits a browser."""
    check_text(program)
    verify(program)
    if max((runs(n, subject.sizes) for n in state.nests.values()), default=0) <= MOST_RUNS:
        output = next(b.name for b in program.buffers if b.memory == "output")
        env = {n: subject.sizes[n] for n in program.sizes}
        found = run_program(program, subject.arrays, env)[output]
        same(found.reshape(subject.want.shape), subject, "the loop program")
        event("run" if state.nests else "run without loops")
    try:
        shapes = {t.name: t.shape for t in subject.system.tensors if t.role != "let"}
        check_wgsl_text(emit_module(program, Limits(), shapes).text)
        event("emitted" if state.nests else "emitted without loops")
    except CdslError as error:
        check_refusal(error)


def check_text(program: LoopProgram) -> None:
    """print -> read -> print."""
    text = print_program(program)
    note(text)
    assert print_program(read_program(text)) == text


def same(found: object, subject: Subject, what: str) -> None:
    np.testing.assert_array_equal(
        np.asarray(found, np.float64), np.asarray(subject.want, np.float64), err_msg=what
    )


def runs(nest: Nest, sizes: Mapping[str, int]) -> int:
    """How many times the body of a nest runs, at most."""
    count = 1
    ranges: dict[str, int] = {**sizes}
    for loop in nest.loops:
        free = loop.extent.free - set(ranges)
        found = loop.extent.evaluate({**ranges, **dict.fromkeys(free, 0)})
        count *= max(1, int(np.max(found)))
        ranges[loop.name] = 0
    return count
