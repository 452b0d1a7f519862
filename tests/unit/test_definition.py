"""`evaluate` on exact values: the field cases about meaning, and the corners of the language.

Every expected value of the field cases was computed twice by hand-written programs, by scatter and
by gather; the letter and number name the case.
"""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import numpy as np
import pytest

import convdsl
from convdsl.definition import evaluate
from convdsl.diagnostics import CdslError, InternalError
from convdsl.ir.equation import Equation, Piece, System, Tensor
from convdsl.ir.evaluate import evaluate_system
from convdsl.ir.expr import Access, Binary, Const, Expr, Guard, Load, Pred, Reduce, Var, eq, ge
from convdsl.ir.index import Index, const, floordiv, minimum, modulo, sym

NAN, INF = np.nan, np.inf


def shipped(name: str) -> str:
    return files("convdsl.ops").joinpath(f"{name}.cdsl").read_text("utf-8")


def transposed(x: Any, w: Any, b: Any = None, **params: int) -> Any:
    """conv_transpose1d; flat lists are one channel, one batch."""
    x, w = np.asarray(x, np.float32), np.asarray(w, np.float32)
    x = x.reshape((1,) * (3 - x.ndim) + x.shape)
    w = w.reshape((1,) * (3 - w.ndim) + w.shape)
    arrays = {"x": x, "w": w}
    if b is not None:
        arrays["b"] = np.atleast_1d(np.asarray(b, np.float32))
    y = evaluate(shipped("conv_transpose1d"), arrays, params)
    return y[0, 0].tolist() if y.shape[:2] == (1, 1) else y[0].tolist()


S, D, PB, PE, OP, G = "stride", "dilation", "pad_begin", "pad_end", "out_pad", "groups"

