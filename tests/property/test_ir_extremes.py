"""Conditions for all values of some names, against trying all values."""

from __future__ import annotations

from itertools import product

from hypothesis import event, given
from hypothesis import strategies as st

from convdsl.ir.expr import Pred
from convdsl.ir.extremes import Extremes
from convdsl.ir.index import Index, const, floordiv, maximum, minimum, modulo, sym

INSIDE = {"i": (0, 5), "j": (0, 3)}
OUTSIDE = {"b": (0, 4), "t": (-2, 3)}
SIZE = 3  # of "N", which has no range: zero or more

number = st.integers(-9, 9).map(const)
leaf = number | st.sampled_from(["i", "j", "b", "t", "N"]).map(sym)


def _more(inner: st.SearchStrategy[Index]) -> st.SearchStrategy[Index]:
    divisor = st.integers(1, 9).map(const) | st.just(sym("b") + 1)
    return st.one_of(
        st.builds(lambda a, b: a + b, inner, inner),
        st.builds(lambda a, b: a * b, inner, st.one_of(number, st.just(sym("N")))),
        st.builds(floordiv, inner, divisor),
        st.builds(modulo, inner, divisor),
        st.builds(minimum, inner, inner),
        st.builds(maximum, inner, inner),
    )


indices = st.recursive(leaf, _more, max_leaves=6)


@given(indices, st.sampled_from(["ge", "eq", "ne"]), indices)
def test_the_conditions_suffice(index: Index, kind: str, other: Index) -> None:
    pred = Pred(kind, index)  # type: ignore[arg-type]  # one of the three
    search = Extremes(INSIDE, OUTSIDE)
    found = search.for_all(pred)
    straight = search.straight(index), search.straight(other)
    event("none" if found is None else f"{len(found) + len(search.when)} conditions")
    for b, t in product(range(5), range(-2, 4)):
        outer = {"b": b, "t": t, "N": SIZE}
        if not all(_holds(p, outer) for p in search.when):
            continue
        holds = found is not None and all(_holds(p, outer) for p in found)
        event("holds" if holds else "does not hold")
        for i, j in product(range(6), range(4)):
            env = {**outer, "i": i, "j": j}
            assert not holds or _holds(pred, env)
            assert straight[0].evaluate(env) == index.evaluate(env)
            assert straight[1].evaluate(env) == other.evaluate(env)


def _holds(pred: Pred, env: dict[str, int]) -> bool:
    value = pred.index.evaluate(env)
    return bool({"ge": value >= 0, "eq": value == 0, "ne": value != 0}[pred.kind])
