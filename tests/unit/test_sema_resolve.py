"""Meaning of names, ranges, shapes and types."""

from __future__ import annotations

from importlib.resources import files

import pytest

from convdsl.diagnostics import CdslError
from convdsl.ir.expr import Binary, Cast, Const, Expr, Load, Param, Reduce, Scalar, Select, walk
from convdsl.sema.model import ResolvedOp
from convdsl.sema.resolve import resolve
from convdsl.syntax.parser import parse


@pytest.fixture
def conv_transpose1d() -> str:
    """The text of the shipped op."""
    return files("convdsl.ops").joinpath("conv_transpose1d.cdsl").read_text("utf-8")


def op_of(text: str) -> ResolvedOp:
    return resolve(parse(text))


def value_of(text: str, equation: int = -1) -> Expr:
    return op_of(text).system.equations[equation].pieces[0].value


def body(expression: str, result: str = "f32") -> Expr:
    """The value of an expression over x: f32, h: f16, i: i32, w, K, stride and slope."""
    return value_of(
        "op f(x: f32[N], h: f16[N], i: i32[N], w: f32[K], stride: int, slope: float)"
        f" -> y: {result}[N] {{ y[n] = {expression} }}"
    )


def code(text: str) -> str:
    with pytest.raises(CdslError) as caught:
        op_of(text)
    return caught.value.code


# -- the worked example --------------------------------------------------------------------------


def test_conv_transpose1d(conv_transpose1d: str) -> None:
    op = op_of(conv_transpose1d)
    assert op.input_sizes == ("N", "C", "L", "M", "K")
    assert [name for name, _ in op.defined] == ["LO"]
    assert len(op.checks) == 5
    assert op.int_parameters[0].name == "stride"
    (piece,) = op.system.equations[0].pieces
    ranges = {v.name: f"{v.low}..{v.high}" for v in piece.vars}
    assert ranges == {"n": "0..N", "g": "0..groups", "m": "0..M", "o": "0..LO"}
    (reduce,) = [e for e in walk(piece.value) if isinstance(e, Reduce)]
    assert {v.name: str(v.high) for v in reduce.vars} == {"c": "C", "k": "K", "l": "L"}
    assert str(reduce.constraints[0]) == "dilation*k + l*stride - o - pad_begin == 0"
    (x, w) = [e for e in walk(reduce.body) if isinstance(e, Load)]
    assert [str(d) for d in x.access.dims] == ["N", "groups", "C", "L"]
    assert [str(d) for d in w.access.dims] == ["groups", "C", "M", "K"]
    assert op.system.tensor("b").default == 0


# -- ranges --------------------------------------------------------------------------------------


def test_a_bare_index_covers_a_product() -> None:
    op = op_of("op f(x: f32[N, 2*C]) -> y: f32[N, 2*C] { y[n, c] = x[n, c] }")
    piece = op.system.equations[0].pieces[0]
    assert [str(v.high) for v in piece.vars] == ["N", "C*2"]
    assert [str(d) for d in piece.access.dims] == ["N", "C*2"]


def test_a_let_has_the_shape_of_its_indices() -> None:
    op = op_of(
        "op f(x: f32[N, g*C], g: int) -> y: f32[N, g*C]"
        " { let h: f16[(a, c), n] = x[n, (a, c)] y[n, (a, c)] = h[(a, c), n] }"
    )
    let = op.system.tensor("h")
    assert [[str(f) for f in axis] for axis in let.axes] == [["g", "C"], ["N"]]
    assert (let.dtype, let.role) == ("f16", "let")


def test_a_let_takes_a_range_from_its_readers() -> None:
    op = op_of(
        "op f(x: f32[T], w: f32[K], hop: int) -> y: f32[LO] where LO == (T - 1)*hop + K {"
        " let a[o] = sum[k, t in 0..T | t*hop + k == o] w[k]"
        " let b[p] = 2 * a[p]"
        " y[q] = b[q] }"
    )
    assert [str(t.shape[0]) for t in op.system.tensors[-3:]] == ["LO", "LO", "LO"]


