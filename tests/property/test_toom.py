"""toom on filters in many guises: the same meaning, the contraction in the middle, and on a device."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, note, settings
from hypothesis import strategies as st

import convdsl
from convdsl.diagnostics import CdslError
from convdsl.ir.cover import Verdict, prove_covers
from convdsl.ir.evaluate import evaluate_system
from convdsl.ir.interp import run_program
from convdsl.ir.loop import LoopProgram
from convdsl.ir.verify import verify, verify_system
from convdsl.kernel import Kernel
from convdsl.lowering.kernels import lower_wgsl
from convdsl.machine.facts import TYPICAL, Machine
from convdsl.passes.contraction import contraction_of
from convdsl.passes.normalise import normalise
from convdsl.passes.plan import choose_wgsl
from convdsl.passes.tiles import WorkgroupLimits
from convdsl.passes.toom_accuracy import ALLOWED, most_results
from convdsl.passes.toom_groups import group_of
from convdsl.schedule.default import default_schedule
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.state import State
from convdsl.sema.instantiate import instantiate
from convdsl.sema.resolve import resolve
from convdsl.sema.sizes import bind_parameters
from tests.strategies.subjects import Subject, subject
from tests.strategies.thresholds import Thresholds, for_numpy

# text, the steps before, and the index of the result and of the taps.
FORMS: dict[str, tuple[str, str, str]] = {
    "data behind": ("""
op f(x: f32[N, C, L], w: f32[C, M, K], p: int = 1) -> y: f32[N, M, Q] where Q == L + K {
    y[n, m, o] = sum[c, k, l | l + k == o + p] x[n, c, l] * w[c, m, k]
}""", "solve y for l", "o, k"),
    "data ahead, taps first, a prologue and an epilogue": ("""
op f(w: f32[M, C, K], x: f32[N, C, L], b: f32[M], p: int = 1) -> y: f32[N, M, Q] where Q == L + 1 {
    y[n, m, o] = relu(b[m] + sum[c, k, l | l == o + k - p] w[m, c, k] * leaky_relu(x[n, c, l], 0.5))
}""", "solve y for l", "o, k"),
    "in bounds": ("""
op f(x: f32[N, C, L], w: f32[M, C, K], p: int = 0) -> y: f32[N, M, Q] where Q == max(L - K + 1, 0) {
    y[n, m, o] = sum[c, k, l | l == o + k + p - p] x[n, c, l] * w[m, c, k]
}""", "solve y for l", "o, k"),
    "in groups, the result turned": ("""
op f(x: f32[N, 2*C, L], w: f32[2*C, M, K], p: int = 1) -> y: f32[Q, 2*M, N] where Q == L + K {
    y[o, (g, m), n] = sum[c, k, l | l + k == o + p] x[n, (g, c), l] * w[(g, c), m, k] + 1
}""", "solve y for l", "o, k"),
    "without channels": ("""
op f(x: f32[C, L], w: f32[C, K], s: f32[C], p: int = 1) -> y: f32[C, Q] where Q == L + K {
    y[c, o] = s[c] * (sum[k, l | l + k == o + p] x[c, l] * w[c, k] * s[c])
}""", "solve y for l", "o, k"),
    "phases": ("""
op f(x: f32[N, C, L], w: f32[C, M, 2*K], p: int = 1) -> y: f32[N, M, Q] where Q == L*2 + 2*K {
    y[n, m, o] = sum[c, k, l | l*2 + k == o + p] x[n, c, l] * w[c, m, k]
}""", "phases y over o, k -> t, r, j", "t, j"),
    "phases of which some have fewer taps": ("""
op f(x: f32[N, C, L], w: f32[C, M, 2*K], p: int = 1) -> y: f32[N, M, Q] where Q == L*3 + 1 {
    y[n, m, o] = 1 - sum[c, k, l | l*3 + k == o + p] x[n, c, l] * w[c, m, k]
}""", "phases y over o, k -> t, r, j", "t, j"),
    "in two dimensions": ("""
