"""Words and comments of a text, for error messages and the formatter.

The parser has its own lexer; this one never fails, keeps comments, and agrees with the parser's on
every text that parses (a test compares them).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

_WORD = re.compile(
    r"(?P<space>[ \t\r\n]+)"
    r"|(?P<comment>\#[^\n]*)"
    r"|[A-Za-z][A-Za-z0-9_]*(?:\.[A-Za-z][A-Za-z0-9_]*)*"
    r"|[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
    r"|->|\.\.|//|[=!<>]=|.",
    re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class Word:
    """A word or comment, and where it stands."""

    text: str
    start: int
    end: int

    @property
    def is_comment(self) -> bool:
        """Whether it starts with `#`, which no word does."""
        return self.text.startswith("#")


def words_and_comments(text: str) -> Iterator[Word]:
    """Everything but the space between, in order; comments without trailing space."""
    for match in _WORD.finditer(text):
        if match["space"] is None:
            found = match.group().rstrip() if match["comment"] else match.group()
            yield Word(found, match.start(), match.start() + len(found))


def words(text: str) -> list[Word]:
    """The words alone."""
    return [word for word in words_and_comments(text) if not word.is_comment]
