"""The command as a whole: help, version, mistakes in its use, and how failures become exit codes."""

from __future__ import annotations

import errno
import sys
from pathlib import Path

import click
import pytest

from convdsl._version import __version__
from convdsl.cli import reported
from convdsl.cli.app import COMMANDS, app
from convdsl.cli.failure import report
from convdsl.diagnostics import CdslError, DeviceError, InternalError
from tests.unit.cli_tools import Cli, cli

__all__ = ["cli"]


def test_help_names_every_command(cli: Cli) -> None:
    done = cli("--help")
    assert done.code == 0
    assert done.err == ""
    for name, (_, text) in COMMANDS.items():
        assert f"  {name} " in done.out
        assert text in done.out


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help(cli: Cli, name: str) -> None:
    done = cli(name, "-h")
    assert done.code == 0
    found = app.get_command(click.Context(app), name)
    assert found is not None
    assert found.short_help == COMMANDS[name][1]
    assert done.out.startswith(f"Usage: convdsl {name} [OPTIONS]")


def test_version(cli: Cli) -> None:
    assert cli("--version").out == f"convdsl {__version__}\n"


def test_without_arguments_help_and_a_usage_error(cli: Cli) -> None:
    done = cli()
    assert done.code == 2
    assert "Usage: convdsl" in done.out + done.err


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["comple"], "There is no command 'comple'. Did you mean 'compile'?"),
        (["--targt"], "targt"),
        (["compile"], "OP.cdsl"),
        (["compile", "scale.cdsl", "more"], "more"),
        (
            ["compile", "scale.cdsl", "--target", "cuda"],
            "There is no target 'cuda'. Choose one of:",
        ),
        (["compile", "scale.cdsl", "--target", "nunpy"], "Did you mean 'numpy'?"),
        (["compile", "scale.cdsl", "--accuracy", "exact"], "strict"),
        (["compile", "scale.cdsl", "--limits", "gpu"], "adapter"),
        (["fmt"], "OP.cdsl..."),
        (["fmt", "--check", "--stdout", "scale.cdsl"], "exclude each other"),
        (["explain", "E0999"], "There is no code 'E0999'"),
        (["explain", "nonsense"], "There is no code 'nonsense'"),
        (["new", "Upper"], "'Upper' cannot name an operator"),
        (["new", "../escape"], "cannot name an operator"),
        (["run", "scale.cdsl", "--seed", "-1"], "-1"),
        (["run", "scale.cdsl", "--input", "x"], "'x' is not NAME=FILE"),
        (["run", "scale.cdsl", "--input", "x=a", "--input", "x=b"], "'x' is given twice"),
        (["run", "scale.cdsl", "--random", "x", "--input", "x=b"], "'x' is given twice"),
        (["run", "scale.cdsl", "--random", "x,"], "--random takes names"),
        (["run", "scale.cdsl", "--repeat", "0"], "0"),
    ],
)
def test_usage(cli: Cli, args: list[str], said: str) -> None:
    """Exit 2, nothing on stdout, and the remedy."""
    done = cli(*args)
    assert done.code == 2, done
    assert done.out == ""
    assert said in done.err


@pytest.mark.parametrize(
    ("error", "code", "said"),
    [
        (CdslError("E0301", "no"), 1, "error[E0301]: no\n"),
        (DeviceError("gone", help="buy one"), 3, "error: gone\n  = help: buy one\n"),
        (MemoryError(), 3, "error: there is not enough memory\n"),
        (click.Abort(), 130, ""),
        (OSError(errno.ENOSPC, "No space left on device"), 1, "error: cannot write the output"),
    ],
)
def test_failures(
    error: Exception, code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert report(error) == code
    shown = capsys.readouterr().err
    assert shown.startswith(said)
    assert bool(shown) == bool(said)


def test_interrupted_in_a_call() -> None:
    def work() -> int:
        raise KeyboardInterrupt

    assert reported(work) == 130


@pytest.mark.parametrize("error", [InternalError("it broke"), ValueError("it broke"), KeyError()])
def test_a_bug_leaves_its_traceback_in_a_file(
    error: Exception,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr(sys, "argv", ["convdsl", "compile", "x.cdsl"])

    def work() -> int:
        raise error

    assert reported(work) == 70
    said = capsys.readouterr().err
    (file,) = tmp_path.iterdir()
    assert "internal error: " in said
    assert "this is a bug in convdsl" in said
    assert "Traceback" not in said
    assert str(file) in said
    text = file.read_text("utf-8")
    assert text.startswith("convdsl compile x.cdsl\n")
    assert "Traceback" in text
    assert "raise error" in text


def test_a_traceback_on_demand(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CONVDSL_TRACEBACK", "1")
    assert report(ValueError("it broke")) == 70
    assert "ValueError: it broke" in capsys.readouterr().err


def test_a_bug_without_a_temporary_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(**_: object) -> None:
        raise PermissionError(errno.EACCES, "no")

    monkeypatch.setattr("tempfile.mkstemp", refuse)
    assert report(ValueError("it broke")) == 70
    assert "set CONVDSL_TRACEBACK=1" in capsys.readouterr().err


def test_colour_only_on_a_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    error = CdslError("E0301", "no", help="yes")
    report(error)
    assert "\x1b" not in capsys.readouterr().err
    monkeypatch.setattr("convdsl.cli.output.colourful", lambda stream: True)
    monkeypatch.setattr("click._compat.should_strip_ansi", lambda *_: False)
    monkeypatch.setattr("click.utils.should_strip_ansi", lambda *_: False)
    report(error)
    shown = capsys.readouterr().err
    assert "\x1b[" in shown
    assert click.unstyle(shown) == "error[E0301]: no\n  = help: yes\n"