CASES: list[tuple[str, Any, Any, Any, dict[str, int], Any]] = [
    ("F01", [[3], [5]], [[[7]], [[11]]], None, {G: 2}, [[21], [55]]),
    ("F03", [[1, 2], [3, 4], [5, 6], [7, 8]],
     [[[1, 10], [2, 20]], [[3, 30], [4, 40]], [[5, 50], [6, 60]], [[7, 70], [8, 80]]], None,
     {G: 2, S: 2},
     [[10, 100, 14, 140], [14, 140, 20, 200], [74, 740, 86, 860], [86, 860, 100, 1000]]),
    ("F05", [[1, 2], [3, 4], [5, 6]], [[[1, 1, 1, 1]], [[1, 2, 3, 4]], [[1, 0, 0, 1]]], None,
     {G: 3, S: 2, PB: 1, PE: 1}, [[1, 3, 3, 2], [6, 13, 20, 12], [0, 6, 5, 0]]),
    ("F07", [1, 2, 3], [1, 10], None, {D: 2}, [1, 2, 13, 20, 30]),
    ("F09", [1, 2, 3], [1, 10], 5, {S: 2, D: 2}, [6, 5, 17, 5, 28, 5, 35]),
    ("F11", [1, 2], [1, 10, 100], None, {S: 2, D: 3}, [1, 0, 2, 10, 0, 20, 100, 0, 200]),
    ("F13", [1, 2, 3], [1, 10, 100], None, {S: 2, PB: 1, PE: 1}, [10, 102, 20, 203, 30]),
    ("F13 longer", [1, 2, 3], [1, 10, 100], None, {S: 2, PB: 1, PE: 1, OP: 1},
     [10, 102, 20, 203, 30, 300]),
    ("F15", [1, 2], [1, 10, 100, 1000, 10000], None, {S: 3, PB: 2, PE: 2, OP: 2},
     [100, 1002, 10020, 200, 2000, 20000]),
    ("F19", [1, 2], [1, 10], 9, {S: 2, OP: 1}, [10, 19, 11, 29, 9]),
    ("F20", [1, 2], [1, 10], None, {PE: 1}, [1, 12]),
    ("F33 begin", [1, 2, 3], [1, 10], None, {PB: 1}, [12, 23, 30]),
    ("F33 end", [1, 2, 3], [1, 10], None, {PE: 1}, [1, 12, 23]),
    ("F35", list(range(1, 9)), [1, 10, 100], None, {PB: 5}, [456, 567, 678, 780, 800]),
    ("F39", [1, 2], [1, 10, 100], None, {S: 2, OP: 1}, [1, 10, 102, 20, 200, 0]),
    ("F40", [1, 2], [1, 10], 3, {PB: -1, PE: -2}, [3, 4, 15, 23, 3, 3]),
    ("F41", [1, 2], [1, 10], 100, {S: 4}, [101, 110, 100, 100, 102, 120]),
    ("F43", [1, 2, 3], [2], 10, {S: 3}, [12, 10, 10, 14, 10, 10, 16]),
    ("F44", [1, 1], [1, 1], None, {S: 2}, [1, 1, 1, 1]),
    ("F44 overlapping", [1, 1], [1, 1], None, {}, [1, 2, 1]),
    ("F49", [[1, 2], [3, 4]], [[[1], [2], [3]], [[4], [5], [6]]], None, {},
     [[13, 18], [17, 24], [21, 30]]),
    ("F51", [1, 0, 0], [1, 2, 3], None, {}, [1, 2, 3, 0, 0]),
    ("F54", [[1, 2, 3], [4, 5, 6], [7, 8, 9]], [[[1, 10]], [[2, 20]], [[3, 30]]], None, {},
     [30, 336, 402, 420]),
    ("F56", [0, 0, 0], [INF, 0], None, {}, [NAN, NAN, NAN, 0]),
    ("F56 strided", [0, 0], [INF, 1], None, {S: 2}, [NAN, 0, NAN, 0]),
    ("F58", [INF, 1], [1, 0], None, {S: 2}, [INF, NAN, 1, 0]),
    ("F61", [1, 2], [NAN, 1], None, {S: 2}, [NAN, 1, NAN, 2]),
    ("F84 short", [1, 2, 3, 4, 5], [1, 10], None, {S: 2}, [1, 10, 2, 20, 3, 30, 4, 40, 5, 50]),
    ("F84 long", [1, 2], [1, 10, 100, 1000, 10000], None, {S: 2},
     [1, 10, 102, 1020, 10200, 2000, 20000]),
    ("F117", [1] * 4, [1] * 10, None, {S: 5, PB: 3, PE: 3, OP: 1}, [1, 1, *[2] * 15, 1, 1, 1]),
]  # fmt: skip


@pytest.mark.parametrize(("x", "w", "b", "params", "expected"), [c[1:] for c in CASES],
                         ids=[c[0] for c in CASES])  # fmt: skip
def test_field_case(x: Any, w: Any, b: Any, params: dict[str, int], expected: Any) -> None:
    np.testing.assert_array_equal(transposed(x, w, b, **params), expected)


def test_f37_padding_beyond_the_span() -> None:
    assert transposed([1.0] * 14, [1, 1, 1], **{PB: 8, PE: 8}) == []
    with pytest.raises(CdslError, match="E0305"):
        transposed([1.0] * 14, [1, 1, 1], **{PB: 9, PE: 9})


@pytest.mark.parametrize("n", [0, 1, 2])
def test_f46_empty_batches(n: int) -> None:
    arrays = {"x": np.ones((n, 2, 3)), "w": np.ones((2, 1, 4))}
    assert evaluate(shipped("conv_transpose1d"), arrays, {S: 2}).shape == (n, 1, 8)


def test_no_channels_leave_the_bias() -> None:
    arrays = {"x": np.ones((1, 0, 3)), "w": np.ones((0, 2, 1)), "b": np.array([1, 2])}
    y = evaluate(shipped("conv_transpose1d"), arrays)
    assert y.tolist() == [[[1, 1, 1], [2, 2, 2]]]


@pytest.mark.parametrize("n", [3, 5, 6, 7])
def test_f86_odd_channel_counts(n: int) -> None:
    c = np.arange(1.0, n + 1)
    assert transposed(c.reshape(1, n, 1), 10 * c.reshape(n, 1, 1)) == [10 * float(sum(c * c))]


