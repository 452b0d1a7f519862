"""The order of workgroups that `swizzle` makes: each place of the grid once, in groups of rows."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from convdsl.ir.index import const, sym
from convdsl.schedule.swizzle import places

extents = st.integers(1, 40)


@given(extents, extents, st.integers(1, 50), st.booleans(), st.booleans())
def test_a_bijection_in_groups(
    rows: int, columns: int, height: int, rows_known: bool, columns_known: bool
) -> None:
    row, column = places(
        sym("number"),
        const(rows) if rows_known else sym("R"),
        const(columns) if columns_known else sym("C"),
        height,
    )
    found = []
    for number in range(rows * columns):
        env = {"number": number, "R": rows, "C": columns}
        found.append((row.evaluate(env), column.evaluate(env)))
    groups = [range(first, min(first + height, rows)) for first in range(0, rows, height)]
    assert found == [(i, j) for group in groups for j in range(columns) for i in group]
