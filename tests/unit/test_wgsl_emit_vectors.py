"""Which buffers become vec4s or named variables, and that the text then means the same."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from convdsl.backends.wgsl.emit import emit_module
from convdsl.backends.wgsl.module import Limits
from convdsl.backends.wgsl.vectors import Form, forms
from convdsl.ir.expr import Binary, Call, Cast, Const, Expr, Guard, Scalar, Select, eq, ge
from convdsl.ir.index import Index, sym
from convdsl.ir.interp import run_program
from convdsl.ir.loop import Buffer, If, Kernel, Level, LoopProgram, Stmt
from tests.wgsl_device import run_module
from tests.wgsl_programs import ZERO, below, buffer, load, loop, matmul, nest, store
from tests.wgsl_rules import check_wgsl_text

T, V, Q, R = sym("t"), sym("v"), sym("q"), sym("r")
X = buffer("x", 64, 8, memory="input")
Y = buffer("y", 64, 8, memory="output")
ACC = buffer("acc", 64, 8, memory="register", threads=1)
TILE = buffer("tile", 64, 8, memory="workgroup")


def quads(*body: Stmt, level: Level = "vector") -> Stmt:
    """`body` for q in 0..2 and v in 0..4: all eight columns."""
    return loop("unroll", "q", 2, loop(level, "v", 4, *body))


def program(*stmts: Stmt, local: tuple[Buffer, ...] = (ACC,)) -> LoopProgram:
    """One thread nest for each statement."""
    body = tuple(nest("thread", [("t", 64)], s) for s in stmts)
    return LoopProgram("p", (), (), (X, Y), (Kernel("k", local, body),))


def form(text: LoopProgram) -> Form:
    (found,) = forms(text.kernels[0]).values()
    return found


COLUMN = Q * 4 + V
OUT = quads(store(Y, (T, COLUMN), load(ACC, T, COLUMN)))
IN = quads(store(ACC, (T, COLUMN), load(X, T, COLUMN)))


def test_registers() -> None:
    assert form(program(IN, OUT)) == Form(vector=True, named=True)
    scalar = quads(store(ACC, (T, COLUMN), load(X, T, COLUMN)), level="unroll")
    assert form(program(scalar, OUT)) == Form(vector=True, named=True)  # component writes
    one_by_one = quads(store(Y, (T, COLUMN), load(ACC, T, COLUMN)), level="unroll")
    assert form(program(scalar, one_by_one)) == Form(vector=False, named=True)
    walk = loop("serial", "r", 8, store(Y, (T, R), load(ACC, T, R)))
    assert form(program(IN, walk)) == Form(vector=True, named=False)
    shifted = loop("vector", "v", 4, store(ACC, (T, V + 1), load(X, T, V)))
    assert form(program(shifted, walk)) == Form(vector=False, named=False)


def test_workgroup_buffers() -> None:
    fill = quads(store(TILE, (T, COLUMN), load(X, T, COLUMN)))
    read = loop("serial", "r", 8, store(Y, (T, R), load(TILE, 63 - T, R)))
    assert form(program(fill, read, local=(TILE,))) == Form(vector=True, named=False)
    alone = loop("serial", "r", 8, store(TILE, (T, R), load(X, T, R)))
    use = quads(store(Y, (T, COLUMN), load(TILE, T, COLUMN)))
    assert form(program(alone, use, local=(TILE,))) == Form(vector=False, named=False)
    guarded = quads(If((below(COLUMN, 7),), (store(TILE, (T, COLUMN), load(X, T, COLUMN)),)))
    assert form(program(guarded, use, local=(TILE,))) == Form(vector=False, named=False)


def test_padding_must_keep_rows_aligned() -> None:
    for pad, vector in ((4, True), (1, False)):
        kernel = matmul(64, 64, 16, pad=pad).kernels[0]
        assert forms(kernel)["a_tile"].vector is vector
        assert forms(kernel)["acc"] == Form(vector=True, named=True)


# -- the same meaning -----------------------------------------------------------------------------
def check(text: LoopProgram, contains: str = "") -> None:
    module = emit_module(text, Limits())
    check_wgsl_text(module.text)
    assert contains in module.text, module.text
    rng = np.random.default_rng(7)
    x = rng.integers(-9, 10, (64, 8)).astype(np.float32)
    want = run_program(text, {"x": x}, {})["y"]
    assert np.array_equal(run_module(module, {"x": x})["y"], want)


LOADED = load(X, T, COLUMN)
OTHER = load(X, T, 7 - COLUMN)
HALF = Const(0.5, "f32")
VALUES: dict[str, tuple[Expr, str]] = {
    "sum": (Binary("+", LOADED, OTHER), "vec4<f32>(x["),
    "one for all": (Binary("*", LOADED, load(X, T, 3)), "* x["),
    "constant": (Const(3.0, "f32"), "vec4<f32>(3.0)"),
    "minus": (Binary("-", HALF, Binary("-", LOADED, OTHER)), ""),
    "quotient": (Binary("/", Binary("*", LOADED, HALF), Binary("/", HALF, HALF)), ""),
    "max": (Binary("max", LOADED, HALF), "max("),
    "select": (Select("<", LOADED, HALF, OTHER, load(X, T, 0)), "select("),
    "relu": (Call("relu", (LOADED,)), "max("),
    "leaky": (Call("leaky_relu", (LOADED, HALF)), "leaky4("),
    "power": (Call("pow", (LOADED, Const(3.0, "f32"))), ""),
    "whole": (Cast("f32", Cast("i32", Binary("*", LOADED, HALF))), "vec4<i32>("),
    "half": (Cast("f16", LOADED), "round_f164("),
    "scalar": (Scalar(COLUMN * 3 + T, "f32"), "vec4<f32>(f32("),
    "guard of all": (Guard((below(T, 40),), LOADED, ZERO), "if (tx < 40)"),
    "guard of lanes": (Guard((below(COLUMN, 6), ge(T - 3)), LOADED, OTHER), "picked_2.x ="),
    "guard of fours": (Guard((below(COLUMN + T * 4, 40),), LOADED, ZERO), "if (tx < 10)"),
    "guard never": (Guard((ge(COLUMN - 8),), LOADED, HALF), "vec4<f32>(0.5)"),
    "guard in guard": (Guard((ge(COLUMN - 1),), Guard((ge(6 - COLUMN),), OTHER, HALF), ZERO), ""),
    "guard parity": (Guard((eq((COLUMN + T) % 2),), LOADED, ZERO), ""),
}


@pytest.mark.gpu
@pytest.mark.parametrize("name", VALUES)
def test_run_values(name: str) -> None:
    value, contains = VALUES[name]
    text = program(quads(store(ACC, (T, COLUMN), value)), OUT)
    check(text, contains if "if (tx" not in contains else "")


@pytest.mark.gpu
@pytest.mark.parametrize("how", ["+", "*", "max", "min"])
def test_run_accumulation(how: str) -> None:
    add = quads(store(ACC, (T, COLUMN), Binary("*", LOADED, OTHER), how))  # type: ignore[arg-type]
    check(program(IN, add, OUT), "fma(" if how == "+" else "")
    guarded = Guard((below(COLUMN, 5),), LOADED, ZERO)
    add = quads(store(ACC, (T, COLUMN), guarded, how))  # type: ignore[arg-type]
    check(program(IN, add, OUT))


@pytest.mark.gpu
def test_run_lanes_written_out() -> None:
    total = loop("unroll", "q", 2, loop("vector", "v", 4, store(ACC, (T, 0), LOADED, "+")))
    check(program(IN, total, OUT))
    chain = quads(store(ACC, (T, COLUMN), load(ACC, T, 7 - COLUMN)))
    check(program(IN, chain, OUT))
    three = loop("vector", "v", 3, store(ACC, (T, V + 2), load(X, T, V)))
    check(program(IN, three, OUT))
    bound = quads(If((below(COLUMN, 5),), (store(ACC, (T, COLUMN), ZERO),)))
    check(program(IN, bound, OUT))


@pytest.mark.gpu
def test_run_dynamic_components() -> None:
    flip: Index = 7 - R
    check(program(IN, loop("serial", "r", 8, store(Y, (T, R), load(ACC, T, flip)))), "acc[")
    fill = quads(store(TILE, (T, COLUMN), LOADED))
    read = loop("serial", "r", 8, store(Y, (T, R), load(TILE, 63 - T, flip)))
    check(program(fill, read, local=(TILE,)), "array<array<vec4<f32>, 2>, 64>")
    one = loop("serial", "r", 8, store(ACC, (T, R), load(X, T, flip)))
    check(program(one, OUT), "acc[")


@pytest.mark.gpu
@pytest.mark.parametrize("shape", [(16, 16, 8), (17, 15, 9), (5, 40, 23)])
@pytest.mark.parametrize("unroll", [False, True])
def test_run_products(shape: tuple[int, int, int], unroll: bool) -> None:
    for vector in (True, False):
        text = matmul(*shape, (16, 16, 8), (4, 4), unroll=unroll, vector=vector)
        module = emit_module(text, Limits())
        check_wgsl_text(module.text, divisions=False)
        rng = np.random.default_rng(3)
        m, n, k = shape
        a, b = (rng.integers(-4, 5, s).astype(np.float32) for s in ((m, k), (k, n)))
        assert np.array_equal(run_module(module, {"a": a, "b": b})["c"], a @ b)


@pytest.mark.gpu
def test_run_half_storage() -> None:
    """f16 buffers: f32 arithmetic, one rounding at the store, the feature listed."""
    x, y = (replace(b, dtype="f16") for b in (X, Y))
    body = nest(
        "thread", [("t", 64)], quads(store(y, (T, COLUMN), Binary("*", load(x, T, COLUMN), HALF)))
    )
    module = emit_module(LoopProgram("p", (), (), (x, y), (Kernel("k", (), (body,)),)), Limits())
    assert module.features == {"shader-f16"}
    assert module.text.index("enable f16;") < module.text.index("@group")
    check_wgsl_text(module.text)
    data = np.linspace(-70000, 70000, 512).clip(-65504, 65504).astype(np.float16).reshape(64, 8)
    want = (data.astype(np.float32) * 0.5).astype(np.float16)
    assert np.array_equal(run_module(module, {"x": data})["y"], want)
