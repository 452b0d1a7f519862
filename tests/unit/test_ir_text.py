"""The text of the IRs: golden files, the forms of conditions and numbers, long lines."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from convdsl.ir.expr import Access, Binary, Const, Expr, Load, Pred, Var
from convdsl.ir.index import ZERO, Index, const, sym
from convdsl.ir.loop import Buffer, Kernel, Let, LoopProgram, Store, nest
from convdsl.ir.reader import read_program, read_system
from convdsl.ir.text import print_body, print_kernel, print_piece, print_program, print_system
from convdsl.ir.text_expr import expr_text, pred_text
from convdsl.ir.verify import verify, verify_system
from tests.unit.ir_programs import conv, matmul, values

GOLDEN = Path(__file__).parents[1] / "golden" / "ir"
Golden = Callable[[Path, str], None]

el, o, N, L = sym("l"), sym("o"), sym("N"), sym("L")


@pytest.mark.parametrize("program", [matmul(), values()], ids=lambda p: p.name)
def test_golden_programs(program: LoopProgram, golden: Golden) -> None:
    verify(program)
    text = print_program(program)
    golden(GOLDEN / f"{program.name}.txt", text)
    assert read_program(text) == program


def test_golden_system(golden: Golden) -> None:
    text = print_system(conv())
    golden(GOLDEN / "conv_transpose1d.txt", text)
    assert read_system(text) == conv()


def test_a_system_without_parameters_is_well_formed() -> None:
    verify_system(read_system(print_system(conv()).replace("$slope", "0.1")))


@pytest.mark.parametrize(
    ("kind", "index", "text"),
    [
        ("ge", el, "l >= 0"),
        ("ge", el - 3, "l >= 3"),
        ("ge", L - el - 1, "l < L"),
        ("ge", L - el, "l <= L"),
        ("ge", 15 - el, "l < 16"),
        ("ge", -el, "l < 1"),
        ("ge", const(-2), "0 >= 2"),
        ("eq", el * 4 - o + 1, "l*4 == o - 1"),
        ("eq", -el + 3, "-l == -3"),
        ("ne", el - 2, "l != 2"),
        ("eq", ZERO, "0 == 0"),
    ],
)
def test_conditions_read_naturally(kind: str, index: Index, text: str) -> None:
    assert pred_text(Pred(kind, index)) == text  # type: ignore[arg-type]


def test_parentheses_follow_the_tree() -> None:
    a, b = (Load(Access(name, (), ()), "f32") for name in "ab")

    def text(op: str, left: Expr, right: Expr) -> str:
        return expr_text(Binary(op, left, right), {})  # type: ignore[arg-type]

    assert text("-", a, Binary("-", b, a)) == "a[] - (b[] - a[])"
    assert text("-", Binary("-", a, b), a) == "a[] - b[] - a[]"
    assert text("*", Binary("+", a, b), Const(-2, "f32")) == "(a[] + b[]) * -2.0"
    assert text("/", a, Binary("*", a, b)) == "a[] / (a[] * b[])"
    assert text("max", Binary("+", a, b), Const(3, "i32")) == "max(a[] + b[], 3)"


def test_a_let_that_ends_before_its_block() -> None:
    store = Store(Access("s", (), ()), Const(1.0, "f32"))
    inner = Let("a", const(1), (store,))
    assert print_body((inner,)) == "let a = 1\ns[] = 1.0\n"
    assert print_body((inner, store)) == "let a = 1 in\n  s[] = 1.0\ns[] = 1.0\n"


def test_long_lines_break_inside_brackets() -> None:
    loads = [Load(Access("x", (el + n, o * n), (N, L)), "f32") for n in range(1, 12)]
    value: Expr = loads[0]
    for load in loads[1:]:
        value = Binary("+", value, Binary("max", load, Const(0.0, "f32")))
    store = Store(Access("y", (el, o), (N, L)), value)
    body = nest([(Var("l", ZERO, N), "serial"), (Var("o", ZERO, L), "serial")], (store,))
    buffers = (
        Buffer("x", "f32", (L, N), "input"),
        Buffer("y", "f32", (N, L), "output"),
    )
    program = LoopProgram("f", ("N", "L"), (), buffers, (Kernel("k", (), body),))
    text = print_program(program)
    assert max(map(len, text.splitlines())) <= 100
    assert read_program(text) == program
    assert print_kernel(program.kernels[0], program) in text


def test_a_piece_alone() -> None:
    piece = conv().equations[1].pieces[1]
    assert print_piece(piece).startswith("for n in 0..N, g in 0..2, m in 0..M  # first\n")
