"""Partial sums on the host: long loops over terms add up blocks, not one term after the other.

    for j in 0..J                      for j_block in 0..ceil(J/64)
      acc += term(j)                     part = 0
                                         for j in j_block*64..min(J, j_block*64 + 64)
                                           part += term(j)
                                         acc += part

The rounding error of a plain sum grows with the number of additions; this keeps that of a blocked one.
"""

from __future__ import annotations

from collections.abc import Iterable

from convdsl.ir.expr import Access, Const, Load, Var
from convdsl.ir.index import Index, ceildiv, const, minimum, sym
from convdsl.ir.loop import For, Let, Level, Stmt, Store, nest
from convdsl.ir.loop import If as IfStmt
from convdsl.passes.numpy_place import Context
from convdsl.passes.points import HostItem, Loop, Name, Test

TAPS = 64  # additions one after the other, of matrix products or slices
ROW = 128  # terms that one NumPy reduction adds up, unless there are very many


def add_up(
    context: Context,
    host: list[HostItem],
    body: tuple[Stmt, ...],
    into: Access,
    outputs: Iterable[str],
) -> tuple[Stmt, ...]:
    """`body`, which adds to `into`, inside the host loops, the last long one in blocks."""
    at = _long_loop(host, set(outputs))
    if at is None:
        return wrap(host, body)
    loop = host[at]
    assert isinstance(loop, Loop)
    part = context.temp("part", "f32", into.dims)
    axes = [Var(context.names.fresh("i"), const(0), d) for d in into.dims]
    every = tuple(sym(v.name) for v in axes)
    mine, whole = Access(part.name, every, part.dims), Access(into.tensor, every, into.dims)
    over: list[tuple[Var, Level]] = [(v, "slice") for v in axes]
    clear = nest(over, (Store(mine, Const(0.0, "f32")),))
    add = nest(over, (Store(whole, Load(mine, "f32"), "+"),))
    block = Var(
        context.names.fresh(f"{loop.var.name}_block"), const(0), ceildiv(loop.var.extent, TAPS)
    )
    first = loop.var.low + sym(block.name) * TAPS
    run = Loop(Var(loop.var.name, first, minimum(first + TAPS, loop.var.high)))
    inner = wrap([run, *host[at + 1 :]], tuple(_redirect(s, into.tensor, part.name) for s in body))
    return wrap([*host[:at], Loop(block)], (*clear, *inner, *add))


def wrap(host: list[HostItem], body: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
    """`body` inside the loops, names and tests of the host."""
    for item in reversed(host):
        match item:
            case Loop(var):
                body = (For(var, "host", body),)
            case Name(name, value):
                body = (Let(name, value, body),)
            case Test(conditions):
                body = (IfStmt(conditions, body),)
    return body


def row_block(extent: Index) -> Index | None:
    """How many terms one reduction adds up; None where it may take them all."""
    known = extent.as_int()
    if known is None:
        return const(ROW)
    return None if known <= ROW else const(max(ROW, int(known**0.5) + 1))


def _long_loop(host: list[HostItem], outputs: set[str]) -> int | None:
    """The innermost host loop that is long, if no host loop runs over results."""
    loops = [n for n, item in enumerate(host) if isinstance(item, Loop)]
    if any(isinstance(i, Loop) and i.var.name in outputs for i in host):
        return None
    for n in reversed(loops):
        item = host[n]
        assert isinstance(item, Loop)
        known = item.var.extent.as_int()
        if known is None or known > TAPS:
            return n
    return None


def _redirect(stmt: Stmt, old: str, new: str) -> Stmt:
    """The statement with its stores to one buffer made to another."""
    match stmt:
        case Store(access, value, accumulate):
            if access.tensor != old:
                return stmt
            return Store(Access(new, access.index, access.dims), value, accumulate)
        case For(var, level, body):
            return For(var, level, tuple(_redirect(s, old, new) for s in body))
        case Let(name, value, body):
            return Let(name, value, tuple(_redirect(s, old, new) for s in body))
        case IfStmt(conditions, body):
            return IfStmt(conditions, tuple(_redirect(s, old, new) for s in body))
