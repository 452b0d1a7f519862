"""layout: an operand with zeros around it, and with rows that follow each other without a gap.

    y[n, t] = sum[j, c | 0 <= t - j < L] x[n, c, t - j] * w[c, j]      t in 0..T, j in 0..J
 -> xs[c, u] = x[n, c, s] where u - (J-1) = n*T + s and 0 <= s < L, else 0
    y[n, t] = sum[j, c] xs[c, n*T + t - j + (J-1)] * w[c, j]

An axis stands for the sum of indices that the operand is read along (t - j). Rows may share the zeros
between them: where t - j < 0 there is the end of the row before, which must have none of its elements.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from convdsl.ir.equation import Equation, Piece, Tensor
from convdsl.ir.expr import (
    Access,
    Const,
    Expr,
    Guard,
    Load,
    Pred,
    Reduce,
    Var,
    ge,
    indices_in,
    loads,
    map_index,
)
from convdsl.ir.index import Index, const, floordiv, modulo, sym, total
from convdsl.ir.interval import always, interval, ranges_of
from convdsl.passes.guards import read_guards, reads_inside
from convdsl.passes.phases import replace_reduction
from convdsl.passes.reindex import keeps, with_operand
from convdsl.passes.relation import depends_through, linear


@dataclass(frozen=True, slots=True)
class Axis:
    """The axis of an index; `over` another one: row after row. `length`: at least so many elements."""

    index: str
    over: str | None = None
    length: int = 0

    def __str__(self) -> str:
        over = f" over {self.over}" if self.over is not None else ""
        return self.index + over + (f" to {self.length}" if self.length else "")


@dataclass(frozen=True, slots=True)
class Line:
    """What an axis holds: the values of `terms` from `low` on, `count` of them, row after row.

    Rows are `row` apart, and have elements from `first` on; `unit` is an index with a factor of 1 or -1.
    """

    axis: Axis
    terms: Mapping[str, int]
    unit: str
    low: int
    count: int
    row: int = 0
    first: int = 0

    @property
    def extent(self) -> int:
        return max(self.count, self.axis.length)

    @property
    def place(self) -> Index:
        """The element that is read, by the equation's indices."""
        rows = sym(self.axis.over) * self.row if self.axis.over is not None else const(0)
        return rows + total(sym(n) * c for n, c in self.terms.items()) - self.low

    def values(self, at: Index) -> dict[str, Index]:
        """Values of the indices with which the operand is what the axis holds at `at`."""
        out = dict.fromkeys(self.terms, const(0))
        if self.axis.over is None:
            return out | {self.unit: (at + self.low) * self.terms[self.unit]}
        # One row further on, so that nothing negative is divided.
        moved = at + (self.low - self.first + self.row)
        inside = modulo(moved, const(self.row)) + self.first
        row = floordiv(moved, const(self.row)) - 1
        return out | {self.unit: inside * self.terms[self.unit], self.axis.over: row}

    def carries(self, index: Index) -> bool:
        """Whether an index depends on the terms through their sum alone."""
        return depends_through(index, self.terms, self.unit)


def line_of(piece: Piece, reduction: Reduce, factor: Expr, axis: Axis) -> Line | str:
    """What an axis of the copy holds; or why there is no such axis."""
    every = {v.name: v for v in (*piece.vars, *reduction.vars)}
    reads = [i for load in loads(factor) for i in load.access.index if axis.index in i.free]
    form = linear(reads[0], list(every)) if reads else None
    if form is None:
        return f"nothing is read along a sum with `{axis.index}`"
    terms = dict(form.coefficients)
    units = [n for n, c in terms.items() if abs(c) == 1]
    if not units:
        return f"no index of the sum with `{axis.index}` has the factor 1 or -1"
    unknown = [n for n in terms if None in (every[n].low.as_int(), every[n].high.as_int())]
    ranges = ranges_of(every[n] for n in terms)
    low, high = interval(total(sym(n) * c for n, c in terms.items()), ranges)
    if unknown or low is None or high is None:
        return f"the range of `{unknown[0] if unknown else axis.index}` is not known"
    line = Line(axis, terms, units[0], low, high - low + 1)
    if not all(line.carries(i) for i in indices_in(factor)):
        return f"it is read along sums with `{axis.index}` that are not multiples of one another"
    if axis.over is None:
        return line
    outer, row = every.get(axis.over), every[axis.index].extent.as_int()
    rows = outer.extent.as_int() if outer is not None and outer.low == 0 else None
    if outer is None or rows is None or row is None or axis.over in terms:
        return f"`{axis.over}` has no range 0..N of its own with a number N"
    first, last = _elements(line, piece, reduction, factor)
    if first is None or last is None or low + row <= last or high - row >= first:
        return (
            f"rows {row} apart would meet: elements {first} to {last} of a row are not zero, and it is "
            f"read from {low} to {high}"
        )
    return replace(line, count=row * (rows - 1) + line.count, row=row, first=first)


