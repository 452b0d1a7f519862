"""The loop IR: explicit loops over named buffers; the last form before target text.

    program = name, sizes, definitions, buffers*, kernel*
    kernel  = name, locals: buffer*, body: stmt*
    stmt    = For(var, level, body) | Let(name, index, body) | If(preds, body)
            | Store(access, value, accumulate?)

Meaning: kernels run in order, and each is a *sequential* program; `convdsl.ir.interp` is its
definition. The level of a loop says how a target runs it and never changes the result:

    host      a loop of the host program (a Python loop, or one dispatch an iteration)
    worker    the same, its iterations shared out among threads of the host
    grid      workgroups of a dispatch            thread    invocations of a workgroup
    serial    an ordinary loop                    unroll    copied out in the text
    vector    lanes of a vec4                     slice     an axis of a NumPy expression
    gemm.batch | gemm.m | gemm.n | gemm.k         the roles of a matrix product

Two statements one after the other inside a workgroup, at least one of them with thread loops, imply a
barrier between them. A `workgroup` buffer is shared by the threads of one workgroup. A `register`
buffer's first dims are indexed by the thread loops around it (`thread_dims` of them): no thread
touches another's. A `worker` buffer belongs to one iteration of a worker loop. Locals hold garbage
until stored to. A `constant` buffer is a part of the program: no input, and never stored to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from convdsl.ir.expr import Access, DType, Expr, Pred, Var, free_names, loads
from convdsl.ir.index import Index, product

Level = Literal[
    "host", "worker", "grid", "thread", "serial", "unroll", "vector", "slice",
    "gemm.batch", "gemm.m", "gemm.n", "gemm.k",
]  # fmt: skip
Memory = Literal["input", "output", "temp", "constant", "workgroup", "register", "worker"]
Accumulate = Literal["+", "*", "max", "min"]


LANES = 4  # iterations of a vector loop


@dataclass(frozen=True, slots=True)
class Buffer:
    """Row-major storage. Optional inputs that are absent have no buffer.

    A `constant` buffer holds its `values`, which are exact here and rounded once on a target.
    """

    name: str
    dtype: DType
    dims: tuple[Index, ...]
    memory: Memory
    thread_dims: int = 0
    values: tuple[Fraction, ...] = ()

    @property
    def elements(self) -> Index:
        return product(self.dims)


@dataclass(frozen=True, slots=True)
class For:
    var: Var
    level: Level
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Let:
    """An integer name for the rest of a block."""

    name: str
    value: Index
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class If:
    conditions: tuple[Pred, ...]
    body: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True)
class Store:
    """`access = value`, or `access = access (op) value` when `accumulate` is given."""

    access: Access
    value: Expr
    accumulate: Accumulate | None = None


Stmt = For | Let | If | Store


@dataclass(frozen=True, slots=True)
class Kernel:
    """A unit that a target runs as one: a WGSL dispatch, or a stretch of a NumPy function."""

    name: str
    locals: tuple[Buffer, ...]
    body: tuple[Stmt, ...]
    comment: str = ""


@dataclass(frozen=True, slots=True)
class LoopProgram:
    """`sizes` and `definitions` as in `convdsl.ir.equation.System`."""

    name: str
    sizes: tuple[str, ...]
    definitions: tuple[tuple[str, Index], ...]
    buffers: tuple[Buffer, ...]
    kernels: tuple[Kernel, ...]

    def buffer(self, name: str) -> Buffer:
        return next(b for b in self.buffers if b.name == name)


def statements(body: tuple[Stmt, ...]) -> Iterator[Stmt]:
    """All statements of a body, parents first."""
    for stmt in body:
        yield stmt
        if not isinstance(stmt, Store):
            yield from statements(stmt.body)


def free_symbols(body: tuple[Stmt, ...]) -> frozenset[str]:
    """The names in indices, extents of views included, that no loop or let of the body binds."""
    out: frozenset[str] = frozenset()
    for stmt in body:
        match stmt:
            case For(var, _, inner):
                out |= var.low.free | var.high.free | (free_symbols(inner) - {var.name})
            case Let(name, value, inner):
                out |= value.free | (free_symbols(inner) - {name})
            case If(conditions, inner):
                out = out.union(free_symbols(inner), *(p.index.free for p in conditions))
            case Store(access, value):
                views = [access, *(load.access for load in loads(value))]
                out = out.union(
                    access.free, free_names(value), *(d.free for v in views for d in v.dims)
                )
    return out


def map_body(stmt: Stmt, f: Callable[[tuple[Stmt, ...]], tuple[Stmt, ...]]) -> Stmt:
    """The statement with `f` applied to its body; a Store is returned as it is."""
    return stmt if isinstance(stmt, Store) else replace(stmt, body=f(stmt.body))


def nest(loops: list[tuple[Var, Level]], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """`body` inside perfectly nested loops, the first one outermost."""
    for var, level in reversed(loops):
        body = (For(var, level, body),)
    return body
