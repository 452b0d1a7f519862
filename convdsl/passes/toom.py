"""toom: a dense filter along one index by fewer products.

    y[t] = e(sum[c, j] x(c, t - j) * w(c, j))        J taps, M results at a time
 -> wt[z, c]       = sum[j] G[z, j] * w(c, j)
    xt[z, c, tile] = sum[u in 0..M+J-1] B[z, u] * x(c, tile*M + u - (J-1))
    zt[z, tile]    = sum[c] xt[z, c, tile] * wt[z, c]
    y[tile*M + u]  = e(sum[z] A[u, z] * zt[z, tile])

The matrices (`convdsl.passes.toom_points`) are constants. The other indices of an operand, its
conditions and its functions stay with it: where a condition fails it counts as zero. What is still
summed stands outside what is not in both transformed operands, so that zt reads them along its rows
and columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from convdsl.ir.equation import Equation, Piece, Tensor
from convdsl.ir.expr import (
    Access,
    Binary,
    Expr,
    Load,
    Pred,
    Reduce,
    Var,
    free_names,
    ge,
    map_access,
    map_index,
)
from convdsl.ir.index import Index, ceildiv, const, product, sym
from convdsl.ir.interval import always, ranges_of
from convdsl.passes.contraction import Contraction, Operand
from convdsl.passes.phases import replace_reduction
from convdsl.passes.toom_points import Transforms, transforms


@dataclass(frozen=True, slots=True)
class Filter:
    """A contraction that sums `data(block - step*tap) * taps(tap)` over `tap`, with `step` 1 or -1.

    `data` is written for the tap zero, in terms of `block` alone.
    """

    product: Contraction
    block: Var
    tap: Var
    step: int
    data: Operand
    taps: Operand

    @property
    def terms(self) -> Index:
        """How many terms there are for each tap."""
        return product(v.extent for v in self.product.k if v != self.tap)

    @property
    def count(self) -> Index:
        """How many results there are along the block."""
        return self.block.extent


@dataclass(frozen=True, slots=True)
class NewNames:
    """New names: of the two transformed operands and their product, and of loops; of the matrices."""

    data: str
    taps: str
    product: str
    tile: str
    inside: str
    point: str
    matrices: tuple[str, str, str]  # A, B and G


def steps_of(contraction: Contraction, block: str, tap: str) -> list[tuple[Operand, Operand, int]]:
    """The ways to see it as a filter: data, taps, and how far the data move against the block a tap."""
    found: list[tuple[Operand, Operand, int]] = []
    pair = contraction.a, contraction.b
    for data, taps in (pair, pair[::-1]):
        if block not in free_names(taps.value) and {block, tap} <= free_names(data.value):
            found += [
                (data, taps, step)
                for step in (1, -1)
                if tap not in free_names(_moved(data.value, block, tap, step))
            ]
    return found


def filter_of(contraction: Contraction, block: Var, tap: Var) -> Filter | Pred | None:
    """The contraction as a filter; the condition that belongs to no operand; None where it is none."""
    ways = steps_of(contraction, block.name, tap.name)
    if len(ways) != 1:
        return None
    data, taps, step = ways[0]
    mine: list[Pred] = []
    theirs: list[Pred] = []
    in_data, in_taps = free_names(data.value), free_names(taps.value)
    for pred in contraction.reduction.constraints:
        names = pred.index.free & _bound(contraction)
        moved = Pred(pred.kind, _put(pred.index, block.name, tap.name, step))
        of_data = names <= in_data and tap.name not in moved.index.free
        mine += [moved] if of_data else []  # with both where it can: it may guard the reads of both
        theirs += [pred] if names <= in_taps else []
        if not of_data and not names <= in_taps:
            return pred
    value = _moved(data.value, block.name, tap.name, step)
    return Filter(
        contraction,
        block,
        tap,
        step,
        Operand(value, tuple(mine)),
        Operand(taps.value, tuple(theirs)),
    )


def toom_equations(
    found: Filter, results: int, names: NewNames
) -> tuple[tuple[Tensor, ...], tuple[Equation, ...], Piece]:
    """The new tensors, the equations of the operands and of the product, and the piece of the result."""
    taps = found.tap.extent.as_int()
    assert taps is not None
    matrices = transforms(results, taps)
    build = _Rewrite(found, results, names, matrices)
    return build.tensors(), build.equations(), build.result()


class _Rewrite:
    """What the four equations share."""

    def __init__(self, found: Filter, results: int, names: NewNames, matrices: Transforms) -> None:
        self.found, self.names, self.matrices, self.results = found, names, matrices, results
        roles, block = found.product, found.block
        in_data, in_taps = free_names(found.data.value), free_names(found.taps.value)
        self.point = Var(names.point, const(0), const(matrices.products))
        self.tile = Var(names.tile, const(0), ceildiv(found.count, results))
        count = found.count.as_int()
        self.whole = count is not None and count % results == 0
        self.at = block.low + sym(names.tile) * results + sym(names.inside)  # the result's place

        def used(variables: Iterable[Var], names: frozenset[str]) -> list[Var]:
            return [self.tile if v == block else v for v in variables if v.name in names]

        summed = [v for v in roles.k if v != found.tap]
        first, last = (used(side, in_data | in_taps) for side in (roles.m, roles.n))
        self.summed = summed
        data_side = used((*roles.m, *roles.n), in_data)
        taps_side = used((*roles.m, *roles.n), in_taps)
        self.data = (self.point, *roles.batch, *used(summed, in_data), *data_side)
        self.taps = (self.point, *roles.batch, *used(summed, in_taps), *taps_side)
        self.product = (self.point, *roles.batch, *first, *last)

    def tensors(self) -> tuple[Tensor, ...]:
        """The matrices, and what the new equations make."""
        a, b, g = self.names.matrices
        made = (
            (self.names.taps, self.taps), (self.names.data, self.data),
            (self.names.product, self.product),
        )  # fmt: skip
        return (
            _constant(b, self.matrices.b),
            _constant(g, self._taps_matrix()),
            _constant(a, self.matrices.a),
            *(Tensor(n, "f32", tuple((v.extent,) for v in vs), "let") for n, vs in made),
        )

    def equations(self) -> tuple[Equation, ...]:
        pieces = (self._taps(), self._data(), self._product())
        return tuple(Equation(p.access.tensor, (p,)) for p in pieces)

    def result(self) -> Piece:
        """The given piece, with its sum made from the products."""
        found, names = self.found, self.names
        piece, block = found.product.piece, found.block
        inside = Var(names.inside, const(0), const(self.results))
        a = Access(
            names.matrices[0],
            (sym(names.inside), sym(names.point)),
            (const(self.results), self.point.high),
        )
        body = Binary("*", Load(a, "f32"), _read(names.product, self.product))
        total = Reduce("sum", (self.point,), (), body)
        place = {block.name: self.at}
        value = map_index(piece.value, lambda i: i.substitute(place))
        guards = [Pred(p.kind, p.index.substitute(place)) for p in piece.guards]
        if not self.whole:
            guards.append(ge(block.high - 1 - self.at))
        at = [v.name for v in piece.vars].index(block.name)
        variables = (*piece.vars[:at], self.tile, inside, *piece.vars[at + 1 :])
        known = ranges_of(variables)
        return Piece(
            variables,
            tuple(p for p in guards if not always(p, known)),
            map_access(piece.access, lambda i: i.substitute(place)),
            replace_reduction(value, lambda _: total),
            "toom",
        )

    def _taps_matrix(self) -> tuple[tuple[Fraction, ...], ...]:
        """G for taps in the order in which the data move."""
        backwards = self.found.step > 0
        return tuple(row[::-1] if backwards else row for row in self.matrices.g)

    def _taps(self) -> Piece:
        tap, operand = self.found.tap, self.found.taps
        dims = (self.point.high, tap.extent)
        g = Access(self.names.matrices[2], (sym(self.names.point), sym(tap.name) - tap.low), dims)
        value = Reduce(
            "sum", (tap,), operand.conditions, Binary("*", Load(g, "f32"), operand.value)
        )
        return Piece(self.taps, (), _place(self.names.taps, self.taps), value, "transform")

    def _data(self) -> Piece:
        found, names = self.found, self.names
        width = self.matrices.products
        window = Var(names.inside, const(0), const(width))
        first, last = found.tap.low, found.tap.high - 1  # the tap of the window's end and begin
        back = last if found.step > 0 else -first
        place = {found.block.name: self.at - back}
        conditions = list(found.data.conditions)
        end = found.block.high - 1 - (first if found.step > 0 else -last)
        inside = ge(end - sym(found.block.name))  # a tile may reach further than any result reads
        bound = _bound(found.product)
        if not self.whole and not any(_implies(p, inside, bound) for p in conditions):
            conditions.append(inside)
        known = ranges_of((*self.data, window))
        tests = [Pred(p.kind, p.index.substitute(place)) for p in conditions]
        b = Access(
            names.matrices[1], (sym(names.point), sym(names.inside)), (const(width), const(width))
        )
        read = map_index(found.data.value, lambda i: i.substitute(place))
        value = Reduce(
            "sum", (window,), tuple(p for p in tests if not always(p, known)),
            Binary("*", Load(b, "f32"), read),
        )  # fmt: skip
        return Piece(self.data, (), _place(names.data, self.data), value, "transform")

    def _product(self) -> Piece:
        names = self.names
        value: Expr = Binary("*", _read(names.data, self.data), _read(names.taps, self.taps))
        if self.summed:
            value = Reduce("sum", tuple(self.summed), (), value)
        return Piece(self.product, (), _place(names.product, self.product), value, "product")


def _bound(contraction: Contraction) -> frozenset[str]:
    variables = (*contraction.piece.vars, *contraction.reduction.vars)
    return frozenset(v.name for v in variables)


def _put(index: Index, block: str, tap: str, step: int) -> Index:
    return index.substitute({block: sym(block) + sym(tap) * step})


def _moved(value: Expr, block: str, tap: str, step: int) -> Expr:
    return map_index(value, lambda i: _put(i, block, tap, step))


def _implies(known: Pred, wanted: Pred, variables: frozenset[str]) -> bool:
    rest = wanted.index - known.index
    return known.kind == "ge" and not rest.free & variables and always(ge(rest), {})


def _constant(name: str, rows: Sequence[Sequence[Fraction]]) -> Tensor:
    axes = ((const(len(rows)),), (const(len(rows[0])),))
    values = tuple(x for row in rows for x in row)
    return Tensor(name, "f32", axes, "constant", values=values)


def _place(tensor: str, variables: Sequence[Var]) -> Access:
    index = tuple(sym(v.name) - v.low for v in variables)
    return Access(tensor, index, tuple(v.extent for v in variables))


def _read(tensor: str, variables: Sequence[Var]) -> Load:
    return Load(_place(tensor, variables), "f32")
