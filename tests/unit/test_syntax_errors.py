"""Messages, whole: each text in tests/errors/syntax has its diagnostic next to it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from convdsl.diagnostics import CdslError
from convdsl.syntax.parser import parse

CASES = sorted((Path(__file__).parents[1] / "errors" / "syntax").glob("*.cdsl"))


@pytest.mark.parametrize("path", CASES, ids=lambda p: p.stem)
def test_message(path: Path, golden: Callable[[Path, str], None]) -> None:
    """The rendered diagnostic."""
    with pytest.raises(CdslError) as caught:
        parse(path.read_bytes().decode(), path.name)
    golden(path.with_suffix(".expect"), f"{caught.value}\n")


def test_no_expectation_is_orphaned() -> None:
    """Each .expect belongs to a .cdsl."""
    assert len(CASES) >= 90
    folder = CASES[0].parent
    assert sorted(folder.glob("*.expect")) == [case.with_suffix(".expect") for case in CASES]


@pytest.mark.parametrize(
    ("text", "marked"),
    [
        ("op f(x: f32[N]) -> y: f64[N] { y[n] = x[n] }", "f64"),
        ("op f(x: f32[N]) -> y: f32[N] {\n\ty[n] = x[n] + 2*sum[k] x[k]\n}", "sum"),
        ("op f(x: f32[N]) -> y: f32[N] { y[n] = relu(x[n] < 1) }", "x[n] < 1"),
        ("op f(x: f32[N], k: int = 1.5) -> y: f32[N] { y[n] = x[n] }", "1.5"),
        ("op f(x: f32[N]) -> y: f32[N // 2 # / no\n / 3] { y[n] = x[n] }", "/"),
    ],
)
def test_the_caret_marks_the_words(text: str, marked: str) -> None:
    """The span is the offending text, and the caret line stands under it."""
    with pytest.raises(CdslError) as caught:
        parse(text)
    span = caught.value.span
    assert span is not None
    assert text[span.start : span.end] == marked
    shown, carets = [line[6:] for line in str(caught.value).split("\n") if line.startswith("   |")]
    start = len(carets) - len(carets.lstrip())
    assert shown[start : start + carets.count("^")] == marked
