"""A cursor over the words of one schedule step."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NoReturn

from convdsl.diagnostics import CdslError, Span

_NAME = r"[A-Za-z][A-Za-z0-9_]*"
_PART = rf"\.(?:{_NAME}|[0-9]+)"  # y.hole, x.2
_WORD = re.compile(rf"{_NAME}(?:{_PART})*|[0-9]+|->|[,:]")
_DOTTED = re.compile(rf"{_NAME}(?:{_PART})*")
_LONGEST = 60  # characters of a word that a message shows


def words_of(line: str) -> tuple[str, ...] | None:
    """The words of a step as the parser of programs finds them; None where something is no word."""
    words = tuple(_WORD.findall(line))
    return words if words and "".join(words) == line.replace(" ", "") else None


class Words:
    """Takes words from left to right; what does not fit is E0601 with the form of the verb."""

    def __init__(self, words: Sequence[str], form: str, span: Span | None = None) -> None:
        self._words = list(words)
        self._at = 0
        self._form = form
        self._span = span

    def fail(self, wanted: str) -> NoReturn:
        found = "the end of the line"
        if self._at < len(self._words):
            word = self._words[self._at]
            found = f"`{word if len(word) <= _LONGEST else word[:_LONGEST] + '...'}`"
        raise CdslError(
            "E0601",
            f"expected {wanted}, found {found}",
            self._span,
            help=f"write it as: {self._form}",
        )

    def peek(self, word: str) -> bool:
        return self._at < len(self._words) and self._words[self._at] == word

    def take(self, word: str) -> None:
        """The next word must be this one."""
        if not self.peek(word):
            self.fail(f"`{word}`")
        self._at += 1

    def accept(self, word: str) -> bool:
        """Take the word if it is next."""
        if self.peek(word):
            self._at += 1
            return True
        return False

    def name(self, what: str = "a name") -> str:
        word = self._words[self._at] if self._at < len(self._words) else ""
        if not _DOTTED.fullmatch(word):
            self.fail(what)
        self._at += 1
        return word

    def number(self, what: str = "a number") -> int:
        word = self._words[self._at] if self._at < len(self._words) else ""
        if not (word.isascii() and word.isdigit()):
            self.fail(what)
        if len(word) > 9:
            self.fail("a number of at most 9 digits")
        self._at += 1
        return int(word)

    def names(self) -> tuple[str, ...]:
        """One or more names, separated by commas."""
        out = [self.name()]
        while self.accept(","):
            out.append(self.name())
        return tuple(out)

    def three(self) -> tuple[str, str, str]:
        """Three names, separated by commas."""
        first = self.name()
        self.take(",")
        second = self.name()
        self.take(",")
        return first, second, self.name()

    def choice(self, *words: str) -> str:
        for word in words:
            if self.accept(word):
                return word
        self.fail(" or ".join(f"`{w}`" for w in words))

    def end(self) -> None:
        if self._at < len(self._words):
            self.fail("the end of the line")