def _elements(
    line: Line, piece: Piece, reduction: Reduce, factor: Expr
) -> tuple[int | None, int | None]:
    """The first and last value of the sum for which the operand is read."""
    least: list[int] = []
    most: list[int] = []
    for pred in (*reduction.constraints, *read_guards(piece, reduction), *reads_inside(factor)):
        form = linear(pred.index, list(line.terms))
        rest = form.rest.as_int() if form is not None else None
        if form is None or rest is None or pred.kind != "ge" or not line.carries(pred.index):
            continue
        factor_ = form.coefficients.get(line.unit, 0) * line.terms[line.unit]
        if factor_ > 0:
            least.append(-(rest // factor_))
        elif factor_ < 0:
            most.append(rest // -factor_)
    return max(least, default=None), min(most, default=None)


def laid_out(
    made: str, piece: Piece, reduction: Reduce, factor: Expr, lines: Sequence[Line]
) -> tuple[Tensor, Equation, Piece]:
    """The tensor of the copy, its equation, and the piece that reads it instead of the operand."""
    every = {v.name: v for v in (*piece.vars, *reduction.vars)}
    axes: list[Var] = []
    values: dict[str, Index] = {}
    for line in lines:
        axes.append(Var(line.axis.index, const(0), const(line.extent)))
        values |= line.values(sym(line.axis.index))

    def put(index: Index) -> Index:
        return index.substitute(values)

    def said(pred: Pred) -> bool:
        """Whether a condition is one of the elements of the copy."""
        own = pred.index.free & set(every)
        return own <= set(values) and all(x.carries(pred.index) for x in lines)

    mine = [p for p in reduction.constraints if said(p)]
    guards = [g for g in read_guards(piece, reduction) if said(g)]
    source = map_index(factor, put)
    wanted = [Pred(p.kind, put(p.index)) for p in (*mine, *guards)] + reads_inside(source)
    for line in lines:
        if line.axis.over is not None:
            row = values[line.axis.over]
            wanted += [ge(row), ge(every[line.axis.over].high - 1 - row)]
        elif line.count < line.extent:
            wanted.append(ge(line.count - 1 - sym(line.axis.index)))
    known = ranges_of(axes)
    tests = tuple(p for p in dict.fromkeys(wanted) if not always(p, known))
    value = Guard(tests, source, Const(0, source.dtype)) if tests else source
    dims = tuple(v.high for v in axes)
    target = Access(made, tuple(sym(v.name) for v in axes), dims)
    tensor = Tensor(made, source.dtype, tuple((d,) for d in dims), "let")
    equation = Equation(made, (Piece(tuple(axes), (), target, value, origin="layout"),))
    read = Load(Access(made, tuple(line.place for line in lines), dims), source.dtype)
    gone = [p for p in mine if not keeps(p, mine, piece, reduction, factor)]
    rest = replace(
        reduction,
        constraints=tuple(p for p in reduction.constraints if p not in gone),
        body=with_operand(reduction.body, factor, read),
    )
    return tensor, equation, replace(piece, value=replace_reduction(piece.value, lambda _: rest))
