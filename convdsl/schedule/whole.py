"""Tiles as a whole: one test instead of one for each element."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from convdsl.ir.expr import Expr, Pred, map_index
from convdsl.ir.extremes import Extremes
from convdsl.ir.index import Index, const, minimum
from convdsl.ir.interval import Interval, always, never
from convdsl.schedule.copies import Copy


def whole_tile(
    copy: Copy, value: Expr, conditions: Iterable[Pred], ranges: Mapping[str, Interval]
) -> tuple[Index, Expr] | None:
    """An index that is zero or more where all conditions hold in the whole tile, and what `value` is
    there; None where no such index is found, or none that ever is.

    The value is a shorter one: a tile that runs past the end of a fused loop is not tested as a
    whole, so that its place in the outer loop is fixed.
    """
    moving = (*copy.rows, *copy.columns)
    search = Extremes({x.name: (0, (x.extent.as_int() or 1) - 1) for x in moving}, ranges)
    tests: list[Pred] = []
    for pred in conditions:
        found = search.for_all(pred)
        if found is None:
            return None
        tests += found
    tests = [p for p in (*tests, *search.when) if not always(p, ranges)]
    if any(never(p, ranges) for p in tests):
        return None
    test = minimum(*(p.index for p in tests)) if tests else const(0)
    return test, map_index(value, search.straight)
