"""Hypothesis strategies for well-formed syntax trees."""

from __future__ import annotations

from typing import Any, cast, get_args

from hypothesis import strategies as st

from convdsl.diagnostics import Source, Span
from convdsl.syntax import ast

HERE = Span(Source(""), 0, 0)

_SOFT = ["op", "in", "where", "for", "schedule", "f32", "int", "relu", "select"]
_COMPARES = st.sampled_from(get_args(ast.Compare))
_DTYPES = st.sampled_from(get_args(ast.DType))

names = st.one_of(
    st.sampled_from(["x", "w", "b", "N", "L", "stride", "pad_begin", "k2", "summary", *_SOFT]),
    st.from_regex(r"[A-Za-z][A-Za-z0-9_]{0,24}", fullmatch=True).filter(
        lambda name: name not in ("sum", "prod", "max", "min", "let", "else")
    ),
)
refs = st.builds(ast.Ref, names, span=st.just(HERE))
integers = st.builds(
    ast.Number, st.integers(0, 2**63 - 1).map(str) | st.just("007"), span=st.just(HERE)
)
floats = st.builds(
    ast.Number,
    st.sampled_from(["0.5", "1e-3", "2E5", "1.25e+10", "1.0"])
    | st.floats(0, 1e300).map(lambda v: repr(v)),
    span=st.just(HERE),
)


def _rows(items: st.SearchStrategy[Any], least: int = 0, most: int = 3) -> st.SearchStrategy[Any]:
    return st.lists(items, min_size=least, max_size=most).map(tuple)


axes = st.builds(ast.Axis, _rows(refs, 1), span=st.just(HERE))
reads = st.builds(ast.Read, refs, _rows(axes), span=st.just(HERE))


def _binary(operators: str, inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Expr]:
    signs = st.sampled_from(operators.split())
    return st.builds(ast.Binary, cast(Any, signs), inner, inner, span=st.just(HERE))


def _negate(inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Expr]:
    return st.builds(ast.Negate, inner, span=st.just(HERE))


def _sizes_over(inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Expr]:
    calls = st.builds(
        ast.Call, st.sampled_from(["min", "max"]), _rows(inner, 1), span=st.just(HERE)
    )
    return _binary("+ - * // %", inner) | _negate(inner) | calls


sizes = st.recursive(refs | integers, _sizes_over, max_leaves=4)

binders = st.builds(ast.Binder, refs, span=st.just(HERE)) | st.builds(
    ast.Binder, refs, sizes, sizes, span=st.just(HERE)
)
relations = st.builds(ast.Relation, sizes, sizes, span=st.just(HERE))


def _values_over(inner: st.SearchStrategy[ast.Expr]) -> st.SearchStrategy[ast.Expr]:
    condition = st.builds(ast.Comparison, _COMPARES, inner, inner, span=st.just(HERE))
    selects = st.tuples(condition, inner, inner).map(lambda a: ast.Call("select", a, HERE))
    functions = names | st.sampled_from(["max", "min"])
    calls = st.builds(ast.Call, functions, _rows(inner), span=st.just(HERE))
    sums = st.builds(
        ast.Reduce,
        cast(Any, st.sampled_from(["sum", "prod"])),
        _rows(binders, 1),
        _rows(relations, 0, 2),
        inner,
        span=st.just(HERE),
    )
    extremes = st.builds(
        ast.Reduce,
        cast(Any, st.sampled_from(["max", "min"])),
        _rows(binders, 1),
        _rows(relations, 0, 2),
        inner,
        st.none() | inner,
        span=st.just(HERE),
    )
    return st.one_of(_binary("+ - * /", inner), _negate(inner), selects, calls, sums, extremes)


values = st.recursive(st.one_of(refs, integers, floats, reads), _values_over, max_leaves=8)

_integer_default = st.none() | integers | _negate(integers)
_default = _integer_default | floats | _negate(floats)


def _tensors(default: st.SearchStrategy[Any]) -> st.SearchStrategy[ast.TensorDecl]:
    return st.builds(ast.TensorDecl, refs, _DTYPES, _rows(sizes), default, span=st.just(HERE))


_scalars = st.builds(
    ast.ScalarDecl, refs, st.just("int"), cast(Any, _integer_default), span=st.just(HERE)
) | st.builds(ast.ScalarDecl, refs, st.just("float"), cast(Any, _default), span=st.just(HERE))


@st.composite
def _chains(draw: st.DrawFn) -> ast.Chain:
    ops = draw(st.lists(_COMPARES, min_size=1, max_size=3))
    operands = draw(st.lists(sizes, min_size=len(ops) + 1, max_size=len(ops) + 1))
    return ast.Chain(tuple(operands), tuple(ops), HERE)


_definitions = st.builds(ast.Definition, refs, _rows(axes), values, span=st.just(HERE))
_lets = st.builds(ast.Let, st.none() | _DTYPES, _definitions, span=st.just(HERE))

ops = st.builds(
    ast.Op,
    refs,
    _rows(_tensors(_default) | _scalars, 0, 6),
    _tensors(st.none()),
    _rows(_chains()),
    _rows(_lets),
    _definitions,
    span=st.just(HERE),
)

_words = st.one_of(
    names,
    st.integers(0, 999).map(str),
    st.sampled_from(["t.tile", "co.outer.x", "let", "else", "max", "sum"]),
    st.sampled_from(
        [
            "+",
            "-",
            "*",
            "/",
            "//",
            "%",
            "=",
            "==",
            "!=",
            "<",
            ">=",
            ",",
            ":",
            "->",
            "..",
            "|",
            "(",
            ")",
            "[",
            "]",
        ]
    ),
)
_steps = st.builds(ast.Step, _rows(_words, 1, 8), span=st.just(HERE))
schedules = st.builds(ast.Schedule, refs, refs, _rows(_steps), span=st.just(HERE))


@st.composite
def programs(draw: st.DrawFn) -> ast.Program:
    """At least one operator, no two of one name, and schedules between them."""
    some = draw(st.lists(ops, min_size=1, max_size=2, unique_by=lambda op: op.name.name))
    rest = draw(st.lists(schedules, max_size=2))
    items: list[ast.Op | ast.Schedule] = [*some, *rest]
    return ast.Program(tuple(draw(st.permutations(items))), Source(""))
