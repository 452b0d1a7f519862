"""The helper functions on an adapter, held against float64: their stated errors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from convdsl.backends.wgsl.emit import emit_module
from convdsl.backends.wgsl.module import Limits
from convdsl.ir.expr import FUNCTIONS, Binary, Call, Cast, Const, Expr
from convdsl.ir.index import sym
from convdsl.ir.loop import Kernel, LoopProgram, Stmt
from tests.wgsl_device import run_module
from tests.wgsl_programs import buffer, load, loop, store
from tests.wgsl_rules import check_wgsl_text

pytestmark = pytest.mark.gpu

Array = np.ndarray[Any, np.dtype[Any]]
COUNT = 4096


def apply(f: Callable[[Expr], Expr], x: Array, width: int) -> Array:
    """`f` of each element, as numbers or as vec4s."""
    source = buffer("x", COUNT, memory="input")
    target = buffer("y", COUNT, memory="output")
    at = sym("b") * 256 + sym("t") * 4 + sym("v")
    four = buffer("four", 64, 4, memory="register", threads=1)
    lane = (sym("t"), sym("v"))
    body: tuple[Stmt, ...]
    if width == 4:
        body = (
            loop("vector", "v", 4, store(four, lane, load(source, at))),
            loop("vector", "v", 4, store(target, (at,), f(load(four, *lane)))),
        )
    else:
        body = (loop("unroll", "v", 4, store(target, (at,), f(load(source, at)))),)
    grid = loop("grid", "b", COUNT // 256, loop("thread", "t", 64, *body))
    kernel = Kernel("f", (four,) if width == 4 else (), (grid,))
    module = emit_module(LoopProgram("f", (), (), (source, target), (kernel,)), Limits())
    check_wgsl_text(module.text)
    return run_module(module, {"x": x})["y"]


def gelu(x: Array) -> Array:
    return np.array([v * 0.5 * math.erfc(-v / math.sqrt(2)) for v in x])


# name: reference, largest |x|, absolute error, error relative to the result
CASES: dict[str, tuple[Callable[[Array], Array], float, float, float]] = {
    "abs": (np.abs, 50, 0, 0),
    "sqrt": (lambda x: np.sqrt(np.abs(x)), 50, 0, 1e-6),
    "exp": (np.exp, 20, 0, 4e-6),
    "log": (lambda x: np.log(np.abs(x)), 50, 3e-7, 1e-6),
    "sin": (np.sin, 1000, 2e-7, 0),
    "cos": (np.cos, 1000, 2e-7, 0),
    "tanh": (np.tanh, 12, 0, 4e-7),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), 30, 3e-7, 4e-6),
    "relu": (lambda x: np.maximum(x, 0), 5, 0, 0),
    "gelu": (gelu, 8, 1e-6, 0),
}


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("name", CASES)
def test_accuracy(name: str, width: int) -> None:
    reference, largest, absolute, relative = CASES[name]
    x = np.linspace(-largest, largest, COUNT, dtype=np.float32)

    def call(e: Expr) -> Expr:
        return Call(name, (Call("abs", (e,)) if name in ("sqrt", "log") else e,))

    want = reference(x.astype(np.float64))
    error = np.abs(apply(call, x, width) - want)
    assert np.all(error <= absolute + relative * np.abs(want)), error.max()


def test_large_arguments_do_not_overflow() -> None:
    x = np.resize(np.array([-3e38, -1e4, -100, -89, 89, 100, 1e4, 3e38], np.float32), COUNT)
    for name, low, high in (("tanh", -1, 1), ("sigmoid", 0, 1)):
        got = apply(lambda e, name=name: Call(name, (e,)), x, 4)  # type: ignore[misc]
        assert np.allclose(got, np.where(x < 0, low, high), atol=1e-30)
    got = apply(lambda e: Call("gelu", (e,)), x, 1)
    assert np.array_equal(np.abs(got), np.where(x < 0, 0, x))


@pytest.mark.parametrize("power", [0.0, 0.5, 1.0, 2.0, 3.0, 4.0, 7.0, -1.0, -2.0])
@pytest.mark.parametrize("width", [1, 4])
def test_pow(power: float, width: int) -> None:
    x = np.linspace(-3, 3, COUNT, dtype=np.float32)
    x[:3] = 0, -1, 1
    with np.errstate(all="ignore"):
        want = x.astype(np.float64) ** power
    got = apply(lambda e: Call("pow", (e, Const(power, "f32"))), x, width)
    assert np.array_equal(np.isnan(got), np.isnan(want))
    finite = np.isfinite(want)
    assert np.array_equal(got[~finite], want[~finite].astype(np.float32), equal_nan=True)
    assert np.allclose(got[finite], want[finite], rtol=5e-6, atol=0)


def test_leaky_relu() -> None:
    x = np.linspace(-3, 3, COUNT, dtype=np.float32)
    for width in (1, 4):
        got = apply(lambda e: Call("leaky_relu", (e, Const(0.1, "f32"))), x, width)
        assert np.array_equal(got, np.where(x >= 0, x, np.float32(0.1) * x))


@pytest.mark.parametrize("width", [1, 4])
def test_rounding_to_half(width: int) -> None:
    """Ties to even, subnormal numbers, overflow to infinity: as NumPy."""
    scale = 10.0 ** np.linspace(-9, 5.2, COUNT // 2)
    x = np.concatenate([np.linspace(-1, 1, COUNT // 2) * scale, np.linspace(-7e4, 7e4, COUNT // 2)])
    x = x.astype(np.float32)
    x[:8] = 65519.99, 65520, np.inf, -np.inf, np.nan, 6e-8, 2.9e-8, 1 + 2**-11
    with np.errstate(over="ignore"):
        want = x.astype(np.float16).astype(np.float32)
    assert np.array_equal(apply(lambda e: Cast("f16", e), x, width), want, equal_nan=True)


@pytest.mark.parametrize("width", [1, 4])
@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinities_are_real_ones(value: float, width: int) -> None:
    x = np.linspace(-3, 3, COUNT, dtype=np.float32)
    got = apply(lambda e: Binary("+", e, Const(value, "f32")), x, width)
    assert np.array_equal(got, np.full(COUNT, value, np.float32))
    got = apply(lambda e: Binary("max" if value < 0 else "min", Const(value, "f32"), e), x, width)
    assert np.array_equal(got, x)


def test_constants_are_not_folded_into_errors() -> None:
    """Compilers refuse constant expressions that overflow; a variable is none."""
    huge, x = Const(3e38, "f32"), np.zeros(COUNT, np.float32)
    assert np.all(np.isinf(apply(lambda e: Binary("+", e, Binary("*", huge, huge)), x, 1)))
    assert np.all(np.isinf(apply(lambda e: Binary("+", e, Call("exp", (huge,))), x, 1)))
    got = apply(lambda e: Binary("+", e, Cast("f32", Cast("i32", Const(2.9, "f32")))), x, 4)
    assert np.array_equal(got, np.full(COUNT, 2, np.float32))


def test_every_function_has_a_text() -> None:
    x = np.linspace(0.5, 3, COUNT, dtype=np.float32)
    for name in FUNCTIONS:
        extra = (Const(1.5, "f32"),) if name in ("leaky_relu", "pow") else ()
        for width in (1, 4):
            got = apply(lambda e, n=name, extra=extra: Call(n, (e, *extra)), x, width)  # type: ignore[misc]
            assert np.all(np.isfinite(got))
