"""The equation IR: named equations between tensors.

    system   = name, sizes, tensors*, equations*
    tensor   = name, dtype, axes, role    an input, a let, the output, or a constant with its values
    equation = target tensor, piece*
    piece    = vars, guards, access, value        target[access] = value   for the points of vars
                                                  at which all guards hold

The pieces of an equation are disjoint and together cover its target. Rewrites (gather, phases,
columns, ...) map systems to systems; each system prints and can be evaluated, so every step can be
compared with the definition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Literal

from convdsl.ir.expr import Access, DType, Expr, Pred, Unit, Var, loads, map_access, map_index
from convdsl.ir.index import Index, product

Role = Literal["input", "let", "output", "constant"]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor: each axis a product of factors, the first one slowest. `default` only on inputs.

    The `values` of a constant are exact, row major; a target rounds each one once.
    """

    name: str
    dtype: DType
    axes: tuple[tuple[Index, ...], ...]
    role: Role
    default: float | None = None
    values: tuple[Fraction, ...] = ()

    @property
    def shape(self) -> tuple[Index, ...]:
        """One extent an axis."""
        return tuple(product(axis) for axis in self.axes)

    @property
    def dims(self) -> tuple[Index, ...]:
        """One extent a factor of an axis."""
        return tuple(factor for axis in self.axes for factor in axis)

    @property
    def elements(self) -> Index:
        return product(self.dims)


@dataclass(frozen=True, slots=True)
class Piece:
    """`access = value` for all points of `vars` where every guard holds. `origin` names the rewrite.

    `units` are variables that were dropped because they have one value.
    """

    vars: tuple[Var, ...]
    guards: tuple[Pred, ...]
    access: Access
    value: Expr
    origin: str = "definition"
    units: tuple[Unit, ...] = field(default=(), compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Equation:
    tensor: str
    pieces: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class System:
    """One op with its parameters substituted.

    `sizes` are the symbols without a number that the shapes of the inputs determine; `definitions` are
    further symbols, in an order in which each uses only earlier ones (`LO == (L - 1)*4 + K`). When all
    sizes have numbers both are empty.
    """

    name: str
    sizes: tuple[str, ...]
    definitions: tuple[tuple[str, Index], ...]
    tensors: tuple[Tensor, ...]
    equations: tuple[Equation, ...]

    def tensor(self, name: str) -> Tensor:
        return next(t for t in self.tensors if t.name == name)

    @property
    def inputs(self) -> tuple[Tensor, ...]:
        return tuple(t for t in self.tensors if t.role == "input")

    @property
    def constants(self) -> tuple[Tensor, ...]:
        return tuple(t for t in self.tensors if t.role == "constant")

    @property
    def output(self) -> Tensor:
        return next(t for t in self.tensors if t.role == "output")


def accesses(piece: Piece) -> Iterator[Access]:
    """What a piece stores to, and all that it reads."""
    yield piece.access
    yield from (load.access for load in loads(piece.value))


def map_piece(piece: Piece, f: Callable[[Index], Index]) -> Piece:
    """The piece with `f` applied to every integer expression in it."""
    return replace(
        piece,
        vars=tuple(Var(v.name, f(v.low), f(v.high)) for v in piece.vars),
        guards=tuple(Pred(p.kind, f(p.index)) for p in piece.guards),
        access=map_access(piece.access, f),
        value=map_index(piece.value, f),
    )


def map_system(system: System, f: Callable[[Index], Index]) -> System:
    """The system with `f` applied to every integer expression in it."""
    return replace(
        system,
        definitions=tuple((name, f(value)) for name, value in system.definitions),
        tensors=tuple(
            replace(t, axes=tuple(tuple(map(f, axis)) for axis in t.axes)) for t in system.tensors
        ),
        equations=tuple(
            replace(e, pieces=tuple(map_piece(p, f) for p in e.pieces)) for e in system.equations
        ),
    )
