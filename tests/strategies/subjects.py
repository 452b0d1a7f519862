"""Programs with their definition worked out: what schedules are drawn for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from convdsl.ir.equation import System
from convdsl.passes.normalise import normalise
from convdsl.sema.instantiate import instantiate
from convdsl.sema.resolve import resolve
from convdsl.sema.sizes import bind_parameters, complete_sizes, solve_sizes
from convdsl.syntax import ast
from convdsl.syntax.parser import parse
from convdsl.syntax.printer import print_program
from tests.property.three_way import Array, definition
from tests.strategies.arrays import arrays, integers
from tests.strategies.programs import programs
from tests.strategies.shipped import PROGRAMS, calls, inputs_of

# What the drawn programs seldom or never have, each with its parameters and the ranges of its sizes.
TEXTS: tuple[tuple[str, dict[str, int | float], dict[str, int]], ...] = (
    ("""
op prologue(x: f32[N, C, L], w: f32[C, M, K], s: int = 2) -> y: f32[N, M, LO]
where LO == max((L - 1)*s + K, 0) {
    y[n, m, o] = relu(sum[c, k, l | l*s + k == o] leaky_relu(x[n, c, l], 2.0) * w[c, m, k]) + 1
}""", {}, {"N": 2, "C": 5, "L": 5, "M": 6, "K": 4}),
    ("""
op holes(x: f32[C, L], w: f32[C, K], b: f32[Q], s: int = 4, d: int = 2) -> y: f32[Q] {
    y[o] = b[o] - sum[c, k, l | l*s + k*d == o] x[c, l] * w[c, k]
}""", {}, {"C": 5, "L": 4, "K": 3, "Q": 19}),
    ("""
op placed(x: f32[C, L], w: f32[C, K], u: f32[Q], s: int = 3) -> y: f32[Q] {
    y[o] = sum[c, k, l | l*s + k == o + 1] x[c, l] * w[c, k] * u[o]
}""", {}, {"C": 5, "L": 5, "K": 4, "Q": 17}),
    ("""
op pool(x: f32[C, L], s: int = 2, p: int = 3) -> y: f32[C, LO]
where LO == (L + p)//s + 2 {
    y[c, o] = max[l, k in 0..3 | o*s + k == l + p] x[c, l] else 7
}""", {}, {"C": 5, "L": 9}),
    ("""
op whole(x: f32[A, B], y: f32[B]) -> s: f32[] {
    s[] = sum[a, b] x[a, b] * y[b]
}""", {}, {"A": 6, "B": 9}),
    ("""
op count(x: i32[A, K], w: i32[K, B]) -> y: i32[A, B] {
    y[a, b] = max(sum[k] x[a, k] * w[k, b], 3)
}""", {}, {"A": 9, "B": 9, "K": 9}),
    ("""
op halves(x: f16[A, K], w: f16[B, K]) -> y: f16[B, A] {
    y[b, a] = sum[k] x[a, k] * w[b, k]
}""", {}, {"A": 9, "B": 9, "K": 9}),
    ("""
op powers(x: f32[A, K], w: f32[K]) -> y: f32[A] {
    let h[a] = prod[k] x[a, k]
    y[a] = h[a] - min[k] max(x[a, k], w[k]) else 0
}""", {}, {"A": 7, "K": 4}),
    ("""
op plain(x: f32[A, B, C]) -> y: f32[C, A*B] {
    y[c, (a, b)] = abs(x[a, b, c]) + 2
}""", {}, {"A": 5, "B": 6, "C": 7}),
    ("""
op band(x: f32[N, N], v: f32[N]) -> y: f32[N] {
    y[i] = sum[j in 1..N, q in 0..2 | i + q == j + 1] x[i, j] * x[j, i] * v[j]
}""", {}, {"N": 9}),
)  # fmt: skip


@dataclass(frozen=True, slots=True, repr=False)
class Subject:
    """A normalised system, and what it gives on some arrays; `kept` lets were not fused."""

    tree: ast.Program
    params: Mapping[str, int | float]
    sizes: Mapping[str, int]
    arrays: Mapping[str, Array]
    system: System
    want: Array
    kept: tuple[str, ...] = ()

    def __repr__(self) -> str:
        shapes = {n: a.shape for n, a in self.arrays.items()}
        symbols = ", ".join(self.system.sizes) or "none"
        return (
            f"{print_program(self.tree)}\nparams={dict(self.params)} sizes={dict(self.sizes)}\n"
            f"shapes={shapes} symbolic: {symbols}"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(f"\n{self!r}\n")


@st.composite
def subjects(draw: st.DrawFn) -> Subject:
    """A text from above, a shipped operator or a drawn program; sizes numbers or symbols."""
    kind = draw(st.integers(0, 9))
    params: Mapping[str, int | float]
    if kind <= 4:
        text, params, most = draw(st.sampled_from(TEXTS))
        tree = parse(text)
        least = 0 if draw(st.integers(0, 9)) == 9 else 1
        sizes = {n: top + least - draw(st.integers(least, top)) for n, top in most.items()}
        given = _filled(tree, params, sizes, draw(st.integers(0, 2**31)))
    elif kind <= 7:
        call = draw(calls())
        tree, params = PROGRAMS[call.name], call.params
        given = draw(inputs_of(call))
    else:
        drawn = draw(programs(calls=1))
        tree, params = drawn.tree, drawn.params
        given = draw(arrays(drawn, 0))
    names = _lets(tree)
    lets = st.sets(st.sampled_from(names)) if names else st.just(set[str]())
    kept = sorted(draw(lets)) if draw(st.booleans()) else ()
    return subject(tree, params, given, draw(st.integers(0, 3)) == 3, tuple(kept))


def _lets(tree: ast.Program) -> list[str]:
    return [t.name for t in resolve(tree).system.tensors if t.role == "let"]


def subject(
    tree: ast.Program,
    params: Mapping[str, int | float],
    given: Mapping[str, Array],
    symbolic: bool = False,
    kept: tuple[str, ...] = (),
) -> Subject:
    op = resolve(tree)
    values = bind_parameters(op, params)
    absent = frozenset(t.name for t in op.inputs) - set(given)
    shapes = {n: a.shape for n, a in given.items()}
    sizes = complete_sizes(op, values, solve_sizes(op, values, shapes), absent=absent)
    system = normalise(instantiate(op, values, {} if symbolic else sizes, absent), kept)
    return Subject(tree, params, sizes, given, system, definition(tree, given, params), kept)


def _filled(
    tree: ast.Program, params: Mapping[str, int | float], sizes: Mapping[str, int], seed: int
) -> dict[str, Array]:
    """Small integers for every input of a text."""
    op = resolve(tree)
    env = complete_sizes(op, bind_parameters(op, params), sizes)
    system = instantiate(op, bind_parameters(op, params), env)
    out: dict[str, Array] = {}
    for at, tensor in enumerate(t for t in system.tensors if t.role == "input"):
        shape = tuple(int(e.evaluate({})) for e in tensor.shape)
        out[tensor.name] = integers(shape, tensor.dtype, 3, seed + at)
    return out
