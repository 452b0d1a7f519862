"""Index algebra against plain evaluation of the expression it was built from."""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from convdsl.ir.index import (
    Index,
    as_index,
    ceildiv,
    const,
    floordiv,
    maximum,
    minimum,
    modulo,
    product,
    sym,
    total,
)
from convdsl.ir.interval import Interval, interval

NAMES = ("a", "b", "N")


@dataclass(frozen=True)
class Tree:
    """An expression that does not know any algebra."""

    op: str
    args: tuple[Any, ...]

    def index(self) -> Index:
        if self.op in ("const", "sym"):
            return const(self.args[0]) if self.op == "const" else sym(self.args[0])
        return INDEX[self.op](*(a.index() for a in self.args))

    def value(self, env: dict[str, int]) -> int:
        if self.op in ("const", "sym"):
            return int(self.args[0]) if self.op == "const" else env[self.args[0]]
        return int(VALUE[self.op](*(a.value(env) for a in self.args)))


INDEX: dict[str, Callable[..., Index]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "neg": operator.neg,
    "//": floordiv, "%": modulo, "ceildiv": ceildiv, "min": minimum, "max": maximum,
}  # fmt: skip
VALUE: dict[str, Callable[..., int]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "neg": operator.neg,
    "//": operator.floordiv, "%": operator.mod, "ceildiv": lambda a, b: -(-a // b),
    "min": lambda *a: min(a), "max": lambda *a: max(a),
}  # fmt: skip

leaves = st.one_of(
    st.integers(-9, 9).map(lambda n: Tree("const", (n,))),
    st.sampled_from(NAMES).map(lambda n: Tree("sym", (n,))),
)
# N is the only name that is always positive, so products of it and constants are the divisors.
divisors = st.one_of(
    st.integers(1, 12).map(lambda n: Tree("const", (n,))),
    st.just(Tree("sym", ("N",))),
    st.integers(1, 3).map(lambda n: Tree("*", (Tree("sym", ("N",)), Tree("const", (n,))))),
    st.integers(1, 3).map(lambda n: Tree("+", (Tree("sym", ("N",)), Tree("const", (n,))))),
)


def extend(inner: st.SearchStrategy[Tree]) -> st.SearchStrategy[Tree]:
    return st.one_of(
        st.builds(lambda op, a, b: Tree(op, (a, b)), st.sampled_from("+-*"), inner, inner),
        st.builds(lambda a: Tree("neg", (a,)), inner),
        st.builds(
            lambda op, a, b: Tree(op, (a, b)),
            st.sampled_from(["//", "%", "ceildiv"]),
            inner,
            divisors,
        ),
        st.builds(
            lambda op, args: Tree(op, tuple(args)),
            st.sampled_from(["min", "max"]),
            st.lists(inner, min_size=1, max_size=3),
        ),
    )


trees = st.recursive(leaves, extend, max_leaves=10)
environments = st.fixed_dictionaries(
    {"a": st.integers(-7, 7), "b": st.integers(-7, 7), "N": st.integers(1, 6)}
)


@given(trees, environments)
def test_an_index_has_the_value_of_its_expression(tree: Tree, env: dict[str, int]) -> None:
    index = tree.index()
    assert index.evaluate(env) == tree.value(env)
    assert index.free <= set(NAMES)


@given(trees, environments)
def test_numbers_for_all_names_leave_a_number(tree: Tree, env: dict[str, int]) -> None:
    assert tree.index().substitute(env).as_int() == tree.value(env)


@given(trees, trees, environments)
def test_substitution_of_an_index(tree: Tree, other: Tree, env: dict[str, int]) -> None:
    replaced = tree.index().substitute({"a": other.index()})
    assert replaced.evaluate(env) == tree.value({**env, "a": other.value(env)})


@given(trees, environments)
def test_substitution_is_simultaneous(tree: Tree, env: dict[str, int]) -> None:
    swapped = tree.index().substitute({"a": sym("b"), "b": sym("a")})
    assert swapped.evaluate(env) == tree.value({**env, "a": env["b"], "b": env["a"]})


@given(trees)
def test_arrays_broadcast(tree: Tree) -> None:
    a, b = np.arange(-3, 4)[:, None], np.arange(-2, 3)[None, :]
    got = np.broadcast_to(tree.index().evaluate({"a": a, "b": b, "N": 2}), (7, 5))
    for i, row in enumerate(got):
        for j, value in enumerate(row):
            assert value == tree.value({"a": int(a[i, 0]), "b": int(b[0, j]), "N": 2})


@given(trees, trees)
def test_the_normal_form_does_not_depend_on_the_order(one: Tree, two: Tree) -> None:
    a, b = one.index(), two.index()
    assert a + b == b + a
    assert a * b == b * a
    assert (a + b) - b == a
    assert hash(a + b) == hash(b + a)
    assert (a - a).as_int() == 0
    assert total([a, b, a]) == 2 * a + b
    assert product([a, b]) == a * b


@given(trees, environments)
def test_the_affine_parts_put_the_index_together(tree: Tree, env: dict[str, int]) -> None:
    index = tree.index()
    if index.is_affine_in(["a"]):
        assert index.coefficient("a") * sym("a") + index.without("a") == index
        assert "a" not in index.coefficient("a").free


@given(trees, environments)
def test_intervals_hold_the_value(tree: Tree, env: dict[str, int]) -> None:
    ranges: dict[str, Interval] = {"a": (-7, 7), "b": (-7, 7), "N": (1, 6)}
    low, high = interval(tree.index(), ranges)
    value = tree.value(env)
    assert low is None or low <= value
    assert high is None or value <= high


def test_multiples_leave_a_division() -> None:
    x, n = sym("x"), sym("N")
    assert floordiv(x * 4 + 7, const(4)) == x + 1
    assert modulo(x * 4 + 7, const(4)) == 3
    assert floordiv(x * n * 2, n * 2) == x
    assert ceildiv(x * 4 + 1, 4) == x + 1
    assert minimum(x + 1, x, x + 5) == x
    assert maximum(x + 1, n, x) == maximum(n, x + 1)
    assert as_index(3) == 3
