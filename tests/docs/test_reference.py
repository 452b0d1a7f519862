"""The reference names everything that there is: codes, commands, options, functions, attributes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest

import convdsl
from convdsl.backends.base import Plan
from convdsl.cli.app import COMMANDS, app
from convdsl.codes import CODES
from convdsl.diagnostics import CdslError
from convdsl.ir.functions import FUNCTIONS
from convdsl.kernel import Kernel
from tests.docs.pages import DOCS
from tests.docs.verbs import KINDS, verbs_text

REFERENCE = DOCS / "reference"
FAMILIES = {
    "E01": "Files and syntax",
    "E02": "Names, shapes and types",
    "E030": "Sizes, parameters and data",
    "E031": "Sizes, parameters and data",
    "E035": "Compiling and calling",
    "E036": "Files of kernels and arrays",
    "E037": "The functions of `convdsl.ops`",
    "E04": "Texts of intermediate programs",
    "E05": "Limits of a WebGPU target",
    "E06": "Schedules",
    "E09": "Measuring",
}
HEAD = """\
# Error codes

What `convdsl explain CODE` prints. This page is made from `convdsl.codes`.

Errors with a code are `CdslError`: the program, the data or a file is at fault, and the command
exits with 1. What the machine cannot do is a `DeviceError` (exit 3), a fault of the compiler an
`InternalError` (exit 70); neither has a code.
"""


def family(code: str) -> str:
    return next(title for prefix, title in FAMILIES.items() if code.startswith(prefix))


def error_codes_page() -> str:
    """The text of docs/reference/error-codes.md."""
    out, title = [HEAD], ""
    for name, code in CODES.items():
        if family(name) != title:
            title = family(name)
            out.append(f"## {title}\n")
        out.append(f"### {name}: {code.title}\n")
        out.append(markdown(code.text))
    return "\n".join(out)


def markdown(text: str) -> str:
    """Indented examples as fenced blocks, which are for reading."""
    out: list[str] = []
    fenced = False
    lines = text.rstrip("\n").split("\n")
    for number, line in enumerate(lines):
        code = line.startswith("    ")
        if code and not fenced:
            out.append("```text")
        following = next((x for x in lines[number:] if x), "")
        if fenced and not code and (line or not following.startswith("    ")):
            out.append("```")
        fenced = code or (fenced and not line and following.startswith("    "))
        out.append(line[4:] if code else line)
    if fenced:
        out.append("```")
    return "\n".join(out) + "\n"


def page(name: str) -> str:
    return (REFERENCE / name).read_text("utf-8")


def test_error_codes(golden: Callable[[Path, str], None]) -> None:
    golden(REFERENCE / "error-codes.md", error_codes_page())


def test_verbs(golden: Callable[[Path, str], None]) -> None:
    """The part between the marks is made from the records of the verbs."""
    path = REFERENCE / "schedules.md"
    head, mark, rest = path.read_text("utf-8").partition("<!-- verbs -->\n")
    _, end, tail = rest.partition("<!-- end of verbs -->\n")
    assert mark
    assert end
    golden(path, head + mark + verbs_text() + end + tail)


@pytest.mark.parametrize("verb", [*KINDS])
def test_forms(verb: str) -> None:
    """Every verb has a form, a before -> after pair and a line in the overview."""
    kind = KINDS[verb]
    assert kind.form.startswith(f"{verb} ")
    assert "before:" in (kind.__doc__ or "")
    assert f"| [`{verb}`](#{verb}) |" in page("schedules.md")


def test_commands_and_options() -> None:
    text = page("command-line.md")
    for name in COMMANDS:
        command = app.commands.get(name) or app.get_command(click.Context(app), name)
        assert command is not None
        assert f"\n## convdsl {name}\n" in text
        section = text.split(f"\n## convdsl {name}\n")[1].split("\n## ")[0]
        for option in command.params:
            if isinstance(option, click.Option):
                assert f"`{option.opts[0]}" in section, f"{name} {option.opts[0]}"


@pytest.mark.parametrize("name", convdsl.__all__)
def test_module(name: str) -> None:
    assert f"`{name}" in page("python-api.md") or f"convdsl.{name}" in page("python-api.md")


@pytest.mark.parametrize("name", [n for n in dir(Kernel) if not n.startswith("_")])
def test_kernel(name: str) -> None:
    assert f"`kernel.{name}" in page("python-api.md")


@pytest.mark.parametrize("name", [*Plan.__dataclass_fields__])
def test_plan(name: str) -> None:
    assert f"`{name}`" in page("plans.md")


@pytest.mark.parametrize("name", ["code", "message", "span", "notes", "help"])
def test_errors(name: str) -> None:
    assert hasattr(CdslError("E0101", "x"), name)
    assert f"`.{name}`" in page("python-api.md")


@pytest.mark.parametrize("name", [*FUNCTIONS, "select", "max", "min", "f32", "f16", "i32"])
def test_functions(name: str) -> None:
    assert f"`{name}(" in page("language.md")


def test_manifest_keys() -> None:
    from convdsl.artifact import manifest

    text = page("manifest.md")
    for target in ("numpy", "wgsl"):
        kernel = convdsl.compile(convdsl.ops.source("softmax"), target=target, dynamic=["N", "C"])
        record = manifest(kernel)
        module = record["module"]
        assert isinstance(module, dict)
        for key in (*record, *module, "files", "check"):
            assert f"`{key}`" in text, key
