"""Splits and fusions that cancel: the index stays the same number, and the view has the same offset."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from convdsl.ir.expr import Access
from convdsl.ir.index import Index, const, floordiv, modulo, sym
from convdsl.schedule.rejoin import merged, rejoin, settled

NAMES = ("g", "t", "v")
extents = st.sampled_from(
    [2, 3, 4, 5, 8, 10, 11, 16, 55, 64, 110]
)  # dims of one are dropped before
factors = st.just(1) | extents
numbers = st.integers(0, 400)
points = st.fixed_dictionaries(dict.fromkeys(NAMES, numbers))


@st.composite
def flats(draw: st.DrawFn) -> Index:
    """An index as splits make it."""
    out = const(draw(st.integers(0, 7)))
    for name in NAMES:
        out = out + sym(name) * draw(factors)
    return out


def digits(index: Index, dims: list[int]) -> tuple[Index, ...]:
    """The index as a fused loop gives the variables that it was made of."""
    out: list[Index] = []
    for extent in reversed(dims[1:]):
        out.insert(0, modulo(index, const(extent)))
        index = floordiv(index, const(extent))
    return (index, *out)


@given(flats(), st.lists(extents, min_size=1, max_size=4), points)
def test_a_fused_index_comes_back(flat: Index, dims: list[int], point: dict[str, int]) -> None:
    parts = digits(flat, dims)
    access = Access("x", parts, tuple(map(const, dims)))
    view = merged(access)
    assert view.offset() == flat
    assert view.offset().evaluate(point) == access.offset().evaluate(point)
    assert len(view.dims) == 1 or not any("%" in str(i) for i in view.index)


@given(flats(), flats(), factors, factors, points)
def test_rejoin_keeps_the_number(
    a: Index, b: Index, first: int, second: int, point: dict[str, int]
) -> None:
    """Also where quotient and remainder are of different numbers."""
    mixed = floordiv(a, const(first)) * (3 * second) + modulo(b, const(second)) * 3
    assert rejoin(mixed).evaluate(point) == mixed.evaluate(point)


@given(flats(), factors, factors, points)
def test_settled_keeps_the_number(
    flat: Index, first: int, second: int, point: dict[str, int]
) -> None:
    index = modulo(flat, const(first)) * 7 + floordiv(flat, const(second))
    ranges = dict.fromkeys(NAMES, (0, 400))
    assert settled(index, ranges).evaluate(point) == index.evaluate(point)


def test_settled_drops_what_is_known() -> None:
    t = sym("t")
    index = modulo(t, const(16)) + floordiv(t, const(16)) * 5 + modulo(t, const(8))
    assert settled(index, {"t": (0, 15)}) == t + modulo(t, const(8))
