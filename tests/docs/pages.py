"""The pages of the documentation and the code blocks on them.

A fence opens with a language and perhaps words:

    ```python          runs; all of a page share one namespace
    ```output          what the python block before it prints
    ```console         `$` lines run in the page's folder; between them stands what they print
    ```sh              runs and succeeds; its output is not shown
    ```cdsl            parses, resolves and is in canonical form; of schedules, the verbs are known
    ```json            is JSON

    gpu                needs a WebGPU adapter
    file=NAME          is also written to the page's folder
    error=E0109        must be refused with this code

Shown output may leave things out: a line `...` stands for any lines, `...` within a line for any
text. Languages that are not named here are for reading only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
RUNS = {"python", "output", "console", "sh", "cdsl", "json"}
READ = {"text", "wgsl", "js", "html", "mermaid", ""}

_FENCE = re.compile(r"^```(\w*)[ ]*([^\n`]*)\n(.*?)^```[ ]*$", re.MULTILINE | re.DOTALL)
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)
_LINK = re.compile(r"(?<!\!)\[[^\]\n]*(?:\n[^\]\n]*)?\]\(([^)\s]+)\)")
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the words behind it, its text and its first line's number."""

    language: str
    words: tuple[str, ...]
    text: str
    line: int

    def value(self, key: str) -> str | None:
        """What stands behind `key=`."""
        return next((w.partition("=")[2] for w in self.words if w.startswith(f"{key}=")), None)


def pages() -> list[Path]:
    """README and everything in docs."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def blocks(page: Path) -> Iterator[Block]:
    """The blocks of a page, in order."""
    text = page.read_text("utf-8")
    for match in _FENCE.finditer(text):
        language, words, body = match.groups()
        line = text.count("\n", 0, match.start(3)) + 1
        yield Block(language, tuple(words.split()), body, line)


def prose(page: Path) -> str:
    """The text of a page without its blocks and comments."""
    return _COMMENT.sub("", _FENCE.sub("", page.read_text("utf-8")))


def links(page: Path) -> list[str]:
    return _LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """What a link may name behind `#`: headings in lower case, blanks as hyphens."""
    found: set[str] = set()
    for heading in _HEADING.findall(prose(page)):
        slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found


def matches(shown: str, actual: str) -> bool:
    """Whether the output is as shown, where `...` leaves something out."""
    pattern = ""
    for line in shown.rstrip("\n").split("\n"):
        if line.strip() == "...":
            pattern += r"(?:.*\n)*"
        else:
            parts = [re.escape(part.rstrip() if last else part) for part, last in _parts(line)]
            pattern += ".*".join(parts) + r"[ ]*\n"
    return re.fullmatch(pattern, actual.rstrip("\n") + "\n") is not None


def _parts(line: str) -> Iterator[tuple[str, bool]]:
    parts = line.split("...")
    for number, part in enumerate(parts):
        yield part, number == len(parts) - 1