@pytest.mark.parametrize("s", [3, 5, 6, 7, 10, 15])
def test_f82_strides_that_are_no_powers_of_two(s: int) -> None:
    y = transposed(np.arange(1, 65), [1] * s, **{S: s})
    assert y == [o // s + 1 for o in range(64 * s)]


def test_f62_half_precision_past_2048() -> None:
    half = shipped("conv_transpose1d").replace("f32[", "f16[")
    x = (np.arange(4100) % 7).astype(np.float16).reshape(1, 1, -1)
    assert (evaluate(half, {"x": x, "w": np.ones((1, 1, 1), np.float16)}) == x).all()


def test_f64_one_rounding_at_the_store() -> None:
    half = shipped("conv_transpose1d").replace("f32[", "f16[")
    x = np.full((1, 2, 1), 200, np.float16)
    assert evaluate(half, {"x": x, "w": x.reshape(2, 1, 1)}).tolist() == [[[INF]]]


def test_f72_a_long_axis() -> None:
    x = np.arange(4194241) % 251
    arrays = {"x": x[None, None].astype(np.float32), "w": np.full((1, 1, 1), 3, np.float32)}
    y = evaluate(shipped("conv_transpose1d"), arrays)
    np.testing.assert_array_equal(y[0, 0], 3 * x)


def test_f110_f112_shapes_are_checked() -> None:
    arrays = {"x": np.ones((1, 1, 2)), "w": np.ones((1, 2, 2))}
    for b in ([1.0], [1.0, 2.0, 3.0], [[1.0], [2.0]]):
        with pytest.raises(CdslError, match="E0303"):
            evaluate(shipped("conv_transpose1d"), {**arrays, "b": np.asarray(b)})
    for params in ({D: 0}, {S: 0}, {G: 0}, {G: -1}, {OP: 1}, {"strides": 1}):
        with pytest.raises(CdslError, match=r"E030[12]"):
            transposed([1, 2], [1, 2], **params)


def test_wrong_arrays_are_refused() -> None:
    text = "op f(x: f32[N], i: i32[N] = 1) -> y: f32[N] { y[n] = x[n] * f32(i[n]) }"
    assert evaluate(text, {"x": [1, 2.5]}).tolist() == [1, 2.5]
    for arrays, code in (
        ({}, "E0311"),
        ({"x": [1], "z": [1]}, "E0311"),
        ({"x": [1j]}, "E0312"),
        ({"x": ["a"]}, "E0312"),
        ({"x": [1], "i": [1.5]}, "E0312"),
    ):
        with pytest.raises(CdslError, match=code):
            evaluate(text, arrays)


# -- corners of the language ---------------------------------------------------------------------


def values(expression: str, x: Any, **params: float) -> Any:
    text = f"op f(x: f32[N], a: float = 0.5) -> y: f32[N] {{ y[n] = {expression} }}"
    return evaluate(text, {"x": np.asarray(x, np.float64)}, params)


def test_functions() -> None:
    x = np.array([-3.0, -0.5, 0.0, 0.5, 3.0])
    expected = {
        "abs(x[n])": np.abs(x), "exp(x[n])": np.exp(x), "sin(x[n])": np.sin(x),
        "cos(x[n])": np.cos(x), "tanh(x[n])": np.tanh(x), "relu(x[n])": np.maximum(x, 0),
        "sigmoid(x[n])": 1 / (1 + np.exp(-x)), "leaky_relu(x[n], a)": np.where(x > 0, x, x / 2),
        "sqrt(abs(x[n]))": np.sqrt(np.abs(x)), "pow(x[n], 2)": x * x,
        "log(exp(x[n]))": x, "max(x[n], -x[n], 1)": np.maximum(np.abs(x), 1),
        "select(x[n] >= a, 1, -1)": np.where(x >= 0.5, 1, -1), "1 - x[n] / 2": 1 - x / 2,
        "f32(i32(x[n]))": np.trunc(x), "f16(x[n] / 3)": (x / 3).astype(np.float16),
    }  # fmt: skip
    for expression, value in expected.items():
        np.testing.assert_allclose(values(expression, x), value, rtol=1e-14, err_msg=expression)
    gelu = [-0.00404969409489031, -0.15426876936299347, 0, 0.34573123063700656, 2.99595030590511]
    np.testing.assert_allclose(values("gelu(x[n])", x), gelu, rtol=1e-13)


def test_special_values() -> None:
    x = [NAN, INF, -INF, -0.0]
    np.testing.assert_array_equal(values("max(x[n], 0)", x), [NAN, INF, 0, 0])
    np.testing.assert_array_equal(values("relu(x[n])", x), [NAN, INF, 0, 0])
    np.testing.assert_array_equal(values("sigmoid(x[n])", x), [NAN, 1, 0, 0.5])
    np.testing.assert_array_equal(values("gelu(x[n])", x), [NAN, INF, 0, 0])
    np.testing.assert_array_equal(np.signbit(values("-x[n]", [0.0, -0.0])), [True, False])
    np.testing.assert_array_equal(values("1 / x[n]", [0.0, -0.0]), [INF, -INF])


def test_empty_reductions() -> None:
    text = "op f(x: f32[N, K]) -> y: f32[N] { y[n] = %s }"
    none = {"x": np.zeros((2, 0))}
    assert evaluate(text % "sum[k] x[n, k]", none).tolist() == [0, 0]
    assert evaluate(text % "prod[k] x[n, k]", none).tolist() == [1, 1]
    assert evaluate(text % "max[k] x[n, k] else -7", none).tolist() == [-7, -7]
    with pytest.raises(CdslError, match="E0306"):
        evaluate(text % "min[k] x[n, k]", none)


def test_an_empty_reduction_has_its_place() -> None:
    """That of the one that is over nothing, not of another over an index of the same name."""
    wanted = "max[k | k == K] x[n, k]"
    text = "op f(x: f32[N, K]) -> y: f32[N] { y[n] = (max[k] x[n, k] else 0) + (" + wanted + ") }"
    for use in (evaluate, lambda text, arrays: convdsl.compile(text)(arrays["x"])):
        with pytest.raises(CdslError, match="E0306") as caught:
            use(text, {"x": np.zeros((2, 3), np.float32)})
        span = caught.value.span
        assert span is not None
        assert text[span.start : span.end] == wanted


@pytest.mark.parametrize("reads", ["", " + (sum[q in 0..LO | q == h] full[q])"])
def test_a_let_has_the_written_range_of_its_readers(reads: str) -> None:
    text = (
        "op f(x: f32[L], w: f32[K]) -> y: f32[H] where LO == L + K - 1, H == (LO + 1) // 2 {"
        " let full[o] = sum[k, l | l + k == o] x[l] * w[k]"
        f" y[h] = (sum[o in 0..LO | o == 2*h] full[o]){reads} }}"
    )
    x, w = np.arange(1, 8, dtype=np.float32), np.array([1, 2, 4], np.float32)
    full = np.convolve(x, w)
    wanted = full[::2] + (full[:5] if reads else 0)
    assert evaluate(text, {"x": x, "w": w}).tolist() == wanted.tolist()
    assert convdsl.compile(text)(x, w).tolist() == wanted.tolist()


def test_an_axis_goes_before_a_written_range() -> None:
    """Which then narrows, as on any axis."""
    text = (
        "op f(x: f32[L]) -> y: f32[L] { let h[o] = sum[l | l == o] x[l]"
        " y[n] = h[n] + (sum[o in 0..2] h[o]) }"
    )
    assert evaluate(text, {"x": [1, 2, 4]}).tolist() == [4, 5, 7]
    with pytest.raises(CdslError, match="E0310"):
        evaluate(text, {"x": [1]})


RESIDUAL = """
op f(x: f32[L], w: f32[K], skip: f32[LO] = 0) -> y: f32[LO]
where LO == L - K + 1,
      K >= 1
{
    y[o] = skip[o] + (sum[k, l | l == o + k] x[l] * w[k])
}
"""


def test_a_clause_gives_the_size_that_only_an_absent_input_has() -> None:
    x, w = np.arange(6, dtype=np.float32), np.array([1, 2], np.float32)
    wanted = np.convolve(x, w[::-1], "valid")
    kernel = convdsl.compile(RESIDUAL)
    for run in (
        lambda *arrays: evaluate(RESIDUAL, dict(zip(["x", "w", "skip"], arrays, strict=False))),
        kernel,
    ):
        assert run(x, w).tolist() == wanted.tolist()
        assert run(x, w, np.ones(5, np.float32)).tolist() == (wanted + 1).tolist()
        with pytest.raises(CdslError, match="E0301"):  # with the input it is a check
            run(x, w, np.ones(4, np.float32))


def test_else_only_where_nothing_is() -> None:
    text = "op f(x: f32[L]) -> y: f32[6] { y[o] = max[l | 2*l == o] x[l] else -1 }"
    assert evaluate(text, {"x": [5, NAN, -3]}).tolist()[0::2][::2] == [5, -3]
    assert evaluate(text, {"x": [5, 6, -3]}).tolist() == [5, -1, 6, -1, -3, -1]


def test_integers_are_exact() -> None:
    text = "op f(i: i32[N]) -> y: i32[] { y[] = sum[n] 3 * i[n] - 1 }"
    big = 2**30 + 1
    assert evaluate(text, {"i": np.array([big, -big, 5], np.int32)}) == 14
    text = "op f(i: i32[N]) -> y: i32[N] { y[n] = max(abs(i[n]), 2) }"
    assert evaluate(text, {"i": np.array([-5, 1])}).tolist() == [5, 2]


def test_f16_intermediates_round_and_others_do_not() -> None:
    text = "op f(x: f32[N]) -> y: f32[N] { let h%s[n] = x[n] / 3 y[n] = 3 * h[n] }"
    assert evaluate(text % "", {"x": [1.0]})[0] == 1
    assert evaluate(text % ": f16", {"x": [1.0]})[0] == 3 * float(np.float16(1 / 3))


def test_reductions_inside_reductions() -> None:
    text = (
        "op f(x: f32[N, K], w: f32[M, K]) -> y: f32[N]"
        " { y[n] = sum[m] relu(sum[k] x[n, k] * w[m, k]) * (max[k] w[m, k]) }"
    )
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(3, 4)), rng.normal(size=(5, 4))
    expected = (np.maximum(x @ w.T, 0) * w.max(1)).sum(1)
    np.testing.assert_allclose(evaluate(text, {"x": x, "w": w}), expected, rtol=1e-12)


