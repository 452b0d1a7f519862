"""Recognise a matrix product by the roles of its variables, never by an operator's name.

In a sum of A*B a variable in A, B and the result is *batch*; in A and the result *m*; in B and the
result *n*; only reduced *k*. The operand with the result's fastest variable becomes B, so that n is the
direction of consecutive stores.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from convdsl.ir.equation import Piece
from convdsl.ir.expr import Binary, Expr, Pred, Reduce, Var, free_names, loads
from convdsl.ir.index import Index, product
from convdsl.passes.phases import the_reduction


@dataclass(frozen=True, slots=True)
class Operand:
    """One factor, a function of one or more reads, with the conditions under which it is read.

    Where a condition fails the operand counts as zero.
    """

    value: Expr
    conditions: tuple[Pred, ...]


@dataclass(frozen=True, slots=True)
class Contraction:
    """`piece.value` with its one reduction seen as C[batch, m, n] = sum over k of A[m, k] * B[k, n]."""

    piece: Piece
    reduction: Reduce
    a: Operand
    b: Operand
    batch: tuple[Var, ...]
    m: tuple[Var, ...]
    n: tuple[Var, ...]
    k: tuple[Var, ...]

    @property
    def extents(self) -> tuple[Index, Index, Index, Index]:
        """The sizes of batch, m, n and k."""
        groups = (self.batch, self.m, self.n, self.k)
        sizes = [product(v.extent for v in group) for group in groups]
        return sizes[0], sizes[1], sizes[2], sizes[3]


def contraction_of(piece: Piece, related: bool = False) -> Contraction | None:
    """The piece as a matrix product, or None where it is not one.

    `related`: equations between its variables are left to the caller, who only wants the roles.
    """
    reduction = the_reduction(piece.value)
    if reduction is None or reduction.op != "sum":
        return None
    reduced = {v.name for v in reduction.vars}
    free = {v.name for v in piece.vars}
    if any((v.low.free | v.high.free) & (reduced | free) for v in (*reduction.vars, *piece.vars)):
        return None
    pair = two_factors(reduction.body, reduced | free)
    if pair is None:
        return None
    first, second = pair
    in_first, in_second = (free_names(f) & (reduced | free) for f in pair)
    if not related and not (in_first & in_second & reduced):
        return None
    fastest = _fastest(piece)
    if fastest in in_first and fastest not in in_second:
        first, second, in_first, in_second = second, first, in_second, in_first
    conditions: tuple[list[Pred], list[Pred]] = ([], [])
    for pred in reduction.constraints:
        if related and pred.kind == "eq":
            continue
        names = pred.index.free & (reduced | free)
        if names <= in_first:
            conditions[0].append(pred)
        elif names <= in_second:
            conditions[1].append(pred)
        else:
            return None
    both = in_first & in_second
    return Contraction(
        piece,
        reduction,
        Operand(first, tuple(conditions[0])),
        Operand(second, tuple(conditions[1])),
        batch=slowest_first(piece, (v for v in piece.vars if v.name in both)),
        m=slowest_first(piece, (v for v in piece.vars if v.name in in_first - both)),
        n=slowest_first(piece, (v for v in piece.vars if v.name not in in_first)),
        k=reduction.vars,
    )


def two_factors(body: Expr, names: set[str] | frozenset[str]) -> tuple[Expr, Expr] | None:
    """The body as a product of two factors.

    Of more than two, those whose variables another one has too are multiplied into that one.
    """
    groups = [(free_names(f) & names, f) for f in flat_factors(body)]
    while len(groups) > 2:
        pairs = [
            (small, large)
            for small in range(len(groups))
            for large in range(len(groups))
            if small != large and groups[small][0] <= groups[large][0]
        ]
        if not pairs:
            return None
        small, large = min(pairs, key=lambda p: len(groups[p[0]][0]))
        _, factor = groups[small]
        groups[large] = (groups[large][0], Binary("*", groups[large][1], factor))
        del groups[small]
    if len(groups) != 2 or not all(loads(value) for _, value in groups):
        return None
    return groups[0][1], groups[1][1]


def flat_factors(body: Expr) -> list[Expr]:
    """The factors of a product of any shape."""
    if isinstance(body, Binary) and body.op == "*":
        return flat_factors(body.left) + flat_factors(body.right)
    return [body]


def _stride_rank(piece: Piece, name: str) -> tuple[int, int]:
    """Where a variable stands in the result: a later dim, and a smaller coefficient, is faster."""
    for at in reversed(range(len(piece.access.index))):
        index = piece.access.index[at]
        if name in index.free:
            return at, -abs(index.coefficient(name).as_int() or 1)
    return -1, 0


def _fastest(piece: Piece) -> str | None:
    moving = [v.name for v in piece.vars if v.extent.as_int() != 1]
    return max(moving, key=lambda n: _stride_rank(piece, n), default=None)


def slowest_first(piece: Piece, variables: Iterable[Var]) -> tuple[Var, ...]:
    """Slowest first, by the layout of the result."""
    return tuple(sorted(variables, key=lambda v: _stride_rank(piece, v.name)))
