"""toeplitz on filters in many guises: the same meaning, equal on integers, with zeros and without."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import event, given, note
from hypothesis import strategies as st

import convdsl
from convdsl.ir.cover import Verdict, prove_covers
from convdsl.ir.equation import System
from convdsl.ir.evaluate import evaluate_system
from convdsl.ir.interp import run_program
from convdsl.ir.loop import LoopProgram
from convdsl.ir.verify import verify_system
from convdsl.kernel import Kernel
from convdsl.passes.plan import Choice
from convdsl.passes.plan_toeplitz import toeplitz_of
from convdsl.schedule.default_numpy import default_numpy
from convdsl.schedule.schedule import Schedule
from tests.property.test_toom import inputs
from tests.strategies.subjects import Subject, subject
from tests.strategies.thresholds import Thresholds, for_numpy

FORMS = {
    "depthwise": """
op f(x: f32[N, C, L], w: f32[C, K], p: int = 1, s: int = 1) -> y: f32[N, C, Q]
where Q == max((L - 1)*s + K - p, 0) {
    y[n, c, o] = sum[k, l | l*s + k == o + p] x[n, c, l] * w[c, k]
}""",
    "depthwise, ahead, channels last, around it a bias": """
op f(w: f32[K, C], x: f32[N, L, C], b: f32[C], p: int = 1, s: int = 1) -> y: f32[N, Q, C]
where Q == max((L + p - K)//s + 2, 0) {
    y[n, o, c] = relu(b[c] + sum[l, k | o*s + k == l + p] w[k, c] * leaky_relu(x[n, l, c], 0.5))
}""",
    "few channels": """
op f(x: f32[C, L, N], w: f32[C, M, K], p: int = 1, s: int = 1) -> y: f32[M, N, Q]
where Q == L*s + K {
    y[m, n, o] = 1 - sum[c, k, l | l*s + k == o + p] x[c, l, n] * w[c, m, k]
}""",
    "in groups, the result turned": """
op f(x: f32[N, 2*C, L], w: f32[2*C, M, K], p: int = 1, s: int = 1) -> y: f32[Q, 2*M, N]
where Q == L + K {
    y[o, (g, m), n] = sum[c, k, l | l + k == o*s + p] x[n, (g, c), l] * w[(g, c), m, k]
}""",
    "one signal, backwards": """
op f(x: f32[L], w: f32[K], p: int = 1, s: int = 1) -> y: f32[Q] where Q == L*s + K - 1 {
    y[o] = sum[k, l | o + l*s == k + L*s - p] x[l] * w[k]
}""",
    "a signal by itself": """
op f(x: f32[C, L], z: f32[C, K], p: int = 1, s: int = 1) -> y: f32[C, Q] where Q == L {
    y[c, o] = sum[i, j | i + j*s == o + p] x[c, i] * x[c, j]
}""",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    subject: Subject
    length: int


@st.composite
def cases(draw: st.DrawFn) -> Case | None:
    """A filter with numbers for all sizes, and how many results a block has; None where it is none."""
    name = draw(st.sampled_from(sorted(FORMS)))
    sizes = {n: draw(st.integers(1, 3)) for n in ("N", "M")}
    sizes |= {"C": draw(st.sampled_from([1, 2, 3, 5, 7])), "K": draw(st.integers(1, 9))}
    sizes |= {"L": draw(st.integers(1, 23))}
    params = {"p": draw(st.integers(-2, 4)), "s": draw(st.sampled_from([1, 1, 2, 3, 5]))}
    text = FORMS[name]
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    found = subject(convdsl.parse(text), params, inputs(text, sizes, rng))
    event(name)
    roles = toeplitz_of(found.system.equations[0].pieces[0])
    if roles is None:
        event("no such filter")
        return None
    return Case(found, roles.tie.least * draw(st.integers(1, 9)))


@given(cases(), for_numpy(), st.sampled_from([64, 4096, 2**26]))
def test_in_blocks(case: Case | None, thresholds: Thresholds, cap: int) -> None:
    if case is None:
        return
    drawn = case.subject
    with thresholds.hold():
        chosen = {"y": Choice("phases", "drawn", case.length)}
        schedule = default_numpy(drawn.system, chosen, cap=cap, cpu=thresholds.machine.cpu)
        note(str(schedule))
        kernel = compiled(drawn, schedule)
        again = compiled(drawn, Schedule.parse(str(schedule)))
    assert again.source == kernel.source
    blocks = any(step.verb == "toeplitz" for step in schedule.steps)
    event("in blocks" if blocks else "left out")
    for name, step in kernel.executable.trace.steps.items():
        if isinstance(step, System):
            verify_system(step)
            assert set(prove_covers(step).values()) <= {Verdict.PROVED, Verdict.UNPROVED}
            found = evaluate_system(step, drawn.arrays)["y"]
        elif isinstance(step, LoopProgram):
            found = run_program(step, drawn.arrays, {})["y"]
        else:
            continue
        np.testing.assert_array_equal(found.reshape(drawn.want.shape), drawn.want, err_msg=name)
    np.testing.assert_array_equal(kernel(**drawn.arrays), drawn.want)


def compiled(drawn: Subject, schedule: Schedule) -> Kernel:
    return convdsl.compile(drawn.tree, params=drawn.params, sizes=drawn.sizes, schedule=schedule)
