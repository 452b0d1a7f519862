"""Every block of the documentation that can run does, and prints what is shown."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from convdsl import CdslError, parse
from convdsl.schedule.schedule import from_syntax
from convdsl.sema.resolve import resolve_op
from convdsl.syntax.ast import Schedule
from convdsl.syntax.parser import parse_items
from convdsl.syntax.printer import format_text
from tests.docs.pages import (
    DOCS,
    READ,
    ROOT,
    RUNS,
    Block,
    anchors,
    blocks,
    links,
    matches,
    named,
    pages,
)

PLAIN = [p for p in pages() if any(b.language in RUNS and "gpu" not in b.words for b in blocks(p))]
GPU = [p for p in pages() if any("gpu" in b.words for b in blocks(p))]


class Page:
    """One page being run, in a folder of its own."""

    def __init__(self, page: Path, folder: Path) -> None:
        self.page, self.folder = page, folder
        self.names: dict[str, Any] = {"__name__": "docs"}
        self.printed = ""

    def run(self, gpu: bool) -> None:
        skipped = False
        for block in blocks(self.page):
            if block.language == "output" and skipped:
                continue
            skipped = "gpu" in block.words and not gpu
            if skipped:
                continue
            if name := block.value("file"):
                (self.folder / name).write_text(block.text, "utf-8", newline="\n")
            match block.language:
                case "python":
                    self.python(block)
                case "output":
                    self.compare(block, block.text, self.printed)
                case "console":
                    self.console(block)
                case "sh":
                    code, text = self.shell(block.text)
                    assert code == 0, f"{self.place(block)}: exit {code}\n{text}"
                case "cdsl":
                    self.cdsl(block)
                case "json":
                    json.loads(block.text)

    def place(self, block: Block) -> str:
        return f"{named(self.page)}:{block.line}"

    def compare(self, block: Block, shown: str, actual: str) -> None:
        if not matches(shown, actual):
            pytest.fail(f"{self.place(block)} shows\n{shown}\nbut it is\n{actual}", pytrace=False)

    def python(self, block: Block) -> None:
        code = compile("\n" * (block.line - 1) + block.text, str(self.page), "exec")
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            exec(code, self.names)
        self.printed = out.getvalue()

    def shell(self, command: str) -> tuple[int, str]:
        """The exit code, and what a terminal shows."""
        path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=self.folder,
            env=os.environ | {"PATH": path, "NO_COLOR": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            text=True,
            timeout=120,
        )
        return done.returncode, done.stdout

    def console(self, block: Block) -> None:
        """Each command fails exactly where an error is shown."""
        for part in ("\n" + block.text).split("\n$ ")[1:]:
            command, _, shown = part.partition("\n")
            code, text = self.shell(command)
            self.compare(block, shown, text)
            failing = shown.lower().startswith("error") or "\nerror" in shown.lower()
            assert (code != 0) == failing, f"{self.place(block)}: `{command}` exits with {code}"

    def cdsl(self, block: Block) -> None:
        place = self.place(block)
        code, text = None, ""
        try:
            items = parse_items(block.text, place).items
            for item in items:
                if isinstance(item, Schedule):
                    from_syntax(item)
            if not items or not all(isinstance(item, Schedule) for item in items):
                for op in parse(block.text, place).ops:
                    resolve_op(op)
        except CdslError as error:
            code, text = error.code, str(error)
        assert code == block.value("error"), f"{place}: {code}\n{text}"
        if code is None:
            self.compare(block, block.text, format_text(block.text, place))


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PLAIN, ids=named)
def test_page(page: Path, here: Path) -> None:
    Page(page, here).run(gpu=False)


@pytest.mark.gpu
@pytest.mark.parametrize("page", GPU, ids=named)
def test_page_on_a_device(page: Path, here: Path) -> None:
    Page(page, here).run(gpu=True)


@pytest.mark.parametrize("page", pages(), ids=named)
def test_blocks_are_known(page: Path) -> None:
    languages = {b.language for b in blocks(page)}
    assert languages <= RUNS | READ
    odd = [b.line for b in blocks(page) for w in b.words if w != "gpu" and "=" not in w]
    assert odd == []


@pytest.mark.parametrize("page", pages(), ids=named)
def test_links(page: Path) -> None:
    broken = []
    for link in links(page):
        if "://" in link:
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        inside = target.exists() and ROOT in (target, *target.parents)
        if not inside or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_index() -> None:
    index = DOCS / "README.md"
    linked = {(index.parent / link.partition("#")[0]).resolve() for link in links(index)}
    assert [named(p) for p in DOCS.rglob("*.md") if p != index and p not in linked] == []


@pytest.mark.parametrize(
    ("shown", "actual", "same"),
    [
        ("a\nb\n", "a\nb", True),
        ("a\n...\nc\n", "a\nb1\nb2\nc\n", True),
        ("a\n...\nc\n", "a\nc\n", True),
        ("time: ... ms\n", "time: 1.2 ms\n", True),
        ("time: ... ms\n", "time: 1.2 s\n", False),
        ("a\n", "a\nb\n", False),
        ("", "", True),
        ("", "x\n", False),
        ("a.c\n", "abc\n", False),
    ],
)
def test_matches(shown: str, actual: str, same: bool) -> None:
    assert matches(shown, actual) == same
