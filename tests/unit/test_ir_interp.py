"""The interpreter: what programs mean, and what it catches."""

from __future__ import annotations

import math

import numpy as np
import pytest

from convdsl.diagnostics import InternalError
from convdsl.ir.expr import Access, Scalar, Var
from convdsl.ir.index import ZERO, const, sym, total
from convdsl.ir.interp import run_program
from convdsl.ir.interp_values import CALLS, POISON_INT, divide, half, maximum, minimum, to_i32
from convdsl.ir.loop import Buffer, Kernel, LoopProgram, Store, nest
from convdsl.ir.reader import read_program
from tests.unit.ir_programs import matmul, values

HEAD = "func f(N)\n  buffer x: f32[N] input\n  buffer y: f32[N] output\nkernel k\n"


@pytest.mark.parametrize(("m", "n", "k"), [(1, 1, 1), (4, 4, 8), (5, 7, 19), (3, 4, 0), (0, 2, 2)])
def test_a_tiled_product(m: int, n: int, k: int) -> None:
    rng = np.random.default_rng(m + n + k)
    a = rng.integers(-3, 4, (m, k)).astype(np.float64)
    b = rng.integers(-3, 4, (k, n)).astype(np.float32)
    y = run_program(matmul(), {"a": a, "b": b}, {"M": m, "N": n, "K": k})["y"]
    assert y.shape == (m, n)
    assert (y == np.maximum(a @ b, 0)).all()


def test_values() -> None:
    x, i = np.array([-2.0, 0.5, 7.25]), np.array([1, 2, 2**24 + 1])
    out = run_program(values(), {"x": x, "i": i}, {"N": 3})
    t = sum(abs(x) * i / 3)
    leaky = np.where(x >= 0, x, 0.1 * x)
    assert np.allclose(out["y"][:, 0], np.where(x < t, -1.5, leaky - (x - t)))
    assert (out["y"][:, 1] == t).all()
    assert out["j"].dtype == np.int64
    assert out["j"].tolist() == [1 - 1 - 2, 2 + 1 + 0, 2**24 + 1 + 3 + 7]
    assert float(out["t"]) == pytest.approx(t)


def test_stores_to_f16_round_and_others_do_not() -> None:
    text = "func f()\n  buffer h: f16[3] output\n  buffer y: f32[1] output\nkernel k\n"
    body = "  h[0] = 0.1\n  h[1] = 70000.0\n  h[2] = 1.0\n  h[2] += 0.0001\n  y[0] = 0.1\n"
    out = run_program(read_program(text + body), {}, {})
    assert out["h"].tolist() == [float(np.float16(0.1)), math.inf, 1.0]
    assert out["y"][0] == 0.1


def test_what_was_never_stored_is_garbage() -> None:
    text = HEAD.replace("kernel k\n", "kernel k\n  register r: f32[]\n  register i: i32[]\n")
    program = read_program(text + "  y[0] = r[]\n  y[1] = f32(i[])\n")
    out = run_program(program, {"x": np.zeros(3)}, {"N": 3})
    assert np.isnan(out["y"][[0, 2]]).all()
    assert out["y"][1] == POISON_INT


def test_locals_are_garbage_again_in_each_workgroup() -> None:
    text = HEAD.replace("kernel k\n", "kernel k\n  workgroup t: f32[1]\n  temp s: f32[1]\n")
    body = """
  for n in 0..N grid
    if n == 0
      t[0] = 1.0
      s[0] = 1.0
    y[n] = t[0]
"""
    run = read_program(text + body)
    assert str(run_program(run, {"x": np.zeros(2)}, {"N": 2})["y"].tolist()) == "[1.0, nan]"
    kept = read_program(text + body.replace("= t[0]", "= s[0]"))
    assert run_program(kept, {"x": np.zeros(2)}, {"N": 2})["y"].tolist() == [1.0, 1.0]


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ("  for n in 0..N serial\n    y[n] = x[n + 1]\n", r"x\[3\] is outside \[3\]"),
        ("  y[-1] = 0.0\n", r"y\[-1\] is outside"),
        ("  for n in 0..N serial\n    y<1, N>[0, n*2] = 0.0\n", r"y\[0, 4\] is outside \[1, 3\]"),
        ("  y<2, N>[0, 0] = 0.0\n", "does not fit"),
        ("  y[q] = 0.0\n", "q has no value"),
        ("  y[0] = select(x[0] < 1.0, 0.0, x[7])\n", "is outside"),
        ("  y[N // (N - 3)] = 0.0\n", "divides by zero"),
    ],
)
def test_accesses_are_checked(body: str, message: str) -> None:
    with pytest.raises(InternalError, match=message):
        run_program(read_program(HEAD + body), {"x": np.zeros(3)}, {"N": 3})


def test_what_is_never_reached_may_divide_by_zero() -> None:
    body = "  for n in 0..N serial\n    let a = n // N\n    y[n % N] = guard(n >= a: x[a] else 0.0)"
    program = read_program(HEAD + body)
    assert run_program(program, {"x": np.zeros(0)}, {"N": 0})["y"].shape == (0,)
    assert run_program(program, {"x": np.ones(2)}, {"N": 2})["y"].tolist() == [1.0, 1.0]


def test_a_guard_is_not_evaluated_elsewhere() -> None:
    body = "  for n in 0..N serial\n    y[n] = guard(n >= 1: x[n - 1] else 9.0)\n"
    y = run_program(read_program(HEAD + body), {"x": np.arange(3.0)}, {"N": 3})["y"]
    assert y.tolist() == [9.0, 0.0, 1.0]