@pytest.mark.parametrize(
    "where",
    ["A == B", "B == A", "A - B == 0", "A == 2*D, B == 2*D", "A == D == B", "A*D == B*D, A == B"],
)
def test_ranges_agree_under_where(where: str) -> None:
    text = f"op f(x: f32[A], z: f32[B], w: f32[D]) -> y: f32[] where {where}"
    op_of(text + " { y[] = sum[k] x[k] * z[k] }")


def test_products_agree_under_where() -> None:
    op_of(
        "op f(x: f32[A*B], z: f32[C*D]) -> y: f32[] where A*B == C*D { y[] = sum[k] x[k] * z[k] }"
    )


def test_ranges_agree_through_definitions() -> None:
    op_of(
        "op f(x: f32[A]) -> y: f32[P] where P == Q + 1, Q == A - 1 { y[k] = x[k] }",
    )


def test_an_inequality_is_no_equality() -> None:
    text = "op f(x: f32[A], z: f32[B]) -> y: f32[] where A <= B { y[] = sum[k] x[k] * z[k] }"
    assert code(text) == "E0208"


def test_a_written_range_narrows() -> None:
    op = op_of("op f(x: f32[L], w: f32[K], n: int) -> y: f32[] { y[] = sum[k in 1..n] x[k]*w[k] }")
    assert [(n.tensor, str(n.low), str(n.high)) for n in op.narrowings] == [
        ("x", "1", "n"),
        ("w", "1", "n"),
    ]


def test_a_range_that_is_inside_for_all_sizes_needs_no_check() -> None:
    assert not op_of("op f(x: f32[L]) -> y: f32[] { y[] = sum[k in 1..L - 1] x[k] }").narrowings
    text = "op f(x: f32[L], n: int) -> y: f32[] where L == n { y[] = sum[k in 0..n] x[k] }"
    assert not op_of(text).narrowings


def test_indices_are_unique_in_an_equation() -> None:
    value = value_of(
        "op f(x: f32[K], z: f32[K], k_1: int) -> y: f32[] { y[] = (sum[k] x[k]) * (sum[k] z[k]) }"
    )
    first, second = (e for e in walk(value) if isinstance(e, Reduce))
    assert (first.vars[0].name, second.vars[0].name) == ("k", "k_2")
    assert [str(i) for e in walk(second) if isinstance(e, Load) for i in e.access.index] == ["k_2"]


def test_a_diagonal_is_read() -> None:
    op_of("op f(x: f32[N, N]) -> d: f32[N] { d[i] = x[i, i] }")


def test_rank_zero() -> None:
    op = op_of("op f(s: f32[], x: f32[N]) -> t: f32[] { t[] = s[] * (sum[n] x[n]) }")
    assert op.system.output.shape == ()


def test_relations_without_bound_indices_and_with_sizes() -> None:
    op_of("op f(x: f32[N], p: int) -> y: f32[N] { y[n] = sum[k | n == p, N*k == p*n + N//2] x[k] }")


# -- types ---------------------------------------------------------------------------------------


def test_literals_adapt() -> None:
    assert body("2 * x[n]") == Binary("*", Const(2.0, "f32"), body("x[n]"))
    assert body("2 * i[n]", "i32") == Binary("*", Const(2, "i32"), body("i[n]", "i32"))


def test_an_integer_alone_takes_the_type_of_the_result() -> None:
    assert body("3") == Const(3.0, "f32")
    assert body("3", "i32") == Const(3, "i32")


def test_sizes_and_parameters_are_values() -> None:
    value = body("x[n] / (K*stride - 1)")
    assert isinstance(value, Binary)
    assert isinstance(value.right, Scalar)
    assert (str(value.right.index), value.right.dtype) == ("K*stride - 1", "f32")
    assert body("slope * x[n]") == Binary("*", Param("slope"), body("x[n]"))


