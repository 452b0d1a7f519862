"""Tables of integer points: all values of some variables at which conditions hold, in chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from convdsl.ir.expr import Pred, Var
from convdsl.ir.index import Index

Column = np.ndarray[Any, np.dtype[np.int64]]


@dataclass(frozen=True, slots=True)
class Table:
    """Points as rows. `parents` says from which row of the table before each row was made."""

    columns: Mapping[str, Column]
    parents: Column

    @staticmethod
    def unit() -> Table:
        """The table of one row and no columns."""
        return Table({}, np.zeros(1, np.int64))

    @property
    def rows(self) -> int:
        return len(self.parents)

    def numbered(self) -> Table:
        """The same points, each its own parent."""
        return Table(self.columns, np.arange(self.rows))

    def slice(self, start: int, stop: int) -> Table:
        """A run of rows."""
        if start == 0 and stop >= self.rows:
            return self
        return Table({n: c[start:stop] for n, c in self.columns.items()}, self.parents[start:stop])

    def where(self, mask: Any) -> Table:
        """The rows at which a mask holds, or that an index array names."""
        return Table({n: c[mask] for n, c in self.columns.items()}, self.parents[mask])

    def evaluate(self, index: Index, env: Mapping[str, int]) -> Column:
        """The value of an index at each row."""
        names = {n: self.columns[n] if n in self.columns else env[n] for n in index.free}
        return np.broadcast_to(np.asarray(index.evaluate(names), np.int64), (self.rows,))

    def holds(self, conditions: tuple[Pred, ...], env: Mapping[str, int]) -> Any:
        """The rows at which all conditions hold, as a mask."""
        mask = np.ones(self.rows, bool)
        for pred in conditions:
            value = self.evaluate(pred.index, env)
            match pred.kind:
                case "ge":
                    mask &= value >= 0
                case "eq":
                    mask &= value == 0
                case "ne":
                    mask &= value != 0
        return mask

    def filtered(self, conditions: tuple[Pred, ...], env: Mapping[str, int]) -> Table:
        """The rows at which all conditions hold."""
        if not conditions:
            return self
        mask = self.holds(conditions, env)
        return self if bool(mask.all()) else self.where(mask)

    def with_column(self, name: str, column: Column) -> Table:
        return Table({**self.columns, name: column}, self.parents)


def expand(
    table: Table,
    variables: tuple[Var, ...],
    conditions: tuple[Pred, ...],
    env: Mapping[str, int],
    limit: int,
) -> Iterator[Table]:
    """The table extended by the variables' points that satisfy the conditions.

    Chunks have at most `limit` rows, none is empty, and `parents` never decreases.
    """
    known = env.keys() | table.columns.keys()
    ready = tuple(p for p in conditions if p.index.free <= known)
    table = table.filtered(ready, env)
    if table.rows == 0:
        return
    if not variables:
        yield table
        return
    conditions = tuple(p for p in conditions if p not in ready)
    var, pred = _next(table, variables, conditions, env)
    rest = tuple(v for v in variables if v is not var)
    if pred is not None:
        chunks = iter([_determined(table, var, pred, env)])
        conditions = tuple(p for p in conditions if p is not pred)
    else:
        chunks = _run_through(table, var, env, limit)
    for chunk in chunks:
        yield from expand(chunk, rest, conditions, env, limit)


def _next(
    table: Table, variables: tuple[Var, ...], conditions: tuple[Pred, ...], env: Mapping[str, int]
) -> tuple[Var, Pred | None]:
    """A variable that an equation determines, else the one with the smallest range."""
    known = env.keys() | table.columns.keys()
    open_names = {v.name for v in variables}
    ready = [v for v in variables if not (v.low.free | v.high.free) & open_names]
    for var in ready:
        for pred in conditions:
            if pred.kind != "eq" or var.name not in pred.index.free:
                continue
            if not pred.index.free <= known | {var.name} or not pred.index.is_affine_in([var.name]):
                continue
            factor = pred.index.coefficient(var.name)
            if factor.free <= env.keys() and factor.evaluate(env) != 0:
                return var, pred

    def extent(var: Var) -> int:
        return int((table.evaluate(var.high, env) - table.evaluate(var.low, env)).max())

    return min(ready, key=extent), None


def _determined(table: Table, var: Var, pred: Pred, env: Mapping[str, int]) -> Table:
    """The table with the one value of a variable that makes factor*variable + rest zero."""
    factor = int(pred.index.coefficient(var.name).evaluate(env))
    rest = table.evaluate(pred.index.without(var.name), env)
    low, high = table.evaluate(var.low, env), table.evaluate(var.high, env)
    value = -rest // factor
    mask = (rest % abs(factor) == 0) & (value >= low) & (value < high)
    return table.where(mask).with_column(var.name, value[mask])


def _run_through(table: Table, var: Var, env: Mapping[str, int], limit: int) -> Iterator[Table]:
    """The table with each value of a variable at each row, in chunks of whole or partial rows."""
    low = table.evaluate(var.low, env)
    counts = np.maximum(table.evaluate(var.high, env) - low, 0)
    ends = np.cumsum(counts)
    total = int(ends[-1]) if len(ends) else 0
    for start in range(0, total, limit):
        position = np.arange(start, min(start + limit, total))
        row = np.searchsorted(ends, position, side="right")
        value = low[row] + position - (ends - counts)[row]
        yield table.where(row).with_column(var.name, value)
