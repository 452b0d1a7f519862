"""The interpreter against one that walks the tree and checks every access."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from convdsl.diagnostics import InternalError
from convdsl.ir.expr import (
    Access,
    Binary,
    Const,
    Expr,
    Guard,
    Load,
    Pred,
    Scalar,
    Select,
    Var,
    eq,
    ge,
)
from convdsl.ir.index import Index, const, sym
from convdsl.ir.interp import run_program
from convdsl.ir.loop import Buffer, For, If, Kernel, Let, LoopProgram, Stmt, Store

N = sym("N")
DIMS = {"x": (N, const(3)), "y": (const(4), N), "t": (N,)}
VIEWS = {"x": (N * 3,), "y": (const(2), const(2), N), "t": (const(1), N)}


class OutOfBoundsError(Exception):
    pass


def walk(body: tuple[Stmt, ...], env: dict[str, int], data: dict[str, Any]) -> None:
    for stmt in body:
        match stmt:
            case For(var, _, inner):
                for value in range(var.low.evaluate(env), var.high.evaluate(env)):
                    walk(inner, {**env, var.name: value}, data)
            case Let(name, value_, inner):
                walk(inner, {**env, name: value_.evaluate(env)}, data)
            case If(conditions, inner):
                if all(holds(p, env) for p in conditions):
                    walk(inner, env, data)
            case Store(access, value, accumulate):
                at = place(access, env)
                new = evaluate(value, env, data)
                old = data[access.tensor][at]
                combined = {"+": old + new, "*": old * new, None: new}
                data[access.tensor][at] = (
                    combined[accumulate] if accumulate in combined else np.maximum(old, new)
                )


def place(access: Access, env: dict[str, int]) -> int:
    index = [i.evaluate(env) for i in access.index]
    dims = [d.evaluate(env) for d in access.dims]
    if not all(0 <= i < d for i, d in zip(index, dims, strict=True)):
        raise OutOfBoundsError
    return int(np.ravel_multi_index(index, dims))


def holds(pred: Pred, env: dict[str, int]) -> bool:
    value = pred.index.evaluate(env)
    return bool({"ge": value >= 0, "eq": value == 0, "ne": value != 0}[pred.kind])


def evaluate(expr: Expr, env: dict[str, int], data: dict[str, Any]) -> float:
    match expr:
        case Const(value):
            return value
        case Scalar(index):
            return float(index.evaluate(env))
        case Load(access):
            return float(data[access.tensor][place(access, env)])
        case Binary(op, left, right):
            a, b = evaluate(left, env, data), evaluate(right, env, data)
            return {"+": a + b, "-": a - b, "*": a * b}[op] if op in "+-*" else max(a, b)
        case Select(_, left, right, yes, no):
            y, n = evaluate(yes, env, data), evaluate(no, env, data)
            return y if evaluate(left, env, data) < evaluate(right, env, data) else n
        case Guard(conditions, yes, no):
            return evaluate(yes if all(holds(p, env) for p in conditions) else no, env, data)
        case _:
            raise AssertionError(expr)


@st.composite
def indices(draw: st.DrawFn, scope: tuple[str, ...]) -> Index:
    """Small ones, often in bounds."""
    name = sym(draw(st.sampled_from(scope)))
    other = sym(draw(st.sampled_from(scope)))
    forms = [name, name, name % 3, name // 2, name + other, const(0), name * 2 - other]
    return draw(st.sampled_from(forms)) + draw(st.sampled_from([0, 0, 0, 1, -1]))


@st.composite
def preds(draw: st.DrawFn, scope: tuple[str, ...]) -> tuple[Pred, ...]:
    make = draw(st.sampled_from([ge, ge, eq, lambda index: Pred("ne", index)]))
    return (make(draw(indices(scope)) - draw(indices(scope))),)


@st.composite
def accesses(draw: st.DrawFn, scope: tuple[str, ...], names: str = "xyt") -> Access:
    name = draw(st.sampled_from(names))
    dims = draw(st.sampled_from([DIMS, DIMS, VIEWS]))[name]
    inside = draw(st.integers(0, 3)) > 0  # most are, so that programs come to their end
    index = [draw(indices(scope)) for _ in dims]
    return Access(
        name, tuple(i % d if inside else i for i, d in zip(index, dims, strict=True)), dims
    )


@st.composite
def values(draw: st.DrawFn, scope: tuple[str, ...], depth: int = 2) -> Expr:
    kinds = ["leaf", "load", "load", "binary", "select", "guard"]
    kind = draw(st.sampled_from(kinds)) if depth else "leaf"
    if kind == "load":
        return Load(draw(accesses(scope)), "f32")
    if kind == "leaf":
        return draw(st.just(Const(2.0, "f32")) | indices(scope).map(lambda i: Scalar(i, "f32")))
    a, b = draw(values(scope, depth - 1)), draw(values(scope, depth - 1))
    if kind == "binary":
        return Binary(draw(st.sampled_from(["+", "-", "*"])), a, b)
    if kind == "select":
        return Select("<", a, b, b, a)
    return Guard(draw(preds(scope)), a, b)


@st.composite
def bodies(draw: st.DrawFn, scope: tuple[str, ...], depth: int) -> tuple[Stmt, ...]:
    out: list[Stmt] = []
    for _ in range(draw(st.integers(1, 2))):
        kinds = ["for", "for", "let", "if", "store"]
        kind = draw(st.sampled_from(kinds)) if depth else "store"
        fresh = f"v{len(scope)}"
        if kind == "store":
            accumulate = draw(st.sampled_from([None, "+", "*", "max"]))
            target = draw(accesses(scope, "yt"))
            out.append(Store(target, draw(values(scope)), accumulate))  # type: ignore[arg-type]
        elif kind == "if":
            out.append(If(draw(preds(scope)), draw(bodies(scope, depth - 1))))
        elif kind == "let":
            inner = draw(bodies((*scope, fresh), depth - 1))
            out.append(Let(fresh, draw(indices(scope)), inner))
        else:
            low = draw(st.sampled_from([const(0), const(0), const(1), sym(scope[-1])]))
            high = draw(st.sampled_from([N, N, const(3), low + 1, low + 2]))
            inner = draw(bodies((*scope, fresh), depth - 1))
            out.append(For(Var(fresh, low, high), "serial", inner))
    return tuple(out)


@given(bodies(("N",), 3), st.integers(1, 4), st.integers(0, 2**16))
def test_it_agrees_with_a_walk_over_the_tree(body: tuple[Stmt, ...], n: int, seed: int) -> None:
    buffers = (
        Buffer("x", "f32", DIMS["x"], "input"),
        Buffer("y", "f32", DIMS["y"], "output"),
        Buffer("t", "f32", DIMS["t"], "temp"),
    )
    program = LoopProgram("f", ("N",), (), buffers, (Kernel("k", (), body),))
    x = np.random.default_rng(seed).integers(-3, 4, (n, 3)).astype(np.float64)
    data = {"x": x.ravel(), "y": np.full(4 * n, math.nan), "t": np.full(n, math.nan)}
    try:
        walk(body, {"N": n}, data)
    except OutOfBoundsError:
        event("out of bounds")
        with pytest.raises(InternalError, match="is outside"):
            run_program(program, {"x": x}, {"N": n})
        return
    out = run_program(program, {"x": x}, {"N": n})
    for name in "yt":
        assert np.array_equal(out[name].ravel(), data[name], equal_nan=True), name
