"""Numbers for parameters and sizes, and the system with numbers in it."""

from __future__ import annotations

import sys
from importlib.resources import files
from typing import Any

import numpy as np
import pytest

from convdsl.diagnostics import CdslError
from convdsl.ir.expr import Const, Load, Param, Reduce, walk
from convdsl.sema.emptiness import check_reductions
from convdsl.sema.instantiate import instantiate
from convdsl.sema.model import ResolvedOp
from convdsl.sema.resolve import resolve
from convdsl.sema.sizes import bind_parameters, complete_sizes, solve_sizes
from convdsl.syntax.parser import parse


@pytest.fixture
def conv_transpose1d() -> str:
    """The text of the shipped op."""
    return files("convdsl.ops").joinpath("conv_transpose1d.cdsl").read_text("utf-8")


@pytest.fixture
def op(conv_transpose1d: str) -> ResolvedOp:
    return resolve(parse(conv_transpose1d))


def op_of(text: str) -> ResolvedOp:
    return resolve(parse(text))


def refused(code: str, call: Any, *args: Any, **named: Any) -> str:
    """The message of the CdslError that a call raises."""
    with pytest.raises(CdslError) as caught:
        call(*args, **named)
    assert caught.value.code == code, str(caught.value)
    return str(caught.value)


# -- parameters ----------------------------------------------------------------------------------


def test_defaults_are_filled_in(op: ResolvedOp) -> None:
    int32: Any = np.int32(4)
    bound = bind_parameters(op, {"stride": int32})
    assert bound == {
        "stride": 4, "dilation": 1, "pad_begin": 0, "pad_end": 0, "out_pad": 0, "groups": 1,
    }  # fmt: skip
    assert all(type(v) is int for v in bound.values())


@pytest.mark.parametrize("value", [True, np.True_, 1.0, np.float32(1), "1", None, [1], 1 + 0j])
def test_an_int_takes_integers_only(op: ResolvedOp, value: Any) -> None:
    refused("E0302", bind_parameters, op, {"stride": value})


@pytest.mark.parametrize("value", [float("nan"), float("inf"), True, "1", None, [1], 1j, 10**400])
def test_a_float_takes_finite_numbers_only(value: Any) -> None:
    op = op_of("op f(x: f32[N], a: float = 1) -> y: f32[N] { y[n] = a * x[n] }")
    refused("E0302", bind_parameters, op, {"a": value})


def test_a_float_takes_integers_and_numpy_numbers() -> None:
    op = op_of("op f(x: f32[N], a: float, c: float = -0.5) -> y: f32[N] { y[n] = a * c * x[n] }")
    assert bind_parameters(op, {"a": 2}) == {"a": 2.0, "c": -0.5}
    half: Any = np.float32(0.5)
    assert type(bind_parameters(op, {"a": half})["a"]) is float


def test_integers_pass_64_bits_never(op: ResolvedOp) -> None:
    bind_parameters(op, {"pad_begin": -(2**63), "pad_end": 2**63 - 1})
    refused("E0307", bind_parameters, op, {"pad_begin": 2**63})
    refused("E0307", bind_parameters, op, {"pad_begin": -(2**63) - 1})


# -- sizes from shapes ---------------------------------------------------------------------------


def test_an_axis_with_one_unknown_determines_it(op: ResolvedOp) -> None:
    parameters = bind_parameters(op, {"groups": 2})
    sizes = solve_sizes(op, parameters, {"x": (3, 6, 10), "w": (6, 5, 4)})
    assert sizes == {"N": 3, "C": 3, "L": 10, "M": 5, "K": 4}
    assert complete_sizes(op, parameters, sizes)["LO"] == 13


def test_axes_are_used_until_nothing_changes() -> None:
    op = op_of("op f(x: f32[A*B*C], y: f32[B*C], z: f32[C]) -> r: f32[] { r[] = sum[c] z[c] }")
    assert solve_sizes(op, {}, {"x": (30,), "y": (6,), "z": (2,)}) == {"A": 5, "B": 3, "C": 2}


