"""Comments in formatted text: found in the source, put back where they belong, never lost.

Formatting keeps the words of a text and their order, but for parentheses and commas. So a comment
is remembered by the number of *kept* words before it, and finds its line again by counting. One at
the end of a line goes to the end of the line that holds the word before it; one on a line of its
own goes above the line that holds the word after it. `Cuts` tell the printer where comments fall,
so that it breaks lines there instead of gathering several comments at the end of one.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import dataclass, replace

from convdsl.syntax.words import words, words_and_comments

_FREE = frozenset("(),")


def kept_count(text: str) -> int:
    """How many words of a text formatting keeps."""
    return sum(word.text not in _FREE for word in words(text))


@dataclass(frozen=True, slots=True)
class Cuts:
    """Where comments fall, as sorted numbers of kept words before them."""

    ends: tuple[int, ...] = ()
    """Comments at the end of a line."""
    owns: tuple[int, ...] = ()
    """Comments on lines of their own."""

    def inside(self, start: int, end: int) -> bool:
        """Whether a comment falls between two words of the range."""
        return _any(self.ends, start + 1, end) or _any(self.owns, start + 1, end)

    def before(self, start: int, end: int) -> bool:
        """Whether a line comment stands above one of these words."""
        return _any(self.owns, start, end)

    def after(self, start: int, end: int) -> bool:
        """Whether a comment ends the line of one of these words."""
        return _any(self.ends, start + 1, end + 1)


NO_CUTS = Cuts()


def _any(places: tuple[int, ...], low: int, high: int) -> bool:
    return bisect_left(places, low) < bisect_left(places, high)


@dataclass(frozen=True, slots=True)
class Comment:
    """A comment: the kept words before it, whether it ends a line, whether a blank precedes it."""

    text: str
    before: int
    ends: bool
    gap: bool


class Comments:
    """All comments of a text."""

    def __init__(self, text: str) -> None:
        self.all: list[Comment] = []
        self._gaps: set[int] = set()  # kept words before a word that follows comment, blank line
        count = 0
        last = 0  # where the previous word or comment ended
        after_comment = False
        for word in words_and_comments(text):
            newlines = text.count("\n", last, word.start)
            if word.is_comment:
                ends = last > 0 and newlines == 0
                self.all.append(Comment(word.text, count, ends, newlines > 1))
            else:
                if after_comment and newlines > 1:
                    self._gaps.add(count)
                count += word.text not in _FREE
            after_comment = word.is_comment
            last = word.end
        if after_comment:
            self._gaps.discard(count)

    @property
    def cuts(self) -> Cuts:
        """What the printer must know."""
        return Cuts(
            tuple(c.before for c in self.all if c.ends),
            tuple(c.before for c in self.all if not c.ends),
        )

    def put_into(self, lines: list[str]) -> str:
        """The lines with every comment put back."""
        totals: list[int] = []
        for line in lines:
            totals.append((totals[-1] if totals else 0) + kept_count(line))
        above: list[list[Comment]] = [[] for _ in range(len(lines) + 1)]
        behind: list[Comment | None] = [None] * (len(lines) + 1)
        for comment in self.all:
            search = bisect_left if comment.ends else bisect_right
            index = search(totals, comment.before)
            if earlier := behind[index]:  # a line has one end, and comments keep their order
                above[index].append(replace(earlier, gap=False))
            behind[index] = comment if comment.ends else None
            if not comment.ends:
                above[index].append(comment)
        out: list[str] = []
        for index, line in enumerate([*_with_ends(lines, behind), ""]):
            self._put_above(out, above[index], lines[index] if index < len(lines) else "")
            if index < len(lines):
                out.append(line)
        return "".join(line + "\n" for line in out)

    def _put_above(self, out: list[str], comments: list[Comment], line: str) -> None:
        if not comments:
            return
        indent = len(line) - len(line.lstrip(" "))
        if line.startswith(("}", ")")):
            indent = 4
        for comment in comments:
            if comment.gap and indent == 0 and out and out[-1]:
                out.append("")
            out.append(" " * indent + comment.text)
        if indent == 0 and comments[-1].before in self._gaps and line:
            out.append("")


def _with_ends(lines: list[str], behind: list[Comment | None]) -> list[str]:
    """Comments at the ends of lines, those of neighbouring lines in one column."""
    out: list[str] = []
    run: list[tuple[str, str]] = []
    for line, comment in zip(lines, behind, strict=False):
        if run and (comment is None or line.startswith(("}", ")"))):
            out += _aligned(run)
            run = []
        if comment is None:
            out.append(line)
        else:
            run.append((line, comment.text))
    return out + _aligned(run)


def _aligned(run: list[tuple[str, str]]) -> list[str]:
    column = max((len(line) for line, _ in run), default=0) + 2
    return [line.ljust(column) + comment for line, comment in run]
