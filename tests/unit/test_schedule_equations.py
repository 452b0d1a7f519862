"""What the verbs on equations leave for the rest of the compiler: products, plans, roundings."""

from __future__ import annotations

import numpy as np
import pytest

import convdsl
from convdsl.ir.evaluate import evaluate_system
from convdsl.ir.expr import Reduce, walk
from convdsl.passes.contraction import contraction_of
from convdsl.passes.normalise import normalise
from convdsl.schedule.schedule import Schedule
from convdsl.schedule.state import State
from convdsl.sema.instantiate import instantiate
from convdsl.sema.resolve import resolve
from convdsl.syntax.parser import parse

UP = convdsl.ops.source("conv_transpose1d")
DOWN = convdsl.ops.source("conv1d")
MATMUL = convdsl.ops.source("matmul")
SIZES = {"N": 1, "C": 100, "L": 40, "M": 20, "K": 8}


def _state(text: str, steps: Schedule, symbolic: bool = False) -> State:
    op = resolve(parse(text))
    params = {p.name: p.default if p.default is not None else 1 for p in op.int_parameters}
    params |= {"stride": 4} if "stride" in params else {}
    sizes = {} if symbolic else {n: SIZES.get(n, 64) for n in op.input_sizes}
    system = normalise(instantiate(op, params, sizes), steps.kept)
    return steps.replay(system, complete=False)


PHASES = Schedule("conv_transpose1d").phases("y", "o", "k", "t", "r", "j")
SOLVED = Schedule("conv1d").solve("y", "l")


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("length", [1, 16, 100, 1000])
@pytest.mark.parametrize(
    ("text", "before", "variable"),
    [(UP, PHASES, "c"), (UP, PHASES, "j"), (DOWN, SOLVED, "c"), (MATMUL, Schedule("matmul"), "k")],
    ids=["phases", "phases, taps", "solved", "matmul"],
)
def test_blocks_of_a_product_are_a_batch(
    text: str, before: Schedule, variable: str, length: int, symbolic: bool
) -> None:
    """The partial results are the same product, with the block as one more batch index."""
    plain = contraction_of(_state(text, before, symbolic).pieces()["y"])
    state = _state(text, before.rfactor("y", variable, length, "part", "y_part"), symbolic)
    found = contraction_of(state.pieces()["y_part"])
    assert plain is not None
    assert found is not None
    assert [v.name for v in found.batch] == ["part", *(v.name for v in plain.batch)]
    assert [v.name for v in found.m + found.n] == [v.name for v in plain.m + plain.n]
    assert [v.name for v in found.k] == [v.name for v in plain.k]


def test_partial_results_are_tiled_like_any_product() -> None:
    """A schedule that says no more than `rfactor` gets the loops that the product itself would."""
    for before in (PHASES, Schedule("conv_transpose1d")):
        schedule = before.rfactor("y", "c", 80, "part", "y_part")
        kernel = convdsl.compile(
            UP, target="wgsl", sizes=SIZES, params={"stride": 4}, schedule=schedule
        )
        assert "map y_part: part -> grid, " in str(kernel.schedule)
        assert "partial y_part at " in str(kernel.schedule)
        assert kernel.plan.dispatches == 2
        again = convdsl.compile(
            UP, target="wgsl", sizes=SIZES, params={"stride": 4}, schedule=kernel.schedule
        )
        assert again.source == kernel.source


WHOLE = [
    "sum[k, j] x[m, k, j]",
    "prod[k, j] x[m, k, j]",
    "max[k, j] x[m, k, j] else 0 - 7",
    "min[k, j] x[m, k, j] else 7",
]
RELATED = ["max[k, j | k + j == m + 1] x[m, k, j]", "min[k, j | k + j == m + 1] x[m, k, j]"]
CASES = [(t, s) for t in WHOLE for s in ((3, 7, 4), (2, 4, 5), (3, 7, 0), (3, 0, 4), (0, 5, 5))]
CASES += [(t, s) for t in RELATED for s in ((3, 7, 4), (2, 4, 5))]


@pytest.mark.parametrize("dtype", ["f32", "i32"])
@pytest.mark.parametrize(("text", "shape"), CASES)
def test_partial_results_of_every_reduction(
    text: str, shape: tuple[int, int, int], dtype: str
) -> None:
    """Also of those over nothing, and of those with blocks that have no terms."""
    program = f"op f(x: {dtype}[M, K, J]) -> y: {dtype}[M] {{ y[m] = 2 * ({text}) }}"
    sizes = dict(zip("MKJ", shape, strict=True))
    rng = np.random.default_rng(3)
    x = rng.integers(-2, 3, shape).astype("f4" if dtype == "f32" else "i4")
    want = convdsl.evaluate(program, {"x": x}, {})
    system = normalise(instantiate(resolve(parse(program)), {}, sizes))
    state = Schedule("f").rfactor("y", "k", 3, "part", "y_part").replay(system)
    found = evaluate_system(state.system, {"x": x})["y"]
    np.testing.assert_array_equal(found, want)


