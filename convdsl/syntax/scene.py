"""Where in the language a syntax error stands: the words before it and the brackets around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from convdsl.diagnostics import Source, Span
from convdsl.syntax.words import Word

Place = Literal[
    "top", "params", "sizes", "index", "composite", "binders", "relations", "args", "group",
    "where", "body", "schedule",
]  # fmt: skip

REDUCERS = ("sum", "prod", "max", "min")
RESERVED = (*REDUCERS, "let", "else")
OPERATORS = ("+", "-", "*", "/", "//", "%")
COMPARES = ("==", "!=", "<", "<=", ">", ">=")
CLOSERS = {")": "(", "]": "[", "}": "{"}


@dataclass(frozen=True, slots=True)
class Frame:
    """An open bracket: its index among the words, and what it is part of."""

    index: int
    bracket: str
    place: Place


@dataclass(frozen=True, slots=True)
class Scene:
    """The first word that does not fit, with everything that a rule may ask about it.

    `found` is the word ("" at the end of the text). `expected` is what would fit: words as they are
    written, and NAME, NUMBER, MULTIPLY, COMPARE, QNAME, $END for the open classes. `words` are the
    words before it, `frames` the brackets open there, outermost first.
    """

    source: Source
    found: str
    span: Span
    expected: frozenset[str]
    words: tuple[Word, ...]
    frames: tuple[Frame, ...]

    @property
    def place(self) -> Place:
        """The part of the language around the word."""
        if self.frames:
            return self.frames[-1].place
        outline = [word.text for word in reversed(self.words)]
        if "}" in outline:
            del outline[outline.index("}") :]
        return "where" if "where" in outline[:-3] else "top"

    def before(self, back: int = 1) -> str:
        """The text of the word `back` places before, or nothing."""
        return self.words[-back].text if back <= len(self.words) else ""

    def word_span(self, index: int) -> Span:
        """The place of one of the words."""
        word = self.words[index]
        return Span(self.source, word.start, word.end)

    def opener_of(self, closer: int) -> int | None:
        """The index of the bracket that the word at `closer` closes."""
        depth = 0
        for index in range(closer, -1, -1):
            text = self.words[index].text
            if text in CLOSERS:
                depth += 1
            elif text in CLOSERS.values():
                depth -= 1
                if depth == 0:
                    return index
        return None


def frames(words: Sequence[Word]) -> tuple[Frame, ...]:
    """The brackets left open by a row of words."""
    stack: list[Frame] = []
    for index, word in enumerate(words):
        text = word.text
        if text in CLOSERS:
            if stack and stack[-1].bracket == CLOSERS[text]:
                stack.pop()
        elif text in CLOSERS.values():
            stack.append(Frame(index, text, _place(words, index, stack)))
        elif text == "|" and stack and stack[-1].place == "binders":
            stack[-1] = Frame(stack[-1].index, stack[-1].bracket, "relations")
    return tuple(stack)


def _place(words: Sequence[Word], index: int, outer: Sequence[Frame]) -> Place:
    text = words[index].text
    before = [w.text for w in words[max(0, index - 4) : index]]
    last = before[-1] if before else ""
    named = bool(last) and (last[0].isalpha() and last not in ("let", "else"))
    inside = outer[-1].place if outer else "top"
    if text == "{":
        return "schedule" if before[:1] == ["schedule"] else "body"
    if text == "[":
        if last in REDUCERS:
            return "binders"
        declared = before[-2:-1] == [":"]
        return "sizes" if declared and inside in ("top", "params") else "index"
    if before[-2:-1] == ["op"] and inside == "top":
        return "params"
    if inside == "index":
        return "composite"
    return "args" if named else "group"