def test_given_sizes_help_and_are_checked() -> None:
    op = op_of("op f(x: f32[A*B]) -> y: f32[A, B] { y[a, b] = x[(a, b)] }")
    assert solve_sizes(op, {}, {"x": (6,)}, {"A": 2}) == {"A": 2, "B": 3}
    refused("E0304", solve_sizes, op, {}, {"x": (6,)}, {"A": 4})
    refused("E0303", solve_sizes, op, {}, {"x": (6,)}, {"A": 2, "B": 2})
    assert solve_sizes(op, {}, {}, {"A": 2, "B": 3}) == {"A": 2, "B": 3}
    for wrong in ({"Z": 1}, {"A": 1.5}, {"A": True}):
        refused("E0309", solve_sizes, op, {}, {"x": (6,)}, wrong)


def test_what_is_bound_early_is_checked_early(op: ResolvedOp) -> None:
    parameters = bind_parameters(op, {})
    w = {"w": (6, 5, 4)}
    assert solve_sizes(op, parameters, w, partial=True) == {"C": 6, "M": 5, "K": 4}
    refused("E0303", solve_sizes, op, parameters, w, {"C": 7}, partial=True)
    assert solve_sizes(op, parameters, w, {"LO": 9}, partial=True)["LO"] == 9


def test_powers_have_exact_roots() -> None:
    op = op_of("op f(x: f32[A*A*2]) -> y: f32[A] { y[a] = sum[b, c] x[(a, b, c)] }")
    big = 30000
    assert solve_sizes(op, {}, {"x": (2 * big * big,)}) == {"A": big}
    assert solve_sizes(op, {}, {"x": (0,)}) == {"A": 0}
    refused("E0304", solve_sizes, op, {}, {"x": (2 * 8,)})


def test_zero_is_a_size(op: ResolvedOp) -> None:
    parameters = bind_parameters(op, {})
    sizes = solve_sizes(op, parameters, {"x": (0, 0, 3), "w": (0, 2, 4)})
    assert complete_sizes(op, parameters, sizes)["C"] == 0


def test_zero_times_a_size_says_nothing_about_it() -> None:
    op = op_of("op f(x: f32[A*B], z: f32[B]) -> y: f32[B] { y[b] = z[b] + (sum[a] x[(a, b)]) }")
    assert solve_sizes(op, {}, {"x": (0,), "z": (4,)}) == {"A": 0, "B": 4}
    assert "whatever `A` is" in refused("E0304", solve_sizes, op, {}, {"x": (0,), "z": (0,)})


def test_a_literal_axis_is_a_check() -> None:
    op = op_of("op f(x: f32[2, N]) -> y: f32[N] { y[n] = sum[a] x[a, n] }")
    assert "must be 2" in refused("E0303", solve_sizes, op, {}, {"x": (3, 5)})


def test_parameters_without_a_check_do_not_divide_by_zero() -> None:
    op = op_of("op f(x: f32[g*C], g: int) -> y: f32[C] { y[c] = sum[a] x[(a, c)] }")
    assert "0" in refused("E0303", solve_sizes, op, {"g": 0}, {"x": (4,)})
    refused("E0305", complete_sizes, op, {"g": -2}, solve_sizes(op, {"g": -2}, {"x": (4,)}))


# -- definitions and checks ----------------------------------------------------------------------


def test_a_defined_size_may_be_given_if_it_agrees(op: ResolvedOp) -> None:
    parameters = bind_parameters(op, {})
    sizes = {"N": 1, "C": 1, "L": 4, "M": 1, "K": 3}
    assert complete_sizes(op, parameters, {**sizes, "LO": 6})["LO"] == 6
    assert "it is 6" in refused("E0309", complete_sizes, op, parameters, {**sizes, "LO": 7})
    refused("E0309", complete_sizes, op, parameters, {"N": 1})


def test_partial_sizes_check_what_they_can(op: ResolvedOp) -> None:
    parameters = bind_parameters(op, {})
    assert complete_sizes(op, parameters, {"L": 4, "K": 3}, partial=True) == {
        "L": 4,
        "K": 3,
        "LO": 6,
    }
    refused("E0301", complete_sizes, op, parameters, {"K": 0}, partial=True)