@pytest.mark.parametrize(
    ("index", "message"),
    [
        ("(t + 1) % 4", r"r\[1\] is a register of another thread"),
        ("t + 4", "is outside"),
        ("t", "1 thread dims inside 2 thread loops"),
    ],
)
def test_registers_stay_with_their_thread(index: str, message: str) -> None:
    head = HEAD.replace("kernel k\n", "kernel k\n  register r: f32[4 |]\n")
    inner = "    r[t] = 0.0\n" if index != "t" else "    for u in 0..2 thread\n      r[t] = 0.0\n"
    last = "" if index == "t" else f"    y[0] = r[{index}]\n"
    with pytest.raises(InternalError, match=message):
        run_program(
            read_program(head + "  for t in 0..4 thread\n" + inner + last),
            {"x": np.zeros(1)},
            {"N": 1},
        )


def test_an_index_that_equals_the_thread_is_its_own() -> None:
    head = HEAD.replace("kernel k\n", "kernel k\n  register r: f32[4 |]\n")
    body = "  for t in 0..4 thread\n    let u = t*2\n    r[u // 2] = f32{t}\n    y[t] = r[t]\n"
    y = run_program(read_program(head + body), {"x": np.zeros(4)}, {"N": 4})["y"]
    assert y.tolist() == [0, 1, 2, 3]


def test_inputs_are_checked() -> None:
    program = read_program(HEAD + "  y[0] = x[0]\n")
    with pytest.raises(InternalError, match="no array for the input buffer x"):
        run_program(program, {}, {"N": 1})
    with pytest.raises(InternalError, match=r"x has shape \(2,\), its buffer \(1,\)"):
        run_program(program, {"x": np.zeros(2)}, {"N": 1})
    with pytest.raises(InternalError, match="negative shape"):
        run_program(program, {"x": np.zeros(2)}, {"N": -1})


def test_nests_deeper_than_python_allows() -> None:
    names = [f"i{n}" for n in range(45)]
    loops = [(Var(n, ZERO, const(2 if k % 7 == 0 else 1)), "serial") for k, n in enumerate(names)]
    loops[3:3] = [(Var(f"s{n}", ZERO, sym("N") - n), "serial") for n in range(1)]
    access = Access("y", (sym("i0"),), (const(2),))
    store = Store(access, Scalar(total(map(sym, names)), "f32"), "+")
    start = Store(access, Scalar(ZERO, "f32"))
    body = (
        *nest([(Var("i0", ZERO, const(2)), "serial")], (start,)),
        *nest(loops, (store,)),  # type: ignore[arg-type]
    )
    wide = [(Var(f"d{n}", ZERO, sym("N")), "serial") for n in range(25)]
    last = Store(Access("z", (), ()), Scalar(total(sym(f"d{n}") + 1 for n in range(25)), "f32"))
    body = (*body, *nest(wide, (last,)))  # type: ignore[arg-type]
    buffers = (Buffer("y", "f32", (const(2),), "output"), Buffer("z", "f32", (), "output"))
    program = LoopProgram("deep", ("N",), (), buffers, (Kernel("k", (), body),))
    out = run_program(program, {}, {"N": 1})
    # Seven variables of two values, of which y is indexed by the first.
    assert out["y"].tolist() == [64 * 3.0, 64 * 4.0]
    assert out["z"] == 25


def test_floats_are_ieee() -> None:
    inf, nan = math.inf, math.nan
    assert (divide(1, 0.0), divide(-1, 0.0), divide(1, -0.0)) == (inf, -inf, -inf)
    assert math.isnan(divide(0.0, 0.0))
    assert math.isnan(maximum(nan, 1.0))
    assert math.isnan(maximum(1.0, nan))
    assert math.isnan(minimum(1.0, nan))
    assert (half(65519.0), half(65520.0), half(-inf)) == (65504.0, inf, -inf)
    assert (to_i32(-1.9), to_i32(nan), to_i32(1e20), to_i32(-inf)) == (-1, 0, 2**31 - 1, -(2**31))


@pytest.mark.parametrize("name", ["abs", "sqrt", "exp", "log", "sin", "cos", "tanh", "sigmoid"])
def test_functions_agree_with_numpy(name: str) -> None:
    reference = {"sigmoid": lambda v: 1 / (1 + np.exp(-v))}.get(name) or getattr(np, name)
    with np.errstate(all="ignore"):
        for v in [-math.inf, -1000.0, -1.5, 0.0, 0.5, 3.0, 1000.0, math.inf, math.nan]:
            expected = float(reference(np.float64(v)))
            assert CALLS[name](v) == pytest.approx(expected, nan_ok=True), v


def test_functions_of_two_values() -> None:
    with np.errstate(all="ignore"):
        for a in [-math.inf, -2.0, -0.0, 0.0, 0.5, 3.0, math.inf, math.nan]:
            for b in [-3.0, -0.5, 0.0, 2.0, 1e6, math.inf]:
                expected = float(np.power(np.float64(a), b))
                assert CALLS["pow"](a, b) == pytest.approx(expected, nan_ok=True), (a, b)
    assert CALLS["leaky_relu"](-2.0, 0.1) == -0.2
    assert math.isnan(CALLS["relu"](math.nan))
    assert CALLS["gelu"](1.0) == pytest.approx(0.8413447)
    assert CALLS["gelu"](-math.inf) == 0
