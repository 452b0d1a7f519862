"""The commands on texts: check, fmt, new; and explain."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from convdsl.cli.new import SKELETON
from convdsl.codes import CODES
from convdsl.syntax.printer import format_text
from tests.unit.cli_tools import FIR, Cli, cli

__all__ = ["cli"]

ROOT = Path(__file__).resolve().parents[2]
ODD = """\
op odd(x: f32[N, K], spare: f32[N] = 0, p: int = 1, q: int = 1, r: float = 1.0) -> y: f32[N]
where Q == N + 1,
      q >= 1
{
    let h[n] = x_sum[n]
    y[n] = sum[k, j in 0..3] x[n, k]
}
""".replace("x_sum[n]", "sum[k] x[n, k]")


# -- check --------------------------------------------------------------------------------------
def test_check_is_content(cli: Cli) -> None:
    done = cli("check", "fir.cdsl", "scale.cdsl")
    assert (done.code, done.err) == (0, "")
    assert done.out == "fir.cdsl: fir is right\nscale.cdsl: scale is right\n"


@pytest.mark.parametrize(
    "path", sorted((ROOT / "convdsl/ops").glob("*.cdsl")), ids=lambda p: p.stem
)
def test_shipped_operators_give_no_warning(cli: Cli, path: Path) -> None:
    done = cli("check", str(path))
    assert (done.code, done.err) == (0, "")


def test_check_shows_all_that_is_wrong(cli: Cli, tmp_path: Path) -> None:
    """One error for each operator and file, and what is right besides."""
    wrong = "op a(x: f32[N]) -> y: f32[N] { y[n] = z[n] }\n"
    text = wrong + FIR + wrong.replace("op a", "op b").replace("z[n]", "x[n, n]")
    (tmp_path / "many.cdsl").write_text(text, "utf-8")
    done = cli("check", "many.cdsl", "missing.cdsl", "scale.cdsl")
    assert done.code == 1
    assert done.err.count("error[E") == 3
    assert "E0105" in done.err
    assert done.out == "many.cdsl: fir is right\nscale.cdsl: scale is right\n"
    assert cli("check", "many.cdsl", "--op", "fir").code == 0
    assert "E0217" in cli("check", "many.cdsl", "--op", "c").err


def test_check_warns(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "odd.cdsl").write_text(ODD, "utf-8")
    done = cli("check", "odd.cdsl")
    assert done.code == 0
    firsts = [line for line in done.err.splitlines() if line.startswith("warning")]
    assert firsts == [
        "warning: the input `spare` is never read",
        "warning: the parameter `p` is never used",
        "warning: the parameter `q` is only checked in `where`",
        "warning: the parameter `r` is never used",
        "warning: the size `Q` is never used",
        "warning: `let h` is never read",
        "warning: the index `j` of this sum is used nowhere in it",
    ]
    assert done.err.count("  = help: ") == len(firsts)
    assert done.err.count("^") >= len(firsts)


def test_check_with_numbers(cli: Cli) -> None:
    open_ = cli("check", "pool.cdsl")
    assert (open_.code, open_.err) == (0, "")
    assert "as far as can be known while `width` has no number" in open_.out
    empty = cli("check", "pool.cdsl", "-D", "width=1")
    assert empty.code == 1
    assert "error[E0306]" in empty.err
    assert cli("check", "pool.cdsl", "-D", "width=2").code == 0
    assert "error[E0301]" in cli("check", "fir.cdsl", "-D", "stride=0").err
    assert "error[E0305]" in cli("check", "fir.cdsl", "-D", "L=-4").err
    unknown = cli("check", "fir.cdsl", "pool.cdsl", "-D", "wdth=2")
    assert (unknown.code, "E0302" in unknown.err) == (1, True)
    assert cli("check", "fir.cdsl", "pool.cdsl", "-D", "width=2").code == 0


def test_check_for_machines(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "odd.cdsl").write_text(ODD, "utf-8")
    (tmp_path / "bad.cdsl").write_text("op f(", "utf-8")
    done = cli("check", "--json", "odd.cdsl", "bad.cdsl")
    assert (done.code, done.err) == (1, "")
    odd, bad = json.loads(done.out)
    assert odd["ops"] == ["odd"]
    assert [w["place"]["line"] for w in odd["warnings"]] == [1, 1, 1, 1, 2, 5, 6]
    assert bad["errors"][0]["code"].startswith("E01")
    assert bad["errors"][0]["place"]["line"] == 1


# -- fmt ----------------------------------------------------------------------------------------
LOOSE = "# note\nop  f( x:f32[N] )->y:f32[N]{ # why\ny[n]=x[n]*2.0 }\n"


def test_fmt_in_place(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "loose.cdsl"
    file.write_text(LOOSE, "utf-8")
    file.chmod(0o640)
    checked = cli("fmt", "--check", "loose.cdsl", "scale.cdsl")
    assert (checked.code, checked.out) == (1, "would change loose.cdsl\n")
    assert file.read_text("utf-8") == LOOSE
    shown = cli("fmt", "--stdout", "loose.cdsl")
    assert (shown.code, shown.out) == (0, format_text(LOOSE))
    assert file.read_text("utf-8") == LOOSE
    before = (tmp_path / "scale.cdsl").stat()
    done = cli("fmt", "loose.cdsl", "scale.cdsl")
    assert (done.code, done.out, done.err) == (0, "", "changed loose.cdsl\n")
    assert file.read_text("utf-8") == format_text(LOOSE)
    assert "# note" in file.read_text("utf-8")
    assert "# why" in file.read_text("utf-8")
    assert file.stat().st_mode & 0o777 == 0o640
    assert (tmp_path / "scale.cdsl").stat().st_ino == before.st_ino
    assert cli("fmt", "--check", "loose.cdsl", "scale.cdsl").code == 0


def test_fmt_goes_on_after_an_error(cli: Cli, tmp_path: Path) -> None:
    (tmp_path / "bad.cdsl").write_text("op f(", "utf-8")
    (tmp_path / "loose.cdsl").write_text(LOOSE, "utf-8")
    done = cli("fmt", "bad.cdsl", "loose.cdsl")
    assert done.code == 1
    assert "error[E01" in done.err
    assert (tmp_path / "bad.cdsl").read_text("utf-8") == "op f("
    assert (tmp_path / "loose.cdsl").read_text("utf-8") == format_text(LOOSE)


def test_fmt_follows_links_and_normalises_bytes(cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "real.cdsl"
    file.write_bytes(b"\xef\xbb\xbf" + format_text(LOOSE).replace("\n", "\r\n").encode())
    link = tmp_path / "link.cdsl"
    link.symlink_to(file)
    assert cli("fmt", "link.cdsl").code == 0
    assert link.is_symlink()
    assert file.read_bytes() == format_text(LOOSE).encode()


def test_fmt_of_a_read_only_file(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "loose.cdsl"
    file.write_text(LOOSE, "utf-8")
    file.chmod(0o440)
    # Root may write it all the same, so ask the bits.
    monkeypatch.setattr(os, "access", lambda path, _: bool(Path(path).stat().st_mode & 0o200))
    done = cli("fmt", "loose.cdsl")
    assert (done.code, "E0360" in done.err) == (1, True)
    assert file.read_text("utf-8") == LOOSE


# -- new ----------------------------------------------------------------------------------------
def test_a_new_operator_is_right_and_formatted(cli: Cli, tmp_path: Path) -> None:
    done = cli("new", "my_op2")
    assert (done.code, done.out) == (0, "my_op2.cdsl\n")
    assert (tmp_path / "my_op2.cdsl").read_text("utf-8") == SKELETON.format(name="my_op2")
    assert cli("fmt", "--check", "my_op2.cdsl").code == 0
    checked = cli("check", "my_op2.cdsl")
    assert (checked.code, checked.err) == (0, "")
    assert cli("compile", "my_op2.cdsl").code == 0


def test_a_new_operator_from_a_shipped_one(cli: Cli, tmp_path: Path) -> None:
    done = cli("new", "softmax")
    assert "the text of the shipped operator softmax" in done.err
    shipped = (ROOT / "convdsl/ops/softmax.cdsl").read_bytes()
    assert (tmp_path / "softmax.cdsl").read_bytes() == shipped


def test_new_never_overwrites(cli: Cli, tmp_path: Path) -> None:
    before = (tmp_path / "fir.cdsl").read_bytes()
    done = cli("new", "fir")
    assert (done.code, done.out) == (1, "")
    assert "E0366" in done.err
    assert (tmp_path / "fir.cdsl").read_bytes() == before
    assert cli("new", "sum").code == 1
    assert not (tmp_path / "sum.cdsl").exists()
    assert cli("new", "a" * 101).code == 2


# -- explain ------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", ["E0301", "e0301", "301", "E301", "error[E0301]"])
def test_explain(cli: Cli, name: str) -> None:
    done = cli("explain", name)
    assert done.code == 0
    assert done.out == f"E0301: {CODES['E0301'].title}\n\n{CODES['E0301'].text}"


def test_explain_lists(cli: Cli) -> None:
    done = cli("explain")
    assert [line.split("  ", 1) for line in done.out.splitlines()] == [
        [name, code.title] for name, code in CODES.items()
    ]
    assert json.loads(cli("explain", "--json").out).keys() == CODES.keys()
    assert json.loads(cli("explain", "E0301", "--json").out)["code"] == "E0301"


def test_explain_suggests(cli: Cli) -> None:
    done = cli("explain", "E0399")
    assert (done.code, done.out) == (2, "")
    assert "`convdsl explain` lists them all" in done.err
    assert "Did you mean" in done.err