def test_elements_stay_within_32_bits(op: ResolvedOp) -> None:
    parameters = bind_parameters(op, {})
    sizes = {"N": 1, "C": 1, "M": 1, "K": 1}
    assert complete_sizes(op, parameters, {**sizes, "L": 2**31 - 1})["LO"] == 2**31 - 1
    assert "2147483648" in refused("E0307", complete_sizes, op, parameters, {**sizes, "L": 2**31})


def test_an_absent_input_has_no_elements() -> None:
    op = op_of("op f(x: f32[N], b: f32[N, N] = 0) -> y: f32[N] { y[n] = x[n] + (sum[m] b[n, m]) }")
    refused("E0307", complete_sizes, op, {}, {"N": 50000})
    complete_sizes(op, {}, {"N": 50000}, absent=frozenset({"b"}))


def test_floor_division_and_modulo_are_exact() -> None:
    op = op_of(
        "op f(x: f32[L], p: int) -> y: f32[O] where O == (L - 7)//2 + 10 + (L - 7)%3, p >= -5"
        " { y[o] = sum[l | l == o] x[l] }"
    )
    assert complete_sizes(op, {"p": 0}, {"L": 2})["O"] == -3 + 10 + 1


def test_a_narrowed_range_may_be_empty_but_not_outside() -> None:
    op = op_of("op f(w: f32[K], a: int, e: int) -> y: f32[] { y[] = sum[k in a..e] w[k] }")
    for a, e in ((0, 3), (1, 2), (5, 5), (7, 2), (-4, -4)):
        complete_sizes(op, {"a": a, "e": e}, {"K": 3})
        (reduce,) = _reductions(op, {"a": a, "e": e})
        assert (reduce.vars[0].extent.as_int() or 0) >= 0
    for a, e in ((0, 4), (-1, 2)):
        refused("E0310", complete_sizes, op, {"a": a, "e": e}, {"K": 3})


def _reductions(op: ResolvedOp, parameters: dict[str, int]) -> list[Reduce]:
    value = instantiate(op, parameters, {"K": 3}).equations[0].pieces[0].value
    return [e for e in walk(value) if isinstance(e, Reduce)]


# -- the system with numbers ---------------------------------------------------------------------


def test_all_sizes_known(op: ResolvedOp) -> None:
    parameters = bind_parameters(op, {"stride": 2})
    sizes = complete_sizes(op, parameters, {"N": 1, "C": 2, "L": 3, "M": 4, "K": 5})
    system = instantiate(op, parameters, sizes)
    assert (system.sizes, system.definitions) == ((), ())
    assert [s.as_int() for s in system.output.shape] == [1, 4, 9]
    # Without the defined sizes they are found again.
    assert instantiate(op, parameters, {k: v for k, v in sizes.items() if k != "LO"}) == system


def test_unknown_sizes_stay_symbols(op: ResolvedOp) -> None:
    parameters = bind_parameters(op, {"stride": 2})
    system = instantiate(op, parameters, {"N": 1, "C": 2, "M": 4, "K": 5})
    assert system.sizes == ("L",)
    assert [(n, str(f)) for n, f in system.definitions] == [("LO", "L*2 + 3")]
    assert [str(s) for s in system.output.shape] == ["1", "4", "LO"]


def test_absent_inputs_become_constants(op: ResolvedOp) -> None:
    system = instantiate(op, bind_parameters(op, {}), {}, frozenset({"b"}))
    assert [t.name for t in system.inputs] == ["x", "w"]
    nodes = list(walk(system.equations[0].pieces[0].value))
    assert Const(0.0, "f32") in nodes
    assert {e.access.tensor for e in nodes if isinstance(e, Load)} == {"x", "w"}
    refused("E0311", instantiate, op, bind_parameters(op, {}), {}, frozenset({"x"}))
    refused("E0311", instantiate, op, bind_parameters(op, {}), {}, frozenset({"bias"}))


def test_float_parameters_become_constants() -> None:
    op = op_of("op f(x: f32[N], a: float = 0.25) -> y: f32[N] { y[n] = leaky_relu(x[n], a) }")
    nodes = list(walk(instantiate(op, bind_parameters(op, {}), {}).equations[0].pieces[0].value))
    assert Const(0.25, "f32") in nodes
    assert not any(isinstance(e, Param) for e in nodes)