def test_memory_is_bounded_by_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(7, 11)), rng.normal(size=(11, 5))
    x, w = rng.normal(size=(2, 3, 9)), rng.normal(size=(3, 4, 6))
    whole = evaluate(shipped("conv_transpose1d"), {"x": x, "w": w}, {S: 2})
    for limit in (1, 3, 10, 100):
        monkeypatch.setattr("convdsl.ir.evaluate.ELEMENTS", limit)
        np.testing.assert_allclose(evaluate(shipped("matmul"), {"a": a, "b": b}), a @ b, rtol=1e-12)
        y = evaluate(shipped("conv_transpose1d"), {"x": x, "w": w}, {S: 2})
        np.testing.assert_allclose(y, whole, rtol=1e-12)


# -- systems as rewrites make them ---------------------------------------------------------------


def load(tensor: str, index: Index, extent: int) -> Load:
    return Load(Access(tensor, (index,), (const(extent),)), "f32")


def run(pieces: list[Piece], x: Any, size: int) -> Any:
    tensors = (
        Tensor("x", "f32", ((const(len(x)),),), "input"),
        Tensor("y", "f32", ((const(size),),), "output"),
    )
    system = System("f", (), (), tensors, (Equation("y", tuple(pieces)),))
    return evaluate_system(system, {"x": np.asarray(x, np.float64)})["y"].tolist()


