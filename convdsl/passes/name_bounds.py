"""Give names to the bounds of slices that are more than a size, so that the text reads well.

   for l in max(0, cut*block)..min(L, cut*block + block) slice ...
-> let l_from = max(0, cut*block)
   let l_to = min(L, cut*block + block)
   for l in l_from..l_to slice ...
"""

from __future__ import annotations

from dataclasses import replace

from convdsl.ir.atoms import Fn
from convdsl.ir.expr import Var
from convdsl.ir.index import Index, sym
from convdsl.ir.loop import For, If, Kernel, Let, LoopProgram, Stmt, Store
from convdsl.passes.names import Names


def name_bounds(program: LoopProgram, names: Names) -> LoopProgram:
    """The same program with long bounds of `slice` and `gemm` loops named on the host."""

    def kernel(k: Kernel) -> Kernel:
        return replace(k, body=_block(k.body, {}, names))

    return replace(program, kernels=tuple(kernel(k) for k in program.kernels))


def _block(body: tuple[Stmt, ...], known: dict[Index, Index], names: Names) -> tuple[Stmt, ...]:
    """Names hold for the rest of a block, so equal bounds of later statements share them."""
    out: list[Stmt] = []
    for at, stmt in enumerate(body):
        if not _is_nest(stmt):
            match stmt:
                case For() | If() | Let():
                    out.append(replace(stmt, body=_block(stmt.body, dict(known), names)))
                case Store():
                    out.append(stmt)
            continue
        fresh = _long_bounds(stmt, known, names)
        if fresh:
            known = {**known, **{value: sym(name) for name, value in fresh}}
            rest: tuple[Stmt, ...] = _block((_renamed(stmt, known), *body[at + 1 :]), known, names)
            for name, value in reversed(fresh):
                rest = (Let(name, value, rest),)
            return (*out, *rest)
        out.append(_renamed(stmt, known))
    return tuple(out)


def _is_nest(stmt: Stmt) -> bool:
    return isinstance(stmt, For) and (stmt.level == "slice" or stmt.level.startswith("gemm"))


def _long_bounds(stmt: Stmt, known: dict[Index, Index], names: Names) -> list[tuple[str, Index]]:
    out: list[tuple[str, Index]] = []
    whole = _extents(stmt)
    while isinstance(stmt, For):
        for what, bound in (("from", stmt.var.low), ("to", stmt.var.high)):
            seen = bound in known or any(bound == value for _, value in out)
            if _is_long(bound) and not seen and bound not in whole:
                out.append((names.fresh(f"{stmt.var.name}_{what}"), bound))
        stmt = stmt.body[0]
    return out


def _extents(stmt: Stmt) -> tuple[Index, ...]:
    """The extents of what the nest stores to: a slice over a whole axis needs no name."""
    while isinstance(stmt, For):
        stmt = stmt.body[0]
    return stmt.access.dims if isinstance(stmt, Store) else ()


def _is_long(bound: Index) -> bool:
    return any(isinstance(atom, Fn) for monomial, _ in bound.terms for atom in monomial)


def _renamed(stmt: Stmt, known: dict[Index, Index]) -> Stmt:
    if not isinstance(stmt, For):
        return stmt
    var = Var(
        stmt.var.name,
        known.get(stmt.var.low, stmt.var.low),
        known.get(stmt.var.high, stmt.var.high),
    )
    return replace(stmt, var=var, body=tuple(_renamed(s, known) for s in stmt.body))
