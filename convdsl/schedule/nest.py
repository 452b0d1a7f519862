"""The state that loop verbs act on: one piece of an equation as a nest of named loops.

    nest  = piece, loop*, digit*, values, tail*, stage*, partial?
    loop  = name, extent, reduced?, level
    tail  = condition, policy
    stage = operand, at, memory, pad

A fresh nest has one serial loop for each variable of the piece, free ones outside, reduced ones inside.
Verbs replace loops by others; `values` keeps each variable of the piece as an expression of the loops,
and the tails say which iterations are none of the piece's. So a nest means the same as its piece,
whatever the verbs did; `convdsl.schedule.lower` turns it into loop IR.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Binary, Expr, Pred, Reduce, free_names, loads
from convdsl.ir.index import Index, sym
from convdsl.ir.loop import Level
from convdsl.passes.names import Names
from convdsl.passes.phases import the_reduction

Memory = Literal["workgroup", "register"]
Policy = Literal["guard", "cut", "pad"]


@dataclass(frozen=True, slots=True)
class Loop:
    """A loop from 0 to `extent`."""

    name: str
    extent: Index
    reduced: bool
    level: Level = "serial"


@dataclass(frozen=True, slots=True)
class Tail:
    """An iteration counts only where `condition` holds.

    `guard` tests it, `cut` ends the loop before it fails, `pad` runs on over zeros in staged operands
    and tests it only where the result is stored.
    """

    condition: Pred
    policy: Policy


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
    tails: tuple[Tail, ...] = ()
    stages: tuple[Stage, ...] = ()
    partial: str | None = None

    def loop(self, name: str) -> Loop:
        return next(x for x in self.loops if x.name == name)

    def has(self, name: str) -> bool:
        return any(x.name == name for x in self.loops)

    def place(self, name: str) -> int:
        return [x.name for x in self.loops].index(name)

    @property
    def reduction(self) -> Reduce | None:
        return the_reduction(self.piece.value)

    def names(self) -> Names:
        """Fresh names beside those of the nest."""
        return Names({x.name for x in self.loops} | set(self.values))

    def replaced(
        self, gone: tuple[str, ...], made: tuple[Loop, ...], values: Mapping[str, Index]
    ) -> Nest:
        """Loops replaced by others in the place of the first; `values` gives the old by the new."""

        def put(index: Index) -> Index:
            return index.substitute(values)

        at, where = self.place(gone[0]), self.digits.index(gone[0])
        loops = [x for x in self.loops if x.name not in gone]
        loops[at:at] = made
        digits = [d for d in self.digits if d not in gone]
        digits[where:where] = [x.name for x in made]
        return replace(
            self,
            loops=tuple(loops),
            digits=tuple(digits),
            values={n: put(v) for n, v in self.values.items()},
            tails=tuple(
                replace(t, condition=Pred(t.condition.kind, put(t.condition.index)))
                for t in self.tails
            ),
        )

    def with_level(self, name: str, level: Level) -> Nest:
        loops = tuple(replace(x, level=level) if x.name == name else x for x in self.loops)
        return replace(self, loops=loops)

    def depends_on(self, value: Expr) -> frozenset[str]:
        """The loops that an expression over the piece's variables depends on."""
        used = [self.values[n].free for n in free_names(value) if n in self.values]
        return frozenset().union(*used) & {x.name for x in self.loops}


def nest_of(piece: Piece) -> Nest:
    """The plain nest of a piece whose reduction, if it has one, is solved and dense."""
    reduction = the_reduction(piece.value)
    loops = [Loop(v.name, v.extent, False) for v in piece.vars]
    values = {v.name: sym(v.name) + v.low for v in piece.vars}
    for var in reduction.vars if reduction is not None else ():
        loops.append(Loop(var.name, var.extent, True))
        values[var.name] = sym(var.name) + var.low
    return Nest(piece, tuple(loops), tuple(x.name for x in loops), values)


def operands(reduction: Reduce) -> dict[str, Expr]:
    """What can be staged: the factors of a product, by the first tensor that each reads.

    A second factor that reads `x` is called `x.2`.
    """
    out: dict[str, Expr] = {}
    for factor in factors(reduction.body):
        reads = loads(factor)
        if not reads:
            continue
        tensor = reads[0].access.tensor
        same = sum(name.split(".")[0] == tensor for name in out)
        out[f"{tensor}.{same + 1}" if same else tensor] = factor
    return out


def factors(body: Expr) -> list[Expr]:
    """The body as the list of its factors."""
    if isinstance(body, Binary) and body.op == "*":
        return factors(body.left) + factors(body.right)
    return [body]