def piece(var: Var, guards: list[Pred], at: Index, value: Expr, size: int) -> Piece:
    return Piece((var,), tuple(guards), Access("y", (at,), (const(size),)), value)


def test_pieces_with_guards_cover_a_target() -> None:
    t = Var("t", const(0), const(6))
    odd, even = modulo(sym("t"), const(2)), floordiv(sym("t"), const(2))
    two = [
        piece(t, [eq(odd)], sym("t"), load("x", even, 3), 6),
        piece(t, [Pred("ne", odd)], sym("t"), Const(0.0, "f32"), 6),
    ]
    assert run(two, [5, 6, 7], 6) == [5, 0, 6, 0, 7, 0]
    with pytest.raises(InternalError, match="0 times"):
        run(two[:1], [5, 6, 7], 6)
    with pytest.raises(InternalError, match="2 times"):
        run([*two, two[0]], [5, 6, 7], 6)


def test_guards_keep_reads_inside() -> None:
    t = Var("t", const(0), const(4))
    before = sym("t") - 1
    guarded = Guard((ge(before),), load("x", before, 3), Const(-1.0, "f32"))
    assert run([piece(t, [], sym("t"), guarded, 4)], [5, 6, 7], 4) == [-1, 5, 6, 7]
    with pytest.raises(InternalError, match="outside"):
        run([piece(t, [], sym("t"), load("x", before, 3), 4)], [5, 6, 7], 4)