SOFTMAX = convdsl.ops.source("softmax")


def test_a_schedule_says_which_lets_are_stored() -> None:
    sizes = {"N": 64, "C": 100}
    plain = convdsl.compile(SOFTMAX, target="wgsl", sizes=sizes)
    inlined = convdsl.compile(
        SOFTMAX, target="wgsl", sizes=sizes, schedule=Schedule("softmax").inline("e")
    )
    assert list(plain.plan.equations) == ["top", "e", "norm", "y"]
    assert list(inlined.plan.equations) == ["top", "norm", "y"]
    assert plain.plan.temporary_bytes == 4 * (64 * 100 + 2 * 64)
    assert inlined.plan.temporary_bytes == 4 * 2 * 64


def test_a_fused_let_is_stored_where_a_schedule_says_so() -> None:
    text = convdsl.ops.source("vocoder_step")
    dynamic = ("N", "C", "L", "M", "K")
    plain = convdsl.compile(text, target="wgsl", dynamic=dynamic)
    schedule = Schedule("vocoder_step").materialise("h")
    kept = convdsl.compile(text, target="wgsl", dynamic=dynamic, schedule=schedule)
    assert "h" not in plain.plan.equations
    assert "h" in kept.plan.equations


def test_an_inlined_f16_is_rounded() -> None:
    """What was rounded where it was stored is rounded still."""
    text = """
op f(x: f32[Q]) -> y: f32[Q] {
    let h: f16[q] = x[q] * x[q]
    y[q] = h[q] * 3
}"""
    x = np.random.default_rng(5).random(64, np.float32)
    state = _state(text, Schedule("f").inline("h"))
    assert [q.tensor for q in state.system.equations] == ["y"]
    found = evaluate_system(state.system, {"x": x})["y"]
    np.testing.assert_array_equal(found, convdsl.evaluate(text, {"x": x}))
    assert not np.array_equal(found, x.astype(np.float64) ** 2 * 3)


def test_a_packed_copy_is_inlined_again() -> None:
    """`inline` takes back what `pack` did."""
    plain = _state(MATMUL, Schedule("matmul"))
    there = Schedule("matmul").pack("y", "a", (1, 0), "a_packed").inline("a_packed")
    assert _state(MATMUL, there) == plain


def test_one_reduction_is_left() -> None:
    """Of an equation that reads a let twice at one place the reduction counts once."""
    text = """
op f(x: f32[A, B]) -> y: f32[A] {
    let h[a] = sum[b] x[a, b]
    y[a] = h[a] / (1 + abs(h[a]))
}"""
    state = _state(text, Schedule("f").materialise("h").inline("h"))
    (equation,) = state.system.equations
    found = [e for e in walk(equation.pieces[0].value) if isinstance(e, Reduce)]
    assert len(found) == 2
    assert len(set(found)) == 1


@pytest.mark.parametrize("symbolic", [False, True], ids=["numbers", "symbols"])
@pytest.mark.parametrize("variable", ["c", "k", "l"])
@pytest.mark.parametrize("length", [1, 3, 5, 8])
def test_blocks_that_do_not_divide_run_on_the_host(
    variable: str, length: int, symbolic: bool
) -> None:
    """A schedule for NumPy that says no more than `rfactor`: what the last block lacks is no term."""
    generator = np.random.default_rng(1)
    sizes = {"N": 2, "C": 7, "L": 9, "M": 3, "K": 8}
    shapes = {"x": ("N", "C", "L"), "w": ("C", "M", "K")}
    arrays = {
        name: generator.integers(-4, 5, [sizes[n] for n in axes]).astype(np.float32)
        for name, axes in shapes.items()
    }
    for stride in (1, 2):
        kernel = convdsl.compile(
            UP,
            sizes=None if symbolic else sizes,
            dynamic=tuple(sizes) if symbolic else (),
            params={"stride": stride},
            schedule=Schedule("conv_transpose1d", "numpy").rfactor(
                "y", variable, length, "part", "y_part"
            ),
        )
        want = convdsl.evaluate(convdsl.parse(UP), arrays, {"stride": stride})
        assert (kernel(**arrays) == want).all()
