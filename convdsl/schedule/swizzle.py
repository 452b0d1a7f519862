"""The order of workgroups: one number for each, which two loops of the grid follow."""

from __future__ import annotations

from dataclasses import dataclass

from convdsl.ir.index import Index, const, floordiv, minimum, modulo


@dataclass(frozen=True, slots=True)
class Swizzle:
    """Groups of `height` rows are walked column by column; the last group may be less high."""

    rows: str
    columns: str
    height: int

    @property
    def loops(self) -> tuple[str, str]:
        return self.rows, self.columns


def places(number: Index, rows: Index, columns: Index, height: int) -> tuple[Index, Index]:
    """The row and the column of a workgroup: each place of `rows` by `columns` has one number.

    A group has as many numbers as places, also the last one, so no number is without a place.
    """
    count = rows.as_int()
    if count is not None and count <= height:  # a single group
        width = const(max(count, 1))
        return modulo(number, width), floordiv(number, width)
    group = _divisor(columns * minimum(height, rows))  # no larger than the number of workgroups
    first = floordiv(number, group) * height
    exact = count is not None and count % height == 0
    width = const(height) if exact else minimum(height, rows - first)
    inside = modulo(number, group)
    return first + modulo(inside, width), floordiv(inside, width)


def _divisor(index: Index) -> Index:
    """Without columns there are no workgroups, and nothing is divided."""
    return const(1) if index == 0 else index
