"""What a scheduled nest makes of a product: who computes which results, in numbers.

A tile is the part of one workgroup on a GPU, and that of one NumPy expression on the host.

The roles are those of `convdsl.passes.contraction`; of what is no product the columns are the fastest
variable of the result, and the rows all others. For the plan and for pictures; no pass reads it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Expr, Reduce, Var, loads
from convdsl.ir.index import Index, product
from convdsl.passes.contraction import contraction_of
from convdsl.schedule.nest import Loop, Nest, operands

OUTSIDE = ("grid", "host", "worker")


@dataclass(frozen=True, slots=True)
class Side:
    """The rows, columns or terms: how many, and the loops over them, slowest digit first."""

    names: tuple[str, ...]
    extent: Index
    loops: tuple[Loop, ...]

    @property
    def inside(self) -> tuple[Loop, ...]:
        """The loops of one workgroup, or of one NumPy expression."""
        return tuple(x for x in self.loops if x.level not in OUTSIDE)

    @property
    def tile(self) -> Index:
        """How many results one of those has."""
        return product(x.extent for x in self.inside)

    @property
    def groups(self) -> Index:
        """How many of those stand along it."""
        return product(x.extent for x in self.loops if x.level in OUTSIDE)

    @property
    def threads(self) -> Index:
        return product(x.extent for x in self.loops if x.level == "thread")

    @property
    def own(self) -> Index:
        """How many of them a thread has."""
        return product(x.extent for x in self.inside if x.level != "thread")


@dataclass(frozen=True, slots=True)
class Tiling:
    """A nest as `rows` x `columns` results, each a sum of `terms`.

    `depth` terms are staged at a time and `block` terms added up before they go to the total; None
    where nothing is. `a` and `b` are the tensors of the rows and of the columns.
    """

    batch: Side
    rows: Side
    columns: Side
    terms: Side
    depth: Index | None
    block: Index | None
    a: str | None
    b: str | None

    @property
    def threads(self) -> Index:
        sides = (self.batch, self.rows, self.columns)
        return product(side.threads for side in sides)

    @property
    def words(self) -> str:
        """In short: `128x128x16, 8x8 a thread`."""
        depth = "" if self.depth is None else f"x{self.depth}"
        own = f"{self.rows.own}x{self.columns.own} a thread"
        return f"{self.rows.tile}x{self.columns.tile}{depth}, {own}"


def tiling_of(nest: Nest) -> Tiling:
    """The tiling of a nest, also of one whose loops no step has touched."""
    batch, m, n, k, a, b = _roles(nest.piece, nest.reduction)
    taken: set[str] = set()
    sides = {}
    for role, variables in (("columns", n), ("rows", m), ("batch", batch), ("terms", k)):
        names = {v.name for v in variables}
        on = {x for v in names & set(nest.values) for x in nest.values[v].free} - taken
        loops = {x.name: x for x in nest.loops if x.name in on}
        taken |= set(loops)
        ordered = tuple(loops[d] for d in nest.digits if d in loops)
        shown = tuple(v.name for v in variables)
        sides[role] = Side(shown, product(v.extent for v in variables), ordered)
    depth = [_inside(nest, s.at) for s in nest.stages if s.memory == "workgroup"]
    block = None if nest.partial is None else _inside(nest, nest.partial)
    return Tiling(
        sides["batch"], sides["rows"], sides["columns"], sides["terms"],
        depth[0] if depth else None, block, a, b,
    )  # fmt: skip


_Vars = tuple[Var, ...]


def _roles(
    piece: Piece, reduction: Reduce | None
) -> tuple[_Vars, _Vars, _Vars, _Vars, str | None, str | None]:
    product_ = contraction_of(piece)
    if product_ is not None:
        a, b = _tensor(product_.a.value), _tensor(product_.b.value)
        return product_.batch, product_.m, product_.n, product_.k, a, b
    k = reduction.vars if reduction is not None else ()
    read = list(operands(reduction)) if reduction is not None else []
    only = read[0] if len(read) == 1 else None
    fastest = _fastest(piece)
    n = tuple(v for v in piece.vars if v.name == fastest)
    m = tuple(v for v in piece.vars if v.name != fastest)
    return (), m, n, k, only, None


def _fastest(piece: Piece) -> str | None:
    """The variable with a coefficient of 1 in the last axis of the result that moves."""
    for index in reversed(piece.access.index):
        moving = [v.name for v in piece.vars if v.name in index.free]
        if moving:
            return min(moving, key=lambda n: abs(index.coefficient(n).as_int() or 1 << 30))
    return None


def _tensor(value: Expr) -> str | None:
    return next((load.access.tensor for load in loads(value)), None)


def _inside(nest: Nest, at: str) -> Index:
    """The terms of one iteration of a summed loop."""
    return product(x.extent for x in _after(nest.loops, at) if x.reduced)


def _after(loops: Iterable[Loop], at: str) -> list[Loop]:
    loops = list(loops)
    place = next((n for n, x in enumerate(loops) if x.name == at), len(loops))
    return loops[place + 1 :]