op f(x: f32[N, C, L, L], w: f32[M, C, K, K], p: int = 1) -> y: f32[N, M, Q, R]
where Q == L, R == L - 1 {
    y[n, m, o, q] = sum[c, k, l, i, h | l == o + k - p, h == q + i]
        x[n, c, l, h] * w[m, c, k, i]
}""", "solve y for l\nsolve y for h", "o, k"),
}  # fmt: skip

LIMITS = WorkgroupLimits(256, 16384)


# The class; a tap only one phase has, or an index of extent one.
REFUSALS = ("E0673", "E0666", "E0662")


@dataclass(frozen=True, slots=True)
class Case:
    subject: Subject
    schedule: Schedule
    exact: bool


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """A filter with numbers for all sizes, and the step; exact where the matrices are dyadic."""
    name = draw(st.sampled_from(sorted(FORMS)))
    text, before, along = FORMS[name]
    taps = draw(st.integers(2, 9))
    pad = draw(st.integers(-2, 3))
    sizes = {n: draw(st.integers(1, 3)) for n in ("N", "C", "M")}
    sizes |= {"K": taps, "L": draw(st.integers(2, 9 if "two" in name else 13))}
    results = draw(st.integers(2, 6))
    event(f"{name}, F({results}, {taps})")
    tree = convdsl.parse(text)
    rng = np.random.default_rng(draw(st.integers(0, 2**31)))
    arrays = inputs(text, sizes, rng)
    drawn = subject(tree, {"p": pad}, arrays)
    steps = f"{before}\ntoom y over {along} by {results} -> xt, wt, zt: tile, u, z"
    schedule = Schedule.parse(f"schedule f for wgsl {{\n{steps}\n}}\n")
    return Case(drawn, schedule, results + group_of(taps_of(name, taps)) <= 5)


def taps_of(name: str, k: int) -> int:
    """The most taps of a phase where the stride is 3, else k."""
    return -(-2 * k // 3) if "fewer" in name else k


def inputs(text: str, sizes: Mapping[str, int], rng: np.random.Generator) -> dict[str, Any]:
    """Small integers for each input that a text declares."""
    out = {}
    for part in text.split("op f(")[1].split(") ->")[0].split(": f32[")[1:]:
        name = text.split(": f32[" + part)[0].split()[-1].strip("(,").split("(")[-1]
        axes = part.split("]")[0].split(",")
        shape = [int(eval(a, {}, dict(sizes))) for a in axes]
        out[name] = rng.integers(-3, 4, shape).astype(np.float32)
    return out


def replayed(case: Case, accuracy: str) -> State | None:
    """The state, or None where no class, or not this one, allows the step."""
    try:
        return case.schedule.replay(case.subject.system, accuracy=accuracy)
    except CdslError as error:
        if error.code not in REFUSALS:
            raise
        event(f"refused {error.code}")
        return None


@given(cases())
def test_the_same_meaning(case: Case) -> None:
    state = replayed(case, "fast")
    if state is None:
        return
    drawn, system = case.subject, state.system
    verify_system(system)
    assert set(prove_covers(system).values()) <= {Verdict.PROVED, Verdict.UNPROVED}
    (product,) = system.equations[[q.tensor for q in system.equations].index("zt")].pieces
    found = contraction_of(product)
    grouped = group_of(drawn.sizes["K"]) < drawn.sizes["K"]
    depthwise = "c" in {v.name for v in drawn.system.equations[0].pieces[0].vars}
    if depthwise and not grouped:
        assert found is None  # nothing is summed but taps
    elif depthwise or drawn.sizes["C"] > 1:
        assert found is not None
        assert found.batch[0].name == "z"
    same(evaluate_system(system, drawn.arrays)[system.output.name], case)


@pytest.mark.parametrize("form", ["data behind", "in groups, the result turned", "in bounds"])
@pytest.mark.parametrize("taps", [2, 3, 7])
def test_any_length(form: str, taps: int) -> None:
    """The length of data and results stays a symbol; a tile may be cut anywhere."""
    text, before, along = FORMS[form]
    op = resolve(convdsl.parse(text))
    params = bind_parameters(op, {})
    system = normalise(instantiate(op, params, {"C": 2, "M": 2, "K": taps}))
    step = f"toom y over {along} by 2 -> xt, wt, zt: tile, u, z"
    schedule = Schedule.parse(f"schedule f for wgsl {{\n{before}\n{step}\n}}\n")
    rewritten = schedule.replay(system, accuracy="fast").system
    verify_system(rewritten)
    rng = np.random.default_rng(taps)
    for length in (1, 2, 3, 8, 9, 10, 11):
        sizes = {"N": 3, "L": length, "C": 2, "M": 2, "K": taps}
        arrays = inputs(text, sizes, rng)
        env = {name: sizes[name] for name in system.sizes}
        want = evaluate_system(system, arrays, env)["y"]
        found = evaluate_system(rewritten, arrays, env)["y"]
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-10)


@settings(max_examples=max(10, settings().max_examples // 4))
@given(cases())
def test_loops(case: Case) -> None:
    """With the loops that are chosen when a schedule says no more."""
    if replayed(case, "fast") is None:
        return
    system = case.subject.system
    choices = choose_wgsl(system)
    schedule, _ = default_schedule(system, choices, LIMITS, case.schedule, "fast")
    state = schedule.replay(system, accuracy="fast")
    program = lower_wgsl(state, LIMITS)
    verify(program)
    found = run_program(program, case.subject.arrays, {})["y"]
    same(found.reshape(case.subject.want.shape), case)


@given(cases(), for_numpy(), st.sampled_from(["standard", "fast"]))
def test_on_numpy(case: Case, thresholds: Thresholds, accuracy: str) -> None:
    """In parts of any size; the schedule that is filled in makes the same text."""
    case = replace(case, schedule=replace(case.schedule, target="numpy"))
    if replayed(case, accuracy) is None:
        return
    drawn = case.subject
    with thresholds.hold():
        kernel = compiled(case, accuracy, thresholds.machine)
        filled = Schedule.parse(kernel.schedule or "")
        note(str(filled))
        again = compiled(replace(case, schedule=filled), accuracy, thresholds.machine)
    assert again.source == kernel.source
    event(" ".join(sorted({s.verb for s in filled.steps if s.verb in ("compute", "split")})))
    program = kernel.executable.trace.steps["lower"]
    assert isinstance(program, LoopProgram)
    same(run_program(program, drawn.arrays, {})["y"].reshape(drawn.want.shape), case)
    rounded(kernel(**drawn.arrays), case)


@pytest.mark.gpu
@settings(max_examples=max(6, settings().max_examples // 10))
@given(cases(), st.sampled_from(["standard", "fast"]))
def test_on_a_device(case: Case, accuracy: str) -> None:
    if replayed(case, accuracy) is None:
        return
    rounded(compiled(case, accuracy)(**case.subject.arrays), case)


def compiled(case: Case, accuracy: str, machine: Machine = TYPICAL) -> Kernel:
    drawn = case.subject
    kernel = convdsl.compile(
        drawn.tree, target=case.schedule.target, params=drawn.params, sizes=drawn.sizes,
        schedule=case.schedule, accuracy=accuracy, machine=machine,
    )  # fmt: skip
    assert kernel.plan.algorithm == "toom"
    return kernel


def rounded(found: Any, case: Case) -> None:
    drawn = case.subject
    if case.exact:
        np.testing.assert_array_equal(found, drawn.want)
    else:
        # A result is a sum of at most C*K*K products of numbers up to 3.
        bound = 2**-23 * 16 * 9 * drawn.sizes["C"] * drawn.sizes["K"] ** 2
        np.testing.assert_allclose(found, drawn.want, rtol=0, atol=bound)


@pytest.mark.parametrize("taps", range(2, 6))
def test_strict_allows_none(taps: int) -> None:
    text, before, along = FORMS["data behind"]
    schedule = f"{before}\ntoom y over {along} by 2 -> xt, wt, zt: tile, u, z"
    sizes = {"N": 1, "C": 64, "M": 2, "K": taps, "L": 9}
    assert most_results(taps, 64, "strict") is None
    assert ALLOWED["strict"] == 0
    kernel = convdsl.compile(
        text, target="wgsl", sizes=sizes, accuracy="strict",
        schedule=f"schedule f for wgsl {{\n{schedule}\n}}",
    )  # fmt: skip
    with pytest.raises(CdslError, match="E0673") as caught:
        str(kernel.source)
    assert "strict" in caught.value.message


def same(found: Any, case: Case) -> None:
    want = np.asarray(case.subject.want, np.float64)
    if case.exact:
        np.testing.assert_array_equal(found, want)
    else:
        np.testing.assert_allclose(found, want, rtol=1e-12, atol=1e-10)
