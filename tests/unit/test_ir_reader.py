"""Mistakes in the text of an IR, and the grammar itself."""

from __future__ import annotations

import threading

import pytest

from convdsl.codes.ir import TABLE
from convdsl.diagnostics import CdslError
from convdsl.ir.reader import build_lark, read_program, read_system
from tests.unit.ir_programs import CONV, MATMUL, conv, matmul

HEAD = "func f(N)\n  buffer x: f32[N] input\n  buffer y: f32[N] output\nkernel k\n"


@pytest.mark.parametrize(
    ("text", "code", "marked", "message"),
    [
        ("", "E0401", "", "the end of the text does not fit here"),
        ("func f(N", "E0401", "", "the end of"),
        (HEAD + "  y[0] = x[0]]\n", "E0401", "]", "`]` does not fit"),
        (HEAD + "  y[0] = 2\u00b7x[0]\n", "E0401", "\u00b7", "`\u00b7` does not fit"),
        (HEAD + "  for n in 0..N parallel\n", "E0401", "parallel", "`parallel` does not"),
        (HEAD + "  if N > 0\n      y[0] = 1.0\n    y[0] = 2.0", "E0401", "y", "indented like none"),
        (HEAD + "  y[0] = f16{N}\n", "E0401", "f16", "an integer as a value"),
        (HEAD + "  y[" + "9" * 50 + "] = 1.0\n", "E0401", "9" * 50, "a number of 50 digits"),
        (HEAD + "  y[0] = z[0]\n", "E0402", "z", "`z` is not declared"),
        (HEAD + "  y[0, 1] = x[0]\n", "E0403", "y[0, 1]", "has 1 dims here and 2 indices"),
        (HEAD + "  y<N, 1>[0] = x[0]\n", "E0403", "y<N, 1>[0]", "has 2 dims here and 1 indices"),
        (HEAD + "  y[N % 0] = x[0]\n", "E0404", "0", "divides by zero"),
    ],
)
def test_mistakes_have_a_place(text: str, code: str, marked: str, message: str) -> None:
    with pytest.raises(CdslError, match=message.replace("]", r"\]")) as caught:
        read_program(text, "f.loop")
    assert caught.value.code == code
    span = caught.value.span
    assert span is not None
    assert span.source.text[span.start : span.end] == marked


def test_what_would_fit_is_listed() -> None:
    with pytest.raises(CdslError) as caught:
        read_program("func f(N)\n  buffer x: f64[N] input\n")
    assert caught.value.notes[0].text == "expected `f16`, `f32`, `i32`"


def test_too_deep() -> None:
    deep = "(" * 3000 + "x[0]" + ")" * 3000
    sums = " + ".join(["x[0]"] * 3000)
    assert read_program(HEAD + f"  y[0] = {deep}\n") == read_program(HEAD + "  y[0] = x[0]\n")
    with pytest.raises(CdslError, match="E0405"):
        read_program(HEAD + f"  y[0] = {sums}\n")


def test_every_code_is_explained() -> None:
    assert list(TABLE) == ["E0401", "E0402", "E0403", "E0404", "E0405"]
    for code in TABLE.values():
        assert code.title
        assert code.text


def test_comments_and_line_ends_do_not_matter() -> None:
    noisy = "# first\n" + MATMUL.replace("\n    for", "  # why\n\n# then\n    for")
    assert read_program(noisy) == matmul()
    assert read_program(MATMUL.replace("\n", "\r\n")) == matmul()
    assert read_system(CONV.rstrip()) == conv()


def test_the_grammar_has_no_conflicts() -> None:
    """`strict` needs the package interegular, which the extra `test` installs."""
    build_lark(strict=True)


def test_threads_share_the_reader() -> None:
    failures: list[Exception] = []

    def work() -> None:
        try:
            assert read_program(MATMUL) == matmul()
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
