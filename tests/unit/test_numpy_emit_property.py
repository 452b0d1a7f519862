"""Generated loop programs: the emitted NumPy text equals the interpreter, bit for bit."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from convdsl.backends.numpy.emit import emit_module
from convdsl.backends.numpy.module import load
from convdsl.ir.expr import (
    Access,
    Binary,
    BinaryOp,
    Call,
    Cast,
    Const,
    Expr,
    Guard,
    Load,
    Pred,
    Scalar,
    Select,
    Var,
)
from convdsl.ir.index import Index, as_index, const, floordiv, modulo, sym
from convdsl.ir.interp import run_program
from convdsl.ir.loop import (
    Accumulate,
    Buffer,
    For,
    If,
    Kernel,
    Let,
    Level,
    LoopProgram,
    Stmt,
    Store,
)

Draw = Callable[..., Any]
DIMS = ("S", "T", "U")
SETTINGS = settings(suppress_health_check=list(HealthCheck))


class Builder:
    """Draws a program whose accesses are all in bounds, its extents numbers or sizes."""

    def __init__(self, draw: Draw) -> None:
        self.draw = draw
        self.symbolic = draw(st.booleans())
        self.sizes = {n: draw(st.integers(0, 4)) for n in DIMS} if self.symbolic else {}
        self.buffers: list[Buffer] = []
        if self.symbolic:
            self.buffers.append(Buffer("shape", "f32", tuple(map(sym, DIMS)), "input"))

    def pick(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def number(self, low: int, high: int) -> int:
        return int(self.draw(st.integers(low, high)))

    def extent(self) -> Index:
        if self.symbolic and self.pick(True, False):
            return sym(self.pick(*DIMS))
        return const(self.pick(0, 1, 2, 2, 3, 3, 4))

    def var(self, name: str) -> Var:
        low = const(self.pick(0, 0, 0, 1, 2))
        return Var(name, low, low + self.extent())

    def place(
        self, names: list[Var], *, slack: int = 1, exact: bool = False
    ) -> tuple[Index, Index]:
        """An index over the variables and an extent that surely holds it."""
        if exact and names and self.pick(True, False):  # mixed radix, from zero
            index, extent = const(0), const(1)
            for v in names:
                index = index * v.extent + sym(v.name) - v.low
                extent = extent * v.extent
            return index, extent
        index = const(self.number(0, 2))
        extent = index + 1
        for v in names:
            factor = self.pick(1, 1, 2, 3, -1, -2)
            if factor > 0:
                index = index + factor * sym(v.name)
            else:
                index = index + factor * (sym(v.name) - v.high)
            extent = extent + abs(factor) * v.high
        if names and not exact and self.pick(*[False] * 9, True):
            return floordiv(index, const(2)), extent
        if names and not exact and self.pick(*[False] * 9, True):
            return modulo(index, const(2)), extent + 1
        return index, extent

    def separate(self, names: list[Var]) -> tuple[Index, Index]:
        """An injective index of one or two variables."""
        if len(names) == 1:
            return self.place(names, exact=True)
        if self.pick(True, False):
            index, extent = const(0), const(1)
            for v in names:
                index = index * v.extent + sym(v.name) - v.low
                extent = extent * v.extent
            return index, extent
        a, b = names  # a gap between the digits
        radix = b.extent + self.number(0, 2)
        shift = const(self.number(0, 1))
        index = (sym(a.name) - a.low) * radix + sym(b.name) - b.low + shift
        return index, a.extent * radix + shift + self.number(0, 1)

    def split(self, names: list[Var], most: int) -> list[list[Var]]:
        """Variables dealt to dims."""
        dims: list[list[Var]] = [[]]
        for v in names:
            if dims[-1] and (len(dims[-1]) >= most or self.pick(True, False)):
                dims.append([])
            dims[-1].append(v)
        if self.pick(*[False] * 4, True):
            dims.insert(self.number(0, len(dims)), [])
        return dims

    def load(self, names: list[Var], guarded: bool = False) -> Load:
        chosen = [v for v in names if self.pick(True, True, False)]
        if self.pick(True, False):
            chosen.reverse()
        pairs = [self.place(d) for d in self.split(chosen, 2)]
        if guarded:
            pairs = [(i - self.number(0, 1), e) for i, e in pairs]
        if chosen and self.pick(*[False] * 7, True):  # a diagonal
            pairs.append(self.place([chosen[0]]))
        name = f"x{len(self.buffers)}"
        dtype = self.pick("f32", "f32", "f32", "f16")
        dims = tuple(e for _, e in pairs)
        self.buffers.append(Buffer(name, dtype, dims, "input"))
        return Load(Access(name, tuple(i for i, _ in pairs), dims), "f32")

    def expr(self, names: list[Var], depth: int) -> Expr:
        kind = self.pick("load", "load", "binary", "binary", "call", "select", "guard", "leaf")
        if depth == 0 or kind == "load":
            return self.load(names)
        if kind == "leaf":
            if names and self.pick(True, False):
                return Scalar(2 * sym(self.pick(*names).name) - 1, "f32")
            return Const(float(self.number(-2, 2)), "f32")
        if kind == "binary":
            op: BinaryOp = self.pick("+", "-", "*", "max", "min")
            return Binary(op, self.expr(names, depth - 1), self.expr(names, depth - 1))
        if kind == "call":
            inner = self.expr(names, depth - 1)
            if self.pick(True, False):
                return Call(self.pick("abs", "relu"), (inner,))
            return Cast(self.pick("f16", "f32"), inner)
        if kind == "select":
            a, b = self.expr(names, depth - 1), self.expr(names, 0)
            return Select(self.pick("<", ">=", "==", "!="), a, Const(0.0, "f32"), b, a)
        if not names:
            return self.load(names)
        read = self.load(names, guarded=True)
        inside = [Pred("ge", i) for i in read.access.index]
        inside += [
            Pred("ge", e - 1 - i) for i, e in zip(read.access.index, read.access.dims, strict=True)
        ]
        extra = Pred(self.pick("ge", "ne"), sym(self.pick(*names).name) - self.number(0, 2))
        return Guard((*inside, extra), read, self.expr(names, 0))


def fill(access: Access, loops: list[Var], value: float) -> Stmt:
    return wrap([(v, "slice") for v in loops], Store(access, Const(value, "f32")))


def wrap(loops: list[tuple[Var, Level]], stmt: Stmt) -> Stmt:
    for v, level in reversed(loops):
        stmt = For(v, level, (stmt,))
    return stmt


def whole(buffer: Buffer, value: float) -> Stmt:
    loops = [Var(f"f{k}", const(0), d) for k, d in enumerate(buffer.dims)]
    return fill(Access(buffer.name, tuple(sym(v.name) for v in loops), buffer.dims), loops, value)


@st.composite
def slice_programs(draw: Draw) -> tuple[LoopProgram, dict[str, int]]:
    b = Builder(draw)
    host = [b.var(f"h{k}") for k in range(b.number(0, 1))]
    stored = [b.var(f"i{k}") for k in range(b.number(0, 3))]
    accumulate: Accumulate | None = b.pick(None, "+", "+", "max", "min")
    reduced = [b.var(f"r{k}") for k in range(b.number(0, 2))] if accumulate else []
    if accumulate is None and b.pick(*[False] * 7, True):
        reduced = [b.var("r0")]  # the last one wins
    pairs = [b.separate(d) for d in b.split(stored, 2) if d]
    if host and b.pick(True, False):
        pairs.insert(0, b.place(host, exact=True))
    access = Access("y", tuple(i for i, _ in pairs), tuple(e for _, e in pairs))
    loops: list[tuple[Var, Level]] = [
        (v, b.pick(*["slice"] * 9, "serial")) for v in draw(st.permutations(stored + reduced))
    ]
    value = b.expr([*host, *stored, *reduced], 2)
    if accumulate is None and not reduced and b.pick(*[False] * 4, True):
        value = Binary("+", value, Load(access, "f32"))
    stmt = wrap(loops, Store(access, value, accumulate))
    if b.pick(*[False] * 5, True) and host:
        stmt = If((Pred("ge", sym(host[0].name) - 1),), (stmt,))
    if host and b.pick(*[False] * 3, True):
        stmt = Let("shifted", sym(host[0].name) + 1, (stmt,))
    body: tuple[Stmt, ...] = (stmt,)
    if accumulate and b.pick(True, False):
        identity = {"+": b.pick(0.0, 1.0), "max": -math.inf, "min": math.inf}[accumulate]
        body = (fill(access, stored, identity), stmt)
    return program(b, access, host, body), b.sizes


def program(b: Builder, access: Access, host: list[Var], body: tuple[Stmt, ...]) -> LoopProgram:
    y = Buffer("y", b.pick("f32", "f32", "f32", "f16"), access.dims, "output")
    for v in reversed(host):
        body = (For(v, "host", body),)
    kernel = Kernel("k", (), (whole(y, 3.0), *body), "fill, then the nest")
    return LoopProgram("generated", tuple(b.sizes), (), (*b.buffers, y), (kernel,))


@st.composite
def gemm_programs(draw: Draw) -> tuple[LoopProgram, dict[str, int]]:
    b = Builder(draw)
    counts = {role: b.number(low, 2) for role, low in (("batch", 0), ("m", 0), ("n", 0), ("k", 1))}
    roles = {role: [b.var(f"{role}{k}") for k in range(n)] for role, n in counts.items()}
    host = [b.var("h")] if b.pick(True, False) else []
    stored = draw(st.permutations(roles["batch"] + roles["m"] + roles["n"]))
    pairs = [b.separate(d) for d in b.split(stored, 2) if d]
    access = Access("y", tuple(i for i, _ in pairs), tuple(e for _, e in pairs))

    def read(names: list[Var], exact: bool) -> Expr:
        names = draw(st.permutations(names))
        parts = [b.place(d, exact=exact) for d in b.split(names, 2)]
        buffer = f"x{len(b.buffers)}"
        dims = tuple(e for _, e in parts)
        b.buffers.append(Buffer(buffer, b.pick("f32", "f32", "f16"), dims, "input"))
        out: Expr = Load(Access(buffer, tuple(i for i, _ in parts), dims), "f32")
        return Call("relu", (out,)) if b.pick(*[False] * 4, True) else out

    left = read(roles["batch"] + roles["m"] + roles["k"], b.pick(True, False))
    right = read(roles["batch"] + roles["n"] + roles["k"] + host, b.pick(True, False))
    value: Expr = Binary("*", left, right)
    if b.pick(*[False] * 4, True):
        value = Binary("*", Const(2.0, "f32"), value)
    every: list[tuple[Var, Level]] = [
        (v, f"gemm.{role}")  # type: ignore[misc]
        for role, vs in roles.items()
        for v in vs
    ]
    stmt = wrap(draw(st.permutations(every)), Store(access, value, "+"))
    body: tuple[Stmt, ...] = (stmt,)
    if b.pick(True, False):
        start = b.pick(0.0, 0.0, 2.0)
        body = (fill(access, list(draw(st.permutations(stored))), start), stmt)
    return program(b, access, host, body), b.sizes


def compare(found: LoopProgram, sizes: dict[str, int], seed: int, strided: bool) -> None:
    rng = np.random.default_rng(seed)
    arrays: dict[str, np.ndarray[Any, Any]] = {}
    for buffer in found.buffers:
        if buffer.memory == "input":
            shape = tuple(int(as_index(d).evaluate(sizes)) for d in buffer.dims)
            values = rng.integers(-3, 4, shape)
            kind = np.float16 if buffer.dtype == "f16" else np.float32
            array = values.astype(kind)
            arrays[buffer.name] = np.asfortranarray(array) if strided else array
            arrays[buffer.name].flags.writeable = False
    module = emit_module(found)
    note(module.text)
    want = run_program(found, arrays, sizes)["y"]
    function = load(module)
    out = None
    if strided:
        kind = np.float16 if found.buffer("y").dtype == "f16" else np.float32
        room = np.full((*want.shape, 2), 77, kind)
        out = room[..., 0]
    got = function(*arrays.values(), out=out)
    assert got.dtype == (np.float16 if found.buffer("y").dtype == "f16" else np.float32)
    np.testing.assert_array_equal(got, want.astype(got.dtype))
    if out is not None:
        assert got is out
        assert (room[..., 1] == 77).all()


@SETTINGS
@given(slice_programs(), st.integers(0, 99), st.booleans())
def test_slices(found: tuple[LoopProgram, dict[str, int]], seed: int, strided: bool) -> None:
    compare(*found, seed, strided)


@SETTINGS
@given(gemm_programs(), st.integers(0, 99), st.booleans())
def test_products(found: tuple[LoopProgram, dict[str, int]], seed: int, strided: bool) -> None:
    compare(*found, seed, strided)
