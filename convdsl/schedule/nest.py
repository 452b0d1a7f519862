"""The state that loop verbs act on: one piece of an equation as a nest of named loops.

    nest  = piece, loop*, values, guards, stage*, flush?
    loop  = name, extent, reduced?, level
    stage = operand, at loop, memory, pad

A fresh nest has one serial loop for each variable of the piece, free ones outside, reduced ones inside.
Verbs replace loops by others; `values` keeps each variable of the piece as an expression of the loops,
and `guards` the conditions under which an iteration is one of the piece's. So every nest means the same
as its piece, whatever the verbs did; `convdsl.schedule.lower` turns it into loop IR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Binary, Expr, Pred, Reduce, free_names, ge, loads
from convdsl.ir.index import Index, ceildiv, const, floordiv, modulo, sym
from convdsl.ir.loop import Level
from convdsl.passes.names import Names
from convdsl.passes.phases import the_reduction

Memory = Literal["workgroup", "register"]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop from 0 to `extent`."""

    name: str
    extent: Index
    reduced: bool
    level: Level = "serial"


@dataclass(frozen=True, slots=True)
class Stage:
    """A copy of an operand in faster memory, refilled in every iteration of the loop `at`."""

    operand: str
    at: str
    memory: Memory
    pad: int = 0


@dataclass(frozen=True, slots=True)
class Nest:
    """A scheduled piece. `digits` lists the loops in the order in which they make up the variables."""

    piece: Piece
    loops: tuple[Loop, ...]
    digits: tuple[str, ...]
    values: Mapping[str, Index]
    guards: tuple[Pred, ...] = ()
    stages: tuple[Stage, ...] = ()
    flush: str | None = None

    def loop(self, name: str) -> Loop:
        return next(x for x in self.loops if x.name == name)

    @property
    def reduction(self) -> Reduce | None:
        return the_reduction(self.piece.value)

    def names(self) -> Names:
        taken = {x.name for x in self.loops} | set(self.values)
        return Names(taken)


def nest_of(piece: Piece) -> Nest:
    """The plain nest of a piece whose reduction (if it has one) is solved and dense."""
    reduction = the_reduction(piece.value)
    loops: list[Loop] = []
    values: dict[str, Index] = {}
    for var in piece.vars:
        loops.append(Loop(var.name, var.extent, False))
        values[var.name] = sym(var.name) + var.low
    for var in reduction.vars if reduction is not None else ():
        loops.append(Loop(var.name, var.extent, True))
        values[var.name] = sym(var.name) + var.low
    return Nest(piece, tuple(loops), tuple(x.name for x in loops), values)


def operands(reduction: Reduce) -> dict[str, Expr]:
    """What can be staged, by the first tensor that it reads: the factors of a product of reads."""
    out: dict[str, Expr] = {}
    for factor in factors(reduction.body):
        reads = loads(factor)
        if reads:
            out.setdefault(reads[0].access.tensor, factor)
    return out


def factors(body: Expr) -> list[Expr]:
    """The body as the list of its factors."""
    if isinstance(body, Binary) and body.op == "*":
        return factors(body.left) + factors(body.right)
    return [body]


# -- verbs ------------------------------------------------------------------------------------------
def split(nest: Nest, name: str, factor: int, outer: str, inner: str) -> Nest:
    """for l in 0..N  ->  for lo in 0..ceil(N/f), li in 0..f, guarded where f does not divide N."""
    loop = nest.loop(name)
    high = ceildiv(loop.extent, factor)
    value = sym(outer) * factor + sym(inner)
    made = (
        Loop(outer, high, loop.reduced, loop.level),
        Loop(inner, const(factor), loop.reduced, loop.level),
    )
    known = loop.extent.as_int()
    exact = known is not None and known % factor == 0
    out = _replaced(nest, (name,), made, {name: value})
    return out if exact else replace(out, guards=(*out.guards, ge(loop.extent - 1 - value)))


def fuse(nest: Nest, first: str, second: str, name: str) -> Nest:
    """for a in 0..N, b in 0..M  ->  for c in 0..N*M, with a = c // M and b = c % M."""
    a, b = nest.loop(first), nest.loop(second)
    made = (Loop(name, a.extent * b.extent, a.reduced, a.level),)
    values = {first: floordiv(sym(name), b.extent), second: modulo(sym(name), b.extent)}
    return _replaced(nest, (first, second), made, values)


def order(nest: Nest, names: tuple[str, ...]) -> Nest:
    """Put the named loops in this order, in the places that they hold together."""
    wanted = iter([nest.loop(n) for n in names])
    loops = tuple(next(wanted) if x.name in names else x for x in nest.loops)
    return replace(nest, loops=loops)


def set_level(nest: Nest, name: str, level: Level) -> Nest:
    loops = tuple(replace(x, level=level) if x.name == name else x for x in nest.loops)
    return replace(nest, loops=loops)


def stage(nest: Nest, operand: str, at: str, memory: Memory, pad: int = 0) -> Nest:
    return replace(nest, stages=(*nest.stages, Stage(operand, at, memory, pad)))


def flush(nest: Nest, at: str) -> Nest:
    """Add up partial sums separately in each iteration of the loop `at`."""
    return replace(nest, flush=at)


def _replaced(
    nest: Nest, gone: tuple[str, ...], made: tuple[Loop, ...], values: dict[str, Index]
) -> Nest:
    def put(index: Index) -> Index:
        return index.substitute(values)

    at = [x.name for x in nest.loops].index(gone[0])
    loops = [x for x in nest.loops if x.name not in gone]
    loops[at:at] = made
    where = nest.digits.index(gone[0])
    digits = [d for d in nest.digits if d not in gone]
    digits[where:where] = [x.name for x in made]
    return replace(
        nest,
        loops=tuple(loops),
        digits=tuple(digits),
        values={n: put(v) for n, v in nest.values.items()},
        guards=tuple(Pred(p.kind, put(p.index)) for p in nest.guards),
    )


def depends_on(nest: Nest, value: Expr) -> frozenset[str]:
    """The loops that an expression over the piece's variables depends on."""
    used = free_names(value)
    return frozenset().union(*(nest.values[n].free for n in used if n in nest.values))