def test_bounds_that_name_other_variables() -> None:
    t = Var("t", const(0), const(4))
    inner = Var("j", sym("t"), minimum(sym("t") + 2, const(4)))
    total = Reduce("sum", (inner,), (), load("x", sym("j"), 4))
    assert run([piece(t, [], sym("t"), total, 4)], [1, 10, 100, 1000], 4) == [11, 110, 1100, 1000]


def test_a_phase_form_is_the_definition() -> None:
    """o = 2*t + kappa - 1, k = 2*j + kappa, l = t - j: the phases of stride 2 with padding 1."""
    x, w, size = [1, 2, 3], [1, 10, 100], 5
    t, kappa = Var("t", const(0), const(4)), Var("kappa", const(0), const(2))
    j, k, at = Var("j", const(0), const(2)), sym("j") * 2 + sym("kappa"), sym("t") - sym("j")
    inside = [ge(at), ge(2 - at), ge(2 - k)]
    w_at = Load(Access("w", (k,), (const(3),)), "f32")
    total = Reduce("sum", (j,), tuple(inside), Binary("*", load("x", at, 3), w_at))
    o = sym("t") * 2 + sym("kappa") - 1
    phases = Piece((t, kappa), (ge(o), ge(size - 1 - o)), Access("y", (o,), (const(size),)), total)
    tensors = (
        Tensor("x", "f32", ((const(3),),), "input"),
        Tensor("w", "f32", ((const(3),),), "input"),
        Tensor("y", "f32", ((const(size),),), "output"),
    )
    system = System("f", (), (), tensors, (Equation("y", (phases,)),))
    y = evaluate_system(system, {"x": np.asarray(x, float), "w": np.asarray(w, float)})["y"]
    assert y.tolist() == transposed(x, w, **{S: 2, PB: 1, PE: 1})


def test_sizes_that_stay_symbols() -> None:
    n = sym("N")
    tensors = (
        Tensor("x", "f32", ((n,),), "input"),
        Tensor("y", "f32", ((sym("P"),),), "output"),
    )
    value = Load(Access("x", (sym("i") - 1,), (n,)), "f32")
    at = Access("y", (sym("i") - 1,), (sym("P"),))
    shifted = Piece((Var("i", const(1), n + 1),), (), at, value)
    system = System("f", ("N",), (("P", n),), tensors, (Equation("y", (shifted,)),))
    assert evaluate_system(system, {"x": np.arange(3.0)}, {"N": 3})["y"].tolist() == [0, 1, 2]
