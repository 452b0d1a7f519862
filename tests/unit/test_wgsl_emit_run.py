"""Emitted texts on an adapter give what the loop program means, and index arithmetic is exact."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from convdsl.backends.wgsl.emit import emit_module
from convdsl.backends.wgsl.module import Limits
from convdsl.ir.expr import Access, Binary, Call, Cast, Const, Guard, Load, Pred, Scalar, Select
from convdsl.ir.index import Index, const, maximum, minimum, sym
from convdsl.ir.interp import run_program
from convdsl.ir.loop import Buffer, If, Kernel, Let, LoopProgram, Store
from tests.wgsl_device import run_module
from tests.wgsl_programs import access, buffer, copy, gather, load, loop, matmul, nest, store
from tests.wgsl_rules import check_wgsl_text

pytestmark = pytest.mark.gpu

CASES: dict[str, tuple[LoopProgram, dict[str, int]]] = {
    "copy": (copy(1000), {}),
    "copy symbolic": (copy(), {"N": 1000}),
    "copy nothing": (copy(), {"N": 0}),
    "gather": (gather(2, 3, 20, 8, 4, 2), {}),
    "gather holes": (gather(1, 2, 9, 3, 5, 1), {}),
    "gather stride 3": (gather(2, 3, 20, 7, 3, 0), {}),
    "gather symbolic": (gather(2, 3, 20, 8, 4, 2, symbolic=True), dict(N=2, C=3, L=20, K=8)),
    "gather long": (gather(1, 1, 4, 9, 2, 3, symbolic=True), dict(N=3, C=5, L=40, K=9)),
    "matmul": (matmul(70, 66, 33, (64, 64, 16), (8, 8)), {}),
}


@pytest.mark.parametrize("name", CASES)
def test_run(name: str) -> None:
    program, sizes = CASES[name]
    module = emit_module(program, Limits())
    check_wgsl_text(module.text, divisions=False)
    env = dict(sizes)
    for size, value in program.definitions:
        env[size] = value.evaluate(env)
    rng = np.random.default_rng(5)
    arrays = {
        b.name: rng.integers(-5, 6, [d.evaluate(env) for d in b.dims]).astype(np.float32)
        for b in program.buffers
        if b.memory == "input"
    }
    want = run_program(program, arrays, sizes)
    got = run_module(module, arrays, sizes)
    for key, expected in want.items():
        assert np.array_equal(got[key], expected), key


# -- index arithmetic -----------------------------------------------------------------------------
Kind = Literal["ge", "eq", "ne"]
KINDS: tuple[Kind, ...] = ("ge", "eq", "ne")
NAMES = ("g", "t", "k", "u", "N")
DIVISORS = (2, 3, 4, 5, 7, 8, 16)


def indices() -> st.SearchStrategy[Index]:
    leaves = st.one_of(st.sampled_from(NAMES).map(sym), st.integers(-20, 20).map(const))

    def extend(inner: st.SearchStrategy[Index]) -> st.SearchStrategy[Index]:
        pairs = st.tuples(inner, inner)
        divided = st.tuples(inner, st.sampled_from(DIVISORS))
        return st.one_of(
            pairs.map(lambda p: p[0] + p[1]),
            pairs.map(lambda p: p[0] - p[1]),
            st.tuples(inner, st.integers(-6, 6)).map(lambda p: p[0] * p[1]),
            divided.map(lambda p: p[0] // p[1]),
            divided.map(lambda p: p[0] % p[1]),
            inner.map(lambda p: p // (sym("N") + 1)),
            inner.map(lambda p: p % (sym("N") + 1)),
            pairs.map(lambda p: minimum(*p)),
            pairs.map(lambda p: maximum(*p)),
        )

    return st.recursive(leaves, extend, max_leaves=12)


@given(st.lists(indices(), min_size=1, max_size=4), st.sampled_from(KINDS))
def test_run_indices(values: list[Index], kind: Kind) -> None:
    """Floor division and modulo, hoisting and conditions, whatever the signs: exact."""
    y = Buffer("y", "i32", tuple(map(const, (len(values), 2, 3, 32, 4, 3))), "output")
    at = (sym("g"), sym("k"), sym("t"), sym("u"), sym("w"))
    pred = Pred(kind, values[0] - values[-1] + 3)
    stores = []
    for n, value in enumerate(values):
        chosen = Guard((pred,), Scalar(value, "i32"), Const(-7, "i32"))
        stores.append(store(y, (const(n), *at[:3], at[3], at[4]), chosen))
    inner = loop("unroll", "w", 3, *stores)
    body = loop(
        "grid",
        "g",
        2,
        loop("thread", "t", 32, loop("serial", "k", 3, loop("serial", "u", 4, inner))),
    )
    program = LoopProgram("p", ("N",), (), (y,), (Kernel("k", (), (body,)),))
    module = emit_module(program, Limits())
    check_wgsl_text(module.text)
    want = run_program(program, {}, {"N": 5})["y"]
    assert np.array_equal(run_module(module, {}, {"N": 5})["y"], want)


# -- further forms -----------------------------------------------------------------------------------
def same(program: LoopProgram, **arrays: np.ndarray[Any, np.dtype[Any]]) -> None:
    module = emit_module(program, Limits())
    check_wgsl_text(module.text)
    want = run_program(program, arrays, {})
    got = run_module(module, arrays)
    for key, value in want.items():
        assert np.array_equal(got[key], value), module.text


def test_run_without_threads() -> None:
    """A workgroup of one, with lets, a loop of one turn and a loop of none."""
    x, y = buffer("x", 6, 10, memory="input"), buffer("y", 6, memory="output")
    acc = buffer("acc", memory="register")
    i, j = sym("i"), sym("j")
    body = loop(
        "grid",
        "i",
        6,
        store(acc, (), Const(0.0, "f32")),
        loop("serial", "none", 0, store(acc, (), Const(9.0, "f32"))),
        Let(
            "s",
            i // 2,
            (loop("serial", "j", 10, store(acc, (), load(x, i, j), "+"), low=sym("s")),),
        ),
        loop("serial", "one", 1, store(acc, (), Scalar(sym("one") + i, "f32"), "+")),
        store(y, (i,), load(acc)),
    )
    data = np.arange(60, dtype=np.float32).reshape(6, 10)
    same(LoopProgram("p", (), (), (x, y), (Kernel("k", (acc,), (body,)),)), x=data)


def test_run_three_thread_loops_and_register_arrays() -> None:
    x, y = buffer("x", 4, 3, 8, 5, memory="input"), buffer("y", 4, 3, 8, 5, memory="output")
    keep = buffer("keep", 4, 3, 8, 5, memory="register", threads=3)
    at = (sym("a"), sym("b"), sym("c"))
    r = sym("r")
    threads = [("a", 4), ("b", 3), ("c", 8)]
    body = (
        nest("thread", threads, loop("serial", "r", 5, store(keep, (*at, r), load(x, *at, r)))),
        nest("thread", threads, loop("serial", "r", 5, store(y, (*at, r), load(keep, *at, 4 - r)))),
    )
    program = LoopProgram("p", (), (), (x, y), (Kernel("k", (keep,), body),))
    assert emit_module(program, Limits()).kernels[0].workgroup == (8, 3, 4)
    same(program, x=np.arange(480, dtype=np.float32).reshape(4, 3, 8, 5))


def test_run_integers_and_several_kernels() -> None:
    """A temporary written by one kernel and read by the next, i32 throughout."""
    x, y = Buffer("x", "i32", (const(64),), "input"), Buffer("y", "i32", (const(64),), "output")
    h = Buffer("h", "i32", (const(64),), "temp")
    t = sym("t")
    scaled = Binary("*", Call("abs", (load(x, t),)), Const(-3, "i32"))
    first = Kernel("k", (), (nest("thread", [("t", 64)], store(h, (t,), scaled)),))
    picked = Select("<=", load(h, t), Const(-30, "i32"), load(h, 63 - t), Scalar(t * t, "i32"))
    clipped = Call("relu", (Binary("-", picked, Cast("i32", Const(2.7, "f32"))),))
    second = Kernel("k2", (), (nest("thread", [("t", 64)], store(y, (t,), clipped)),))
    program = LoopProgram("p", (), (), (x, h, y), (first, second))
    module = emit_module(program, Limits())
    assert [[b.kind for b in k.bindings] for k in module.kernels] == [["read", "read_write"]] * 2
    same(program, x=np.arange(-32, 32, dtype=np.int32))


def test_run_maximum_from_infinity() -> None:
    x, y = buffer("x", 64, 5, memory="input"), buffer("y", 64, memory="output")
    best = buffer("best", 64, memory="register", threads=1)
    t = sym("t")
    body = nest(
        "thread",
        [("t", 64)],
        store(best, (t,), Const(float("-inf"), "f32")),
        loop(
            "serial",
            "k",
            5,
            If((Pred("ne", sym("k") - t % 5),), (store(best, (t,), load(x, t, sym("k")), "max"),)),
        ),
        store(y, (t,), load(best, t)),
    )
    data = -np.arange(320, dtype=np.float32).reshape(64, 5) - 1e30
    same(LoopProgram("p", (), (), (x, y), (Kernel("k", (best,), (body,)),)), x=data)


def test_run_views_of_composite_axes() -> None:
    """An access sees the buffer through dims of its own."""
    x, y = buffer("x", 6, 4, memory="input"), buffer("y", 24, memory="output")
    split = Access("x", (sym("g"), sym("c"), sym("l")), tuple(map(const, (2, 3, 4))))
    flat = access(y, (sym("g") * 3 + sym("c")) * 4 + sym("l"))
    inner = loop("thread", "l", 4, Store(flat, Load(split, "f32")))
    body = loop("grid", "g", 2, loop("grid", "c", 3, inner))
    same(
        LoopProgram("p", (), (), (x, y), (Kernel("k", (), (body,)),)),
        x=np.arange(24, dtype=np.float32).reshape(6, 4),
    )


def test_run_names_that_cross() -> None:
    """Names of the program that are others' names in the text: tx and ty, and tensors' names."""
    x, y = buffer("tx", 4, 8, 3, memory="input"), buffer("y", 4, 8, 3, memory="output")
    i, j, k = sym("tx"), sym("ty"), sym("y")
    guarded = Guard((Pred("ge", 5 - j - i), Pred("ge", k - 1)), load(x, i, j, k), Const(0.0, "f32"))
    body = If((Pred("ge", j * 2 - i),), (store(y, (i, j, k), guarded),))
    clear = loop("serial", "k", 3, store(y, (i, j, sym("k")), Const(1.0, "f32")))
    threads = [("tx", 4), ("ty", 8)]
    kernel = Kernel("y", (), (nest("thread", threads, clear, loop("serial", "y", 3, body)),))
    data = np.arange(96, dtype=np.float32).reshape(4, 8, 3)
    same(LoopProgram("p", (), (), (x, y), (kernel,)), tx=data)
