"""What a plan says of itself."""

from __future__ import annotations

from typing import Any

import pytest

import convdsl
from convdsl import ops
from convdsl.lowering.scheduled import with_slices
from convdsl.passes.plan import Choice, choose_numpy, choose_wgsl
from convdsl.schedule.schedule import Schedule
from convdsl.sema.instantiate import instantiate
from convdsl.sema.resolve import resolve
from tests.unit.api_programs import FIR, PRODUCT

SHIPPED = ("conv1d", "conv_transpose1d", "istft", "matmul", "max_pool1d", "softmax", "vocoder_step")


@pytest.mark.parametrize("target", ["numpy", "wgsl"])
@pytest.mark.parametrize("name", SHIPPED)
@pytest.mark.parametrize("symbols", [True, False], ids=["symbols", "numbers"])
def test_the_reason_is_that_of_a_reduction(name: str, target: str, symbols: bool) -> None:
    """Of the one with the most work: never of an equation that only follows it."""
    text = ops.source(name)
    sizes = resolve(convdsl.parse(text)).input_sizes
    params = {"kernel": 3} if name == "max_pool1d" else {}
    how: dict[str, Any] = {"dynamic": sizes} if symbols else {"sizes": dict.fromkeys(sizes, 60)}
    plan = convdsl.compile(text, target=target, params=params, **how).plan
    assert plan.reason != "elementwise"
    assert f"{plan.algorithm}: {plan.reason}" in plan.equations.values()


def test_the_largest_of_several() -> None:
    text = (
        "op two(x: f32[N, K], w: f32[K, M]) -> y: f32[N, M] where M >= 1 {"
        " let h[n, m] = sum[k] x[n, k] * w[k, m] let top[n] = max[m] h[n, m]"
        " y[n, m] = h[n, m] - top[n] }"
    )
    known: dict[str, Any] = {"sizes": {"N": 64, "K": 256, "M": 64}}
    for how in (known, {"dynamic": ["N", "K", "M"]}):
        plan = convdsl.compile(text, **how).plan
        assert plan.algorithm == "phases"
        assert plan.reason in plan.equations["h"]


def test_repr_is_short_and_str_says_why_once() -> None:
    plan = convdsl.compile(PRODUCT, sizes={"M": 64, "K": 32, "N": 48}).plan
    assert repr(plan) == "<plan phases, 196,608 flops>"
    assert str(plan).count(plan.reason) == 1
    tiled = convdsl.compile(PRODUCT, target="wgsl", dynamic=["M", "K", "N"]).plan
    assert repr(tiled) == f"<plan phases ({tiled.tiles})>"


@pytest.mark.parametrize(
    ("k", "numpy", "wgsl"),
    [(1, "only 1 term:", "only 1 term a result,"), (3, "only 3 terms:", "only 3 terms a result,")],
)
def test_one_is_no_plural(k: int, numpy: str, wgsl: str) -> None:
    op = resolve(convdsl.parse(PRODUCT))
    system = instantiate(op, {}, {"M": 64, "K": k, "N": 64})
    assert numpy in choose_numpy(system)["c"].reason
    assert wgsl in choose_wgsl(system)["c"].reason
    row = instantiate(op, {}, {"M": 1, "K": 64, "N": 64})
    assert "only 1 row, too few" in choose_wgsl(row)["c"].reason


def test_a_maximum_is_no_sum() -> None:
    text = "op top(x: f32[N, K]) -> y: f32[N] where K >= 1 { y[n] = max[k] x[n, k] }"
    reason = convdsl.compile(text, sizes={"N": 3, "K": 4}).plan.reason
    assert reason == "a max is no sum of products: slices over the taps"
    assert convdsl.compile(FIR, sizes={"N": 3, "L": 9, "K": 4}).plan.reason


CUT = """\
op cut(a: f32[M, K], b: f32[K, N]) -> y: f32[M, N] {
    y[m, n] = sum[k] a[m, k] * b[k, n]
}
"""


@pytest.mark.parametrize("rows", [1, 64], ids=["gather", "phases"])
def test_the_reason_says_in_how_many_parts_sums_are_cut(rows: int) -> None:
    """As many as the partial results have; nothing of those that a given schedule says."""
    sizes = {"M": rows, "N": 64, "K": 8192}
    kernel = convdsl.compile(CUT, target="wgsl", sizes=sizes)
    plan = kernel.plan
    assert plan.temporary_bytes is not None
    parts, rest = divmod(plan.temporary_bytes, 4 * rows * 64)
    assert rest == 0
    assert plan.reason.endswith(f"; sums in {parts} parts")
    again = convdsl.compile(CUT, target="wgsl", sizes=sizes, schedule=kernel.schedule)
    assert again.plan.reason == "as the schedule says"
    whole = convdsl.compile(CUT, target="wgsl", sizes=sizes | {"K": 64})
    assert "parts" not in whole.plan.reason


@pytest.mark.parametrize(
    ("steps", "algorithm"),
    [
        (
            "phases y over o, k -> t, r, j\n map y: j -> host, t -> gemm, n -> gemm, c -> gemm",
            "phases",
        ),
        ("columns y -> made", "columns"),
        ("gather y", "gather"),
        ("", "gather"),
    ],
)
def test_a_choice_without_loops_is_not_what_the_plan_says(steps: str, algorithm: str) -> None:
    schedule = Schedule.parse(f"schedule f for numpy {{\n {steps}\n}}")
    for chosen in ("columns", "toom"):
        found = with_slices({"y": Choice(chosen, "chosen")}, schedule)["y"]
        assert found.algorithm == algorithm
        same = chosen == algorithm
        assert found.reason.startswith(
            "chosen" if same else f"no loops for {chosen}, which was chosen"
        )
