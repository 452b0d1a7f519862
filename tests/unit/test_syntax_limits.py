"""Texts and files that must be refused before they cost anything."""

from __future__ import annotations

import copy
import pickle
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from convdsl.diagnostics import CdslError
from convdsl.syntax.limits import MAX_BYTES, MAX_DEPTH, MAX_NESTING
from convdsl.syntax.parser import load, parse, parse_schedules
from convdsl.syntax.printer import format_text, print_program

SMALL = "op f(x: f32[N]) -> y: f32[N] {\n    y[n] = x[n]\n}\n"


def _body(value: str) -> str:
    return f"op f(x: f32[N]) -> y: f32[N] {{ y[n] = {value} }}\n"


def _code(text: str) -> str:
    with pytest.raises(CdslError) as caught:
        parse(text)
    assert str(caught.value)
    return caught.value.code


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (SMALL + "#" * 10_000_000, "E0102"),
        ("x" * 10_000_000, "E0102"),
        ("#" + "\N{GREEK SMALL LETTER ALPHA}" * (MAX_BYTES // 2), "E0102"),
        (_body("(" * 10_000 + "x[n]" + ")" * 10_000), "E0103"),
        ("(" * 10_000, "E0103"),
        ("[{(" * 1_000, "E0103"),
        (_body("+".join(["x[n]"] * 20_000)), "E0103"),
        (_body("*".join(["2"] * 20_000)), "E0103"),
        (_body("-" * 100_000 + "x[n]"), "E0103"),
        (_body("relu(" * 128 + "x[n]" + ")" * 128), "E0103"),
        (_body("x[n]").replace("f32[N]", f"f32[{'+'.join(['N'] * 20_000)}]"), "E0103"),
        (_body("1" * 100_000), "E0119"),
        (_body("x[n]\x00"), "E0106"),
        (_body("x[n]\r"), "E0106"),
        (SMALL + "# \N{RIGHT-TO-LEFT OVERRIDE}", "E0106"),
        (SMALL + "# \ud800", "E0106"),
    ],
    ids=lambda v: v[:12] if isinstance(v, str) else None,
)
def test_refused(text: str, code: str) -> None:
    """Each with its code; none with a RecursionError."""
    assert _code(text) == code


def test_the_limits_are_reachable() -> None:
    """What is just inside a limit parses, prints, compares, copies."""
    comment = SMALL + "#" * (MAX_BYTES - len(SMALL))
    assert parse(comment) == parse(SMALL)
    assert _code(comment + "#") == "E0102"
    brackets = MAX_NESTING - 1  # the braces of the body are one level
    assert parse(_body("(" * brackets + "1" + ")" * brackets)) == parse(_body("1"))
    calls = MAX_DEPTH - 1
    deep = [
        _body("+".join(["x[n]"] * MAX_DEPTH)),
        _body("relu(" * calls + "1" + ")" * calls),
        _body("-" * calls + "x[n]"),
        _body("2*(sum[k] " * (calls // 2) + "x[k]" + ")" * (calls // 2)),
    ]
    for text in deep:
        tree = parse(text)
        assert parse(print_program(tree)) == tree
        assert parse(format_text(text)) == tree
        assert hash(tree) == hash(copy.deepcopy(tree))
        assert repr(tree) == repr(tree)


def test_brackets_in_comments_do_not_nest() -> None:
    """A comment is no text."""
    assert parse("# " + "(" * 10_000 + "\n" + SMALL) == parse(SMALL)


def test_load(tmp_path: Path) -> None:
    """Files are read as UTF-8, a byte order mark is dropped, positions do not count it."""
    path = tmp_path / "op.cdsl"
    path.write_bytes(b"\xef\xbb\xbf" + SMALL.replace("\n", "\r\n").encode())
    program = load(path)
    assert program == load(str(path)) == parse(SMALL) == parse("\ufeff" + SMALL)
    assert program.source.name == str(path)
    assert program.ops[0].span.start == 0


def test_unreadable_files(tmp_path: Path) -> None:
    """A missing file, a folder, a name that cannot be, and bytes that are no text."""

    def error(path: Path | str) -> CdslError:
        with pytest.raises(CdslError) as caught:
            load(path)
        return caught.value

    assert error(tmp_path / "missing.cdsl").code == "E0105"
    assert "No such file" in error(tmp_path / "missing.cdsl").message
    assert error(tmp_path).code == "E0105"
    assert error("a\0b.cdsl").code == "E0105"
    bad = tmp_path / "bad.cdsl"
    bad.write_bytes(b"# fine\n# \xff\n")
    assert error(bad).code == "E0104"
    assert "byte 9, on line 2, is 0xFF" in error(bad).notes[0].text
    bad.write_bytes(b"\xef\xbb\xbf\xff")
    assert "byte 3, on line 1, is 0xFF" in error(bad).notes[0].text
    large = tmp_path / "large.cdsl"
    with large.open("wb") as file:
        file.truncate(20 * 2**30)  # sparse: reading it whole would take minutes and all memory
    assert error(large).code == "E0102"
    large.write_bytes(b"#" * MAX_BYTES)
    assert error(large).code == "E0118"


def test_schedules_alone() -> None:
    """A schedule file needs no operator; a program does."""
    text = "schedule f for wgsl {\n    order n, k\n}\n"
    assert len(parse_schedules(text)) == 1
    assert _code(text) == "E0118"
    assert format_text(text) == text
    assert format_text("# only a comment") == "# only a comment\n"
    assert format_text("") == ""


def test_threads() -> None:
    """One parser serves all threads: each tree keeps its own text."""
    texts = [SMALL + f"# {n}" for n in range(40)]
    with ThreadPoolExecutor(8) as pool:
        for text, tree in zip(texts, pool.map(parse, texts), strict=True):
            assert tree.source.text == tree.ops[0].span.source.text == text


def test_errors_pickle() -> None:
    """Errors cross process boundaries with their place."""
    with pytest.raises(CdslError) as caught:
        parse(_body("x[2*n]"), "name.cdsl")
    again = pickle.loads(pickle.dumps(caught.value))
    assert str(again) == str(caught.value)
    assert "name.cdsl:1:" in str(again)
