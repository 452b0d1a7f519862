"""What the rules of the verifier look at: each statement with everything around it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import NoReturn

from convdsl.diagnostics import InternalError
from convdsl.ir.expr import Access, Expr, Guard, Load, Pred, Reduce, Scalar, loads, walk
from convdsl.ir.index import Index
from convdsl.ir.loop import Buffer, For, If, Kernel, Let, LoopProgram, Stmt, Store
from convdsl.ir.text import stmt_text

# The reducers start a reduction wherever a value may stand, so nothing may be called like them.
_NAME = re.compile(r"(?!(?:sum|prod|max|min)\Z)[A-Za-z_][\w']*(?:\.[\w']+)*\Z", re.ASCII)


def is_name(text: str) -> bool:
    """Whether the reader takes the text for one name."""
    return _NAME.match(text) is not None


@dataclass(frozen=True, slots=True)
class Site:
    """A statement; the statements around it, outermost first; its place in the kernel as a path."""

    kernel: Kernel
    stmt: Stmt
    parents: tuple[Stmt, ...]
    path: tuple[int, ...]
    buffers: Mapping[str, Buffer]

    def fail(self, rule: str, why: str) -> NoReturn:
        dims = {b.name: b.dims for b in self.buffers.values()}
        place = "".join(f"\n  in: {stmt_text(s, dims)}" for s in (*self.parents, self.stmt))
        raise InternalError(f"kernel {self.kernel.name} breaks the rule {rule}: {why}{place}")

    def loops(self, level: str) -> tuple[For, ...]:
        """The loops of a level around the statement, outermost first."""
        return tuple(p for p in self.parents if isinstance(p, For) and p.level == level)

    def accesses(self) -> Iterator[Access]:
        """The elements that a store writes and reads."""
        if isinstance(self.stmt, Store):
            yield self.stmt.access
            yield from (load.access for load in loads(self.stmt.value))


def sites(program: LoopProgram) -> tuple[Site, ...]:
    """All statements of all kernels, in order, parents first."""
    out: list[Site] = []
    for kernel in program.kernels:
        buffers = {b.name: b for b in (*program.buffers, *kernel.locals)}
        _collect(kernel, kernel.body, (), (), buffers, out)
    return tuple(out)


def _collect(
    kernel: Kernel,
    body: tuple[Stmt, ...],
    parents: tuple[Stmt, ...],
    path: tuple[int, ...],
    buffers: Mapping[str, Buffer],
    out: list[Site],
) -> None:
    for n, stmt in enumerate(body):
        out.append(Site(kernel, stmt, parents, (*path, n), buffers))
        if not isinstance(stmt, Store):
            _collect(kernel, stmt.body, (*parents, stmt), (*path, n), buffers, out)


def stmt_indices(stmt: Stmt) -> Iterator[Index]:
    """The integer expressions of the statement itself, those of its body excluded."""
    match stmt:
        case For(var):
            yield from (var.low, var.high)
        case Let(_, value):
            yield value
        case If(conditions):
            yield from pred_indices(conditions)
        case Store(access, value):
            yield from (*access.index, *access.dims)
            yield from expr_indices(value)


def pred_indices(preds: tuple[Pred, ...]) -> Iterator[Index]:
    yield from (p.index for p in preds)


def expr_indices(expr: Expr) -> Iterator[Index]:
    """The integer expressions in a value; those under a reduction too."""
    for e in walk(expr):
        match e:
            case Scalar(index):
                yield index
            case Load(access):
                yield from (*access.index, *access.dims)
            case Guard(conditions):
                yield from pred_indices(conditions)
            case Reduce():
                yield from pred_indices(e.constraints)
                yield from (bound for v in e.vars for bound in (v.low, v.high))
            case _:
                pass
