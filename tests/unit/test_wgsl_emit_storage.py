"""Which buffers in memory are read and written as vec4s, kernel by kernel."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convdsl.backends.wgsl.emit import emit_module
from convdsl.backends.wgsl.module import Limits
from convdsl.backends.wgsl.usage import usage
from convdsl.ir.expr import Access, Binary, Const, DType, Expr, Guard, Load, Pred
from convdsl.ir.index import Index, as_index, const, sym
from convdsl.ir.interp import run_program
from convdsl.ir.loop import Accumulate, Buffer, If, Kernel, Let, LoopProgram, Stmt, Store
from tests.wgsl_device import run_module
from tests.wgsl_programs import ZERO, below, buffer, load, loop, nest, store
from tests.wgsl_rules import check_wgsl_text

GOLDEN = Path(__file__).parents[1] / "golden" / "wgsl"
T, Q, V, G, N = (sym(n) for n in ("t", "q", "v", "g", "N"))
LIMITS = Limits()


def flat(name: str, dtype: DType = "f32", size: Index | int = 128) -> Buffer:
    return Buffer(name, dtype, (as_index(size),), "output" if name == "y" else "input")


X, Y, B = flat("x"), flat("y"), flat("b", size=8)
AT = T * 8 + Q * 4 + V


def quads(*body: Stmt, name: str = "k", threads: int = 16) -> Kernel:
    """`body` for each of 16 threads, two vectors each."""
    inner = loop("unroll", "q", 2, loop("vector", "v", 4, *body))
    return Kernel(name, (), (nest("thread", [("t", threads)], inner),))


def program(*kernels: Kernel, buffers: tuple[Buffer, ...] = (X, B, Y)) -> LoopProgram:
    return LoopProgram("p", (), (), buffers, kernels)


def add(left: Expr, right: Expr) -> Expr:
    return Binary("+", left, right)


def copied(
    at: Index = AT, to: Index = AT, *conditions: Pred, how: Accumulate | None = None
) -> Stmt:
    """`y[to] = x[at]`, zero where a condition fails."""
    value: Expr = load(X, at)
    return store(Y, (to,), Guard(conditions, value, ZERO) if conditions else value, how)


def under(*conditions: Pred) -> Stmt:
    return If(conditions, (store(Y, (AT,), load(X, AT)),))


HALVES = (
    quads(store(flat("h"), (AT,), load(X, AT)), name="first"),
    quads(store(Y, (AT,), add(load(X, (AT + 1) % 128), load(flat("h"), AT))), name="second"),
)
WHOLE = tuple(flat(n, "i32") for n in ("x", "y"))
PROGRAMS: dict[str, tuple[LoopProgram, str]] = {
    # name: the program, and the buffers that each kernel has as vec4s
    "aligned": (program(quads(copied())), "xy"),
    "aligned let": (
        program(quads(Let("at", T * 8 + Q * 4, (copied(sym("at") + V, sym("at") + V),)))),
        "xy",
    ),
    "shifted": (program(quads(copied((AT + 1) % 128))), "y"),
    "other lanes": (program(quads(copied(T * 8 + Q * 4 + 3 - V))), "y"),
    "stride": (program(quads(copied(V * 4 + T + Q * 16))), "y"),
    "guard of fours": (program(quads(copied(AT, AT, below(AT, 92)))), "xy"),
    "guard of lanes": (program(quads(copied(AT, AT, below(AT, 93)))), "y"),
    "store of fours": (program(quads(under(below(AT, 92)))), "xy"),
    "store of lanes": (program(quads(under(below(AT, 93)))), ""),
    "added": (program(quads(copied(how="+"))), "xy"),
    "added fours": (program(quads(copied(AT, AT, below(AT, 92), how="+"))), "xy"),
    "added lanes": (program(quads(copied(AT, AT, below(AT, 93), how="+"))), ""),
    "components": (
        program(quads(store(Y, (AT,), add(load(B, Q * 4 + V), load(B, Q * 2 + 1))))),
        "by",
    ),
    "any component": (
        program(quads(store(Y, (AT,), add(load(B, Q * 4 + V), load(B, T % 8))))),
        "y",
    ),
    "one component": (program(quads(store(Y, (AT,), load(B, Q)))), "y"),
    "in other conditions": (
        program(quads(store(Y, (AT,), Guard((below(AT, 93),), load(B, 4), load(B, Q * 4 + V))))),
        "by",
    ),
    "three lanes": (program(Kernel("k", (), (loop("vector", "v", 3, copied(V, V)),))), ""),
    "disagreeing": (
        program(*HALVES, buffers=(X, replace(flat("h"), memory="temp"), Y)),
        "hx hy",
    ),
    "integers": (
        program(quads(store(WHOLE[1], (AT,), load(WHOLE[0], AT))), buffers=WHOLE),
        "xy",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_which_are_vectors(name: str) -> None:
    text, expected = PROGRAMS[name]
    found = ["".join(sorted(usage(kernel, text).vectors)) for kernel in text.kernels]
    assert " ".join(found) == expected


SHOWN = ("aligned", "shifted", "guard of fours", "guard of lanes", "store of lanes")


@pytest.mark.parametrize("name", [*SHOWN, "components", "disagreeing", "integers"])
def test_golden(name: str, golden: Callable[[Path, str], None]) -> None:
    text = emit_module(PROGRAMS[name][0], LIMITS).text
    check_wgsl_text(text, divisions=False)
    golden(GOLDEN / f"storage_{name.replace(' ', '_')}.wgsl", text)


def test_number_of_elements() -> None:
    """A last vec4 that is not whole cannot be read: the buffer ends before."""
    for size, expected in ((128, "xy"), (130, "y"), (N * 4, "xy"), (N * 4 + 4, "xy"), (N, "y")):
        x = flat("x", size=size)
        kernel = quads(store(Y, (AT,), load(x, AT)))
        found = usage(kernel, program(kernel, buffers=(x, Y))).vectors
        assert "".join(sorted(found)) == expected, size


def test_sizes_that_are_not_numbers() -> None:
    """Rows of an unknown length begin anywhere, unless it is four times something."""
    for length, expected in ((N, ""), (N * 4, "xy"), (N * 2, ""), (const(64), "xy")):
        x, y = buffer("x", 4, length, memory="input"), buffer("y", 4, length, memory="output")
        kernel = quads(store(y, (G, AT), load(x, G, AT)), threads=8)
        kernel = replace(kernel, body=(loop("grid", "g", 4, *kernel.body),))
        text = LoopProgram("p", ("N",), (), (x, y), (kernel,))
        assert "".join(sorted(usage(kernel, text).vectors)) == expected, length
        check_wgsl_text(emit_module(text, LIMITS).text)


def test_shapes_that_users_see() -> None:
    shapes = {"y": (const(8), const(16))}
    module = emit_module(PROGRAMS["aligned"][0], LIMITS, shapes)
    assert module.shapes == shapes
    assert "//   input x: f32[128]\n" in module.text
    assert "//   output y: f32[8, 16]\n" in module.text


# -- the same meaning -----------------------------------------------------------------------------
def same(text: LoopProgram, **arrays: np.ndarray[Any, np.dtype[Any]]) -> str:
    module = emit_module(text, LIMITS)
    check_wgsl_text(module.text)
    want = run_program(text, arrays, {})
    got = run_module(module, arrays)
    for name, value in want.items():
        assert np.array_equal(got[name], value, equal_nan=True), module.text
    return module.text


def data(text: LoopProgram) -> dict[str, np.ndarray[Any, np.dtype[Any]]]:
    types = {"f32": np.float32, "i32": np.int32, "f16": np.float16}
    return {
        b.name: np.arange(1, b.elements.evaluate({}) + 1).astype(types[b.dtype])
        for b in text.buffers
        if b.memory == "input"
    }


def cleared(text: LoopProgram) -> LoopProgram:
    """The program after a kernel that sets all of y, so that no element is left out."""
    y = text.buffer("y")
    zero = Const(0, "i32") if y.dtype == "i32" else ZERO
    clear = Kernel("clear", (), (loop("thread", "t", 128, store(y, (T,), zero)),))
    return replace(text, kernels=(clear, *text.kernels))


@pytest.mark.gpu
@pytest.mark.parametrize("name", PROGRAMS)
def test_run(name: str) -> None:
    text = cleared(PROGRAMS[name][0])
    same(text, **data(text))


@pytest.mark.gpu
@pytest.mark.parametrize("how", [None, "+", "*", "max", "min"])
def test_run_halves(how: Accumulate | None) -> None:
    """f16 in memory as vec4<f16>: f32 arithmetic, one rounding."""
    x, y = flat("x", "f16"), flat("y", "f16")
    value = add(load(x, AT), Const(0.5, "f32"))
    text = cleared(program(quads(store(y, (AT,), value, how)), buffers=(x, y)))
    made = same(text, **data(text))
    assert "var<storage, read> x: array<vec4<f16>>;" in made
    assert "var<storage, read_write> y_vec4: array<vec4<f16>>;" in made
    assert "vec4<f16>(round_f164(" in made


@st.composite
def offsets(draw: st.DrawFn, aligned: bool) -> Index:
    """An offset below 128 that differs for all threads, vectors and lanes."""
    shift = draw(st.sampled_from([0, 4]) if aligned else st.integers(0, 4))
    lane = V if aligned or draw(st.booleans()) else 3 - V
    return T * 16 + Q * draw(st.sampled_from([4, -4])) + lane + shift + 4


@st.composite
def conditions(draw: st.DrawFn) -> tuple[Pred, ...]:
    end = draw(st.sampled_from([0, 40, 64, 100, 101, 103, 128]))
    kinds = [below(AT, end), Pred("ge", AT - end), Pred("ne", V - 2), Pred("eq", T - 3)]
    kinds += [
        below(T * 4 + V, end),
        Pred("ge", (T * 8 + V) // 4 - 3),
        Pred("eq", (AT + 1) // 4 % 2),
    ]
    return tuple(draw(st.lists(st.sampled_from(kinds), max_size=2)))


@st.composite
def programs(draw: st.DrawFn) -> LoopProgram:
    """One or two stores from one or two reads, with conditions around all of them."""
    b = Access("b", (draw(st.sampled_from([Q * 4 + V, Q, V + 1, T % 8, const(5)])),), B.dims)
    x = load(X, draw(offsets(draw(st.booleans()))))
    value: Expr = add(x, Load(b, "f32")) if draw(st.booleans()) else x
    guards = draw(conditions())
    if guards:
        others: list[Expr] = [ZERO, Load(b, "f32")]
        value = Guard(guards, value, draw(st.sampled_from(others)))
    hows: list[Accumulate | None] = [None, None, "+", "max"]
    how = draw(st.sampled_from(hows))
    body: Stmt = Store(Access("y", (draw(offsets(draw(st.booleans()))),), Y.dims), value, how)
    outside = draw(conditions())
    if outside:
        body = If(outside, (body,))
    return program(quads(body, threads=7))


@pytest.mark.gpu
@given(programs())
def test_run_programs(text: LoopProgram) -> None:
    text = cleared(text)
    same(text, **data(text))