def test_division_of_integers_that_adapt_is_a_division_of_floats() -> None:
    assert body("1 / 2") == Binary("/", Const(1.0, "f32"), Const(2.0, "f32"))


def test_select_and_reductions_adapt() -> None:
    value = body("select(i[n] > 0, 1, 0) * x[n]")
    assert isinstance(value, Binary)
    assert isinstance(value.left, Select)
    assert (value.left.left.dtype, value.left.dtype) == ("i32", "f32")
    count = body("sum[k in 0..3] 1")
    assert isinstance(count, Reduce)
    assert count.body == Const(1.0, "f32")
    assert body("sum[k in 0..3] 1", "i32").dtype == "i32"


def test_f16_reads_as_f32() -> None:
    assert body("h[n] * x[n]").dtype == "f32"
    assert body("h[n] * x[n]", "f16").dtype == "f32"


def test_casts() -> None:
    assert body("f32(i[n]) + x[n]").dtype == "f32"
    assert body("i32(x[n])", "i32") == Cast("i32", body("x[n]"))
    assert body("f16(x[n])") == Cast("f16", body("x[n]"))
    assert body("f32(x[n])") == body("x[n]")
    assert body("f32(K) * x[n]") == body("K * x[n]")


def test_functions_of_integers() -> None:
    for text in ("abs(i[n])", "relu(i[n])", "max(i[n], 3)", "min(i[n], i[n], K)"):
        assert body(text, "i32").dtype == "i32"
    assert body("sqrt(K)").dtype == "f32"


def test_negation_keeps_the_sign_of_zero() -> None:
    assert body("-x[n]") == Binary("*", Const(-1.0, "f32"), body("x[n]"))
    assert body("-0.5") == Const(-0.5, "f32")
    assert body("-2") == Const(-2.0, "f32")


@pytest.mark.parametrize(
    ("expression", "result", "expected"),
    [
        ("x[n] + i[n]", "f32", "E0213"),
        ("i[n] / i[n]", "i32", "E0213"),
        ("2.5 * i[n]", "f32", "E0213"),
        ("x[n]", "i32", "E0213"),
        ("i[n]", "f16", "E0213"),
        ("select(x[n] > i[n], 1, 0)", "f32", "E0213"),
        ("max[k] w[k] else i[n]", "f32", "E0213"),
        ("pow(x[n], i[n])", "f32", "E0213"),
        ("max[k] w[k] else w[k]", "f32", "E0201"),
        ("f32(x[n], 1)", "f32", "E0214"),
        ("x[n] * M", "f32", "E0201"),
    ],
)
def test_refused(expression: str, result: str, expected: str) -> None:
    with pytest.raises(CdslError) as caught:
        body(expression, result)
    assert caught.value.code == expected


# -- which op ------------------------------------------------------------------------------------


def test_an_op_is_chosen_by_name() -> None:
    text = "op f(x: f32[N]) -> y: f32[N] { y[n] = x[n] }"
    program = parse(text + text.replace("op f", "op g"))
    assert resolve(program, "g").name == "g"
    for wrong in (None, "h"):
        with pytest.raises(CdslError, match="E0217"):
            resolve(program, wrong)


def test_what_the_parser_does_not_make_is_refused_too() -> None:
    """Trees built by hand meet the same rules."""
    from dataclasses import replace

    from convdsl.syntax import ast

    program = parse("op f(x: f32[N]) -> y: f32[N] { y[n] = sum[k in 0..3] x[n] }")
    op = program.ops[0]
    reduce = op.result.value
    assert isinstance(reduce, ast.Reduce)
    for value, expected in (
        (replace(reduce, otherwise=ast.Number("1", reduce.span)), "E0218"),
        (ast.Binary("//", reduce.body, reduce.body, reduce.span), "E0216"),
    ):
        bad = replace(op, result=replace(op.result, value=value))
        with pytest.raises(CdslError, match=expected):
            resolve(replace(program, items=(bad,)))