def test_the_work_is_linear_in_the_text() -> None:
    """Counted in calls: twice as many lets and clauses take about twice as many."""

    def calls(count: int) -> int:
        sizes = "".join(f", S{n} == S{n - 1} + 1" for n in range(1, count))
        lets = "".join(f" let h{n}[k] = h{n - 1}[k] + 1" for n in range(1, count))
        text = (
            f"op f(x: f32[N]) -> y: f32[N] where S0 == N{sizes}"
            f" {{ let h0[k] = x[k]{lets} y[k] = h{count - 1}[k] }}"
        )
        program = parse(text)
        found = 0

        def note(frame: object, event: str, argument: object) -> None:
            nonlocal found
            found += event == "call"

        sys.setprofile(note)
        try:
            op = resolve(program)
            parameters = bind_parameters(op, {})
            sizes_ = complete_sizes(op, parameters, solve_sizes(op, parameters, {"x": (6,)}))
            instantiate(op, parameters, sizes_)
        finally:
            sys.setprofile(None)
        return found

    calls(2)  # what is made once
    assert calls(64) < 3 * calls(32)


# -- max and min over nothing --------------------------------------------------------------------

POOL = """
op pool(x: f32[N, L], kernel: int, stride: int = 1, pad: int = 0) -> y: f32[N, LO]
where LO == (L + 2*pad - kernel)//stride + 1, kernel >= 1, stride >= 1 EXTRA
{ y[n, o] = max[k in 0..kernel, l | l + pad == o*stride + k] x[n, l] }
"""


def check(text: str, params: dict[str, int], sizes: dict[str, int]) -> None:
    op = op_of(text)
    parameters = bind_parameters(op, params)
    known = complete_sizes(op, parameters, sizes, partial=True)
    check_reductions(op, parameters, instantiate(op, parameters, known))


@pytest.mark.parametrize("sizes", [{}, {"N": 2}, {"N": 2, "L": 9}])
def test_a_pool_is_never_empty_with_little_padding(sizes: dict[str, int]) -> None:
    # With 2*pad <= kernel each window reaches an element, if there is one.
    text = POOL.replace("EXTRA", ", 2*pad <= kernel, L >= 1")
    check(text, {"kernel": 3, "stride": 2, "pad": 1}, sizes)


@pytest.mark.parametrize("sizes", [{}, {"N": 2, "L": 9}])
def test_a_pool_of_padding_is_refused(sizes: dict[str, int]) -> None:
    arguments = (POOL.replace("EXTRA", ""), {"kernel": 3, "stride": 2, "pad": 3}, sizes)
    assert "o = 0" in refused("E0306", check, *arguments)


def test_no_result_needs_no_maximum() -> None:
    text = "op f(x: f32[N, J]) -> y: f32[N] { y[n] = max[j] x[n, j] }"
    check(text, {}, {"N": 0, "J": 0})
    check(text.replace("x[n, j] }", "x[n, j] else 0 }"), {}, {})
    refused("E0306", check, text, {}, {"N": 3, "J": 0})
    assert "J = 0" in refused("E0306", check, text, {}, {})
    check(text.replace("{", "where J >= 1 {"), {}, {})
    other = text.replace("x: f32[N, J]", "w: f32[K], x: f32[N, J]")
    assert "like `J >= 1`" in refused(
        "E0306", check, other, {}, {}
    )  # K may be 0 too, and it is first


def test_products_of_sizes_wait_for_numbers() -> None:
    text = "op f(x: f32[A*B]) -> y: f32[] { y[] = min[j] x[j] }"
    check(text, {}, {})
    check(text, {}, {"A": 2, "B": 2})
    refused("E0306", check, text, {}, {"A": 2, "B": 0})


def test_nested_and_conditional_reductions() -> None:
    # k is 0 only at even n, so the inner max is over nothing only where it is not taken.
    text = (
        "op f(x: f32[N], z: f32[N, J]) -> y: f32[N]"
        " { y[n] = sum[k in 0..N | 2*k == n] (max[j in 0..2, i in 0..N | i + j == 2*k] x[i]) }"
    )
    check(text, {}, {"N": 5, "J": 1})
    wrong = text.replace("2*k] x", "2*k + N] x")
    assert "k = 1" in refused("E0306", check, wrong, {}, {"N": 5, "J": 1})
